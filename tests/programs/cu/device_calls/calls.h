/* What the parts of the program have in common. */
#pragma once

struct settings {
    int scale, offset;
};
typedef int (*filter)(int);
extern __constant__ settings common_settings;
extern __device__ filter filters[2];
extern __device__ int calls;

__device__ int adjust(int value); /* adjust.cu */
template <typename T>
__device__ T sum_of(T *, int); /* in a header, instantiated by whoever uses it */

template <typename T> __device__ T sum_of(T *values, int count) {
    T sum = 0;
    for (int i = 0; i < count; i++)
        sum += values[i];
    return sum;
}

cudaError_t launch_other(int *values, int count, int *out); /* other.cu: a kernel of another file */
