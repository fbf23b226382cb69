/* Groups within a block: tiles, what is left of a divergent warp, partitions by label, and their reductions and scans. */
#include "check.h"

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

namespace cg = cooperative_groups;

const int threads = 96;

template <unsigned size> __device__ void tile(const int *in, int *sums, int *scans, int *most) {
    cg::thread_block_tile<size> group = cg::tiled_partition<size>(cg::this_thread_block());
    unsigned i = cg::this_thread_block().thread_rank();
    sums[i] = cg::reduce(group, in[i], cg::plus<int>());
    most[i] = cg::reduce(group, in[i], cg::greater<int>());
    scans[i] = cg::exclusive_scan(group, in[i], cg::plus<int>());
}

__global__ void tiles(const int *in, int *out) {
    tile<4>(in, out, out + threads, out + 2 * threads);
    tile<32>(in, out + 3 * threads, out + 4 * threads, out + 5 * threads);
}

/* One addition for all threads of a warp that take this way. */
__global__ void aggregate(const int *in, int *counter, int *place) {
    int i = (int)threadIdx.x;
    if (in[i] % 3 == 0) {
        cg::coalesced_group active = cg::coalesced_threads();
        int first = 0;
        if (active.thread_rank() == 0)
            first = atomicAdd(counter, (int)active.size());
        place[i] = active.shfl(first, 0) + (int)active.thread_rank();
    }
}

__global__ void labels(const int *in, int *sizes, int *sums) {
    int i = (int)threadIdx.x;
    cg::thread_block_tile<32> warp = cg::tiled_partition<32>(cg::this_thread_block());
    cg::coalesced_group same_label = cg::labeled_partition(warp, in[i] % 4);
    sizes[i] = (int)same_label.size();
    sums[i] = cg::reduce(same_label, in[i], cg::plus<int>());
    cg::coalesced_group half = cg::binary_partition(warp, in[i] > 500);
    sizes[i] += 100 * (int)half.size();
}

int main() {
    int in[threads], got[6 * threads], want[6 * threads], seen[threads] = {}, dividable = 0, counter = 0;
    for (int i = 0; i < threads; i++)
        in[i] = (i * 211 + 17) % 1000;
    int *device_in = to_device(in, threads), *out = to_device<int>(nullptr, 6 * threads), *count = to_device<int>(nullptr, 1);
    tiles<<<1, threads>>>(device_in, out);
    to_host(got, out, 6 * threads);
    for (int part = 0; part < 2; part++) {
        int size = part ? 32 : 4, *sums = want + 3 * part * threads, *scans = sums + threads, *most = scans + threads;
        for (int i = 0; i < threads; i++) {
            sums[i] = most[i] = scans[i] = 0;
            for (int j = i / size * size; j < (i / size + 1) * size; j++) {
                sums[i] += in[j];
                most[i] = in[j] > most[i] ? in[j] : most[i];
                scans[i] += j < i ? in[j] : 0;
            }
        }
    }
    same("tiles of 4 and 32", got, want, 6 * threads);

    MUST(cudaMemset(out, 0xFF, threads * sizeof(int)));
    aggregate<<<1, threads>>>(device_in, count, out);
    to_host(got, out, threads);
    to_host(&counter, count, 1);
    for (int i = 0; i < threads; i++) {
        dividable += in[i] % 3 == 0;
        if (in[i] % 3 == 0 && got[i] >= 0 && got[i] < threads)
            seen[got[i]]++;
    }
    printf("%d of %d took a place\n", counter, threads);
    for (int i = 0; i < threads; i++)
        want[i] = i < dividable;
    same("each place once", seen, want, threads);

    labels<<<1, threads>>>(device_in, out, out + threads);
    to_host(got, out, 2 * threads);
    for (int i = 0; i < threads; i++) {
        int size = 0, half = 0;
        want[threads + i] = 0;
        for (int j = i / 32 * 32; j < i / 32 * 32 + 32; j++) {
            half += (in[j] > 500) == (in[i] > 500);
            if (in[j] % 4 == in[i] % 4) {
                size++;
                want[threads + i] += in[j];
            }
        }
        want[i] = size + 100 * half;
    }
    same("partitions", got, want, 2 * threads);
    MUST(cudaFree(device_in));
    MUST(cudaFree(out));
    MUST(cudaFree(count));
    return 0;
}
