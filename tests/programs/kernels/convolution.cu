// A filter of 5 x 5 whose source is a texture and whose result a surface; and an image resized
// through the texture's own filter.
#include "device.cuh"

INLINE float texel(u64 texture, float x, float y) {
    float r, g, b, a;
    asm volatile("tex.2d.v4.f32.f32 {%0, %1, %2, %3}, [%4, {%5, %6}];"
                 : "=f"(r), "=f"(g), "=f"(b), "=f"(a)
                 : "l"(texture), "f"(x), "f"(y));
    return r;
}

INLINE void store(u64 surface, u32 x, u32 y, float value) {
    asm volatile("sust.b.2d.b32.trap [%0, {%1, %2}], %3;" ::"l"(surface), "r"(4 * x), "r"(y),
                 "r"(__builtin_bit_cast(u32, value))
                 : "memory");
}

INLINE float load(u64 surface, u32 x, u32 y) {
    u32 value;
    asm volatile("suld.b.2d.b32.zero %0, [%1, {%2, %3}];"
                 : "=r"(value)
                 : "l"(surface), "r"(4 * x), "r"(y)
                 : "memory");
    return __builtin_bit_cast(float, value);
}

CONSTANT float weights[25];

KERNEL convolve(u64 texture, u64 surface, u32 width, u32 height) {
    u32 x = block() * threads() + thread(), y = block_y() * 8 + thread_y();
    if (x >= width || y >= height)
        return;
    float sum = 0;
    for (int j = -2; j <= 2; j++)
        for (int i = -2; i <= 2; i++)
            sum = fused(weights[(j + 2) * 5 + i + 2],
                        texel(texture, (float)((int)x + i) + 0.5f, (float)((int)y + j) + 0.5f), sum);
    store(surface, x, y, sum);
}

KERNEL flip(u64 from, u64 to, u32 width, u32 height) {
    u32 x = block() * threads() + thread(), y = block_y() * 8 + thread_y();
    if (x < width && y < height)
        store(to, x, y, load(from, width - 1 - x, y));
}

KERNEL resize(u64 texture, float *out, u32 width, u32 height, float step) {
    u32 x = block() * threads() + thread(), y = block_y() * 8 + thread_y();
    if (x < width && y < height)
        out[y * width + x] = texel(texture, (float)x * step, (float)y * step);
}
