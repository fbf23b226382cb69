/* Products with an upper half, 24-bit products, and dot products of bytes and halves. */
#include "softgpu/engine/lanes/lanes.h"

/* The upper 64 of 128 bits, by halves, since not every target has vectors of such numbers. */
static inline uint64_t high_u64(uint64_t a, uint64_t b) {
    uint64_t al = (uint32_t)a, ah = a >> 32, bl = (uint32_t)b, bh = b >> 32;
    uint64_t low = al * bl, left = ah * bl + (low >> 32), right = al * bh + (uint32_t)left;
    return ah * bh + (left >> 32) + (right >> 32);
}

static inline uint64_t high_s64(uint64_t a, uint64_t b) {
    uint64_t high = high_u64(a, b);
    return high - (a >> 63 ? b : 0) - (b >> 63 ? a : 0);
}

#define HIGH_U16 ((uint32_t)A * (uint32_t)B >> 16)
#define HIGH_S16 ((uint32_t)((int32_t)A * (int32_t)B) >> 16)
#define HIGH_U32 ((uint64_t)A * (uint64_t)B >> 32)
#define HIGH_S32 ((uint64_t)((int64_t)A * (int64_t)B) >> 32)
SG_MAP2(hi_u16, u16, u16, u16, HIGH_U16)
SG_MAP2(hi_s16, u16, s16, s16, HIGH_S16)
SG_MAP2(hi_u32, u32, u32, u32, HIGH_U32)
SG_MAP2(hi_s32, u32, s32, s32, HIGH_S32)
SG_MAP2(hi_u64, u64, u64, u64, high_u64(A, B))
SG_MAP2(hi_s64, u64, u64, u64, high_s64(A, B))
SG_MAP3(mad_hi_u16, u16, u16, u16, u16, HIGH_U16 + C)
SG_MAP3(mad_hi_s16, u16, s16, s16, u16, HIGH_S16 + C)
SG_MAP3(mad_hi_u32, u32, u32, u32, u32, HIGH_U32 + C)
SG_MAP3(mad_hi_s32, u32, s32, s32, u32, HIGH_S32 + C)
SG_MAP3(mad_hi_u64, u64, u64, u64, u64, high_u64(A, B) + C)
SG_MAP3(mad_hi_s64, u64, u64, u64, u64, high_s64(A, B) + C)

SG_MAP2(wide_u16, u32, u16, u16, (uint32_t)A *(uint32_t)B)
SG_MAP2(wide_s16, u32, s16, s16, (int32_t)A *(int32_t)B)
SG_MAP2R(wide_u32, u64, u32, u32, (uint64_t)A *(uint64_t)B, sg_wide_u)
SG_MAP2R(wide_s32, u64, s32, s32, (int64_t)A *(int64_t)B, sg_wide_s)
SG_MAP3(mad_wide_u16, u32, u16, u16, u32, (uint32_t)A *(uint32_t)B + C)
SG_MAP3(mad_wide_s16, u32, s16, s16, u32, (uint32_t)((int32_t)A *(int32_t)B) + C)
SG_MAP3R(mad_wide_u32, u64, u32, u32, u64, (uint64_t)A *(uint64_t)B + C, sg_wide_sum_u)
SG_MAP3R(mad_wide_s32, u64, s32, s32, u64, (uint64_t)((int64_t)A *(int64_t)B) + C, sg_wide_sum_s)

/* mul24: the low 24 bits of each; .lo the low, .hi the high 32 bits of the 48. */
static inline uint64_t product24_u(uint32_t a, uint32_t b) {
    return (uint64_t)(a & 0xffffff) * (b & 0xffffff);
}
static inline uint64_t product24_s(uint32_t a, uint32_t b) {
    return (uint64_t)((int64_t)((int32_t)(a << 8) >> 8) * ((int32_t)(b << 8) >> 8));
}
static inline uint32_t sum_clamped(int32_t a, int32_t b) {
    int64_t sum = (int64_t)a + b;
    return (uint32_t)(sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum);
}
SG_MAP2(lo24_u, u32, u32, u32, product24_u(A, B))
SG_MAP2(lo24_s, u32, u32, u32, product24_s(A, B))
SG_MAP2(hi24_u, u32, u32, u32, product24_u(A, B) >> 16)
SG_MAP2(hi24_s, u32, u32, u32, product24_s(A, B) >> 16)
SG_MAP3(mad24_lo_u, u32, u32, u32, u32, product24_u(A, B) + C)
SG_MAP3(mad24_lo_s, u32, u32, u32, u32, product24_s(A, B) + C)
SG_MAP3(mad24_hi_u, u32, u32, u32, u32, (product24_u(A, B) >> 16) + C)
SG_MAP3(mad24_hi_s, u32, u32, u32, u32, (product24_s(A, B) >> 16) + C)
SG_MAP3(mad24_hi_sat, u32, u32, u32, u32,
        sum_clamped((int32_t)(product24_s(A, B) >> 16), (int32_t)C))

/* A byte or half of a word, sign- or zero-extended. */
static inline uint32_t part(uint32_t word, unsigned at, unsigned bits, bool has_sign) {
    uint32_t value = word << (32 - bits - at);
    return has_sign ? (uint32_t)((int32_t)value >> (32 - bits)) : value >> (32 - bits);
}
static inline uint32_t dp4(uint32_t a, uint32_t b, uint32_t c, bool sa, bool sb) {
    for (unsigned i = 0; i < 4; i++)
        c += part(a, 8 * i, 8, sa) * part(b, 8 * i, 8, sb);
    return c;
}
static inline uint32_t dp2(uint32_t a, uint32_t b, uint32_t c, bool sa, bool sb, unsigned from) {
    for (unsigned i = 0; i < 2; i++)
        c += part(a, 16 * i, 16, sa) * part(b, 8 * (i + from), 8, sb);
    return c;
}
SG_MAP3(dp4a, u32, u32, u32, u32, dp4(A, B, C, step->choice & 1, step->choice & 2))
SG_MAP3(dp2a, u32, u32, u32, u32, dp2(A, B, C, step->choice & 1, step->choice & 2, step->second))

static bool set(struct sg_form *form, sg_run *run, unsigned dest, unsigned source, unsigned third) {
    form->run = run;
    form->dest = (unsigned char)dest;
    form->source[0] = form->source[1] = (unsigned char)source;
    form->source[2] = (unsigned char)third;
    return run != NULL;
}

static bool dot(const struct sg_instruction *in, struct sg_form *form) {
    form->choice = (unsigned char)((in->type == SG_TYPE_S32) | (in->type2 == SG_TYPE_S32) << 1);
    form->second = in->modifiers & SG_MOD(HI) ? 2 : 0;
    return set(form, in->op == SG_OP_dp4a ? dp4a : dp2a, SG_W_32, SG_W_32, SG_W_32);
}

static bool narrow24(const struct sg_instruction *in, struct sg_form *form) {
    static sg_run *const by[2][2][2] = {{{lo24_u, lo24_s}, {hi24_u, hi24_s}},
                                        {{mad24_lo_u, mad24_lo_s}, {mad24_hi_u, mad24_hi_s}}};
    bool mad = in->op == SG_OP_mad24, high = (in->modifiers & SG_MOD(HI)) != 0;
    sg_run *run = by[mad][high][in->type == SG_TYPE_S32];
    if (in->modifiers & SG_MOD(SAT))
        run = mad && high && in->type == SG_TYPE_S32 ? mad24_hi_sat : NULL;
    return set(form, run, SG_W_32, SG_W_32, mad ? SG_W_32 : SG_W_NONE);
}

bool SG_LEVEL(sg_theme_wide)(const struct sg_instruction *in, struct sg_form *form) {
    static sg_run *const high[2][6] = {
        {hi_u16, hi_u32, hi_u64, hi_s16, hi_s32, hi_s64},
        {mad_hi_u16, mad_hi_u32, mad_hi_u64, mad_hi_s16, mad_hi_s32, mad_hi_s64}};
    static sg_run *const wide[2][6] = {
        {wide_u16, wide_u32, NULL, wide_s16, wide_s32, NULL},
        {mad_wide_u16, mad_wide_u32, NULL, mad_wide_s16, mad_wide_s32, NULL}};
    form->gang = true;
    if (in->op == SG_OP_dp4a || in->op == SG_OP_dp2a)
        return dot(in, form);
    if (in->op == SG_OP_mul24 || in->op == SG_OP_mad24)
        return narrow24(in, form);
    if ((in->op != SG_OP_mul && in->op != SG_OP_mad) ||
        (in->modifiers & (SG_MOD(CC) | SG_MOD(SAT))))
        return false;
    bool mad = in->op == SG_OP_mad, has_sign = in->type >= SG_TYPE_S8 && in->type <= SG_TYPE_S64;
    if (!has_sign && (in->type < SG_TYPE_U16 || in->type > SG_TYPE_U64))
        return false;
    unsigned bits = sg_type_bits(in->type), at = bits == 16 ? 0 : bits == 32 ? 1 : 2;
    unsigned width = SG_W_16 + at;
    if (in->modifiers & SG_MOD(HI))
        return set(form, high[mad][at + 3 * has_sign], width, width, mad ? width : SG_W_NONE);
    if (in->modifiers & SG_MOD(WIDE))
        return set(form, wide[mad][at + 3 * has_sign], width + 1, width,
                   mad ? width + 1 : SG_W_NONE);
    return false;
}
