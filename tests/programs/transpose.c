/* Transpositions of words of 32 and 64 bits and of bytes, some in place. */
#include "base/program.h"

static void fill(void *to, size_t bytes) {
    for (size_t i = 0; i < bytes / 4; i++)
        ((uint32_t *)to)[i] = random_bits();
}

static void direct(unsigned width, unsigned height) {
    size_t size = width * height * sizeof(uint32_t);
    uint32_t *in = host_new(size), *want = host_new(size), *got = host_new(size);
    fill(in, size);
    for (unsigned i = 0; i < width * height; i++)
        want[i % width * height + i / width] = in[i];
    CUdeviceptr from = device_copy(in, size), to = device_new(size);
    LAUNCH("direct", SHAPE((width + 31) / 32, 32, (height + 7) / 8, 8), &from, &to, &width,
           &height);
    device_read(got, to, size);
    expect_equal("directly", got, want, size);
    checksum("directly", got, size);
}

static void tiled(unsigned width, unsigned height) {
    size_t size = width * height * sizeof(uint64_t);
    uint64_t *in = host_new(size), *want = host_new(size), *got = host_new(size);
    fill(in, size);
    for (unsigned i = 0; i < width * height; i++)
        want[i % width * height + i / width] = in[i];
    CUdeviceptr from = device_copy(in, size), to = device_new(size);
    LAUNCH("tiled", SHAPE((width + 31) / 32, 32, (height + 31) / 32, 8), &from, &to, &width,
           &height);
    device_read(got, to, size);
    expect_equal("by tiles", got, want, size);
    checksum("by tiles", got, size);
}

static void in_place(unsigned side) {
    size_t size = side * side * sizeof(uint32_t);
    uint32_t *in = host_new(size), *want = host_new(size), *got = host_new(size);
    fill(in, size);
    for (unsigned i = 0; i < side * side; i++)
        want[i % side * side + i / side] = in[i];
    CUdeviceptr matrix = device_copy(in, size);
    LAUNCH("in_place", SHAPE(side / 32, 32, side / 32, 8), &matrix, &side);
    device_read(got, matrix, size);
    expect_equal("in place", got, want, size);
    checksum("in place", got, size);
}

static void of_bytes(unsigned words, unsigned height) {
    unsigned width = words * 4;
    size_t size = width * height;
    unsigned char *in = host_new(size), *want = host_new(size), *got = host_new(size);
    fill(in, size);
    for (unsigned i = 0; i < size; i++)
        want[i % width * height + i / width] = in[i];
    CUdeviceptr from = device_copy(in, size), to = device_new(size);
    LAUNCH("bytes", SHAPE((words * height / 4 + 127) / 128, 128), &from, &to, &words, &height);
    device_read(got, to, size);
    expect_equal("bytes", got, want, size);
    checksum("bytes", got, size);
}

PROGRAM("transpose") {
    unsigned more = program_scale(5);
    direct(211 * more, 97);
    tiled(145, 233 * more);
    in_place(256 * more);
    of_bytes(37 * more, 204);
}
