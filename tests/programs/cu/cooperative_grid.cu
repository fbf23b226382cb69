/* Grids whose blocks wait for each other: a reduction in one launch, a diffusion of many steps, and grids that do not fit. */
#include "check.h"

#include <cooperative_groups.h>
#include <utility>
#include <vector>

namespace cg = cooperative_groups;

__global__ void total(const int *values, int count, int *partial, int *out) {
    cg::grid_group grid = cg::this_grid();
    extern __shared__ int shared[];
    int mine = 0;
    for (unsigned i = (unsigned)grid.thread_rank(); i < (unsigned)count; i += (unsigned)grid.size())
        mine += values[i];
    shared[threadIdx.x] = mine;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            shared[threadIdx.x] += shared[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        partial[blockIdx.x] = shared[0];
    grid.sync();
    if (grid.thread_rank() == 0) {
        *out = 0;
        for (unsigned i = 0; i < gridDim.x; i++)
            *out += partial[i];
    }
}

__global__ void diffuse(int *from, int *to, int count, int steps) {
    cg::grid_group grid = cg::this_grid();
    for (int step = 0; step < steps; step++) {
        for (int i = (int)grid.thread_rank(); i < count; i += (int)grid.num_threads())
            to[i] = (from[(i + count - 1) % count] + 2 * from[i] + from[(i + 1) % count]) / 4;
        grid.sync();
        int *swap = from;
        from = to;
        to = swap;
    }
}

int main() {
    const int count = 5000, steps = 9, threads = 64;
    std::vector<int> values(count), want, got(count);
    int supported = 0, processors = 0, blocks = 0, sum = 0, wanted = 0, partials = 16;
    MUST(cudaDeviceGetAttribute(&supported, cudaDevAttrCooperativeLaunch, 0));
    MUST(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
    printf("cooperative launches: %d\n", supported);
    for (int i = 0; i < count; i++) {
        values[(size_t)i] = (i * 7919) % 10007;
        wanted += values[(size_t)i];
    }
    int *a = to_device(values.data(), count), *b = to_device<int>(nullptr, count), *partial = to_device<int>(nullptr, 64),
        *out = to_device<int>(nullptr, 1), length = count, rounds = steps;
    void *summing[] = {&a, &length, &partial, &out};
    MUST(cudaLaunchCooperativeKernel(total, dim3((unsigned)partials), dim3(threads), summing, threads * sizeof(int), nullptr));
    to_host(&sum, out, 1);
    printf("total %d\n", sum);
    right("the total", sum == wanted);

    void *diffusing[] = {&a, &b, &length, &rounds};
    MUST(cudaLaunchCooperativeKernel((const void *)diffuse, dim3(8), dim3(threads), diffusing, 0, nullptr));
    MUST(cudaDeviceSynchronize());
    want = values;
    for (int step = 0; step < steps; step++) {
        std::vector<int> next(count);
        for (size_t i = 0; i < count; i++)
            next[i] = (want[(i + count - 1) % count] + 2 * want[i] + want[(i + 1) % count]) / 4;
        want = next;
    }
    to_host(got.data(), steps % 2 ? b : a, count);
    same("diffusion", got.data(), want.data(), count);

    MUST(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, diffuse, threads, 0));
    say("as many as fit and one more",
        cudaLaunchCooperativeKernel((const void *)diffuse, dim3((unsigned)(blocks * processors) + 1), dim3(threads), diffusing, 0, nullptr));
    cudaGetLastError();
    rounds = 0;
    diffuse<<<2, 64>>>(a, b, count, 0); // a usual launch may use the kernel as long as it does not wait
    say("a usual launch", cudaGetLastError());
    MUST(cudaDeviceSynchronize());
    for (int *each : {a, b, partial, out})
        MUST(cudaFree(each));
    return 0;
}
