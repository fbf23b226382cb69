/* Host functions and callbacks run in the order of their stream, between the kernels before and after them. */
#include "check.h"

#include <vector>

struct step {
    std::vector<int> *log;
    int *pinned, number;
    cudaError_t told;
};

__global__ void advance(int *value) {
    *value = *value * 3 + 1;
}

static void CUDART_CB note(void *data) {
    step *mine = (step *)data;
    mine->log->push_back(mine->number * 1000 + *mine->pinned);
}

static void CUDART_CB called(cudaStream_t, cudaError_t status, void *data) {
    ((step *)data)->told = status;
    note(data);
}

/* The API may not be used in there. */
static void CUDART_CB forbidden(void *data) {
    void *memory;
    *(cudaError_t *)data = cudaMalloc(&memory, 16);
    cudaGetLastError();
}

int main() {
    const int steps = 6;
    std::vector<int> log;
    step step[steps];
    int *pinned, *value, wanted = 0;
    cudaStream_t stream;
    MUST(cudaStreamCreate(&stream));
    MUST(cudaMallocHost(&pinned, sizeof *pinned));
    value = to_device<int>(nullptr, 1);
    *pinned = -1;
    for (int i = 0; i < steps; i++) {
        step[i] = {&log, pinned, i, cudaErrorUnknown};
        advance<<<1, 1, 0, stream>>>(value);
        MUST(cudaMemcpyAsync(pinned, value, sizeof *pinned, cudaMemcpyDeviceToHost, stream));
        if (i % 2)
            MUST(cudaStreamAddCallback(stream, called, &step[i], 0));
        else
            MUST(cudaLaunchHostFunc(stream, note, &step[i]));
    }
    MUST(cudaStreamSynchronize(stream));
    for (int i = 0; i < steps; i++) {
        wanted = wanted * 3 + 1;
        printf("%d: %d\n", i, log[i]);
        right("in order", log[i] == i * 1000 + wanted);
        if (i % 2)
            say("it was told", step[i].told);
    }
    cudaError_t inside = cudaSuccess;
    MUST(cudaLaunchHostFunc(stream, forbidden, &inside));
    MUST(cudaStreamSynchronize(stream));
    say("a call inside of a host function", inside);
    say("no function", cudaLaunchHostFunc(stream, nullptr, &inside));
    say("flags of a callback", cudaStreamAddCallback(stream, called, nullptr, 1));
    cudaGetLastError();
    MUST(cudaStreamDestroy(stream));
    MUST(cudaFreeHost(pinned));
    MUST(cudaFree(value));
    return 0;
}
