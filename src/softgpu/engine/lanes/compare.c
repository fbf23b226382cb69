/* setp: comparisons of all types, combined with a predicate. `set` is built from it. */
#include "softgpu/engine/lanes/lanes.h"

/* p is the comparison and q its complement, each combined with the third operand. */
static const struct sg_step *answer(struct sg_warp *warp, const struct sg_step *step,
                                    uint32_t result) {
    uint32_t p = result, q = ~result;
    if (step->choice != SG_BOOLEAN_NONE) {
        uint32_t c = sg_predicate(warp, step->c);
        p = step->choice == SG_BOOLEAN_AND ? p & c : step->choice == SG_BOOLEAN_OR ? p | c : p ^ c;
        q = step->choice == SG_BOOLEAN_AND ? q & c : step->choice == SG_BOOLEAN_OR ? q | c : q ^ c;
    }
    if (step->d != SG_NOWHERE)
        sg_predicate_set(warp, step->d, p);
    if (step->e != SG_NOWHERE)
        sg_predicate_set(warp, step->e, q);
    return step + 1;
}

/* In a gang, from both tags. 1: true in all lanes; 0: false in all; -1: undecided. */
static inline int decided(const struct sg_warp *gang, const struct sg_tag *a,
                          const struct sg_tag *b, unsigned compare, bool has_sign) {
    int64_t a_low, a_high, b_low, b_high;
    if (!sg_extent(gang, a, has_sign, &a_low, &a_high) ||
        !sg_extent(gang, b, has_sign, &b_low, &b_high))
        return -1;
    bool apart = a_high < b_low || b_high < a_low;
    switch (compare) {
    case SG_COMPARE_LT:
        return a_high < b_low ? 1 : a_low >= b_high ? 0 : -1;
    case SG_COMPARE_LE:
        return a_high <= b_low ? 1 : a_low > b_high ? 0 : -1;
    case SG_COMPARE_GT:
        return a_low > b_high ? 1 : a_high <= b_low ? 0 : -1;
    case SG_COMPARE_GE:
        return a_low >= b_high ? 1 : a_high < b_low ? 0 : -1;
    case SG_COMPARE_EQ:
        return apart ? 0 : -1;
    case SG_COMPARE_NE:
        return apart ? 1 : -1;
    default:
        return -1;
    }
}

/* WHICH: the comparison, if the operands' 32-bit ranges can decide it, else none. */
#define COMPARE(NAME, T, EXPRESSION, WHICH, SIGN)                                                  \
    static const struct sg_step *NAME(struct sg_warp *warp, const struct sg_step *step) {          \
        unsigned count = 1;                                                                        \
        int known = -1;                                                                            \
        if (warp->together) {                                                                      \
            const struct sg_tag *ta_ = sg_tag(warp, step->a), *tb_ = sg_tag(warp, step->b);        \
            count = warp->together;                                                                \
            if (ta_->kind & tb_->kind & SG_TAG_KNOWN) {                                            \
                if (sg_even(ta_) && sg_even(tb_)) {                                                \
                    enum { l = 0 };                                                                \
                    SG_ONE(T, a_, ta_);                                                            \
                    SG_ONE(T, b_, tb_);                                                            \
                    known = (EXPRESSION);                                                          \
                } else if (WHICH != SG_COMPARE_NONE) {                                             \
                    known = decided(warp, ta_, tb_, WHICH, SIGN);                                  \
                }                                                                                  \
            }                                                                                      \
            for (unsigned g = 0; known >= 0 && g < count; g++)                                     \
                answer(&warp[g], step, known ? SG_ALL : 0);                                        \
            if (known >= 0)                                                                        \
                return step + 1;                                                                   \
            sg_read(warp, step->a, sizeof(T));                                                     \
            sg_read(warp, step->b, sizeof(T));                                                     \
        }                                                                                          \
        for (unsigned g = 0; g < count; g++) {                                                     \
            const T *a_ = SG_SLOT_OF(warp, g, step->a), *b_ = SG_SLOT_OF(warp, g, step->b);        \
            uint32_t result = 0;                                                                   \
            for (unsigned l = 0; l < SG_LANES; l++)                                                \
                result |= (uint32_t)(EXPRESSION) << l;                                             \
            answer(&warp[g], step, result);                                                        \
        }                                                                                          \
        return step + 1;                                                                           \
    }
#define NONE SG_COMPARE_NONE
#define INTEGER(T, SIGN, USE)                                                                      \
    COMPARE(eq_##T, T, A == B, USE(EQ), SIGN)                                                      \
    COMPARE(ne_##T, T, A != B, USE(NE), SIGN)                                                      \
    COMPARE(lt_##T, T, A < B, USE(LT), SIGN)                                                       \
    COMPARE(le_##T, T, A <= B, USE(LE), SIGN)                                                      \
    COMPARE(gt_##T, T, A > B, USE(GT), SIGN)                                                       \
    COMPARE(ge_##T, T, A >= B, USE(GE), SIGN)
#define BY_EXTENT(NAME) SG_COMPARE_##NAME
#define NOT_SO(NAME)    SG_COMPARE_NONE
INTEGER(u16, false, NOT_SO)
INTEGER(u32, false, BY_EXTENT)
INTEGER(u64, false, NOT_SO)
INTEGER(s16, false, NOT_SO)
INTEGER(s32, true, BY_EXTENT)
INTEGER(s64, false, NOT_SO)

/* Floats: the six ordered comparisons are false for a NaN, the other six true. */
#define FLOATING(NAME, T, X, Y)                                                                    \
    COMPARE(eq_##NAME, T, (X) == (Y), NONE, false)                                                 \
    COMPARE(ne_##NAME, T, (X) < (Y) || (X) > (Y), NONE, false)                                     \
    COMPARE(lt_##NAME, T, (X) < (Y), NONE, false)                                                  \
    COMPARE(le_##NAME, T, (X) <= (Y), NONE, false)                                                 \
    COMPARE(gt_##NAME, T, (X) > (Y), NONE, false)                                                  \
    COMPARE(ge_##NAME, T, (X) >= (Y), NONE, false)                                                 \
    COMPARE(equ_##NAME, T, !((X) < (Y) || (X) > (Y)), NONE, false)                                 \
    COMPARE(neu_##NAME, T, (X) != (Y), NONE, false)                                                \
    COMPARE(ltu_##NAME, T, !((X) >= (Y)), NONE, false)                                             \
    COMPARE(leu_##NAME, T, !((X) > (Y)), NONE, false)                                              \
    COMPARE(gtu_##NAME, T, !((X) <= (Y)), NONE, false)                                             \
    COMPARE(geu_##NAME, T, !((X) < (Y)), NONE, false)                                              \
    COMPARE(num_##NAME, T, (X) == (X) && (Y) == (Y), NONE, false)                                  \
    COMPARE(nan_##NAME, T, (X) != (X) || (Y) != (Y), NONE, false)
FLOATING(f32, u32, sg_float(A), sg_float(B))
FLOATING(ftz, u32, sg_flush(sg_float(A)), sg_flush(sg_float(B)))
FLOATING(f64, u64, sg_double(A), sg_double(B))
FLOATING(f16, u16, SG_LEVEL(sg_half_to_float)(A), SG_LEVEL(sg_half_to_float)(B))
FLOATING(bf16, u16, sg_bfloat_to_float(A), sg_bfloat_to_float(B))

static const unsigned char integer_order[] = {SG_COMPARE_EQ, SG_COMPARE_NE, SG_COMPARE_LT,
                                              SG_COMPARE_LE, SG_COMPARE_GT, SG_COMPARE_GE};
static const unsigned char float_order[] = {
    SG_COMPARE_EQ,  SG_COMPARE_NE,  SG_COMPARE_LT,  SG_COMPARE_LE,  SG_COMPARE_GT,
    SG_COMPARE_GE,  SG_COMPARE_EQU, SG_COMPARE_NEU, SG_COMPARE_LTU, SG_COMPARE_LEU,
    SG_COMPARE_GTU, SG_COMPARE_GEU, SG_COMPARE_NUM, SG_COMPARE_NAN};
#define SIX(T)                                                                                     \
    { eq_##T, ne_##T, lt_##T, le_##T, gt_##T, ge_##T }
#define FOURTEEN(T)                                                                                \
    {                                                                                              \
        eq_##T, ne_##T, lt_##T, le_##T, gt_##T, ge_##T, equ_##T, neu_##T, ltu_##T, leu_##T,        \
            gtu_##T, geu_##T, num_##T, nan_##T                                                     \
    }
static sg_run *const integers[6][6] = {SIX(u16), SIX(u32), SIX(u64), SIX(s16), SIX(s32), SIX(s64)};
static sg_run *const floats[5][14] = {FOURTEEN(f32), FOURTEEN(ftz), FOURTEEN(f64), FOURTEEN(f16),
                                      FOURTEEN(bf16)};

static bool integer(const struct sg_instruction *in, struct sg_form *form) {
    bool has_sign = in->type >= SG_TYPE_S8 && in->type <= SG_TYPE_S64;
    unsigned compare = in->compare, bits = sg_type_bits(in->type);
    if (bits < 16 || bits > 64)
        return false;
    switch (compare) { /* unsigned, whatever the type */
    case SG_COMPARE_LO:
        compare = SG_COMPARE_LT;
        break;
    case SG_COMPARE_LS:
        compare = SG_COMPARE_LE;
        break;
    case SG_COMPARE_HI:
        compare = SG_COMPARE_GT;
        break;
    case SG_COMPARE_HS:
        compare = SG_COMPARE_GE;
        break;
    default:
        break;
    }
    has_sign = has_sign && compare == in->compare;
    unsigned at = bits == 16 ? 0 : bits == 32 ? 1 : 2;
    for (unsigned i = 0; i < sizeof integer_order; i++)
        if (integer_order[i] == compare)
            form->run = integers[at + 3 * has_sign][i];
    form->source[0] = form->source[1] = (unsigned char)(SG_W_16 + at);
    return form->run != NULL;
}

bool SG_LEVEL(sg_theme_compare)(const struct sg_instruction *in, struct sg_form *form) {
    if (in->op != SG_OP_setp)
        return false;
    form->dest = SG_W_PRED;
    form->gang = true;
    form->choice = in->boolean;
    form->source[2] = in->boolean != SG_BOOLEAN_NONE ? SG_W_PRED : SG_W_NONE;
    unsigned which, width;
    switch (in->type) {
    case SG_TYPE_F32:
        which = in->modifiers & SG_MOD(FTZ) ? 1 : 0;
        width = SG_W_32;
        break;
    case SG_TYPE_F64:
        which = 2;
        width = SG_W_64;
        break;
    case SG_TYPE_F16:
    case SG_TYPE_BF16:
        which = in->type == SG_TYPE_F16 ? 3 : 4;
        width = SG_W_16;
        break;
    default:
        return in->type < SG_TYPE_F16 && integer(in, form);
    }
    for (unsigned i = 0; i < sizeof float_order; i++)
        if (float_order[i] == in->compare)
            form->run = floats[which][i];
    form->source[0] = form->source[1] = (unsigned char)width;
    return form->run != NULL && !(which > 2 && in->modifiers & SG_MOD(FTZ));
}
