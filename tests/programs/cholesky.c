/* Cholesky factors in f64 and a triangular system: bit for bit as on the host. */
#include "base/program.h"

#include <math.h>

static void factor(double *a, unsigned n) {
    for (unsigned k = 0; k < n; k++) {
        a[k * n + k] = sqrt(a[k * n + k]);
        for (unsigned i = k + 1; i < n; i++)
            a[i * n + k] /= a[k * n + k];
        for (unsigned i = k + 1; i < n; i++)
            for (unsigned j = k + 1; j <= i; j++)
                a[i * n + j] = fma(-a[i * n + k], a[j * n + k], a[i * n + j]);
    }
}

PROGRAM("cholesky") {
    unsigned n = 70 * program_scale(4);
    size_t bytes = n * n * sizeof(double), vector = n * sizeof(double);
    double *a = host_new(bytes), *got = host_new(bytes), *want = host_new(bytes);
    double *x = host_new(vector), *got_x = host_new(vector), *ones = host_new(vector);
    for (unsigned i = 0; i < n; i++)
        for (unsigned j = 0; j <= i; j++) {
            a[i * n + j] = i == j ? n : (double)random_bits() * 0x1p-32 - 0.5;
            a[j * n + i] = a[i * n + j];
        }
    CUdeviceptr matrix = device_copy(a, bytes);
    for (unsigned k = 0; k < n; k++) {
        unsigned left = (n - k + 14) / 16;
        LAUNCH("column", SHAPE(1, 64), &matrix, &n, &k);
        if (left)
            LAUNCH("rest", SHAPE(left, 16, left, 16), &matrix, &n, &k);
    }
    memcpy(want, a, bytes);
    factor(want, n);
    device_read(got, matrix, bytes);
    expect_equal("factor", got, want, bytes);
    checksum("factor", got, bytes);
    /* The factor times a vector of ones, to be solved for the ones again. */
    for (unsigned i = 0; i < n; i++) {
        ones[i] = 1;
        for (unsigned j = 0; j <= i; j++)
            x[i] += want[i * n + j];
    }
    CUdeviceptr solution = device_copy(x, vector);
    LAUNCH("forward", SHAPE(1, 32), &matrix, &solution, &n);
    device_read(got_x, solution, vector);
    expect_near_double("solution", got_x, ones, n, 1e-12);
    checksum("solution", got_x, vector);
}
