/* setp: comparisons of all types, combined with a predicate. `set` is made of it. */
#include "softgpu/engine/lanes/lanes.h"

/* p is the comparison, and q its contrary, each combined with the third operand. */
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

#define COMPARE(NAME, T, EXPRESSION)                                                               \
    static const struct sg_step *NAME(struct sg_warp *warp, const struct sg_step *step) {          \
        const T *a_ = SG_SLOT(warp, step->a), *b_ = SG_SLOT(warp, step->b);                        \
        uint32_t result = 0;                                                                       \
        for (unsigned l = 0; l < SG_LANES; l++)                                                    \
            result |= (uint32_t)(EXPRESSION) << l;                                                 \
        return answer(warp, step, result);                                                         \
    }
#define INTEGER(T)                                                                                 \
    COMPARE(eq_##T, T, A == B)                                                                     \
    COMPARE(ne_##T, T, A != B)                                                                     \
    COMPARE(lt_##T, T, A < B)                                                                      \
    COMPARE(le_##T, T, A <= B)                                                                     \
    COMPARE(gt_##T, T, A > B)                                                                      \
    COMPARE(ge_##T, T, A >= B)
INTEGER(u16)
INTEGER(u32)
INTEGER(u64)
INTEGER(s16)
INTEGER(s32)
INTEGER(s64)

/* Floats: the ordered six are false of a NaN, the other six true. */
#define FLOATING(NAME, T, X, Y)                                                                    \
    COMPARE(eq_##NAME, T, (X) == (Y))                                                              \
    COMPARE(ne_##NAME, T, (X) < (Y) || (X) > (Y))                                                  \
    COMPARE(lt_##NAME, T, (X) < (Y))                                                               \
    COMPARE(le_##NAME, T, (X) <= (Y))                                                              \
    COMPARE(gt_##NAME, T, (X) > (Y))                                                               \
    COMPARE(ge_##NAME, T, (X) >= (Y))                                                              \
    COMPARE(equ_##NAME, T, !((X) < (Y) || (X) > (Y)))                                              \
    COMPARE(neu_##NAME, T, (X) != (Y))                                                             \
    COMPARE(ltu_##NAME, T, !((X) >= (Y)))                                                          \
    COMPARE(leu_##NAME, T, !((X) > (Y)))                                                           \
    COMPARE(gtu_##NAME, T, !((X) <= (Y)))                                                          \
    COMPARE(geu_##NAME, T, !((X) < (Y)))                                                           \
    COMPARE(num_##NAME, T, (X) == (X) && (Y) == (Y))                                               \
    COMPARE(nan_##NAME, T, (X) != (X) || (Y) != (Y))
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
    switch (compare) { /* unsigned, whatever the type says */
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
