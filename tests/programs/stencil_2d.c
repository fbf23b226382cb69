/* Heat diffusing on a plane, in many steps: bit for bit as on the host. */
#include "base/program.h"

#include <math.h>

static float at(const float *plane, unsigned width, unsigned height, int x, int y) {
    x = x < 0 ? 0 : x < (int)width ? x : (int)width - 1;
    y = y < 0 ? 0 : y < (int)height ? y : (int)height - 1;
    return plane[(unsigned)y * width + (unsigned)x];
}

static void step(const float *in, float *out, unsigned width, unsigned height, float rate) {
    for (int y = 0; y < (int)height; y++)
        for (int x = 0; x < (int)width; x++) {
            float own = at(in, width, height, x, y);
            float around = (at(in, width, height, x, y - 1) + at(in, width, height, x, y + 1)) +
                           (at(in, width, height, x - 1, y) + at(in, width, height, x + 1, y));
            out[(unsigned)y * width + (unsigned)x] = fmaf(rate, fmaf(-4, own, around), own);
        }
}

PROGRAM("stencil_2d") {
    unsigned width = 173, height = 101, steps = 20 * program_scale(20);
    size_t bytes = width * height * sizeof(float);
    float *planes[2] = {host_new(bytes), host_new(bytes)}, *got = host_new(bytes), rate = 0.2f;
    for (unsigned i = 0; i < width * height; i++)
        planes[0][i] = i % 37 ? 0 : random_float() * 100;
    CUdeviceptr device[2] = {device_copy(planes[0], bytes), device_new(bytes)};
    struct shape shape = SHAPE((width + 31) / 32, 32, (height + 7) / 8, 8);
    for (unsigned i = 0; i < steps; i++) {
        LAUNCH("diffuse", shape, &device[i % 2], &device[1 - i % 2], &width, &height, &rate);
        step(planes[i % 2], planes[1 - i % 2], width, height, rate);
    }
    device_read(got, device[steps % 2], bytes);
    expect_equal("plane", got, planes[steps % 2], bytes);
    checksum("plane", got, bytes);
}
