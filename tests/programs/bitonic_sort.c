/* Floats, sorted by a bitonic network. */
#include "base/program.h"

#define TILE 512u

static int compare(const void *left, const void *right) {
    const float *a = left, *b = right;
    return *a < *b ? -1 : *a > *b;
}

PROGRAM("bitonic_sort") {
    unsigned count = program_scale(8) * 32768u;
    size_t bytes = count * sizeof(float);
    float *values = host_new(bytes), *got = host_new(bytes);
    for (unsigned i = 0; i < count; i++)
        values[i] = (random_float() - 0.5f) * (float)(1u << (i % 20));
    CUdeviceptr device = device_copy(values, bytes);
    LAUNCH("sort_tiles", SHAPE(count / TILE, TILE / 2), &device);
    for (unsigned run = 2 * TILE; run <= count; run *= 2) {
        for (unsigned distance = run / 2; distance >= TILE; distance /= 2)
            LAUNCH("merge_far", SHAPE(count / TILE, TILE / 2), &device, &run, &distance);
        LAUNCH("merge_tiles", SHAPE(count / TILE, TILE / 2), &device, &run);
    }
    qsort(values, count, sizeof *values, compare);
    device_read(got, device, bytes);
    expect_equal("floats in order", got, values, bytes);
    checksum("floats in order", got, bytes);
}
