/* Bodies under gravity, in f32 with correctly rounded roots and quotients: bit for bit as on the
 * host. */
#include "base/program.h"

#include <math.h>

#define TILE 64u

struct body {
    float x, y, z, mass;
};

static void step(const struct body *in, struct body *out, struct body *speed, unsigned count,
                 float time) {
    for (unsigned i = 0; i < count; i++) {
        struct body own = in[i], *v = &speed[i];
        float ax = 0, ay = 0, az = 0;
        for (unsigned j = 0; j < count; j++) {
            float dx = in[j].x - own.x, dy = in[j].y - own.y, dz = in[j].z - own.z;
            float square = fmaf(dx, dx, fmaf(dy, dy, fmaf(dz, dz, 0.01f)));
            float weight = in[j].mass / (square * sqrtf(square));
            ax = fmaf(dx, weight, ax);
            ay = fmaf(dy, weight, ay);
            az = fmaf(dz, weight, az);
        }
        v->x = fmaf(ax, time, v->x);
        v->y = fmaf(ay, time, v->y);
        v->z = fmaf(az, time, v->z);
        out[i] = (struct body){fmaf(v->x, time, own.x), fmaf(v->y, time, own.y),
                               fmaf(v->z, time, own.z), own.mass};
    }
}

PROGRAM("n_body") {
    unsigned count = TILE * 6, steps = 4 * program_scale(10);
    size_t bytes = count * sizeof(struct body);
    struct body *bodies[2] = {host_new(bytes), host_new(bytes)}, *speed = host_new(bytes);
    struct body *got = host_new(bytes);
    float time = 0.01f;
    for (unsigned i = 0; i < count; i++)
        bodies[0][i] =
            (struct body){random_float(), random_float(), random_float(), random_float() * 0.01f};
    CUdeviceptr device[2] = {device_copy(bodies[0], bytes), device_new(bytes)};
    CUdeviceptr speeds = device_new(bytes);
    for (unsigned i = 0; i < steps; i++) {
        LAUNCH("step", SHAPE(count / TILE, TILE), &device[i % 2], &device[1 - i % 2], &speeds,
               &count, &time);
        step(bodies[i % 2], bodies[1 - i % 2], speed, count, time);
    }
    device_read(got, device[steps % 2], bytes);
    expect_equal("positions", got, bodies[steps % 2], bytes);
    checksum("positions", got, bytes);
    device_read(got, speeds, bytes);
    expect_equal("speeds", got, speed, bytes);
}
