/* A kernel that launches another one. Where that cannot be, the launch says so by an error, and all else goes on. */
// flags: -rdc=true
// says: of the device runtime, which does not run
#include "check.h"

__global__ void leaf(int *out, int depth) {
    atomicAdd(out, depth);
}

__global__ void root(int *out) {
    leaf<<<2, 4>>>(out, 3);
}

__global__ void alone(int *out) {
    *out = 5;
}

int main() {
    int *out, value = -1;
    cudaError_t error = cudaMalloc(&out, sizeof *out);
    if (error == cudaSuccess)
        error = cudaMemset(out, 0, sizeof *out);
    if (error == cudaSuccess) {
        root<<<1, 1>>>(out);
        error = cudaGetLastError();
    }
    if (error == cudaSuccess)
        error = cudaMemcpy(&value, out, sizeof value, cudaMemcpyDeviceToHost);
    right("launched, or refused", error == cudaSuccess ? value == 2 * 4 * 3 : error == cudaErrorNotSupported && value == -1);
    alone<<<1, 1>>>(out);
    say("another kernel of the same file", cudaGetLastError());
    say("free", cudaFree(out));
    return 0;
}
