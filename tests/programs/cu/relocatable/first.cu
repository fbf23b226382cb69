/* Two files of relocatable code: a function and a variable of the other one are used. */
#include <cstdio>

extern __device__ int twice(int value);
extern __device__ int offset;

__global__ void work(int *out) {
    out[threadIdx.x] = twice((int)threadIdx.x) + offset;
}

int main() {
    int *out;
    int host[4] = {};
    cudaError_t error = cudaMalloc(&out, sizeof host);
    printf("malloc %s\n", cudaGetErrorName(error));
    work<<<1, 4>>>(out);
    error = cudaGetLastError();
    printf("launch %s\n", cudaGetErrorName(error));
    error = cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
    printf("copy %s: %d %d %d %d\n", cudaGetErrorName(error), host[0], host[1], host[2], host[3]);
    return cudaFree(out) != cudaSuccess;
}
