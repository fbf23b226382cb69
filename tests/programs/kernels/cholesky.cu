// Cholesky factors of a symmetric matrix in f64, column by column: a block for the column, then all
// for what is left; and the solution of a triangular system by one warp.
#include "device.cuh"

KERNEL column(double *a, u32 n, u32 k) {
    double root = __nvvm_sqrt_rn_d(a[k * n + k]);
    sync();
    if (thread() == 0)
        a[k * n + k] = root;
    for (u32 i = k + 1 + thread(); i < n; i += threads())
        a[i * n + k] /= root;
}

KERNEL rest(double *a, u32 n, u32 k) {
    u32 j = k + 1 + block() * 16 + thread(), i = k + 1 + block_y() * 16 + thread_y();
    if (i < n && j <= i)
        a[i * n + j] = fused(-a[i * n + k], a[j * n + k], a[i * n + j]);
}

KERNEL forward(const double *a, double *x, u32 n) {
    for (u32 k = 0; k < n; k++) {
        asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
        double own = ((volatile double *)x)[k] / a[k * n + k];
        asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
        if (lane() == 0)
            ((volatile double *)x)[k] = own;
        for (u32 i = k + 1 + lane(); i < n; i += 32)
            ((volatile double *)x)[i] = fused(-a[i * n + k], own, ((volatile double *)x)[i]);
    }
}
