/* Copies in bulk with mbarriers: an average over eight neighbours, tile by tile. */
#include "base/program.h"

#include <math.h>

#define TILE 256u

PROGRAM("bulk_copy") {
    unsigned blocks = 5, tiles = 7 * program_scale(30), count = blocks * tiles * TILE;
    size_t bytes = count * sizeof(float), in_bytes = bytes + 8 * sizeof(float);
    float *in = host_new(in_bytes), *want = host_new(bytes), *got = host_new(bytes);
    for (unsigned i = 0; i < count + 8; i++)
        in[i] = random_float();
    for (unsigned i = 0; i < count; i++)
        for (unsigned j = 0; j < 8; j++)
            want[i] = fmaf(in[i + j], 0.125f, want[i]);
    CUdeviceptr from = device_copy(in, in_bytes), to = device_new(bytes);
    LAUNCH("smooth", SHAPE(blocks, TILE), &from, &to, &tiles);
    device_read(got, to, bytes);
    expect_equal("smoothed", got, want, bytes);
    checksum("smoothed", got, bytes);
}
