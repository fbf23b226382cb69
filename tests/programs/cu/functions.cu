/* What kernels are: their attributes and names, shared memory by request, occupancy against the device's limits. */
// runtime: 13
#include "check.h"

__global__ void plain(int *out) {
    out[threadIdx.x] = (int)threadIdx.x;
}

__global__ __launch_bounds__(128, 2) void bounded(int *out) {
    __shared__ int room[256];
    room[threadIdx.x] = (int)threadIdx.x * 3;
    __syncthreads();
    out[threadIdx.x] = room[blockDim.x - 1 - threadIdx.x];
}

/* Turns `count` values round in shared memory. */
template <typename T> __global__ void turn(const T *in, T *out, int count) {
    extern __shared__ __align__(16) unsigned char bytes[];
    T *room = (T *)bytes;
    for (int i = (int)threadIdx.x; i < count; i += (int)blockDim.x)
        room[i] = in[i];
    __syncthreads();
    for (int i = (int)threadIdx.x; i < count; i += (int)blockDim.x)
        out[i] = room[count - 1 - i];
}

int main() {
    const int count = 12000; // 48,000 bytes of int, 96,000 of double
    static double in[count], got[count], want[count];
    cudaFuncAttributes attributes;
    cudaDeviceProp device;
    const char *name = nullptr;
    int blocks = 0, threads = 0, grid = 0, opt_in = 0;
    size_t dynamic = 0;
    MUST(cudaGetDeviceProperties(&device, 0));
    MUST(cudaDeviceGetAttribute(&opt_in, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    right("properties and attributes agree", device.sharedMemPerBlockOptin == (size_t)opt_in);
    MUST(cudaFuncGetAttributes(&attributes, bounded));
    printf("bounded: %zu bytes shared, %d threads\n", attributes.sharedSizeBytes, attributes.maxThreadsPerBlock);
    MUST(cudaFuncGetName(&name, (const void *)plain));
    printf("%s\n", name);
    MUST(cudaFuncGetName(&name, (const void *)turn<double>));
    printf("%s\n", name);

    for (int i = 0; i < count; i++) {
        in[i] = i * 0.5;
        want[i] = (count - 1 - i) * 0.5;
    }
    double *from = to_device(in, count), *to = to_device<double>(nullptr, count);
    turn<<<1, 256, count * sizeof(double)>>>(from, to, count);
    say("96,000 bytes without asking", cudaGetLastError());
    MUST(cudaFuncSetAttribute(turn<double>, cudaFuncAttributeMaxDynamicSharedMemorySize, count * sizeof(double)));
    MUST(cudaFuncSetAttribute(turn<double>, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared));
    turn<<<1, 256, count * sizeof(double)>>>(from, to, count);
    say("having asked", cudaGetLastError());
    to_host(got, to, count);
    same("turned", got, want, count);
    MUST(cudaFuncGetAttributes(&attributes, turn<double>));
    printf("now at most %d\n", attributes.maxDynamicSharedSizeBytes);
    MUST(cudaFuncGetAttributes(&attributes, turn<int>));
    printf("another instance: %d\n", attributes.maxDynamicSharedSizeBytes);
    say("more than there is", cudaFuncSetAttribute(turn<double>, cudaFuncAttributeMaxDynamicSharedMemorySize, opt_in + 1));
    cudaGetLastError();

    MUST(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, plain, 1024, 0));
    right("blocks of 1,024 fill a multiprocessor at most", blocks * 1024 <= device.maxThreadsPerMultiProcessor && blocks > 0);
    MUST(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, turn<double>, 64, count * sizeof(double)));
    right("as many as its shared memory holds",
          blocks == (int)(device.sharedMemPerMultiprocessor / (count * sizeof(double) + device.reservedSharedMemPerBlock)));
    MUST(cudaOccupancyMaxPotentialBlockSize(&grid, &threads, bounded, 0, 0));
    right("at most what its bounds allow", threads <= 128 && threads % 32 == 0 && grid >= device.multiProcessorCount);
    MUST(cudaOccupancyMaxPotentialBlockSizeVariableSMem(&grid, &threads, turn<int>, [](int size) { return (size_t)size * 64; }, 512));
    right("at most what was said", threads <= 512 && threads > 0);
    MUST(cudaOccupancyAvailableDynamicSMemPerBlock(&dynamic, turn<double>, 2, 64));
    right("half of it, for two blocks", dynamic > device.sharedMemPerMultiprocessor / 4 && dynamic <= device.sharedMemPerMultiprocessor / 2);
    MUST(cudaFree(from));
    MUST(cudaFree(to));
    return 0;
}
