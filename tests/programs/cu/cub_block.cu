/* CUB within blocks and warps: loads, reductions, scans, sorts and exchanges in a kernel of our own. */
#include "check.h"

#include <algorithm>
#include <cub/cub.cuh>
#include <vector>

const int threads = 64, items = 4, tile = threads * items;

__global__ void sorted_prefix(const int *in, int *sorted, int *prefix, int *sums, int *most) {
    typedef cub::BlockLoad<int, threads, items, cub::BLOCK_LOAD_WARP_TRANSPOSE> load;
    typedef cub::BlockRadixSort<int, threads, items> sort;
    typedef cub::BlockScan<int, threads> scan;
    typedef cub::BlockStore<int, threads, items, cub::BLOCK_STORE_TRANSPOSE> store;
    typedef cub::WarpReduce<int> reduce;
    __shared__ union {
        load::TempStorage load;
        sort::TempStorage sort;
        scan::TempStorage scan;
        store::TempStorage store;
        reduce::TempStorage reduce[threads / 32];
    } room;
    int at = (int)blockIdx.x * tile, own[items], shown[items], sum;
    load(room.load).Load(in + at, own);
    __syncthreads();
    sort(room.sort).Sort(own);
    __syncthreads();
    for (int i = 0; i < items; i++)
        shown[i] = own[i]; // which a store leaves in another order
    store(room.store).Store(sorted + at, shown);
    __syncthreads();
    scan(room.scan).InclusiveSum(own, own, sum);
    __syncthreads();
    store(room.store).Store(prefix + at, own);
    __syncthreads();
    if (threadIdx.x == 0)
        sums[blockIdx.x] = sum;
    int greatest = reduce(room.reduce[threadIdx.x / 32]).Reduce(in[at + (int)threadIdx.x], [](int a, int b) { return a > b ? a : b; });
    if (threadIdx.x % 32 == 0)
        most[blockIdx.x * (threads / 32) + threadIdx.x / 32] = greatest;
}

int main() {
    const int blocks = 5, count = blocks * tile, warps = blocks * threads / 32;
    std::vector<int> in(count), sorted, prefix(count), sums, most, got(count);
    for (int i = 0; i < count; i++)
        in[(size_t)i] = (int)((unsigned)i * 40503u % 2003) - 1000;
    int *device = to_device(in.data(), count), *first = to_device<int>(nullptr, count), *second = to_device<int>(nullptr, count),
        *totals = to_device<int>(nullptr, blocks), *greatest = to_device<int>(nullptr, warps);
    sorted_prefix<<<blocks, threads>>>(device, first, second, totals, greatest);
    MUST(cudaGetLastError());
    sorted = in;
    for (int b = 0; b < blocks; b++) {
        int sum = 0;
        for (int w = 0; w < threads / 32; w++)
            most.push_back(*std::max_element(in.begin() + b * tile + w * 32, in.begin() + b * tile + w * 32 + 32));
        std::sort(sorted.begin() + b * tile, sorted.begin() + (b + 1) * tile);
        for (int i = b * tile; i < (b + 1) * tile; i++)
            prefix[(size_t)i] = sum += sorted[(size_t)i];
        sums.push_back(sum);
    }
    to_host(got.data(), first, count);
    same("sorted", got.data(), sorted.data(), count);
    to_host(got.data(), second, count);
    same("prefix", got.data(), prefix.data(), count);
    to_host(got.data(), totals, blocks);
    same("sums", got.data(), sums.data(), blocks);
    to_host(got.data(), greatest, (size_t)warps);
    same("greatest", got.data(), most.data(), (size_t)warps);
    for (int *each : {device, first, second, totals, greatest})
        MUST(cudaFree(each));
    return 0;
}
