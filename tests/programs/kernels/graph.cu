// Steps of a small computation that graphs put together.
#include "device.cuh"

KERNEL scale(u32 *values, u32 count, u32 factor) {
    if (index() < count)
        values[index()] *= factor;
}

KERNEL shift(u32 *values, u32 count, u32 by) {
    if (index() < count)
        values[index()] += by;
}

KERNEL add(u32 *out, const u32 *a, const u32 *b, u32 count) {
    if (index() < count)
        out[index()] = a[index()] + (b[index()] ^ index());
}
