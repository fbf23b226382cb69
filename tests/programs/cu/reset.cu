/* cudaDeviceReset, and everything again: memory, streams and values of variables are gone, kernels still launch. */
// findings: leak
#include "check.h"

__device__ int counter = 5;
__constant__ int step = 1;

__global__ void count(int *out) {
    counter += step;
    *out = counter;
}

static void life(int number) {
    cudaStream_t stream;
    cudaEvent_t event;
    int *out = to_device<int>(nullptr, 1), host = 0, ten = 10;
    MUST(cudaStreamCreate(&stream));
    MUST(cudaEventCreate(&event));
    count<<<1, 1, 0, stream>>>(out);
    MUST(cudaEventRecord(event, stream));
    MUST(cudaEventSynchronize(event));
    to_host(&host, out, 1);
    printf("life %d: counter %d\n", number, host);
    right("it begins anew", host == 6);
    MUST(cudaMemcpyToSymbol(step, &ten, sizeof ten));
    count<<<1, 1>>>(out);
    to_host(&host, out, 1);
    printf("life %d: counter %d\n", number, host);
    say("reset", cudaDeviceReset()); // with a stream, an event and memory that nobody has freed
    say("a pointer of before", cudaMemset(out, 0, 4));
    cudaGetLastError();
}

int main() {
    unsigned flags;
    MUST(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
    MUST(cudaGetDeviceFlags(&flags));
    printf("schedule %u\n", flags & cudaDeviceScheduleMask);
    for (int i = 0; i < 3; i++)
        life(i);
    int *memory;
    cudaPointerAttributes attributes;
    MUST(cudaMalloc(&memory, 4));
    MUST(cudaPointerGetAttributes(&attributes, memory));
    printf("memory of the last life is of kind %d\n", (int)attributes.type);
    MUST(cudaFree(memory));
    say("reset", cudaDeviceReset());
    say("reset of what is not there", cudaDeviceReset());
    return 0;
}
