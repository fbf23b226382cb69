// A scan in three launches: blocks, the blocks' sums, and those added; by steps that double, and by
// a tree upwards and downwards.
#include "device.cuh"

// Inclusive, with two buffers.
INLINE u64 scan_block(u64 value, u64 (*buffer)[256]) {
    u32 from = 0;
    buffer[0][thread()] = value;
    sync();
    for (u32 distance = 1; distance < threads(); distance *= 2) {
        u64 sum = buffer[from][thread()];
        if (thread() >= distance)
            sum += buffer[from][thread() - distance];
        buffer[from ^ 1][thread()] = sum;
        from ^= 1;
        sync();
    }
    value = buffer[from][thread()];
    sync();
    return value;
}

KERNEL scan_blocks(const u32 *in, u64 *out, u64 *sums, u32 count) {
    SHARED u64 buffer[2][256];
    u64 value = scan_block(index() < count ? in[index()] : 0, buffer);
    if (index() < count)
        out[index()] = value;
    if (thread() == threads() - 1)
        sums[block()] = value;
}

// One block over all sums, a part after the other.
KERNEL scan_sums(u64 *sums, u32 count) {
    SHARED u64 buffer[2][256];
    SHARED u64 total;
    if (thread() == 0)
        total = 0;
    for (u32 first = 0; first < count; first += threads()) {
        u32 i = first + thread();
        u64 value = scan_block(i < count ? sums[i] : 0, buffer);
        u64 before = total;
        sync();
        if (i < count)
            sums[i] = before + value;
        if (thread() == threads() - 1)
            total = before + value;
        sync();
    }
}

KERNEL add_sums(u64 *out, const u64 *sums, u32 count) {
    if (block() > 0 && index() < count)
        out[index()] += sums[block() - 1];
}

// Exclusive within each block, in place: twice as many numbers as threads.
KERNEL tree(u32 *values) {
    SHARED u32 part[512];
    u32 n = 2 * threads(), *own = values + block() * n;
    part[thread()] = own[thread()];
    part[thread() + threads()] = own[thread() + threads()];
    for (u32 step = 1; step < n; step *= 2) {
        sync();
        u32 at = (thread() + 1) * step * 2 - 1;
        if (at < n)
            part[at] += part[at - step];
    }
    sync();
    if (thread() == 0)
        part[n - 1] = 0;
    for (u32 step = n / 2; step > 0; step /= 2) {
        sync();
        u32 at = (thread() + 1) * step * 2 - 1;
        if (at < n) {
            u32 left = part[at - step];
            part[at - step] = part[at];
            part[at] += left;
        }
    }
    sync();
    own[thread()] = part[thread()];
    own[thread() + threads()] = part[thread() + threads()];
}
