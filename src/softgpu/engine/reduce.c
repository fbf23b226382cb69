/* Bulk reductions: combine elements of one buffer into another. */
#include "softgpu/engine/async.h"
#include "softgpu/engine/lanes/lanes.h"

static double half_value(uint16_t bits, bool brain) {
    return brain ? (double)sg_bfloat_to_float(bits) : (double)SG_LEVEL(sg_half_to_float)(bits);
}

static uint16_t half_sum(uint16_t a, uint16_t b, bool brain) {
    double sum = SG_LEVEL(sg_fma_odd)(half_value(a, brain), 1.0, half_value(b, brain));
    return brain ? SG_LEVEL(sg_bfloat_from_double)(sum, SG_ROUND_RN)
                 : SG_LEVEL(sg_half_from_double)(sum, SG_ROUND_RN);
}

/* A number is preferred to a NaN, and -0 is less than +0. */
static uint16_t half_choice(uint16_t a, uint16_t b, bool brain, bool most) {
    double x = half_value(a, brain), y = half_value(b, brain);
    if (x != x || y != y)
        return x != x && y != y ? 0x7fff : x != x ? b : a;
    bool less = x < y || (x == y && a >> 15 > b >> 15);
    return less == most ? b : a;
}

/* Unlike red.global, a bulk reduction keeps subnormal f32, as recorded. */
static uint64_t of_floats(uint64_t a, uint64_t b, unsigned operation, unsigned type) {
    bool brain = type == SG_TYPE_BF16;
    switch (type) {
    case SG_TYPE_F32:
        return sg_canonical(sg_float((uint32_t)a) + sg_float((uint32_t)b));
    case SG_TYPE_F64:
        return sg_bits64(sg_double(a) + sg_double(b));
    default:
        return operation == SG_DO_ADD
                   ? half_sum((uint16_t)a, (uint16_t)b, brain)
                   : half_choice((uint16_t)a, (uint16_t)b, brain, operation == SG_DO_MAX);
    }
}

static uint64_t combined(uint64_t a, uint64_t b, unsigned operation, unsigned type) {
    bool sign = type == SG_TYPE_S32 || type == SG_TYPE_S64, wide = sg_type_bits(type) == 64;
    int64_t x = wide ? (int64_t)a : (int32_t)(uint32_t)a;
    int64_t y = wide ? (int64_t)b : (int32_t)(uint32_t)b;
    bool less = sign ? x < y : a < b;
    if (type >= SG_TYPE_F16)
        return of_floats(a, b, operation, type);
    switch (operation) {
    case SG_DO_ADD:
        return a + b;
    case SG_DO_MIN:
        return less ? a : b;
    case SG_DO_MAX:
        return less ? b : a;
    case SG_DO_AND:
        return a & b;
    case SG_DO_OR:
        return a | b;
    case SG_DO_XOR:
        return a ^ b;
    case SG_DO_INC:
        return a >= b ? 0 : a + 1;
    default:
        return a == 0 || a > b ? b : a - 1; /* dec */
    }
}

#define REDUCE(BITS)                                                                               \
    static void reduce_##BITS(unsigned char *to, const unsigned char *from, unsigned operation,    \
                              unsigned type, bool global) {                                        \
        u##BITS *word = (void *)to, old, next;                                                     \
        uint##BITS##_t with;                                                                       \
        memcpy(&with, from, sizeof with);                                                          \
        if (!global) {                                                                             \
            *word = (uint##BITS##_t)combined(*word, with, operation, type);                        \
            return;                                                                                \
        }                                                                                          \
        old = __atomic_load_n(word, __ATOMIC_RELAXED);                                             \
        do                                                                                         \
            next = (uint##BITS##_t)combined(old, with, operation, type);                           \
        while (!__atomic_compare_exchange_n(word, &old, next, false, __ATOMIC_RELAXED,             \
                                            __ATOMIC_RELAXED));                                    \
    }
REDUCE(16)
REDUCE(32)
REDUCE(64)

void sg_reduce(unsigned char *to, const unsigned char *from, uint64_t bytes, unsigned operation,
               unsigned type, bool global) {
    unsigned bits = sg_type_bits(type);
    for (uint64_t at = 0; at + bits / 8 <= bytes; at += bits / 8)
        if (bits == 16)
            reduce_16(to + at, from + at, operation, type, global);
        else if (bits == 32)
            reduce_32(to + at, from + at, operation, type, global);
        else
            reduce_64(to + at, from + at, operation, type, global);
}
