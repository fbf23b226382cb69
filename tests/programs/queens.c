/* The n-queens problem: recursive functions, and stacks in local memory. */
#include "base/program.h"

static const unsigned known[] = {1, 1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680, 14200};

static void solve(unsigned size, unsigned recursive) {
    unsigned total = 0;
    uint32_t counts[13 * 13];
    CUdeviceptr each = device_new(sizeof counts), sum = device_new(4);
    LAUNCH("solve", SHAPE((size * size + 31) / 32, 32), &size, &recursive, &each, &sum);
    device_read(counts, each, sizeof counts);
    device_read(&total, sum, sizeof total);
    expect(total == known[size], "%u queens, %s: %u ways", size,
           recursive ? "by calls" : "with a stack", total);
    checksum("ways by the first two", counts, sizeof counts);
}

PROGRAM("queens") {
    OK(cu.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
    for (unsigned size = 5; size <= (program_scale(2) == 1 ? 8 : 10); size++)
        for (unsigned recursive = 0; recursive < 2; recursive++)
            solve(size, recursive);
}
