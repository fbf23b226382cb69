/* Products of f16 matrices by wmma, of small integers, so that every sum is exact. */
#include "base/program.h"

static uint16_t half_of(int value) {
    uint32_t sign = value < 0 ? 0x8000 : 0, size = (uint32_t)(value < 0 ? -value : value);
    uint32_t exponent = 25;
    if (!size)
        return 0;
    for (; size < 1024; exponent--)
        size *= 2;
    return (uint16_t)(sign | exponent << 10 | (size & 0x3ff));
}

PROGRAM("matrix_wmma") {
    unsigned rows = 64, inner = 80 * program_scale(3), columns = 96;
    float scale = 0.375f;
    int *a = host_new(rows * inner * sizeof *a), *b = host_new(inner * columns * sizeof *b);
    uint16_t *a16 = host_new(rows * inner * 2), *b16 = host_new(inner * columns * 2);
    float *bias = host_new(columns * 16 * sizeof *bias);
    float *want = host_new(rows * columns * sizeof *want), *got = host_new(rows * columns * 4);
    uint16_t *want16 = host_new(rows * columns * 2), *got16 = host_new(rows * columns * 2);
    for (unsigned i = 0; i < rows * inner; i++)
        a16[i] = half_of(a[i] = (int)(random_bits() % 7) - 3);
    for (unsigned i = 0; i < columns * inner; i++) /* column-major */
        b16[i] = half_of(b[i] = (int)(random_bits() % 7) - 3);
    for (unsigned x = 0; x < columns; x++)
        bias[x] = (float)(random_bits() % 100) * 0.25f;
    for (unsigned y = 0; y < rows; y++)
        for (unsigned x = 0; x < columns; x++) {
            int sum = 0;
            for (unsigned i = 0; i < inner; i++)
                sum += a[y * inner + i] * b[x * inner + i];
            want[y * columns + x] = ((float)sum + bias[x]) * scale;
            want16[y * columns + x] = half_of(sum);
        }
    CUdeviceptr left = device_copy(a16, rows * inner * 2);
    CUdeviceptr right = device_copy(b16, inner * columns * 2);
    CUdeviceptr extra = device_copy(bias, columns * 16 * sizeof *bias);
    CUdeviceptr sums = device_new(rows * columns * 4), sums16 = device_new(rows * columns * 2);
    struct shape shape = SHAPE(columns / 16, 32, rows / 16);
    LAUNCH("multiply_f32", shape, &left, &right, &extra, &sums, &inner, &columns, &scale);
    LAUNCH("multiply_f16", shape, &left, &right, &sums16, &inner, &columns);
    device_read(got, sums, rows * columns * 4);
    device_read(got16, sums16, rows * columns * 2);
    expect_equal("sums in f32, with a bias, scaled", got, want, rows * columns * 4);
    expect_equal("sums in f16", got16, want16, rows * columns * 2);
    checksum("sums in f32, with a bias, scaled", got, rows * columns * 4);
    checksum("sums in f16", got16, rows * columns * 2);
}
