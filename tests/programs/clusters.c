/* Clusters of blocks with distributed shared memory. */
#include "base/program.h"

#define BINS    256u
#define THREADS 128u

static CUlaunchAttribute cluster_of(unsigned blocks) {
    return (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                               .value.clusterDim = {blocks, 1, 1}};
}

static void histogram(unsigned cluster, unsigned count) {
    uint32_t *words = host_new(count * sizeof *words), want[BINS] = {0}, got[BINS];
    for (unsigned i = 0; i < count; i++)
        want[(words[i] = random_bits() >> 3) % BINS]++;
    CUdeviceptr from = device_copy(words, count * sizeof *words), counts = device_new(sizeof got);
    LAUNCH_WITH(cluster_of(cluster), "histogram", SHAPE(cluster * 3, THREADS), &from, &count,
                &counts);
    device_read(got, counts, sizeof got);
    expect_equal("histogram over a cluster", got, want, sizeof got);
    checksum("histogram over a cluster", got, sizeof got);
}

static void ring(unsigned cluster, unsigned rounds) {
    uint32_t want[8 * THREADS], next[8 * THREADS], got[2 * 8 * THREADS];
    size_t bytes = cluster * THREADS * sizeof *got;
    for (unsigned i = 0; i < cluster * THREADS; i++)
        want[i] = i / THREADS * 1000 + i % THREADS;
    for (unsigned round = 0; round < rounds; round++) {
        for (unsigned i = 0; i < cluster * THREADS; i++)
            next[i] = want[(i + THREADS) % (cluster * THREADS)] * 3 + i / THREADS;
        memcpy(want, next, bytes);
    }
    CUdeviceptr out = device_new(2 * bytes);
    LAUNCH_WITH(cluster_of(cluster), "ring", SHAPE(2 * cluster, THREADS), &out, &rounds);
    device_read(got, out, 2 * bytes);
    expect_equal("ring of the first cluster", got, want, bytes);
    expect_equal("ring of the second cluster", got + cluster * THREADS, want, bytes);
}

PROGRAM("clusters") {
    unsigned more = program_scale(20);
    histogram(2, 10007 * more);
    histogram(8, 30011 * more);
    ring(2, 5);
    ring(4, 17 * more);
    ring(8, 8);
}
