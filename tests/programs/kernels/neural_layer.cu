// Layers of a small network in bytes: dot products of four at once (dp4a), scaled, cut off and
// packed again.
#include "device.cuh"

INLINE int dot(int a, int b, int sum) {
    int result;
    asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(sum));
    return result;
}

// A warp has one output of one sample: in[sample][words], weights[output][words].
KERNEL layer(const int *in, const int *weights, const int *bias, u8 *out, u32 words, u32 outputs,
             u32 shift) {
    u32 warp = index() / 32, output = warp % outputs, sample = warp / outputs;
    int sum = 0;
    for (u32 i = lane(); i < words; i += 32)
        sum = dot(in[sample * words + i], weights[output * words + i], sum);
    for (u32 mask = 16; mask > 0; mask /= 2)
        sum += (int)shuffle_xor((u32)sum, mask);
    if (lane() > 0)
        return;
    sum = (sum + bias[output]) >> shift;
    sum = sum < 0 ? 0 : sum > 127 ? 127 : sum;
    out[sample * outputs + output] = (u8)sum;
}
