// Matrix products by tiles in shared memory, in f32 and f64, of any sizes.
#include "device.cuh"

#define TILE 16

template <typename T>
INLINE void multiply(const T *a, const T *b, T *c, u32 rows, u32 inner, u32 columns,
                     T (*left)[TILE], T (*right)[TILE]) {
    u32 x = thread(), y = thread_y();
    u32 row = block_y() * TILE + y, column = block() * TILE + x;
    T sum = 0;
    for (u32 first = 0; first < inner; first += TILE) {
        left[y][x] = row < rows && first + x < inner ? a[row * inner + first + x] : T(0);
        right[y][x] = first + y < inner && column < columns ? b[(first + y) * columns + column] : T(0);
        sync();
#pragma unroll
        for (u32 i = 0; i < TILE; i++)
            sum = fused(left[y][i], right[i][x], sum);
        sync();
    }
    if (row < rows && column < columns)
        c[row * columns + column] = sum;
}

KERNEL multiply_f32(const float *a, const float *b, float *c, u32 rows, u32 inner, u32 columns) {
    SHARED float left[TILE][TILE], right[TILE][TILE];
    multiply(a, b, c, rows, inner, columns, left, right);
}

KERNEL multiply_f64(const double *a, const double *b, double *c, u32 rows, u32 inner,
                    u32 columns) {
    SHARED double left[TILE][TILE], right[TILE][TILE];
    multiply(a, b, c, rows, inner, columns, left, right);
}
