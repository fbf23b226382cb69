/* Host memory that the device reads and writes where it lies: allocated, registered, portable, and a mailbox in it. */
#include "check.h"

#include <vector>

__global__ void twice(const int *in, int *out, int count) {
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count)
        out[i] = 2 * in[i];
}

/* Answers what the host puts into the box while the kernel runs. */
__global__ void serve(volatile int *box, int rounds) {
    for (int round = 1; round <= rounds; round++) {
        while (box[0] != round)
            ;
        __threadfence_system();
        box[1] = box[2] * 10 + round;
        __threadfence_system();
        box[0] = -round;
    }
}

int main() {
    const int count = 3000;
    int *allocated, *device_allocated, *device_registered, *out, want[count], can = 0;
    unsigned flags = 0;
    std::vector<int> own(count), back(count);
    MUST(cudaDeviceGetAttribute(&can, cudaDevAttrCanMapHostMemory, 0));
    printf("can map: %d\n", can);
    MUST(cudaHostAlloc(&allocated, count * sizeof *allocated, cudaHostAllocMapped | cudaHostAllocPortable));
    MUST(cudaHostGetDevicePointer(&device_allocated, allocated, 0));
    MUST(cudaHostGetFlags(&flags, allocated));
    printf("mapped and portable: %d\n", (flags & (cudaHostAllocMapped | cudaHostAllocPortable)) ==
                                            (cudaHostAllocMapped | cudaHostAllocPortable));
    MUST(cudaHostRegister(own.data(), count * sizeof(int), cudaHostRegisterMapped));
    MUST(cudaHostGetDevicePointer(&device_registered, own.data(), 0));
    for (int i = 0; i < count; i++) {
        allocated[i] = 3 * i;
        want[i] = 6 * i;
    }
    twice<<<(count + 255) / 256, 256>>>(device_allocated, device_registered, count);
    MUST(cudaDeviceSynchronize());
    same("from allocated to registered", own.data(), want, count);
    out = to_device<int>(nullptr, count);
    twice<<<(count + 255) / 256, 256>>>(device_registered, out, count);
    to_host(back.data(), out, count);
    for (int i = 0; i < count; i++)
        want[i] = 12 * i;
    same("from registered to the device", back.data(), want, count);
    cudaPointerAttributes attributes;
    MUST(cudaPointerGetAttributes(&attributes, own.data() + 5));
    printf("kind %d, its own address: %d\n", (int)attributes.type, attributes.hostPointer == own.data() + 5);
    say("registered twice", cudaHostRegister(own.data(), count * sizeof(int), cudaHostRegisterDefault));
    MUST(cudaHostUnregister(own.data()));
    say("unregistered twice", cudaHostUnregister(own.data()));
    say("of memory that nobody registered", cudaHostGetDevicePointer(&device_registered, back.data(), 0));
    cudaGetLastError();

    volatile int *box = allocated;
    const int rounds = 4;
    box[0] = 0;
    serve<<<1, 1>>>(device_allocated, rounds);
    MUST(cudaGetLastError());
    for (int round = 1; round <= rounds; round++) {
        box[2] = round * 7;
        __sync_synchronize();
        box[0] = round;
        while (box[0] != -round)
            ;
        printf("round %d: %d\n", round, box[1]);
        right("answer", box[1] == round * 70 + round);
    }
    MUST(cudaDeviceSynchronize());
    MUST(cudaHostAlloc(&allocated, 64, cudaHostAllocWriteCombined));
    MUST(cudaFreeHost(allocated));
    MUST(cudaFreeHost((void *)box));
    MUST(cudaFree(out));
    return 0;
}
