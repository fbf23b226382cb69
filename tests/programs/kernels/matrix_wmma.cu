// Products of f16 matrices by wmma of 16 x 16 x 16, with sums in f32 and a bias; and in f16. A warp
// has one tile of the result.
#include "device.cuh"

KERNEL multiply_f32(const int *a, const int *b, const float *bias, float *c, u32 inner,
                    u32 columns, float scale) {
    int left[8], right[8];
    float sum[8];
    u32 row = block_y() * 16, column = block() * 16;
    __hmma_m16n16k16_ld_c_f32(sum, bias + column, 0, 0);
    for (u32 first = 0; first < inner; first += 16) {
        __hmma_m16n16k16_ld_a(left, a + (row * inner + first) / 2, (int)inner, 0);
        __hmma_m16n16k16_ld_b(right, b + (column * inner + first) / 2, (int)inner, 1);
        __hmma_m16n16k16_mma_f32f32(sum, left, right, sum, 1, 0);
    }
#pragma unroll
    for (u32 i = 0; i < 8; i++)
        sum[i] *= scale;
    __hmma_m16n16k16_st_c_f32(c + row * columns + column, sum, (int)columns, 0);
}

KERNEL multiply_f16(const int *a, const int *b, int *c, u32 inner, u32 columns) {
    int left[8], right[8], sum[4] = {0, 0, 0, 0};
    u32 row = block_y() * 16, column = block() * 16;
    for (u32 first = 0; first < inner; first += 16) {
        __hmma_m16n16k16_ld_a(left, a + (row * inner + first) / 2, (int)inner, 0);
        __hmma_m16n16k16_ld_b(right, b + (column * inner + first) / 2, (int)inner, 1);
        __hmma_m16n16k16_mma_f16f16(sum, left, right, sum, 1, 0);
    }
    __hmma_m16n16k16_st_c_f16(c + (row * columns + column) / 2, sum, (int)columns, 0);
}
