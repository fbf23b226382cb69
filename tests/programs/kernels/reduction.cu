// Sums by a tree in shared memory, by shuffles, and in one launch in which the last block adds up.
#include "device.cuh"

KERNEL tree(const u32 *values, u32 count, u32 *sums) {
    SHARED u32 part[256];
    u32 sum = 0;
    for (u32 i = index(); i < count; i += all_threads())
        sum += values[i];
    part[thread()] = sum;
    sync();
    for (u32 step = 128; step > 0; step /= 2) {
        if (thread() < step)
            part[thread()] += part[thread() + step];
        sync();
    }
    if (thread() == 0)
        sums[block()] = part[0];
}

template <typename T> INLINE T warp_sum(T value) {
    for (u32 distance = 16; distance > 0; distance /= 2)
        value += shuffle_down(value, distance);
    return value;
}

template <typename T> INLINE T block_sum(T value, T *part) {
    value = warp_sum(value);
    if (lane() == 0)
        part[thread() / 32] = value;
    sync();
    value = thread() < threads() / 32 ? part[lane()] : T(0);
    sync();
    return thread() < 32 ? warp_sum(value) : value;
}

KERNEL shuffles(const float *values, u32 count, float *sums) {
    SHARED float part[32];
    float sum = 0;
    for (u32 i = index(); i < count; i += all_threads())
        sum += values[i];
    sum = block_sum(sum, part);
    if (thread() == 0)
        sums[block()] = sum;
}

// The block that comes last adds the sums of all in their order, so that the result is the same
// whichever it is.
KERNEL last_block(const float *values, u32 count, float *sums, u32 *arrived, float *total) {
    SHARED float part[32];
    SHARED bool last;
    float sum = 0;
    for (u32 i = index(); i < count; i += all_threads())
        sum += values[i];
    sum = block_sum(sum, part);
    if (thread() == 0) {
        *(volatile float *)&sums[block()] = sum;
        fence();
        last = atomic_add(arrived, 1u) == blocks() - 1;
        fence();
    }
    sync();
    if (!last)
        return;
    sum = 0;
    for (u32 i = thread(); i < blocks(); i += threads())
        sum += *(volatile float *)&sums[i];
    sum = block_sum(sum, part);
    if (thread() == 0)
        *total = sum;
}

KERNEL extremes(const u32 *values, u32 count, u32 *least, u32 *most) {
    u32 low = ~0u, high = 0;
    for (u32 i = index(); i < count; i += all_threads()) {
        low = values[i] < low ? values[i] : low;
        high = values[i] > high ? values[i] : high;
    }
    for (u32 mask = 16; mask > 0; mask /= 2) {
        u32 other_low = shuffle_xor(low, mask), other_high = shuffle_xor(high, mask);
        low = other_low < low ? other_low : low;
        high = other_high > high ? other_high : high;
    }
    if (lane() == 0) {
        __atomic_fetch_min(least, low, __ATOMIC_RELAXED);
        __atomic_fetch_max(most, high, __ATOMIC_RELAXED);
    }
}
