/* Predicates: logic, and tests of floats (testp). */
#include "softgpu/engine/lanes/lanes.h"

#define PREDICATE(NAME, EXPRESSION)                                                                \
    static const struct sg_step *NAME(struct sg_warp *warp, const struct sg_step *step) {          \
        unsigned count = warp->together ? warp->together : 1;                                      \
        for (unsigned g = 0; g < count; g++) {                                                     \
            uint32_t a = sg_predicate(&warp[g], step->a), b = sg_predicate(&warp[g], step->b);     \
            (void)b;                                                                               \
            sg_predicate_set(&warp[g], step->d, EXPRESSION);                                       \
        }                                                                                          \
        return step + 1;                                                                           \
    }
PREDICATE(and_, a &b)
PREDICATE(or_, a | b)
PREDICATE(xor_, a ^ b)
PREDICATE(not_, ~a)
PREDICATE(mov, a)

static bool tested(uint32_t exponent, uint32_t most, bool fraction, unsigned which) {
    switch (which) {
    case SG_DO_FINITE:
        return exponent != most;
    case SG_DO_INFINITE:
        return exponent == most && !fraction;
    case SG_DO_NUMBER:
        return exponent != most || !fraction;
    case SG_DO_NOTANUMBER:
        return exponent == most && fraction;
    case SG_DO_NORMAL:
        return exponent != most && (exponent != 0 || !fraction); /* zero too, as recorded */
    default:
        return exponent == 0 && fraction;
    }
}

static const struct sg_step *testp_32(struct sg_warp *warp, const struct sg_step *step) {
    const u32 *a = SG_SLOT(warp, step->a);
    uint32_t result = 0;
    for (unsigned l = 0; l < SG_LANES; l++)
        result |= (uint32_t)tested(a[l] >> 23 & 0xff, 0xff, a[l] << 9 != 0, step->choice) << l;
    sg_predicate_set(warp, step->d, result);
    return step + 1;
}

static const struct sg_step *testp_64(struct sg_warp *warp, const struct sg_step *step) {
    const u64 *a = SG_SLOT(warp, step->a);
    uint32_t result = 0;
    for (unsigned l = 0; l < SG_LANES; l++)
        result |= (uint32_t)tested(a[l] >> 52 & 0x7ff, 0x7ff, a[l] << 12 != 0, step->choice) << l;
    sg_predicate_set(warp, step->d, result);
    return step + 1;
}

bool SG_LEVEL(sg_theme_logic)(const struct sg_instruction *in, struct sg_form *form) {
    form->dest = SG_W_PRED;
    if (in->op == SG_OP_testp) {
        form->run = in->type == SG_TYPE_F32 ? testp_32 : testp_64;
        form->source[0] = in->type == SG_TYPE_F32 ? SG_W_32 : SG_W_64;
        form->choice = (unsigned char)in->operation;
        return in->type == SG_TYPE_F32 || in->type == SG_TYPE_F64;
    }
    if (in->type != SG_TYPE_PRED)
        return false;
    form->source[0] = form->source[1] = SG_W_PRED;
    form->gang = true;
    switch (in->op) {
    case SG_OP_and:
        form->run = and_;
        return true;
    case SG_OP_or:
        form->run = or_;
        return true;
    case SG_OP_xor:
        form->run = xor_;
        return true;
    case SG_OP_not:
        form->run = not_;
        break;
    case SG_OP_mov:
        form->run = mov;
        break;
    default:
        return false;
    }
    form->source[1] = SG_W_NONE;
    return true;
}
