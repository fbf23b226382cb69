// Counts of bytes by atomics: in global memory, in shared memory, and by a warp's lanes that agree
// on their number before one of them counts for all.
#include "device.cuh"

KERNEL in_global(const u32 *words, u32 count, u32 *counts) {
    for (u32 i = index(); i < count; i += all_threads())
        for (u32 word = words[i], j = 0; j < 4; j++, word >>= 8)
            atomic_add(&counts[word & 255], 1u);
}

KERNEL in_shared(const u32 *words, u32 count, u32 *counts) {
    SHARED u32 own[256];
    for (u32 i = thread(); i < 256; i += threads())
        own[i] = 0;
    sync();
    for (u32 i = index(); i < count; i += all_threads())
        for (u32 word = words[i], j = 0; j < 4; j++, word >>= 8)
            atomic_add(&own[word & 255], 1u);
    sync();
    for (u32 i = thread(); i < 256; i += threads())
        if (own[i])
            atomic_add(&counts[i], own[i]);
}

KERNEL by_match(const u32 *words, u32 count, u32 *counts) {
    for (u32 first = block() * threads(); first < count; first += all_threads()) {
        u32 i = first + thread(), digit = i < count ? words[i] & 255 : 256, same;
        asm volatile("match.any.sync.b32 %0, %1, 0xffffffff;" : "=r"(same) : "r"(digit));
        if (i < count && lane() == (u32)__builtin_ctz(same))
            atomic_add(&counts[digit], (u32)__builtin_popcount(same));
    }
}

// Numbers with fractions: sums of 64 bits in fixed point, which any order gives.
KERNEL weights(const u32 *words, u32 count, u64 *sums) {
    for (u32 i = index(); i < count; i += all_threads())
        atomic_add(&sums[words[i] >> 28], (u64)(words[i] & 0xffffff) << 8);
}
