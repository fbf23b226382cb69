/*
 * Products of f16 matrices with sums in f32, by mma. With small integers every sum is exact; with
 * fractions the checksum shows the device's own order and width of addition.
 */
#include "base/program.h"

/* The f16 equal to a float that is a multiple of 2^-10, of magnitude at most 2. */
static uint16_t half(float value) {
    uint32_t sign = value < 0 ? 0x8000 : 0, bits = 0;
    float size = value < 0 ? -value : value;
    if (size != 0.0f) {
        int exponent = 15;
        for (; size < 1; exponent--)
            size *= 2;
        for (; size >= 2; exponent++)
            size /= 2;
        bits = (uint32_t)exponent << 10 | ((uint32_t)(size * 1024) & 0x3ff);
    }
    return (uint16_t)(sign | bits);
}

static void product(const char *what, unsigned rows, unsigned inner, unsigned columns,
                    float (*number)(void), double bound) {
    float *a = host_new(rows * inner * sizeof *a), *b = host_new(inner * columns * sizeof *b);
    uint16_t *a16 = host_new(rows * inner * 2), *b16 = host_new(inner * columns * 2);
    double *want = host_new(rows * columns * sizeof *want);
    float *got = host_new(rows * columns * sizeof *got);
    for (unsigned i = 0; i < rows * inner; i++)
        a16[i] = half(a[i] = number());
    for (unsigned i = 0; i < inner * columns; i++)
        b16[i] = half(b[i] = number());
    for (unsigned y = 0; y < rows; y++)
        for (unsigned i = 0; i < inner; i++)
            for (unsigned x = 0; x < columns; x++)
                want[y * columns + x] += (double)a[y * inner + i] * (double)b[i * columns + x];
    CUdeviceptr left = device_copy(a16, rows * inner * 2);
    CUdeviceptr right = device_copy(b16, inner * columns * 2);
    CUdeviceptr sums = device_new(rows * columns * sizeof *got);
    LAUNCH("multiply", SHAPE(columns / 8, 32, rows / 16), &left, &right, &sums, &inner, &columns);
    device_read(got, sums, rows * columns * sizeof *got);
    expect_near(what, got, want, rows * columns, bound);
    checksum(what, got, rows * columns * sizeof *got);
}

static float integer(void) {
    return (float)(random_bits() % 17) - 8;
}

static float fraction(void) {
    return (float)(random_bits() % 2048) * 0x1p-10f - 1;
}

PROGRAM("matrix_mma") {
    unsigned more = program_scale(4);
    product("integers", 64, 96, 64 * more, integer, 0);
    product("fractions", 96, 128 * more, 80, fraction, 1e-5);
}
