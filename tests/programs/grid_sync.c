/* Cooperative launches, with a grid barrier after each step of an iteration. */
#include "base/program.h"

#define BLOCKS  12u
#define THREADS 128u

static CUlaunchAttribute cooperative(void) {
    return (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1};
}

static void check(const char *what, CUdeviceptr result, const double *want, unsigned count) {
    double *got = host_new(count * sizeof *got);
    device_read(got, result, count * sizeof *got);
    expect_equal(what, got, want, count * sizeof *got);
    checksum(what, got, count * sizeof *got);
}

PROGRAM("grid_sync") {
    unsigned count = 2 * BLOCKS * THREADS + 77, steps = 10 * program_scale(100);
    size_t bytes = count * sizeof(double);
    double *host[2] = {host_new(bytes), host_new(bytes)};
    for (unsigned i = 0; i < count; i++)
        host[0][i] = (double)random_bits() * 0x1p-32;
    host[1][0] = host[0][0];
    host[1][count - 1] = host[0][count - 1];
    CUdeviceptr own[2], grid[2], barrier = device_new(4);
    for (unsigned i = 0; i < 2; i++) {
        own[i] = device_copy(host[i], bytes);
        grid[i] = device_copy(host[i], bytes);
    }
    for (unsigned step = 0; step < steps; step++)
        for (unsigned i = 1; i < count - 1; i++)
            host[1 - step % 2][i] = (host[step % 2][i - 1] + host[step % 2][i + 1]) * 0.5;
    struct shape shape = SHAPE(BLOCKS, THREADS);
    LAUNCH_WITH(cooperative(), "own_barrier", shape, &own[0], &own[1], &count, &steps, &barrier);
    LAUNCH_WITH(cooperative(), "grid_barrier", shape, &grid[0], &grid[1], &count, &steps);
    check("barrier in global memory", own[steps % 2], host[steps % 2], count);
    check("barrier of cooperative groups", grid[steps % 2], host[steps % 2], count);
}
