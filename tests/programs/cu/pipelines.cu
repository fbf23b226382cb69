/* libcu++'s asynchronous copies: barriers that count arrivals, a pipeline of two stages, copies by one thread and by a group. */
#include "check.h"

#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <utility>

namespace cg = cooperative_groups;

const int threads = 64, batches = 9;

__global__ void by_pipeline(const int *in, int *out) {
    __shared__ int buffer[2][threads];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    cg::thread_block block = cg::this_thread_block();
    auto pipeline = cuda::make_pipeline(block, &state);
    int sum = 0;
    auto fetch = [&](int batch) {
        pipeline.producer_acquire();
        cuda::memcpy_async(block, buffer[batch % 2], in + batch * threads, cuda::aligned_size_t<16>(sizeof buffer[0]), pipeline);
        pipeline.producer_commit();
    };
    fetch(0);
    for (int batch = 0; batch < batches; batch++) {
        if (batch + 1 < batches)
            fetch(batch + 1);
        pipeline.consumer_wait();
        sum += buffer[batch % 2][threads - 1 - threadIdx.x] * (batch + 1); // another thread's
        pipeline.consumer_release();
    }
    out[threadIdx.x] = sum;
}

__global__ void by_barrier(const int *in, int *out) {
    __shared__ int buffer[threads];
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    if (threadIdx.x == 0)
        init(&barrier, blockDim.x);
    __syncthreads();
    int sum = 0;
    for (int batch = 0; batch < batches; batch++) {
        cuda::memcpy_async(&buffer[threadIdx.x], &in[batch * threads + (int)threadIdx.x], sizeof(int), barrier);
        barrier.arrive_and_wait();
        sum += buffer[(threadIdx.x + 1) % threads];
        auto token = barrier.arrive(); // nobody writes before all have read
        barrier.wait(std::move(token));
    }
    out[threadIdx.x] = sum;
}

__global__ void by_group(const int *in, int *out) {
    __shared__ int buffer[batches * threads];
    cg::thread_block block = cg::this_thread_block();
    cg::memcpy_async(block, buffer, in, sizeof buffer);
    cg::wait(block);
    int sum = 0;
    for (int batch = 0; batch < batches; batch++)
        sum ^= buffer[(threadIdx.x * 3 + (unsigned)batch * 7) % (batches * threads)];
    out[threadIdx.x] = sum;
}

int main() {
    const int count = batches * threads;
    int in[count], got[threads], want[3][threads] = {}, *out = to_device<int>(nullptr, threads);
    for (int i = 0; i < count; i++)
        in[i] = (i * 769) % 4093;
    for (int t = 0; t < threads; t++)
        for (int b = 0; b < batches; b++) {
            want[0][t] += in[b * threads + threads - 1 - t] * (b + 1);
            want[1][t] += in[b * threads + (t + 1) % threads];
            want[2][t] ^= in[(t * 3 + b * 7) % count];
        }
    int *device = to_device(in, count);
    by_pipeline<<<1, threads>>>(device, out);
    to_host(got, out, threads);
    same("by a pipeline", got, want[0], threads);
    by_barrier<<<1, threads>>>(device, out);
    to_host(got, out, threads);
    same("by a barrier", got, want[1], threads);
    by_group<<<1, threads>>>(device, out);
    to_host(got, out, threads);
    same("by a group", got, want[2], threads);
    MUST(cudaFree(device));
    MUST(cudaFree(out));
    return 0;
}
