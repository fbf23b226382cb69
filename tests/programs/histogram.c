/* How often each byte occurs, counted in three ways, and sums by class. */
#include "base/program.h"

static const struct shape shape = {.blocks = 24, .threads = 128};

static void counted(const char *kernel, CUdeviceptr words, unsigned count, const uint32_t *want) {
    uint32_t got[256];
    CUdeviceptr counts = device_new(sizeof got);
    LAUNCH(kernel, shape, &words, &count, &counts);
    device_read(got, counts, sizeof got);
    expect_equal(kernel, got, want, sizeof got);
    checksum(kernel, got, sizeof got);
}

PROGRAM("histogram") {
    unsigned count = program_scale(16) * 100003u;
    uint32_t *words = host_new(count * sizeof *words), want[256] = {0}, first[256] = {0};
    uint64_t sums[16] = {0}, got[16];
    for (unsigned i = 0; i < count; i++) {
        words[i] = i % 4 ? random_bits() : random_bits() & 0x01010101u; /* some are frequent */
        for (unsigned j = 0; j < 32; j += 8)
            want[words[i] >> j & 255]++;
        first[words[i] & 255]++;
        sums[words[i] >> 28] += (uint64_t)(words[i] & 0xffffff) << 8;
    }
    CUdeviceptr device = device_copy(words, count * sizeof *words), totals = device_new(sizeof got);
    counted("in_global", device, count, want);
    counted("in_shared", device, count, want);
    counted("by_match", device, count, first);
    LAUNCH("weights", shape, &device, &count, &totals);
    device_read(got, totals, sizeof got);
    expect_equal("weights", got, sums, sizeof got);
    checksum("weights", got, sizeof got);
}
