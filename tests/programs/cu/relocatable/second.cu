__device__ int offset = 100;

__device__ int twice(int value) {
    return 2 * value;
}
