// The Mandelbrot set in f32 and f64: how many steps each point takes, with lanes that leave the loop
// one by one.
#include "device.cuh"

template <typename T> INLINE u32 steps(T x, T y, u32 most) {
    T a = 0, b = 0;
    u32 count = 0;
    while (count < most && a * a + b * b <= T(4)) {
        T next = fused(a, a, fused(-b, b, x));
        b = fused(T(2) * a, b, y);
        a = next;
        count++;
    }
    return count;
}

KERNEL in_f32(u32 *out, u32 width, float left, float top, float step, u32 most) {
    u32 x = block() * 32 + thread(), y = block_y() * 4 + thread_y();
    if (x < width)
        out[y * width + x] = steps(fused((float)x, step, left), fused((float)y, step, top), most);
}

KERNEL in_f64(u32 *out, u32 width, double left, double top, double step, u32 most) {
    u32 x = block() * 32 + thread(), y = block_y() * 4 + thread_y();
    if (x < width)
        out[y * width + x] = steps(fused((double)x, step, left), fused((double)y, step, top), most);
}
