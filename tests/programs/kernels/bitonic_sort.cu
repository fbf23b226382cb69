// A bitonic sort of a power of two of floats, by their order as numbers: short distances in shared
// memory, long ones in global memory.
#include "device.cuh"

#define TILE 512

INLINE void exchange(float &a, float &b, bool up) {
    if ((a > b) == up) {
        float kept = a;
        a = b;
        b = kept;
    }
}

// All steps of runs up to TILE.
KERNEL sort_tiles(float *values) {
    SHARED float part[TILE];
    float *own = values + block() * TILE;
    u32 i = thread();
    part[i] = own[i];
    part[i + TILE / 2] = own[i + TILE / 2];
    for (u32 run = 2; run <= TILE; run *= 2)
        for (u32 distance = run / 2; distance > 0; distance /= 2) {
            sync();
            u32 low = 2 * i - (i & (distance - 1));
            exchange(part[low], part[low + distance], ((block() * TILE + low) & run) == 0);
        }
    sync();
    own[i] = part[i];
    own[i + TILE / 2] = part[i + TILE / 2];
}

KERNEL merge_far(float *values, u32 run, u32 distance) {
    u32 low = 2 * index() - (index() & (distance - 1));
    exchange(values[low], values[low + distance], (low & run) == 0);
}

KERNEL merge_tiles(float *values, u32 run) {
    SHARED float part[TILE];
    float *own = values + block() * TILE;
    u32 i = thread();
    part[i] = own[i];
    part[i + TILE / 2] = own[i + TILE / 2];
    for (u32 distance = TILE / 2; distance > 0; distance /= 2) {
        sync();
        u32 low = 2 * i - (i & (distance - 1));
        exchange(part[low], part[low + distance], ((block() * TILE + low) & run) == 0);
    }
    sync();
    own[i] = part[i];
    own[i + TILE / 2] = part[i + TILE / 2];
}
