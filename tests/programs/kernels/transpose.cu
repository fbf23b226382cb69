// Transpositions: directly, through a padded tile, in place by pairs of tiles, and of bytes by byte
// permutes.
#include "device.cuh"

#define TILE 32
#define ROWS 8

KERNEL direct(const u32 *in, u32 *out, u32 width, u32 height) {
    u32 x = block() * TILE + thread(), y = block_y() * ROWS + thread_y();
    if (x < width && y < height)
        out[x * height + y] = in[y * width + x];
}

KERNEL tiled(const u64 *in, u64 *out, u32 width, u32 height) {
    SHARED u64 tile[TILE][TILE + 1];
    u32 left = block() * TILE, top = block_y() * TILE;
    for (u32 j = thread_y(); j < TILE; j += ROWS)
        if (left + thread() < width && top + j < height)
            tile[j][thread()] = in[(top + j) * width + left + thread()];
    sync();
    for (u32 j = thread_y(); j < TILE; j += ROWS)
        if (left + j < width && top + thread() < height)
            out[(left + j) * height + top + thread()] = tile[thread()][j];
}

// Of a square of whole tiles: a block on or above the diagonal changes its tile and the other one.
KERNEL in_place(u32 *matrix, u32 side) {
    SHARED u32 upper[TILE][TILE + 1], lower[TILE][TILE + 1];
    u32 left = block() * TILE, top = block_y() * TILE;
    if (left < top)
        return;
    for (u32 j = thread_y(); j < TILE; j += ROWS) {
        upper[j][thread()] = matrix[(top + j) * side + left + thread()];
        lower[j][thread()] = matrix[(left + j) * side + top + thread()];
    }
    sync();
    for (u32 j = thread_y(); j < TILE; j += ROWS) {
        matrix[(top + j) * side + left + thread()] = lower[thread()][j];
        matrix[(left + j) * side + top + thread()] = upper[thread()][j];
    }
}

INLINE u32 permute(u32 a, u32 b, u32 which) {
    return (u32)__nvvm_prmt((int)a, (int)b, (int)which);
}

// Each thread turns 4 x 4 bytes.
KERNEL bytes(const u32 *in, u32 *out, u32 words, u32 height) {
    u32 x = index() % words, y = index() / words * 4;
    if (y >= height)
        return;
    u32 a = in[y * words + x], b = in[(y + 1) * words + x];
    u32 c = in[(y + 2) * words + x], d = in[(y + 3) * words + x];
    u32 low = permute(a, b, 0x5140), high = permute(a, b, 0x7362);
    u32 low2 = permute(c, d, 0x5140), high2 = permute(c, d, 0x7362);
    u32 *own = out + x * 4 * (height / 4) + y / 4;
    own[0] = permute(low, low2, 0x5410);
    own[height / 4] = permute(low, low2, 0x7632);
    own[height / 2] = permute(high, high2, 0x5410);
    own[height / 4 * 3] = permute(high, high2, 0x7632);
}
