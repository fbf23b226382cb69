/* Products of integer and bit matrices: exact. */
#include "softgpu/engine/lanes/matrix_lanes.h"

static int32_t number(uint32_t bits, unsigned type) {
    unsigned size = type == SG_TYPE_S8 || type == SG_TYPE_U8 ? 8 : 4;
    bool has_sign = type == SG_TYPE_S8 || type == SG_TYPE_S4;
    uint32_t sign = has_sign ? 1u << (size - 1) : 0;
    return (int32_t)((bits ^ sign) - sign);
}

static void numbers(int32_t *to, const uint32_t *bits, unsigned count, unsigned type) {
    for (unsigned i = 0; i < count; i++)
        to[i] = number(bits[i], type);
}

/* At most 128 products of 16 bits: the sum fits. */
static int32_t dot(const int32_t *a, const int32_t *b, const unsigned char *pick, unsigned count) {
    int32_t sum = 0;
    for (unsigned k = 0; k < count; k++)
        sum += a[k] * b[pick[k]];
    return sum;
}

static uint32_t total(int32_t c, int32_t sum, bool saturates) {
    int64_t all = (int64_t)c + sum;
    if (saturates)
        all = all > INT32_MAX ? INT32_MAX : all < INT32_MIN ? INT32_MIN : all;
    return (uint32_t)(uint64_t)all;
}

void SG_LEVEL(sg_matrix_integers)(struct sg_matrix_work *work) {
    int32_t a[SG_MATRIX_MOST] = {0}, b[SG_MATRIX_MOST] = {0};
    unsigned a_length = work->shape[SG_MATRIX_A].length, b_length = work->shape[SG_MATRIX_B].length;
    bool saturates = (work->in->modifiers & SG_MOD(SATFINITE)) != 0;
    unsigned char pick[64];
    numbers(a, work->a, work->m * a_length, work->shape[SG_MATRIX_A].type);
    numbers(b, work->b, work->n * b_length, work->shape[SG_MATRIX_B].type);
    for (unsigned i = 0; i < work->m; i++) {
        SG_LEVEL(sg_matrix_pick)(work, i, pick);
        for (unsigned j = 0; j < work->n; j++) {
            int32_t sum = dot(a + i * a_length, b + j * b_length, pick, a_length);
            work->d[i * work->n + j] = total((int32_t)work->c[i * work->n + j], sum, saturates);
        }
    }
}

void SG_LEVEL(sg_matrix_bits)(struct sg_matrix_work *work) {
    unsigned words = work->shape[SG_MATRIX_A].length;
    bool differ = work->in->operation2 == SG_DO_XOR_POPC;
    for (unsigned i = 0; i < work->m; i++)
        for (unsigned j = 0; j < work->n; j++) {
            uint32_t sum = work->c[i * work->n + j];
            for (unsigned w = 0; w < words; w++) {
                uint32_t a = work->a[i * words + w], b = work->b[j * words + w];
                sum += (uint32_t)__builtin_popcount(differ ? a ^ b : a & b);
            }
            work->d[i * work->n + j] = sum;
        }
}
