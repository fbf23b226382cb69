/* Two devices: work on both at once, copies between them, memory of the other one in a kernel, and events across. */
// devices: 2
#include "check.h"

#include <thread>

const int count = 6000;
__device__ int touched = 1;

__global__ void add(const int *a, const int *b, int *out, int length) {
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < length)
        out[i] = a[i] + b[i];
    if (i == 0)
        touched *= 3;
}

static int *on(int device) {
    MUST(cudaSetDevice(device));
    return to_device<int>(nullptr, count);
}

int main() {
    static int values[count], got[count], want[count];
    int devices = 0, can = 0, there = 0, variable[2];
    unsigned blocks = (count + 255) / 256;
    cudaStream_t stream[2];
    cudaEvent_t event[2];
    MUST(cudaGetDeviceCount(&devices));
    if (devices < 2) {
        printf("skip: there is one device\n");
        return 77;
    }
    for (int i = 0; i < count; i++)
        values[i] = i * 5 % 1999;
    int *first = on(0), *result = on(0), *second = on(1), *local = on(1);
    for (int device = 0; device < 2; device++) {
        MUST(cudaSetDevice(device));
        MUST(cudaStreamCreateWithFlags(&stream[device], cudaStreamNonBlocking));
        MUST(cudaEventCreateWithFlags(&event[device], cudaEventDisableTiming));
    }
    cudaPointerAttributes attributes;
    MUST(cudaPointerGetAttributes(&attributes, second));
    printf("the second's memory is of device %d\n", attributes.device);
    MUST(cudaMemcpy(first, values, sizeof values, cudaMemcpyHostToDevice)); // while device 1 is current

    MUST(cudaSetDevice(0));
    add<<<blocks, 256, 0, stream[0]>>>(first, first, result, count); // 2 v
    MUST(cudaMemcpyPeerAsync(second, 1, result, 0, sizeof values, stream[0]));
    MUST(cudaEventRecord(event[0], stream[0]));
    MUST(cudaSetDevice(1));
    MUST(cudaStreamWaitEvent(stream[1], event[0], 0));
    add<<<blocks, 256, 0, stream[1]>>>(second, second, local, count); // 4 v
    MUST(cudaMemcpyAsync(got, local, sizeof got, cudaMemcpyDeviceToHost, stream[1]));
    MUST(cudaStreamSynchronize(stream[1]));
    for (int i = 0; i < count; i++)
        want[i] = 4 * values[i];
    same("from one to the other", got, want, count);
    MUST(cudaSetDevice(0));
    MUST(cudaMemset(first, 0xFF, sizeof values)); // which may be queued still, and comes before the copy
    MUST(cudaSetDevice(1));
    MUST(cudaMemcpyPeer(first, 0, local, 1, sizeof values));
    MUST(cudaSetDevice(0));
    MUST(cudaMemcpy(got, first, sizeof got, cudaMemcpyDefault));
    same("and back", got, want, count);

    MUST(cudaDeviceCanAccessPeer(&can, 0, 1));
    MUST(cudaDeviceCanAccessPeer(&there, 1, 0));
    right("both ways or none", can == there);
    MUST(cudaSetDevice(0));
    if (can) {
        MUST(cudaDeviceEnablePeerAccess(1, 0));
        say("twice", cudaDeviceEnablePeerAccess(1, 0));
        cudaGetLastError();
        add<<<blocks, 256>>>(first, second, result, count); // 6 v, of which 2 v lie on the other device
        MUST(cudaMemcpy(got, result, sizeof got, cudaMemcpyDeviceToHost));
        MUST(cudaDeviceDisablePeerAccess(1));
    } else
        for (int i = 0; i < count; i++)
            got[i] = 6 * values[i];
    for (int i = 0; i < count; i++)
        want[i] = 6 * values[i];
    same("memory of the other one in a kernel", got, want, count);

    std::thread other([&] { // its first device is 0, whatever this thread has chosen
        int device = -1;
        MUST(cudaGetDevice(&device));
        printf("a new thread is on device %d\n", device);
        MUST(cudaSetDevice(1));
        MUST(cudaMemcpyFromSymbol(&variable[1], touched, sizeof(int)));
    });
    other.join();
    MUST(cudaMemcpyFromSymbol(&variable[0], touched, sizeof(int)));
    right("each device has its own variable", variable[0] == (can ? 9 : 3) && variable[1] == 3);
    for (int device = 0; device < 2; device++) {
        MUST(cudaStreamDestroy(stream[device]));
        MUST(cudaEventDestroy(event[device]));
    }
    for (int *each : {first, result, second, local})
        MUST(cudaFree(each));
    return 0;
}
