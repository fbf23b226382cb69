/* Keys of 64 bits, sorted by merging runs; the count is not a multiple of the run or block size. */
#include "base/program.h"

#define TILE    256u
#define EACH    8u
#define THREADS 128u

static int compare(const void *left, const void *right) {
    const uint64_t *a = left, *b = right;
    return *a < *b ? -1 : *a > *b;
}

PROGRAM("merge_sort") {
    unsigned count = program_scale(12) * 60013u, from = 1;
    size_t bytes = count * sizeof(uint64_t);
    uint64_t *keys = host_new(bytes), *got = host_new(bytes);
    for (unsigned i = 0; i < count; i++)
        keys[i] = i % 5 ? (uint64_t)random_bits() << 32 | random_bits() : random_bits() % 100;
    CUdeviceptr buffers[2] = {device_copy(keys, bytes), device_new(bytes)};
    LAUNCH("sort_tiles", SHAPE((count + TILE - 1) / TILE, TILE), &buffers[0], &buffers[1], &count);
    for (unsigned run = TILE; run < count; run *= 2, from ^= 1) {
        unsigned parts = (count + EACH - 1) / EACH;
        LAUNCH("merge_runs", SHAPE((parts + THREADS - 1) / THREADS, THREADS), &buffers[from],
               &buffers[from ^ 1], &count, &run);
    }
    qsort(keys, count, sizeof *keys, compare);
    device_read(got, buffers[from], bytes);
    expect_equal("keys in order", got, keys, bytes);
    checksum("keys in order", got, bytes);
}
