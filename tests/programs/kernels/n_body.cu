// Bodies that attract each other: all pairs, by tiles of positions in shared memory.
#include "device.cuh"

#define TILE 64

struct body {
    float x, y, z, mass;
};

KERNEL step(const body *in, body *out, body *speed, u32 count, float time) {
    SHARED body tile[TILE];
    body own = in[index()], v = speed[index()];
    float ax = 0, ay = 0, az = 0;
    for (u32 first = 0; first < count; first += TILE) {
        tile[thread()] = in[first + thread()];
        sync();
#pragma unroll 4
        for (u32 i = 0; i < TILE; i++) {
            float dx = tile[i].x - own.x, dy = tile[i].y - own.y, dz = tile[i].z - own.z;
            float square = fused(dx, dx, fused(dy, dy, fused(dz, dz, 0.01f)));
            float weight = tile[i].mass / (square * root(square));
            ax = fused(dx, weight, ax);
            ay = fused(dy, weight, ay);
            az = fused(dz, weight, az);
        }
        sync();
    }
    v.x = fused(ax, time, v.x);
    v.y = fused(ay, time, v.y);
    v.z = fused(az, time, v.z);
    speed[index()] = v;
    out[index()] = {fused(v.x, time, own.x), fused(v.y, time, own.y), fused(v.z, time, own.z), own.mass};
}
