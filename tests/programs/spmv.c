/* Sparse matrices with rows of very different lengths, times a vector. */
#include "base/program.h"

#include <math.h>

static unsigned count;   /* rows and columns */
static unsigned numbers; /* nonzero elements */
static uint32_t *rows, *columns, *row_of;
static double *values, *x;

static void make(unsigned size) {
    unsigned most = size * 10 + 1000;
    count = size;
    rows = host_new((size + 1) * sizeof *rows);
    columns = host_new(most * sizeof *columns);
    row_of = host_new(most * sizeof *row_of);
    values = host_new(most * sizeof *values);
    x = host_new(size * sizeof *x);
    for (unsigned row = 0; row < size; row++) {
        unsigned length = row % 97 == 5 ? 300 : random_bits() % 12; /* many are empty or short */
        for (unsigned i = 0; i < length && numbers < most; i++) {
            columns[numbers] = random_bits() % size;
            row_of[numbers] = row;
            values[numbers++] = (double)random_bits() * 0x1p-32 - 0.5;
        }
        rows[row + 1] = numbers;
        x[row] = (double)random_bits() * 0x1p-32 - 0.5;
    }
}

/* The sum of a row, in the order in which a warp adds. */
static double warp_sum(unsigned row) {
    double lanes[64] = {0};
    for (unsigned i = rows[row]; i < rows[row + 1]; i++) {
        unsigned lane = (i - rows[row]) % 32;
        lanes[lane] = fma(values[i], x[columns[i]], lanes[lane]);
    }
    for (unsigned distance = 16; distance > 0; distance /= 2)
        for (unsigned lane = 0; lane < distance; lane++)
            lanes[lane] += lanes[lane + distance];
    return lanes[0];
}

PROGRAM("spmv") {
    make(3001 * program_scale(10));
    size_t bytes = count * sizeof(double);
    double *want = host_new(bytes), *got = host_new(bytes);
    CUdeviceptr r = device_copy(rows, (count + 1) * 4), c = device_copy(columns, numbers * 4);
    CUdeviceptr o = device_copy(row_of, numbers * 4), v = device_copy(values, numbers * 8);
    CUdeviceptr in = device_copy(x, bytes), y = device_new(bytes), z = device_new(bytes);
    LAUNCH("by_thread", SHAPE((count + 127) / 128, 128), &r, &c, &v, &in, &y, &count);
    device_read(got, y, bytes);
    for (unsigned row = 0; row < count; row++)
        for (unsigned i = rows[row]; i < rows[row + 1]; i++)
            want[row] = fma(values[i], x[columns[i]], want[row]);
    expect_equal("rows by threads", got, want, bytes);
    checksum("rows by threads", got, bytes);
    LAUNCH("by_warp", SHAPE((count + 3) / 4, 128), &r, &c, &v, &in, &y, &count);
    device_read(got, y, bytes);
    for (unsigned row = 0; row < count; row++)
        want[row] = warp_sum(row);
    expect_equal("rows by warps", got, want, bytes);
    checksum("rows by warps", got, bytes);
    LAUNCH("by_number", SHAPE(20, 128), &o, &c, &v, &in, &z, &numbers);
    int64_t *fixed = host_new(bytes), *sums = host_new(bytes);
    device_read(fixed, z, bytes);
    for (unsigned i = 0; i < numbers; i++)
        sums[row_of[i]] += (int64_t)(values[i] * x[columns[i]] * 0x1p40);
    expect_equal("numbers by atomics", fixed, sums, bytes);
    checksum("numbers by atomics", fixed, bytes);
}
