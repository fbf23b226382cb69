/* Blocks in clusters, by attribute of the launch and of the kernel: shared memory of the neighbours, and shapes that do not
 * fit. */
// architecture: 90
#include "check.h"

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

const int bins = 64, threads = 64;

/* A histogram whose bins lie in the shared memory of all blocks of a cluster. */
__global__ void histogram(const int *values, int count, int *out) {
    extern __shared__ int local[];
    cg::cluster_group cluster = cg::this_cluster();
    int each = bins / (int)cluster.num_blocks();
    for (int i = (int)threadIdx.x; i < each; i += (int)blockDim.x)
        local[i] = 0;
    cluster.sync();
    for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < count; i += (int)(gridDim.x * blockDim.x)) {
        int bin = values[i] % bins;
        atomicAdd(cluster.map_shared_rank(local, bin / each) + bin % each, 1);
    }
    cluster.sync();
    for (int i = (int)threadIdx.x; i < each; i += (int)blockDim.x)
        atomicAdd(out + (int)cluster.block_rank() * each + i, local[i]);
}

__global__ __cluster_dims__(4) void ring(int *out) {
    __shared__ int mine;
    cg::cluster_group cluster = cg::this_cluster();
    unsigned rank = cluster.block_rank(), size = cluster.num_blocks();
    if (threadIdx.x == 0)
        mine = (int)(blockIdx.x * 10);
    cluster.sync();
    if (threadIdx.x == 0)
        out[blockIdx.x] = *cluster.map_shared_rank(&mine, (rank + 1) % size) + (int)size;
    cluster.sync(); // so that no block ends while its memory is read
}

int main() {
    const int count = 20000, rings = 12;
    static int values[count];
    int want[bins] = {}, got[bins], clusters = 0, largest = 0;
    for (int i = 0; i < count; i++) {
        values[i] = (i * 31 + i / 7) % 1000;
        want[values[i] % bins]++;
    }
    int *in = to_device(values, count), *out = to_device<int>(nullptr, bins);
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(16);
    config.blockDim = dim3(threads);
    config.attrs = &attribute;
    config.numAttrs = 1;
    for (unsigned size : {1u, 2u, 4u, 8u}) {
        attribute.val.clusterDim.x = size;
        attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
        config.dynamicSmemBytes = bins / size * sizeof(int);
        MUST(cudaMemset(out, 0, sizeof got));
        MUST(cudaLaunchKernelEx(&config, histogram, (const int *)in, count, out));
        to_host(got, out, bins);
        printf("clusters of %u; ", size);
        same("histogram", got, want, bins);
    }
    MUST(cudaOccupancyMaxActiveClusters(&clusters, histogram, &config));
    MUST(cudaOccupancyMaxPotentialClusterSize(&largest, histogram, &config));
    right("some clusters of 8 fit", clusters > 0);
    printf("the largest that is sure to fit: %d\n", largest);
    attribute.val.clusterDim.x = 3;
    say("a grid that is no whole number of clusters", cudaLaunchKernelEx(&config, histogram, (const int *)in, count, out));
    say("which is the last error", cudaGetLastError());

    ring<<<rings, 32>>>(out);
    say("clusters by the kernel's own size", cudaGetLastError());
    to_host(got, out, rings);
    for (int i = 0; i < rings; i++)
        want[i] = (i / 4 * 4 + (i + 1) % 4) * 10 + 4;
    same("the next block's", got, want, rings);
    ring<<<6, 32>>>(out);
    say("six blocks in clusters of four", cudaGetLastError());
    MUST(cudaDeviceSynchronize());
    MUST(cudaFree(in));
    MUST(cudaFree(out));
    return 0;
}
