// The game of life on a torus: a byte a cell through shared memory, and a bit a cell, 32 at a time,
// by adders of bits.
#include "device.cuh"

#define TILE 16

KERNEL by_bytes(const u8 *in, u8 *out, u32 width, u32 height) {
    SHARED u8 tile[TILE + 2][TILE + 2];
    u32 own = thread_y() * TILE + thread();
    for (u32 i = own; i < (TILE + 2) * (TILE + 2); i += TILE * TILE) {
        u32 x = (block() * TILE + i % (TILE + 2) + width - 1) % width;
        u32 y = (block_y() * TILE + i / (TILE + 2) + height - 1) % height;
        tile[i / (TILE + 2)][i % (TILE + 2)] = in[y * width + x];
    }
    sync();
    u32 x = block() * TILE + thread(), y = block_y() * TILE + thread_y();
    if (x >= width || y >= height)
        return;
    u32 around = 0;
    for (u32 j = 0; j < 3; j++)
        for (u32 i = 0; i < 3; i++)
            around += tile[thread_y() + j][thread() + i];
    around -= tile[thread_y() + 1][thread() + 1];
    out[y * width + x] = around == 3 || (around == 2 && tile[thread_y() + 1][thread() + 1]);
}

struct bits {
    u32 low, high;
};

// Each place's sum of three, as two bits.
INLINE bits add(u32 a, u32 b, u32 c) {
    return {a ^ b ^ c, (a & b) | (c & (a ^ b))};
}

INLINE u32 left_of(const u32 *row, u32 x, u32 words) {
    return __builtin_rotateleft32(row[x] & 0x7fffffff, 1) | row[(x + words - 1) % words] >> 31;
}
INLINE u32 right_of(const u32 *row, u32 x, u32 words) {
    return row[x] >> 1 | row[(x + 1) % words] << 31;
}

KERNEL by_bits(const u32 *in, u32 *out, u32 words, u32 height) {
    u32 x = index() % words, y = index() / words;
    if (y >= height)
        return;
    const u32 *above = in + (y + height - 1) % height * words, *own = in + y * words;
    const u32 *below = in + (y + 1) % height * words;
    bits a = add(left_of(above, x, words), above[x], right_of(above, x, words));
    bits b = add(left_of(below, x, words), below[x], right_of(below, x, words));
    u32 left = left_of(own, x, words), right = right_of(own, x, words);
    bits c = {left ^ right, left & right};
    bits ones = add(a.low, b.low, c.low), twos = add(a.high, b.high, c.high);
    // The sum is ones.low + 2 (ones.high + twos.low) + 4 twos.high: 2 or 3 needs one two alone.
    u32 two = ones.high ^ twos.low, more = twos.high | (ones.high & twos.low);
    out[y * words + x] = two & ~more & (ones.low | own[x]);
}
