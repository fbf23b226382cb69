// A scan in one pass: each block takes a tile in order, publishes its sum, and looks back over the
// tiles before it until one has published its prefix.
#include "device.cuh"

#define EACH    4
#define SUM     (1ull << 32)
#define PREFIX  (2ull << 32)

INLINE u32 warp_scan(u32 value) {
    for (u32 distance = 1; distance < 32; distance *= 2) {
        u32 other = shuffle_up(value, distance);
        if (lane() >= distance)
            value += other;
    }
    return value;
}

// What the warp's lanes see of the 32 tiles before `tile`: waits until all have published something.
INLINE u32 look_back(u64 *states, u32 tile) {
    u32 before = 0;
    for (int first = (int)tile - 1;; first -= 32) {
        int at = first - (int)lane();
        u64 state = PREFIX;
        if (at >= 0)
            do
                state = load_acquire(&states[at]);
            while (state >> 32 == 0);
        u32 whole = ballot(state >> 32 == 2);
        u32 nearest = whole ? (u32)__builtin_ctz(whole) : 31;
        u32 value = lane() <= nearest ? (u32)state : 0;
        for (u32 mask = 16; mask > 0; mask /= 2)
            value += shuffle_xor(value, mask);
        before += value;
        if (whole)
            return before;
    }
}

KERNEL scan(const u32 *in, u32 *out, u32 count, u64 *states, u32 *next_tile) {
    SHARED u32 tile, before, sums[32];
    if (thread() == 0)
        tile = atomic_add(next_tile, 1u);
    sync();
    u32 first = (tile * threads() + thread()) * EACH, own[EACH], sum = 0;
    for (u32 i = 0; i < EACH; i++)
        own[i] = sum += first + i < count ? in[first + i] : 0;
    u32 inclusive = warp_scan(sum);
    if (lane() == 31)
        sums[thread() / 32] = inclusive;
    sync();
    if (thread() < 32) {
        u32 scanned = warp_scan(thread() < threads() / 32 ? sums[thread()] : 0);
        sums[thread()] = scanned;
        u32 total = shuffle(scanned, threads() / 32 - 1);
        if (thread() == 0)
            store_release(&states[tile], (tile ? SUM : PREFIX) | total);
        u32 found = tile ? look_back(states, tile) : 0;
        if (thread() == 0) {
            if (tile)
                store_release(&states[tile], PREFIX | (found + total));
            before = found;
        }
    }
    sync();
    u32 offset = before + inclusive - sum + (thread() >= 32 ? sums[thread() / 32 - 1] : 0);
    for (u32 i = 0; i < EACH; i++)
        if (first + i < count)
            out[first + i] = offset + own[i];
}
