// A stable sort of keys with values by 4 bits a pass: digits are counted by block, the counts are
// scanned, and each thread places its own in order.
#include "device.cuh"

#define DIGITS  16
#define THREADS 128

INLINE u32 digit(u32 key, u32 shift) {
    return (key >> shift) & (DIGITS - 1);
}

// counts[digit][block]
KERNEL count_digits(const u32 *keys, u32 count, u32 shift, u32 *counts) {
    SHARED u32 own[DIGITS];
    if (thread() < DIGITS)
        own[thread()] = 0;
    sync();
    if (index() < count)
        atomic_add(&own[digit(keys[index()], shift)], 1u);
    sync();
    if (thread() < DIGITS)
        counts[thread() * blocks() + block()] = own[thread()];
}

// Exclusive, of one warp: each lane has a run of its own.
KERNEL scan_counts(u32 *counts, u32 count) {
    u32 each = (count + 31) / 32, first = lane() * each, sum = 0;
    u32 end = first + each < count ? first + each : count;
    for (u32 i = first; i < end; i++)
        sum += counts[i];
    u32 before = sum;
    for (u32 distance = 1; distance < 32; distance *= 2) {
        u32 other = shuffle_up(before, distance);
        if (lane() >= distance)
            before += other;
    }
    before -= sum;
    for (u32 i = first; i < end; i++) {
        u32 own = counts[i];
        counts[i] = before;
        before += own;
    }
}

// Lanes with the same digit find each other by ballots, warps by their counts.
KERNEL place(const u32 *keys, const u32 *values, u32 count, u32 shift, const u32 *offsets,
             u32 *keys_out, u32 *values_out) {
    SHARED u32 warps[THREADS / 32][DIGITS];
    u32 warp = thread() / 32;
    if (lane() < DIGITS)
        warps[warp][lane()] = 0;
    asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
    bool own = index() < count;
    u32 key = own ? keys[index()] : 0, which = digit(key, shift), same = ballot(own);
    for (u32 bit = 1; bit < DIGITS; bit *= 2) {
        u32 with = ballot(which & bit);
        same &= which & bit ? with : ~with;
    }
    u32 rank = (u32)__builtin_popcount(same & ((1u << lane()) - 1));
    if (own && rank == 0)
        warps[warp][which] = (u32)__builtin_popcount(same);
    sync();
    if (!own)
        return;
    for (u32 i = 0; i < warp; i++)
        rank += warps[i][which];
    u32 at = offsets[which * blocks() + block()] + rank;
    keys_out[at] = key;
    values_out[at] = values[index()];
}
