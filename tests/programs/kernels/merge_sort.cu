// A merge sort of 64-bit keys: blocks sort tiles by insertion and ranks, then runs are merged, each
// thread of which finds its part by bisection of a diagonal.
#include "device.cuh"

#define TILE 256
#define EACH 8

// Each key's place is the number of those before it.
KERNEL sort_tiles(const u64 *in, u64 *out, u32 count) {
    SHARED u64 part[TILE];
    u32 first = block() * TILE, size = count - first < TILE ? count - first : TILE, rank = 0;
    u32 i = thread();
    if (i < size)
        part[i] = in[first + i];
    sync();
    if (i >= size)
        return;
    u64 own = part[i];
    for (u32 j = 0; j < size; j++)
        rank += part[j] < own || (part[j] == own && j < i);
    out[first + rank] = own;
}

// How many of the first `diagonal` keys of the merged run come from a.
INLINE u32 split(const u64 *a, u32 a_size, const u64 *b, u32 b_size, u32 diagonal) {
    u32 low = diagonal > b_size ? diagonal - b_size : 0;
    u32 high = diagonal < a_size ? diagonal : a_size;
    while (low < high) {
        u32 middle = (low + high) / 2;
        if (a[middle] <= b[diagonal - 1 - middle])
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

KERNEL merge_runs(const u64 *in, u64 *out, u32 count, u32 run) {
    u32 at = index() * EACH;
    if (at >= count)
        return;
    u32 first = at / (2 * run) * (2 * run);
    u32 middle = first + run < count ? first + run : count;
    u32 end = first + 2 * run < count ? first + 2 * run : count;
    const u64 *a = in + first, *b = in + middle;
    u32 a_size = middle - first, b_size = end - middle;
    u32 i = split(a, a_size, b, b_size, at - first), j = at - first - i;
    for (u32 k = at; k < at + EACH && k < end; k++)
        out[k] = j >= b_size || (i < a_size && a[i] <= b[j]) ? a[i++] : b[j++];
}
