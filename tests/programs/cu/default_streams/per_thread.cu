// flags: --default-stream per-thread
#include "streams.h"

static __global__ void add(int *value, int what) {
    *value += what;
}

void per_thread_add(int *value, int what) {
    add<<<1, 1>>>(value, what);
}

cudaError_t per_thread_synchronize() {
    return cudaStreamSynchronize(nullptr);
}
