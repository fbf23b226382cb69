// A step of a wave in a volume: each thread goes through the planes, with those before and after in
// registers and its own plane in shared memory.
#include "device.cuh"

#define TILE_X 32
#define TILE_Y 8

KERNEL wave(const double *now, const double *before, double *after, u32 width, u32 height,
            u32 depth, double speed) {
    SHARED double plane[TILE_Y + 2][TILE_X + 2];
    u32 x = block() * TILE_X + thread() + 1, y = block_y() * TILE_Y + thread_y() + 1;
    u32 i = thread() + 1, j = thread_y() + 1, row = width, layer = width * height;
    bool inside = x < width - 1 && y < height - 1;
    u64 at = (u64)y * row + x;
    double below = inside ? now[at] : 0, own = inside ? now[at + layer] : 0;
    for (u32 z = 1; z < depth - 1; z++) {
        at += layer;
        double above = inside ? now[at + layer] : 0;
        sync();
        if (inside) {
            plane[j][i] = own;
            if (thread() == 0)
                plane[j][0] = now[at - 1];
            if (thread_y() == 0)
                plane[0][i] = now[at - row];
            if (thread() == TILE_X - 1 || x == width - 2)
                plane[j][i + 1] = now[at + 1];
            if (thread_y() == TILE_Y - 1 || y == height - 2)
                plane[j + 1][i] = now[at + row];
        }
        sync();
        if (inside) {
            double sum = (plane[j][i - 1] + plane[j][i + 1]) +
                         (plane[j - 1][i] + plane[j + 1][i]) + (below + above);
            after[at] = fused(speed, fused(-6.0, own, sum), fused(2.0, own, -before[at]));
        }
        below = own;
        own = above;
    }
}
