/* Prefix sums: of the whole array in three launches, and of each block by a tree. */
#include "base/program.h"

#define THREADS 256u

static void whole(unsigned count, const uint32_t *in) {
    uint64_t *want = host_new(count * sizeof *want), *got = host_new(count * sizeof *got), sum = 0;
    for (unsigned i = 0; i < count; i++)
        want[i] = sum += in[i];
    unsigned blocks = (count + THREADS - 1) / THREADS;
    CUdeviceptr from = device_copy(in, count * sizeof *in), to = device_new(count * sizeof *got);
    CUdeviceptr sums = device_new(blocks * sizeof *got);
    LAUNCH("scan_blocks", SHAPE(blocks, THREADS), &from, &to, &sums, &count);
    LAUNCH("scan_sums", SHAPE(1, THREADS), &sums, &blocks);
    LAUNCH("add_sums", SHAPE(blocks, THREADS), &to, &sums, &count);
    device_read(got, to, count * sizeof *got);
    expect_equal("prefix sums of 64 bits", got, want, count * sizeof *got);
    checksum("prefix sums of 64 bits", got, count * sizeof *got);
}

static void by_blocks(unsigned blocks, const uint32_t *in) {
    unsigned each = 2 * THREADS, count = blocks * each;
    uint32_t *want = host_new(count * sizeof *want), *got = host_new(count * sizeof *got);
    for (unsigned i = 0; i < count; i++)
        want[i] = i % each ? want[i - 1] + in[i - 1] : 0;
    CUdeviceptr values = device_copy(in, count * sizeof *in);
    LAUNCH("tree", SHAPE(blocks, THREADS), &values);
    device_read(got, values, count * sizeof *got);
    expect_equal("exclusive sums of blocks", got, want, count * sizeof *got);
    checksum("exclusive sums of blocks", got, count * sizeof *got);
}

PROGRAM("block_scan") {
    unsigned count = program_scale(16) * 200001u;
    uint32_t *in = host_new(count * sizeof *in);
    for (unsigned i = 0; i < count; i++)
        in[i] = random_bits();
    whole(count, in);
    by_blocks(200 * program_scale(16), in);
}
