// target sm_90
// Blocks of a cluster use each other's shared memory: a histogram whose counts are spread over the
// cluster's blocks, and rings in which each block reads what its neighbour wrote.
#include "device.cuh"

#define BINS 256

INLINE u32 rank() {
    u32 value;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(value));
    return value;
}
INLINE u32 ranks() {
    u32 value;
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(value));
    return value;
}
INLINE void meet() {
    asm volatile("barrier.cluster.arrive.release.aligned;\n\t"
                 "barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
INLINE u32 map(u32 address, u32 to) {
    u32 mapped;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(to));
    return mapped;
}
INLINE u32 load(u32 address) {
    u32 value;
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
    return value;
}

KERNEL histogram(const u32 *words, u32 count, u32 *counts) {
    SHARED u32 own[BINS];
    u32 each = BINS / ranks();
    for (u32 i = thread(); i < BINS; i += threads())
        own[i] = 0;
    meet();
    for (u32 i = index(); i < count; i += all_threads()) {
        u32 bin = words[i] % BINS;
        u32 at = map(shared_address(&own[bin % each]), bin / each);
        asm volatile("red.shared::cluster.add.u32 [%0], 1;" ::"r"(at) : "memory");
    }
    meet();
    for (u32 i = thread(); i < each; i += threads())
        atomic_add(&counts[rank() * each + i], own[i]);
}

// Each round a block takes its neighbour's number and adds what it is.
KERNEL ring(u32 *out, u32 rounds) {
    SHARED u32 numbers[2][128];
    u32 from = 0, neighbour = (rank() + 1) % ranks();
    numbers[0][thread()] = rank() * 1000 + thread();
    for (u32 i = 0; i < rounds; i++, from ^= 1) {
        meet();
        u32 other = load(map(shared_address(&numbers[from][thread()]), neighbour));
        numbers[from ^ 1][thread()] = other * 3 + rank();
    }
    meet();
    out[index()] = numbers[from][thread()];
}
