// A diffusion step on a plane: a tile with its halo in shared memory, five points.
#include "device.cuh"

#define TILE_X 32
#define TILE_Y 8

KERNEL diffuse(const float *in, float *out, u32 width, u32 height, float rate) {
    SHARED float tile[TILE_Y + 2][TILE_X + 2];
    int left = (int)(block() * TILE_X) - 1, top = (int)(block_y() * TILE_Y) - 1;
    u32 own = thread_y() * TILE_X + thread();
    for (u32 i = own; i < (TILE_Y + 2) * (TILE_X + 2); i += TILE_X * TILE_Y) {
        int x = left + (int)(i % (TILE_X + 2)), y = top + (int)(i / (TILE_X + 2));
        // The border is as warm as what is next to it.
        x = x < 0 ? 0 : x < (int)width ? x : (int)width - 1;
        y = y < 0 ? 0 : y < (int)height ? y : (int)height - 1;
        tile[i / (TILE_X + 2)][i % (TILE_X + 2)] = in[(u32)y * width + (u32)x];
    }
    sync();
    u32 x = block() * TILE_X + thread(), y = block_y() * TILE_Y + thread_y();
    u32 i = thread() + 1, j = thread_y() + 1;
    if (x >= width || y >= height)
        return;
    float around = (tile[j - 1][i] + tile[j + 1][i]) + (tile[j][i - 1] + tile[j][i + 1]);
    out[y * width + x] = fused(rate, fused(-4.0f, tile[j][i], around), tile[j][i]);
}
