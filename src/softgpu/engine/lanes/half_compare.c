/* setp of packed halves, with a predicate for each, and of single halves, with .ftz. */
#include "softgpu/engine/lanes/lanes.h"

static float number(uint16_t bits, bool brain, bool flush) {
    if (flush && (bits & (brain ? 0x7f80 : 0x7c00)) == 0)
        bits &= 0x8000;
    return brain ? sg_bfloat_to_float(bits) : SG_LEVEL(sg_half_to_float)(bits);
}

static bool holds(float a, float b, unsigned compare) {
    bool unordered = a != a || b != b;
    switch (compare) {
    case SG_COMPARE_EQ:
        return a == b;
    case SG_COMPARE_NE:
        return !unordered && a != b;
    case SG_COMPARE_LT:
        return a < b;
    case SG_COMPARE_LE:
        return a <= b;
    case SG_COMPARE_GT:
        return a > b;
    case SG_COMPARE_GE:
        return a >= b;
    case SG_COMPARE_EQU:
        return unordered || a == b;
    case SG_COMPARE_NEU:
        return a != b;
    case SG_COMPARE_LTU:
        return unordered || a < b;
    case SG_COMPARE_LEU:
        return unordered || a <= b;
    case SG_COMPARE_GTU:
        return unordered || a > b;
    case SG_COMPARE_GEU:
        return unordered || a >= b;
    case SG_COMPARE_NUM:
        return !unordered;
    default:
        return unordered; /* nan */
    }
}

static uint32_t joined(const struct sg_warp *warp, const struct sg_step *step, uint32_t p) {
    if (step->choice == SG_BOOLEAN_NONE)
        return p;
    uint32_t c = sg_predicate(warp, step->c);
    return step->choice == SG_BOOLEAN_AND ? p & c : step->choice == SG_BOOLEAN_OR ? p | c : p ^ c;
}

/* second: the comparison; type: of an element. For packed halves p is the lower one's and q the
 * upper one's; for a single one q is the complement. */
static const struct sg_step *compare(struct sg_warp *warp, const struct sg_step *step) {
    bool brain = step->type == SG_TYPE_BF16 || step->type == SG_TYPE_BF16X2;
    bool two = step->type == SG_TYPE_F16X2 || step->type == SG_TYPE_BF16X2;
    bool flush = (step->flags & SG_STEP_FTZ) != 0;
    const u16 *half_a = SG_SLOT(warp, step->a), *half_b = SG_SLOT(warp, step->b);
    const u32 *both_a = SG_SLOT(warp, step->a), *both_b = SG_SLOT(warp, step->b);
    uint32_t p = 0, q = 0;
    for (unsigned l = 0; l < SG_LANES; l++) {
        uint32_t a = two ? both_a[l] : half_a[l], b = two ? both_b[l] : half_b[l];
        p |= (uint32_t)holds(number((uint16_t)a, brain, flush), number((uint16_t)b, brain, flush),
                             step->second)
             << l;
        q |= (uint32_t)(two && holds(number((uint16_t)(a >> 16), brain, flush),
                                     number((uint16_t)(b >> 16), brain, flush), step->second))
             << l;
    }
    q = two ? q : ~p;
    p = joined(warp, step, p);
    q = joined(warp, step, q);
    if (step->d != SG_NOWHERE)
        sg_predicate_set(warp, step->d, p);
    if (step->e != SG_NOWHERE)
        sg_predicate_set(warp, step->e, q);
    return step + 1;
}

bool SG_LEVEL(sg_theme_half_compare)(const struct sg_instruction *in, struct sg_form *form) {
    bool two = in->type == SG_TYPE_F16X2 || in->type == SG_TYPE_BF16X2;
    bool flush = (in->modifiers & SG_MOD(FTZ)) != 0;
    bool one = flush && (in->type == SG_TYPE_F16 || in->type == SG_TYPE_BF16);
    bool known = (in->compare >= SG_COMPARE_EQ && in->compare <= SG_COMPARE_GE) ||
                 (in->compare >= SG_COMPARE_EQU && in->compare <= SG_COMPARE_NAN);
    if (in->op != SG_OP_setp || (!one && !two) || !known)
        return false;
    form->run = compare;
    form->choice = in->boolean;
    form->second = in->compare;
    form->type = in->type;
    form->flags = flush ? SG_STEP_FTZ : 0;
    form->dest = SG_W_PRED;
    form->source[0] = form->source[1] = two ? SG_W_32 : SG_W_16;
    form->source[2] = in->boolean != SG_BOOLEAN_NONE ? SG_W_PRED : SG_W_NONE;
    return true;
}
