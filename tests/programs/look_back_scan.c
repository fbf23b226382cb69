/* Prefix sums in one launch: each block waits for what its predecessors publish. */
#include "base/program.h"

#define THREADS 128u
#define TILE    (4 * THREADS)

static void scan(unsigned count) {
    uint32_t *in = host_new(count * sizeof *in), *want = host_new(count * sizeof *want);
    uint32_t *got = host_new(count * sizeof *got), sum = 0;
    for (unsigned i = 0; i < count; i++)
        want[i] = sum += in[i] = random_bits() >> 12;
    unsigned tiles = (count + TILE - 1) / TILE;
    CUdeviceptr from = device_copy(in, count * sizeof *in), to = device_new(count * sizeof *in);
    CUdeviceptr states = device_new(tiles * sizeof(uint64_t)), next = device_new(4);
    LAUNCH("scan", SHAPE(tiles, THREADS), &from, &to, &count, &states, &next);
    device_read(got, to, count * sizeof *got);
    expect_equal("prefix sums", got, want, count * sizeof *got);
    checksum("prefix sums", got, count * sizeof *got);
}

PROGRAM("look_back_scan") {
    scan(1);
    scan(TILE);
    scan(TILE * 40 + 3);
    scan(program_scale(16) * 300007u);
}
