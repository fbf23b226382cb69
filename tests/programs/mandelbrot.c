/* The Mandelbrot set: the iterations of each point, and a picture of some. */
#include "base/program.h"

#include <math.h>
#include <stdio.h>

static unsigned steps_f32(float x, float y, unsigned most) {
    float a = 0, b = 0;
    unsigned count = 0;
    for (; count < most && a * a + b * b <= 4; count++) {
        float next = fmaf(a, a, fmaf(-b, b, x));
        b = fmaf(2 * a, b, y);
        a = next;
    }
    return count;
}

static unsigned steps_f64(double x, double y, unsigned most) {
    double a = 0, b = 0;
    unsigned count = 0;
    for (; count < most && a * a + b * b <= 4; count++) {
        double next = fma(a, a, fma(-b, b, x));
        b = fma(2 * a, b, y);
        a = next;
    }
    return count;
}

static void picture(const uint32_t *steps, unsigned width, unsigned height, unsigned most) {
    for (unsigned y = 0; y < height; y += height / 16) {
        for (unsigned x = 0; x < width; x += width / 60)
            putchar(" .:-=+*%@#"[steps[y * width + x] * 9 / most]);
        putchar('\n');
    }
}

PROGRAM("mandelbrot") {
    unsigned width = 180 * program_scale(4), height = width / 2 / 4 * 4, most = 120;
    size_t bytes = width * height * sizeof(uint32_t);
    uint32_t *want = host_new(bytes), *got = host_new(bytes);
    struct shape shape = SHAPE((width + 31) / 32, 32, height / 4, 4);
    float left = -2.1f, top = -1.2f, step = 3.0f / (float)width * 1.05f;
    CUdeviceptr out = device_new(bytes);
    LAUNCH("in_f32", shape, &out, &width, &left, &top, &step, &most);
    device_read(got, out, bytes);
    for (unsigned i = 0; i < width * height; i++)
        want[i] = steps_f32(fmaf((float)(i % width), step, left),
                            fmaf((float)(i / width), step, top), most);
    expect_equal("in f32", got, want, bytes);
    checksum("in f32", got, bytes);
    picture(got, width, height, most);
    double left64 = -0.7436, top64 = 0.1318, step64 = 1e-5;
    LAUNCH("in_f64", shape, &out, &width, &left64, &top64, &step64, &most);
    device_read(got, out, bytes);
    for (unsigned i = 0; i < width * height; i++)
        want[i] = steps_f64(fma((double)(i % width), step64, left64),
                            fma((double)(i / width), step64, top64), most);
    expect_equal("in f64", got, want, bytes);
    checksum("in f64", got, bytes);
}
