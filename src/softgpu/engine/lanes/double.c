/*
 * Double precision. The payload of a NaN operand is preserved, made quiet: the second of two, the
 * first in a division, b's, else c's, else a's of three. An invalid operation gives the negative
 * quiet NaN. All of this is as recorded, and explicit, because a compiler may swap operands and
 * levels must agree.
 */
#include "softgpu/engine/lanes/lanes.h"

#include <math.h>

#define QUIET UINT64_C(0x0008000000000000)

static inline bool is_nan(uint64_t bits) {
    return (bits & INT64_MAX) > UINT64_C(0x7ff0000000000000);
}
static inline uint64_t result1(uint64_t a, double value) {
    uint64_t bits = sg_bits64(value);
    bits = is_nan(bits) ? UINT64_C(0xfff8000000000000) : bits;
    return is_nan(a) ? a | QUIET : bits;
}
static inline uint64_t result2(uint64_t a, uint64_t b, double value) {
    uint64_t bits = result1(a, value);
    return is_nan(b) ? b | QUIET : bits;
}
static inline uint64_t result3(uint64_t a, uint64_t b, uint64_t c, double value) {
    uint64_t bits = result2(a, c, value);
    return is_nan(b) ? b | QUIET : bits;
}

#if defined __FMA__ || defined __ARM_FEATURE_FMA
#define fused(a, b, c) __builtin_fma(a, b, c)
#else
#define fused(a, b, c) fma(a, b, c) /* the library's: exact */
#endif

#define X (sg_double(A))
#define Y (sg_double(B))
#define Z (sg_double(C))
#define ROUNDED(NAME, FULL)                                                                        \
    static const struct sg_step *NAME(struct sg_warp *warp, const struct sg_step *step) {          \
        unsigned before = sg_round_set(step->rounding);                                            \
        const struct sg_step *next = FULL(warp, step);                                             \
        sg_round_restore(before);                                                                  \
        return next;                                                                               \
    }
SG_MAP2(add, u64, u64, u64, result2(A, B, X + Y))
SG_MAP2(sub, u64, u64, u64, result2(A, B, X - Y))
SG_MAP2(mul, u64, u64, u64, result2(A, B, X *Y))
SG_MAP2(div, u64, u64, u64, result2(B, A, X / Y))
SG_MAP3(fma_, u64, u64, u64, u64, result3(A, B, C, fused(X, Y, Z)))
SG_MAP3(fma_minus_product, u64, u64, u64, u64, result3(A, B, C, fused(-X, Y, Z)))
SG_MAP3(fma_minus_addend, u64, u64, u64, u64, result3(A, B, C, fused(X, Y, -Z)))
SG_MAP3(fma_minus_both, u64, u64, u64, u64, result3(A, B, C, fused(-X, Y, -Z)))
SG_MAP1(sqrt_, u64, u64, result1(A, __builtin_sqrt(X)))
SG_MAP1(rcp, u64, u64, result1(A, 1.0 / X))
ROUNDED(add_directed, add)
ROUNDED(sub_directed, sub)
ROUNDED(mul_directed, mul)
ROUNDED(div_directed, div)
ROUNDED(fma_directed, fma_)
ROUNDED(sqrt_directed, sqrt_)
ROUNDED(rcp_directed, rcp)
/* Hardware executes these as additions: a NaN keeps its sign. */
SG_MAP1(abs_, u64, u64, is_nan(A) ? A | QUIET : A &INT64_MAX)
SG_MAP1(neg, u64, u64, is_nan(A) ? A | QUIET : A ^ ((uint64_t)1 << 63))
SG_MAP2(copysign_, u64, u64, u64, (A & ((uint64_t)1 << 63)) | (B & INT64_MAX))

static inline int64_t ordered(uint64_t bits) {
    return (int64_t)(bits ^ ((0 - (bits >> 63)) & INT64_MAX));
}
static inline uint64_t extreme(uint64_t a, uint64_t b, bool most) {
    uint64_t best = (ordered(a) > ordered(b)) == most ? a : b;
    best = is_nan(a) ? b : is_nan(b) ? a : best;
    return is_nan(a) && is_nan(b) ? b | QUIET : best;
}
SG_MAP2(min_, u64, u64, u64, extreme(A, B, false))
SG_MAP2(max_, u64, u64, u64, extreme(A, B, true))

struct row {
    unsigned char op, sources;
    sg_run *usual, *directed;
};
static const struct row rows[] = {
    {SG_OP_add, 2, add, add_directed},
    {SG_OP_sub, 2, sub, sub_directed},
    {SG_OP_mul, 2, mul, mul_directed},
    {SG_OP_div, 2, div, div_directed},
    {SG_OP_fma, 3, fma_, fma_directed},
    {SG_OP_mad, 3, fma_, fma_directed},
    {SG_OP_sqrt, 1, sqrt_, sqrt_directed},
    {SG_OP_rcp, 1, rcp, rcp_directed},
    {SG_OP_abs, 1, abs_, NULL},
    {SG_OP_neg, 1, neg, NULL},
    {SG_OP_copysign, 2, copysign_, NULL},
    {SG_OP_min, 2, min_, NULL},
    {SG_OP_max, 2, max_, NULL},
};

static sg_run *const signed_fma[] = {fma_, fma_minus_product, fma_minus_addend, fma_minus_both};

bool SG_LEVEL(sg_theme_double)(const struct sg_instruction *in, struct sg_form *form) {
    if (in->type != SG_TYPE_F64 || (in->modifiers & SG_MOD(APPROX)))
        return false;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].op != in->op)
            continue;
        bool directed = in->rounding != SG_ROUND_NONE && in->rounding != SG_ROUND_RN;
        form->run = directed ? rows[i].directed : rows[i].usual;
        if (sg_fma_signs(in))
            form->run = signed_fma[sg_fma_signs(in)];
        form->rounding = in->rounding;
        form->gang = true;
        form->dest = SG_W_64;
        for (unsigned k = 0; k < rows[i].sources; k++)
            form->source[k] = SG_W_64;
        return form->run != NULL;
    }
    return false;
}
