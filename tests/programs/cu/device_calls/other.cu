#include "calls.h"

static __device__ int negative(int value) {
    return -value;
}

static __device__ int squared(int value) {
    return value * value;
}

__device__ filter filters[2] = {negative, squared};

static __global__ void sum(int *values, int count, int *out) {
    *out = sum_of(values, count);
}

cudaError_t launch_other(int *values, int count, int *out) {
    sum<<<1, 1>>>(values, count, out);
    return cudaGetLastError();
}
