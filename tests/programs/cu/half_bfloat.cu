/* Arithmetic in half and bfloat16, one and two at a time, with the host's conversions and a rounding of our own. */
#include "check.h"

#include <cmath>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

/* Rounds to `bits` of mantissa, to even; exponents stay within both formats here. */
static float rounded(double x, int bits) {
    int exponent;
    double part = std::frexp(x, &exponent);
    return (float)std::ldexp(std::nearbyint(std::ldexp(part, bits)), exponent - bits);
}

__global__ void halves(const float *a, const float *b, float *out, int count) {
    int i = (int)threadIdx.x;
    __half x = __float2half(a[i]), y = __float2half(b[i]);
    out[i] = __half2float(__hadd(x, y));
    out[count + i] = __half2float(x * y);
    out[2 * count + i] = __half2float(__hfma(x, y, x));
    __half2 pair = __hmul2(__halves2half2(x, y), __float2half2_rn(0.5f));
    out[3 * count + i] = __low2float(pair) + __high2float(pair);
    out[4 * count + i] = __hgt(x, y) ? 1.0f : __heq(x, y) ? 0.0f : -1.0f;
    out[5 * count + i] = (float)__half2int_rz(x * y) + __half2float(__hneg(__habs(x)));
}

__global__ void brains(const float *a, const float *b, float *out, int count) {
    int i = (int)threadIdx.x;
    __nv_bfloat16 x = __float2bfloat16(a[i]), y = __float2bfloat16(b[i]);
    out[i] = __bfloat162float(__hadd(x, y));
    out[count + i] = __bfloat162float(x * y);
    out[2 * count + i] = __bfloat162float(__hfma(x, y, x));
    __nv_bfloat162 pair = __hmul2(__halves2bfloat162(x, y), __float2bfloat162_rn(0.5f));
    out[3 * count + i] = __low2float(pair) + __high2float(pair);
    out[4 * count + i] = __hgt(x, y) ? 1.0f : __heq(x, y) ? 0.0f : -1.0f;
    out[5 * count + i] = (float)__bfloat162int_rz(x * y) + __bfloat162float(__hneg(__habs(x)));
}

/* Sums of halves, with atomics of both kinds of number. */
__global__ void add_up(const float *a, __half *h, __half2 *pair, int count) {
    if ((int)threadIdx.x < count) {
        atomicAdd(h, __float2half(a[threadIdx.x] > 0 ? 1.0f : 0.5f));
        atomicAdd(pair, __floats2half2_rn(1.0f, 2.0f));
    }
}

int main() {
    const int count = 64, kinds = 6;
    float a[count], b[count], got[kinds * count], want[kinds * count];
    for (int i = 0; i < count; i++) {
        a[i] = (float)((i * 37) % 101 - 50) * 0.173f;
        b[i] = (float)((i * 53) % 97 - 48) * 0.0917f;
    }
    float *device_a = to_device(a, count), *device_b = to_device(b, count), *out = to_device<float>(nullptr, kinds * count);
    for (int bits : {11, 8}) {
        if (bits == 11)
            halves<<<1, count>>>(device_a, device_b, out, count);
        else
            brains<<<1, count>>>(device_a, device_b, out, count);
        to_host(got, out, kinds * count);
        for (int i = 0; i < count; i++) {
            double x = rounded(a[i], bits), y = rounded(b[i], bits);
            float product = rounded(x * y, bits);
            want[i] = rounded(x + y, bits);
            want[count + i] = product;
            want[2 * count + i] = rounded(x * y + x, bits);
            want[3 * count + i] = (float)(x / 2) + (float)(y / 2);
            want[4 * count + i] = x > y ? 1.0f : x == y ? 0.0f : -1.0f;
            want[5 * count + i] = (float)(int)product - (float)std::fabs(x);
        }
        same(bits == 11 ? "half" : "bfloat16", got, want, kinds * count);
    }
    __half *h = to_device<__half>(nullptr, 1), sum;
    __half2 *pair = to_device<__half2>(nullptr, 1), pairs;
    add_up<<<1, count>>>(device_a, h, pair, count);
    to_host(&sum, h, 1);
    to_host(&pairs, pair, 1);
    float wanted = 0;
    for (float each : a)
        wanted += each > 0 ? 1.0f : 0.5f;
    printf("sums %g, %g and %g\n", __half2float(sum), __low2float(pairs), __high2float(pairs));
    right("sums", __half2float(sum) == wanted && __low2float(pairs) == count && __high2float(pairs) == 2 * count);
    for (float *each : {device_a, device_b, out})
        MUST(cudaFree(each));
    MUST(cudaFree(h));
    MUST(cudaFree(pair));
    return 0;
}
