/* A wave in a volume with a fixed border, in f64. */
#include "base/program.h"

#include <math.h>

struct volume {
    unsigned width, height, depth;
};

static void step(struct volume v, const double *now, const double *before, double *after,
                 double speed) {
    size_t row = v.width, layer = (size_t)v.width * v.height;
    for (unsigned z = 1; z < v.depth - 1; z++)
        for (unsigned y = 1; y < v.height - 1; y++)
            for (unsigned x = 1; x < v.width - 1; x++) {
                size_t at = z * layer + y * row + x;
                double sum = (now[at - 1] + now[at + 1]) + (now[at - row] + now[at + row]) +
                             (now[at - layer] + now[at + layer]);
                after[at] = fma(speed, fma(-6, now[at], sum), fma(2, now[at], -before[at]));
            }
}

PROGRAM("stencil_3d") {
    struct volume v = {45, 29, 24};
    unsigned steps = 8 * program_scale(40), blocks_x = (v.width + 29) / 32,
             blocks_y = (v.height + 5) / 8;
    size_t bytes = (size_t)v.width * v.height * v.depth * sizeof(double);
    double *host[3] = {host_new(bytes), host_new(bytes), host_new(bytes)}, *got = host_new(bytes);
    double speed = 0.1;
    for (unsigned z = 1; z < v.depth - 1; z++)
        for (unsigned y = 1; y < v.height - 1; y++)
            for (unsigned x = 1; x < v.width - 1; x++)
                host[1][(z * v.height + y) * v.width + x] = (double)random_bits() * 0x1p-32;
    CUdeviceptr device[3];
    for (unsigned i = 0; i < 3; i++)
        device[i] = device_copy(host[i], bytes);
    for (unsigned i = 0; i < steps; i++) {
        unsigned before = i % 3, now = (i + 1) % 3, after = (i + 2) % 3;
        LAUNCH("wave", SHAPE(blocks_x, 32, blocks_y, 8), &device[now], &device[before],
               &device[after], &v.width, &v.height, &v.depth, &speed);
        step(v, host[now], host[before], host[after], speed);
    }
    device_read(got, device[(steps + 1) % 3], bytes);
    expect_equal("volume", got, host[(steps + 1) % 3], bytes);
    checksum("volume", got, bytes);
}
