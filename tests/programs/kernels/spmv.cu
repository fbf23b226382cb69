// Sparse matrices times vectors: rows by threads, rows by warps, and by coordinates with atomics on
// numbers in fixed point.
#include "device.cuh"

KERNEL by_thread(const u32 *rows, const u32 *columns, const double *values, const double *x,
                 double *y, u32 count) {
    u32 row = index();
    if (row >= count)
        return;
    double sum = 0;
    for (u32 i = rows[row]; i < rows[row + 1]; i++)
        sum = fused(values[i], x[columns[i]], sum);
    y[row] = sum;
}

KERNEL by_warp(const u32 *rows, const u32 *columns, const double *values, const double *x,
               double *y, u32 count) {
    u32 row = index() / 32;
    if (row >= count)
        return;
    double sum = 0;
    for (u32 i = rows[row] + lane(); i < rows[row + 1]; i += 32)
        sum = fused(values[i], x[columns[i]], sum);
    for (u32 distance = 16; distance > 0; distance /= 2) {
        u64 bits = __builtin_bit_cast(u64, sum);
        u64 low = shuffle_down((u32)bits, distance), high = shuffle_down((u32)(bits >> 32), distance);
        sum += __builtin_bit_cast(double, high << 32 | low);
    }
    if (lane() == 0)
        y[row] = sum;
}

KERNEL by_number(const u32 *row_of, const u32 *columns, const double *values, const double *x,
                 u64 *y, u32 count) {
    for (u32 i = index(); i < count; i += all_threads()) {
        double product = values[i] * x[columns[i]] * 0x1p40;
        atomic_add(&y[row_of[i]], (u64)(long long)product);
    }
}
