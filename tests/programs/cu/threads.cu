/* Threads of one process: the first use at the same time, each its own stream, last error and results. */
#include "check.h"

#include <atomic>
#include <thread>
#include <vector>

__device__ int launches;

__global__ void scale(const float *in, float *out, int count, float factor) {
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count)
        out[i] = in[i] * factor;
    if (i == 0)
        atomicAdd(&launches, 1);
}

static std::atomic<int> ready{0};
const int threads = 8, count = 3000, rounds = 5;

static void work(int number, int *wrong, cudaError_t *last) {
    std::vector<float> in(count), out(count);
    cudaStream_t stream;
    for (int i = 0; i < count; i++)
        in[i] = (float)(i * number);
    ready++;
    while (ready < threads)
        std::this_thread::yield();
    float *from = to_device(in.data(), count), *to = to_device<float>(nullptr, count);
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int round = 1; round <= rounds; round++) {
        scale<<<(count + 127) / 128, 128, 0, stream>>>(from, to, count, (float)round);
        MUST(cudaGetLastError());
        MUST(cudaMemcpyAsync(out.data(), to, count * sizeof(float), cudaMemcpyDeviceToHost, stream));
        MUST(cudaStreamSynchronize(stream));
        for (int i = 0; i < count; i++)
            *wrong += out[i] != in[i] * (float)round;
    }
    if (number % 2)
        cudaSetDevice(1000); // an error of this thread alone
    *last = cudaPeekAtLastError();
    MUST(cudaStreamDestroy(stream));
    MUST(cudaFree(from));
    MUST(cudaFree(to));
}

int main() {
    std::vector<std::thread> running;
    int wrong[threads] = {}, launched = 0;
    cudaError_t last[threads];
    for (int i = 0; i < threads; i++)
        running.emplace_back(work, i, &wrong[i], &last[i]);
    for (std::thread &thread : running)
        thread.join();
    for (int i = 0; i < threads; i++)
        printf("thread %d: %d wrong, last error %s\n", i, wrong[i], cudaGetErrorName(last[i]));
    say("last error of the first thread", cudaGetLastError());
    MUST(cudaMemcpyFromSymbol(&launched, launches, sizeof launched));
    printf("%d launches\n", launched);
    return 0;
}
