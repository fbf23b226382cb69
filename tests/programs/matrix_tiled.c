/* Tiled matrix products, bit for bit those of the host, which fuses in the same order. */
#include "base/program.h"

#include <math.h>

#define TILE 16u

static struct shape shape_of(unsigned rows, unsigned columns) {
    return SHAPE((columns + TILE - 1) / TILE, TILE, (rows + TILE - 1) / TILE, TILE);
}

static void floats(unsigned rows, unsigned inner, unsigned columns) {
    size_t bytes = rows * columns * sizeof(float);
    float *a = host_new(rows * inner * sizeof *a), *b = host_new(inner * columns * sizeof *b);
    float *want = host_new(bytes), *got = host_new(bytes);
    for (unsigned i = 0; i < rows * inner; i++)
        a[i] = random_float() - 0.5f;
    for (unsigned i = 0; i < inner * columns; i++)
        b[i] = random_float() - 0.5f;
    for (unsigned y = 0; y < rows; y++)
        for (unsigned i = 0; i < inner; i++)
            for (unsigned x = 0; x < columns; x++)
                want[y * columns + x] =
                    fmaf(a[y * inner + i], b[i * columns + x], want[y * columns + x]);
    CUdeviceptr left = device_copy(a, rows * inner * sizeof *a);
    CUdeviceptr right = device_copy(b, inner * columns * sizeof *b), product = device_new(bytes);
    LAUNCH("multiply_f32", shape_of(rows, columns), &left, &right, &product, &rows, &inner,
           &columns);
    device_read(got, product, bytes);
    expect_equal("product of f32", got, want, bytes);
    checksum("product of f32", got, bytes);
}

static void doubles(unsigned rows, unsigned inner, unsigned columns) {
    size_t bytes = rows * columns * sizeof(double);
    double *a = host_new(rows * inner * sizeof *a), *b = host_new(inner * columns * sizeof *b);
    double *want = host_new(bytes), *got = host_new(bytes);
    for (unsigned i = 0; i < rows * inner; i++)
        a[i] = (double)random_bits() * 0x1p-32 - 0.5;
    for (unsigned i = 0; i < inner * columns; i++)
        b[i] = (double)random_bits() * 0x1p-32 - 0.5;
    for (unsigned y = 0; y < rows; y++)
        for (unsigned i = 0; i < inner; i++)
            for (unsigned x = 0; x < columns; x++)
                want[y * columns + x] =
                    fma(a[y * inner + i], b[i * columns + x], want[y * columns + x]);
    CUdeviceptr left = device_copy(a, rows * inner * sizeof *a);
    CUdeviceptr right = device_copy(b, inner * columns * sizeof *b), product = device_new(bytes);
    LAUNCH("multiply_f64", shape_of(rows, columns), &left, &right, &product, &rows, &inner,
           &columns);
    device_read(got, product, bytes);
    expect_equal("product of f64", got, want, bytes);
    checksum("product of f64", got, bytes);
}

PROGRAM("matrix_tiled") {
    unsigned more = program_scale(3);
    floats(128 * more, 128 * more, 128 * more);
    floats(67, 131, 45 * more);
    doubles(50, 77 * more, 66);
}
