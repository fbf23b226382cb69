// Random numbers by Philox 4x32-10, whose state is a counter: points within a circle, and the number
// itself for a comparison.
#include "device.cuh"

struct four {
    u32 x[4];
};

INLINE four philox(four counter, u32 key0, u32 key1) {
    for (u32 round = 0; round < 10; round++) {
        u64 a = (u64)0xd2511f53u * counter.x[0], b = (u64)0xcd9e8d57u * counter.x[2];
        counter = {{(u32)(b >> 32) ^ counter.x[1] ^ key0, (u32)b,
                    (u32)(a >> 32) ^ counter.x[3] ^ key1, (u32)a}};
        key0 += 0x9e3779b9u;
        key1 += 0xbb67ae85u;
    }
    return counter;
}

KERNEL numbers(u32 *out, u32 key0, u32 key1) {
    four got = philox({{index(), 1, 2, 3}}, key0, key1);
    for (u32 i = 0; i < 4; i++)
        out[index() * 4 + i] = got.x[i];
}

// Each draw gives two points of f32 coordinates.
KERNEL circle(u32 draws, u32 key0, u32 key1, u64 *inside) {
    u32 own = 0;
    for (u32 i = 0; i < draws; i++) {
        four got = philox({{index(), i, 0, 0}}, key0, key1);
        for (u32 j = 0; j < 4; j += 2) {
            float x = (float)(got.x[j] >> 8) * 0x1p-24f, y = (float)(got.x[j + 1] >> 8) * 0x1p-24f;
            own += fused(x, x, y * y) < 1.0f;
        }
    }
    for (u32 mask = 16; mask > 0; mask /= 2)
        own += shuffle_xor(own, mask);
    if (lane() == 0)
        atomic_add(inside, (u64)own);
}
