/* Warp intrinsics, with parts of warps too: votes, shuffles, matches, reductions, and a dot product made of them. */
#include "check.h"

const unsigned everyone = 0xffffffffu;

__global__ void intrinsics(const int *in, int *out) {
    int i = (int)threadIdx.x, value = in[i], at = 0;
    out[32 * at++ + i] = (int)__ballot_sync(everyone, value % 3 == 0);
    out[32 * at++ + i] = __any_sync(everyone, value == in[5]) + 2 * __all_sync(everyone, value >= 0) + 4 * __any_sync(everyone, value < 0);
    out[32 * at++ + i] = __shfl_sync(everyone, value, (i * 5) % 32);
    out[32 * at++ + i] = __shfl_up_sync(everyone, value, 3);
    out[32 * at++ + i] = __shfl_down_sync(everyone, value, 4, 8);
    out[32 * at++ + i] = __shfl_xor_sync(everyone, value, 10);
    out[32 * at++ + i] = (int)__match_any_sync(everyone, value % 4);
    int same_everywhere = 9;
    out[32 * at++ + i] = (int)__match_all_sync(everyone, value / 1000, &same_everywhere) + same_everywhere;
    out[32 * at++ + i] = (int)__reduce_add_sync(everyone, value);
    out[32 * at++ + i] = __reduce_max_sync(everyone, value);
    out[32 * at++ + i] = (int)__reduce_xor_sync(everyone, (unsigned)value);
    if (i % 2) // of the odd lanes alone
        out[32 * at + i] = (int)__ballot_sync(0xaaaaaaaau, value > 100) ^ (int)__activemask();
    else
        out[32 * at + i] = __reduce_min_sync(0x55555555u, value);
}

__global__ void dot(const float *a, const float *b, int count, float *out) {
    __shared__ float part[32];
    float sum = 0;
    for (int i = (int)threadIdx.x; i < count; i += (int)blockDim.x)
        sum += a[i] * b[i];
    for (int offset = 16; offset > 0; offset /= 2)
        sum += __shfl_down_sync(everyone, sum, offset);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0;
        for (int offset = 16; offset > 0; offset /= 2)
            sum += __shfl_down_sync(everyone, sum, offset);
        if (threadIdx.x == 0)
            *out = sum;
    }
}

int main() {
    const int rows = 12, count = 2000;
    int in[32], want[rows][32], got[rows * 32];
    for (int i = 0; i < 32; i++)
        in[i] = (i * 37 + 5) % 200;
    for (int i = 0; i < 32; i++) {
        int at = 0, ballot = 0, match = 0, sum = 0, most = 0, parity = 0, odd = 0, least = 1000;
        for (int j = 0; j < 32; j++) {
            ballot |= (in[j] % 3 == 0) << j;
            match |= (in[j] % 4 == in[i] % 4) << j;
            odd |= (j % 2 && in[j] > 100) << j;
            sum += in[j];
            most = in[j] > most ? in[j] : most;
            least = j % 2 == 0 && in[j] < least ? in[j] : least;
            parity ^= in[j];
        }
        want[at++][i] = ballot;
        want[at++][i] = 3;
        want[at++][i] = in[(i * 5) % 32];
        want[at++][i] = in[i >= 3 ? i - 3 : i];
        want[at++][i] = in[i % 8 < 4 ? i + 4 : i];
        want[at++][i] = in[i ^ 10];
        want[at++][i] = match;
        want[at++][i] = (int)everyone + 1;
        want[at++][i] = sum;
        want[at++][i] = most;
        want[at++][i] = parity;
        want[at][i] = i % 2 ? odd ^ (int)0xaaaaaaaau : least;
    }
    int *device = to_device(in, 32), *out = to_device<int>(nullptr, rows * 32);
    intrinsics<<<1, 32>>>(device, out);
    to_host(got, out, rows * 32);
    for (int row = 0; row < rows; row++) {
        printf("row %d; ", row);
        same("intrinsic", got + row * 32, want[row], 32);
    }
    float a[count], b[count], result = 0, wanted = 0;
    for (int i = 0; i < count; i++) {
        a[i] = (float)(i % 13) - 6; // so that each sum is a whole number, which order does not change
        b[i] = (float)(i % 7);
        wanted += a[i] * b[i];
    }
    float *device_a = to_device(a, count), *device_b = to_device(b, count), *device_result = to_device<float>(nullptr, 1);
    dot<<<1, 256>>>(device_a, device_b, count, device_result);
    to_host(&result, device_result, 1);
    printf("dot product %g\n", result);
    right("dot product", result == wanted);
    MUST(cudaFree(device));
    MUST(cudaFree(out));
    for (float *each : {device_a, device_b, device_result})
        MUST(cudaFree(each));
    return 0;
}
