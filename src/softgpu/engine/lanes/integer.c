/* Integers of 16, 32 and 64 bits: sums, products, quotients, min and max, selections. */
#include "softgpu/engine/lanes/lanes.h"

/* x / 0 and x % 0 have all bits set, as recorded. INT_MIN / -1 does not trap. */
#define SIGNED(BITS)                                                                               \
    static inline int##BITS##_t divide_s##BITS(int##BITS##_t a, int##BITS##_t b) {                 \
        if (b == 0)                                                                                \
            return -1;                                                                             \
        return (int##BITS##_t)(b == -1 ? (int##BITS##_t)(0 - (uint##BITS##_t)a) : a / b);          \
    }                                                                                              \
    static inline int##BITS##_t rest_s##BITS(int##BITS##_t a, int##BITS##_t b) {                   \
        if (b == 0)                                                                                \
            return -1;                                                                             \
        return (int##BITS##_t)(b == -1 ? 0 : a % b);                                               \
    }                                                                                              \
    SG_MAP2(div_s##BITS, s##BITS, s##BITS, s##BITS, divide_s##BITS(A, B))                          \
    SG_MAP2(rem_s##BITS, s##BITS, s##BITS, s##BITS, rest_s##BITS(A, B))                            \
    SG_MAP2(div_u##BITS, u##BITS, u##BITS, u##BITS, B ? A / B : (uint##BITS##_t) - 1)              \
    SG_MAP2(rem_u##BITS, u##BITS, u##BITS, u##BITS, B ? A % B : (uint##BITS##_t) - 1)              \
    SG_MAP2(min_s##BITS, s##BITS, s##BITS, s##BITS, A < B ? A : B)                                 \
    SG_MAP2(max_s##BITS, s##BITS, s##BITS, s##BITS, B < A ? A : B)                                 \
    SG_MAP2(min_u##BITS, u##BITS, u##BITS, u##BITS, A < B ? A : B)                                 \
    SG_MAP2(max_u##BITS, u##BITS, u##BITS, u##BITS, A > B ? A : B)                                 \
    SG_MAP1(abs_s##BITS, u##BITS, u##BITS, A >> (BITS - 1) ? (uint##BITS##_t)0 - A : A)            \
    SG_MAP1R(neg_s##BITS, u##BITS, u##BITS, (uint##BITS##_t)0 - A, sg_opposite)                    \
    SG_MAP2R(add_##BITS, u##BITS, u##BITS, u##BITS, A + B, sg_sum)                                 \
    SG_MAP2R(sub_##BITS, u##BITS, u##BITS, u##BITS, A - B, sg_difference)                          \
    SG_MAP1R(mov_##BITS, u##BITS, u##BITS, A, sg_same)

SIGNED(16)
SIGNED(32)
SIGNED(64)

/* Products of 16-bit numbers must not overflow int. */
SG_MAP2R(mul_16, u16, u16, u16, (uint32_t)A *(uint32_t)B, sg_product)
SG_MAP2R(mul_32, u32, u32, u32, A *B, sg_product)
SG_MAP2R(mul_64, u64, u64, u64, A *B, sg_product)
SG_MAP3R(mad_16, u16, u16, u16, u16, (uint32_t)A *(uint32_t)B + C, sg_product_sum)
SG_MAP3R(mad_32, u32, u32, u32, u32, A *B + C, sg_product_sum)
SG_MAP3R(mad_64, u64, u64, u64, u64, A *B + C, sg_product_sum)

static inline int32_t clamp32(int64_t value) {
    return value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : (int32_t)value;
}
SG_MAP2(add_sat, s32, s32, s32, clamp32((int64_t)A + B))
SG_MAP2(sub_sat, s32, s32, s32, clamp32((int64_t)A - B))
SG_MAP3(mad_hi_sat, s32, s32, s32, s32, clamp32((((int64_t)A * B) >> 32) + C))

static inline uint32_t distance_u(uint32_t a, uint32_t b) {
    return a > b ? a - b : b - a;
}
static inline uint32_t distance_s(int32_t a, int32_t b) {
    return a > b ? (uint32_t)a - (uint32_t)b : (uint32_t)b - (uint32_t)a;
}
SG_MAP3(sad_u16, u16, u16, u16, u16, C + distance_u(A, B))
SG_MAP3(sad_s16, u16, s16, s16, u16, C + distance_s(A, B))
SG_MAP3(sad_u32, u32, u32, u32, u32, C + distance_u(A, B))
SG_MAP3(sad_s32, u32, s32, s32, u32, C + distance_s(A, B))
SG_MAP3(sad_u64, u64, u64, u64, u64, C + (A > B ? A - B : B - A))
SG_MAP3(sad_s64, u64, s64, s64, u64,
        C + (A > B ? (uint64_t)A - (uint64_t)B : (uint64_t)B - (uint64_t)A))

/* slct: a if c >= 0, else b. NaN selects b; -0, and with .ftz a subnormal number, counts as
 * zero. */
SG_MAP3(slct_16, u16, u16, u16, s32, C >= 0 ? A : B)
SG_MAP3(slct_32, u32, u32, u32, s32, C >= 0 ? A : B)
SG_MAP3(slct_64, u64, u64, u64, s32, C >= 0 ? A : B)
SG_MAP3(slct_16_f, u16, u16, u16, f32, C >= 0 ? A : B)
SG_MAP3(slct_32_f, u32, u32, u32, f32, C >= 0 ? A : B)
SG_MAP3(slct_64_f, u64, u64, u64, f32, C >= 0 ? A : B)
SG_MAP3(slct_16_z, u16, u16, u16, f32, sg_flush(C) >= 0 ? A : B)
SG_MAP3(slct_32_z, u32, u32, u32, f32, sg_flush(C) >= 0 ? A : B)
SG_MAP3(slct_64_z, u64, u64, u64, f32, sg_flush(C) >= 0 ? A : B)

/* selp: selects by a predicate. In a gang the tag is an operand's if all lanes select it. */
static inline bool chosen(struct sg_warp *gang, const struct sg_step *step) {
    uint32_t yes = 0, no = 0;
    for (unsigned g = 0; g < gang->together; g++) {
        uint32_t p = sg_predicate(&gang[g], step->c);
        yes |= p & gang[g].mask;
        no |= ~p & gang[g].mask;
    }
    if (!gang->whole || (yes && no))
        return false;
    const struct sg_tag *from = sg_tag(gang, yes ? step->a : step->b);
    return from->kind & SG_TAG_KNOWN && sg_same(gang, sg_tag(gang, step->d), from);
}
#define SELECT(BITS)                                                                               \
    static const struct sg_step *selp_##BITS(struct sg_warp *warp, const struct sg_step *step) {   \
        unsigned count_ = 1;                                                                       \
        bool all_ = warp->mask == SG_ALL;                                                          \
        if (warp->together) {                                                                      \
            if (chosen(warp, step))                                                                \
                return step + 1;                                                                   \
            sg_read(warp, step->a, BITS / 8);                                                      \
            sg_read(warp, step->b, BITS / 8);                                                      \
            sg_write(warp, step->d, BITS / 8);                                                     \
            count_ = warp->together;                                                               \
            all_ = warp->whole;                                                                    \
        }                                                                                          \
        SG_EACH_WARP(u##BITS, const u##BITS *a_ = SG_SLOT_OF(warp, g_, step->a);                   \
                     const u##BITS *b_ = SG_SLOT_OF(warp, g_, step->b);                            \
                     uint32_t p = sg_predicate(&warp[g_], step->c), p >> l & 1 ? A : B)            \
    }
SELECT(16)
SELECT(32)
SELECT(64)

/* By width: 16, 32, 64 bits. */
#define BY_WIDTH(NAME)                                                                             \
    { NAME##16, NAME##32, NAME##64 }
struct row {
    unsigned char op, sources;
    sg_run *plain[3], *is_signed[3];
};
static const struct row rows[] = {
    {SG_OP_add, 2, BY_WIDTH(add_), BY_WIDTH(add_)},
    {SG_OP_sub, 2, BY_WIDTH(sub_), BY_WIDTH(sub_)},
    {SG_OP_div, 2, BY_WIDTH(div_u), BY_WIDTH(div_s)},
    {SG_OP_rem, 2, BY_WIDTH(rem_u), BY_WIDTH(rem_s)},
    {SG_OP_min, 2, BY_WIDTH(min_u), BY_WIDTH(min_s)},
    {SG_OP_max, 2, BY_WIDTH(max_u), BY_WIDTH(max_s)},
    {SG_OP_abs, 1, {NULL}, BY_WIDTH(abs_s)},
    {SG_OP_neg, 1, {NULL}, BY_WIDTH(neg_s)},
    {SG_OP_mov, 1, BY_WIDTH(mov_), BY_WIDTH(mov_)},
    {SG_OP_sad, 3, BY_WIDTH(sad_u), BY_WIDTH(sad_s)},
};

static unsigned width_index(unsigned type) {
    unsigned bits = sg_type_bits(type);
    return bits == 16 ? 0 : bits == 32 ? 1 : bits == 64 ? 2 : 3;
}

static bool is_signed(unsigned type) {
    return type == SG_TYPE_S16 || type == SG_TYPE_S32 || type == SG_TYPE_S64;
}

static bool is_integer(unsigned type) {
    return is_signed(type) || (type >= SG_TYPE_U16 && type <= SG_TYPE_U64) ||
           (type >= SG_TYPE_B16 && type <= SG_TYPE_B64);
}

static void sources(struct sg_form *form, unsigned count, unsigned width) {
    form->dest = (unsigned char)width;
    for (unsigned i = 0; i < count; i++)
        form->source[i] = (unsigned char)width;
}

static bool products(const struct sg_instruction *in, struct sg_form *form, unsigned at) {
    static sg_run *const mul[] = BY_WIDTH(mul_), *const mad[] = BY_WIDTH(mad_);
    if (in->op == SG_OP_mad && (in->modifiers & SG_MOD(SAT)) && in->type == SG_TYPE_S32 &&
        (in->modifiers & SG_MOD(HI)))
        form->run = mad_hi_sat;
    else if ((in->modifiers & (SG_MOD(HI) | SG_MOD(WIDE) | SG_MOD(SAT) | SG_MOD(CC))))
        return false;
    else
        form->run = in->op == SG_OP_mul ? mul[at] : mad[at];
    sources(form, in->op == SG_OP_mul ? 2 : 3, SG_W_16 + at);
    return true;
}

static bool choices(const struct sg_instruction *in, struct sg_form *form, unsigned at) {
    static sg_run *const by[][3] = {
        BY_WIDTH(slct_), {slct_16_f, slct_32_f, slct_64_f}, {slct_16_z, slct_32_z, slct_64_z}};
    static sg_run *const selp[] = BY_WIDTH(selp_);
    sources(form, 3, SG_W_16 + at);
    if (in->op == SG_OP_selp) {
        form->run = selp[at];
        form->source[2] = SG_W_PRED;
        return true;
    }
    unsigned which = in->type2 == SG_TYPE_F32 ? (in->modifiers & SG_MOD(FTZ) ? 2 : 1) : 0;
    form->run = by[which][at];
    form->source[2] = SG_W_32;
    return in->type2 == SG_TYPE_F32 || in->type2 == SG_TYPE_S32;
}

bool SG_LEVEL(sg_theme_integer)(const struct sg_instruction *in, struct sg_form *form) {
    unsigned at = width_index(in->type);
    form->gang = true;
    if (at > 2)
        return false;
    if (in->op == SG_OP_selp || in->op == SG_OP_slct)
        return choices(in, form, at);
    if (in->op == SG_OP_mov) {
        form->run = rows[8].plain[at];
        sources(form, 1, SG_W_16 + at);
        return true;
    }
    if (!is_integer(in->type) || (in->modifiers & SG_MOD(CC)))
        return false;
    if (in->op == SG_OP_mul || in->op == SG_OP_mad)
        return products(in, form, at);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].op != in->op)
            continue;
        form->run = is_signed(in->type) ? rows[i].is_signed[at] : rows[i].plain[at];
        if (in->modifiers & SG_MOD(SAT)) {
            if (in->type != SG_TYPE_S32)
                return false;
            form->run = in->op == SG_OP_add ? add_sat : in->op == SG_OP_sub ? sub_sat : NULL;
        }
        sources(form, rows[i].sources, SG_W_16 + at);
        return form->run && !(in->modifiers & SG_MOD(RELU));
    }
    return false;
}
