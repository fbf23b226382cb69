/*
 * Chains with a carry: the condition code is a predicate in the frame. A subtraction sets the carry
 * of a + ~b + 1, that is, 1 without a borrow, as recorded for mixed additions and subtractions.
 */
#include "softgpu/engine/lanes/lanes.h"

/* step->choice: bit 0 reads the carry, bit 1 writes it. */
#define CHAIN(BITS)                                                                                \
    static const struct sg_step *add_##BITS(struct sg_warp *warp, const struct sg_step *step) {    \
        u##BITS *d = SG_SLOT(warp, step->d);                                                       \
        const u##BITS *a = SG_SLOT(warp, step->a), *b = SG_SLOT(warp, step->b);                    \
        uint32_t in = step->choice & 1 ? sg_predicate(warp, SG_CARRY) : 0, out = 0;                \
        for (unsigned l = 0; l < SG_LANES; l++) {                                                  \
            uint##BITS##_t sum = a[l] + b[l], all = sum + (in >> l & 1);                           \
            out |= (uint32_t)((sum < a[l]) | (all < sum)) << l;                                    \
            d[l] = warp->mask >> l & 1 ? all : d[l];                                               \
        }                                                                                          \
        if (step->choice & 2)                                                                      \
            sg_predicate_set(warp, SG_CARRY, out);                                                 \
        return step + 1;                                                                           \
    }                                                                                              \
    static const struct sg_step *sub_##BITS(struct sg_warp *warp, const struct sg_step *step) {    \
        u##BITS *d = SG_SLOT(warp, step->d);                                                       \
        const u##BITS *a = SG_SLOT(warp, step->a), *b = SG_SLOT(warp, step->b);                    \
        uint32_t in = step->choice & 1 ? sg_predicate(warp, SG_CARRY) : SG_ALL, out = 0;           \
        for (unsigned l = 0; l < SG_LANES; l++) {                                                  \
            uint##BITS##_t rest = a[l] - b[l], borrow = !(in >> l & 1);                            \
            out |= (uint32_t) !((a[l] < b[l]) | (rest < borrow)) << l;                             \
            d[l] = warp->mask >> l & 1 ? rest - borrow : d[l];                                     \
        }                                                                                          \
        if (step->choice & 2)                                                                      \
            sg_predicate_set(warp, SG_CARRY, out);                                                 \
        return step + 1;                                                                           \
    }
CHAIN(32)
CHAIN(64)

static uint64_t high_u64(uint64_t a, uint64_t b) {
    uint64_t al = (uint32_t)a, ah = a >> 32, bl = (uint32_t)b, bh = b >> 32;
    uint64_t low = al * bl, left = ah * bl + (low >> 32), right = al * bh + (uint32_t)left;
    return ah * bh + (left >> 32) + (right >> 32);
}

/* A half of the product, by step->second: bit 0 the upper half, bit 1 signed. */
static uint64_t product(uint64_t a, uint64_t b, unsigned which, unsigned bits) {
    if (!(which & 1))
        return a * b;
    if (bits == 64) {
        uint64_t high = high_u64(a, b);
        return which & 2 ? high - (a >> 63 ? b : 0) - (b >> 63 ? a : 0) : high;
    }
    if (bits == 16)
        return which & 2 ? (uint64_t)((int16_t)a * (int16_t)b) >> 16 : (a * b) >> 16;
    return which & 2 ? (uint64_t)((int64_t)(int32_t)(uint32_t)a * (int32_t)(uint32_t)b) >> 32
                     : (a * b) >> 32;
}

#define MULTIPLY(BITS)                                                                             \
    static const struct sg_step *mad_##BITS(struct sg_warp *warp, const struct sg_step *step) {    \
        u##BITS *d = SG_SLOT(warp, step->d);                                                       \
        const u##BITS *a = SG_SLOT(warp, step->a), *b = SG_SLOT(warp, step->b);                    \
        const u##BITS *c = SG_SLOT(warp, step->c);                                                 \
        uint32_t in = step->choice & 1 ? sg_predicate(warp, SG_CARRY) : 0, out = 0;                \
        for (unsigned l = 0; l < SG_LANES; l++) {                                                  \
            uint##BITS##_t half = (uint##BITS##_t)product(a[l], b[l], step->second, BITS);         \
            uint##BITS##_t sum = (uint##BITS##_t)(half + c[l]);                                    \
            uint##BITS##_t all = (uint##BITS##_t)(sum + (in >> l & 1));                            \
            out |= (uint32_t)((sum < half) | (all < sum)) << l;                                    \
            d[l] = warp->mask >> l & 1 ? all : d[l];                                               \
        }                                                                                          \
        if (step->choice & 2)                                                                      \
            sg_predicate_set(warp, SG_CARRY, out);                                                 \
        return step + 1;                                                                           \
    }
MULTIPLY(16)
MULTIPLY(32)
MULTIPLY(64)

bool SG_LEVEL(sg_theme_carry)(const struct sg_instruction *in, struct sg_form *form) {
    bool writes = (in->modifiers & SG_MOD(CC)) != 0;
    bool reads = in->op == SG_OP_addc || in->op == SG_OP_subc || in->op == SG_OP_madc;
    bool wide = in->type == SG_TYPE_U64 || in->type == SG_TYPE_S64;
    bool narrow = in->op == SG_OP_madc && sg_type_bits(in->type) == 16;
    if ((!reads && !writes) || in->type >= SG_TYPE_F16 || (in->modifiers & SG_MOD(SAT)) ||
        (!wide && sg_type_bits(in->type) != 32 && !narrow))
        return false;
    bool has_sign = in->type >= SG_TYPE_S16 && in->type <= SG_TYPE_S64, third = false;
    switch (in->op) {
    case SG_OP_add:
    case SG_OP_addc:
        form->run = wide ? add_64 : add_32;
        break;
    case SG_OP_sub:
    case SG_OP_subc:
        form->run = wide ? sub_64 : sub_32;
        break;
    case SG_OP_mad:
    case SG_OP_madc:
        form->run = wide ? mad_64 : narrow ? mad_16 : mad_32;
        third = true;
        break;
    default:
        return false;
    }
    form->choice = (unsigned char)(reads | writes << 1);
    form->second = (unsigned char)(((in->modifiers & SG_MOD(HI)) != 0) | has_sign << 1);
    form->dest = form->source[0] = form->source[1] = wide ? SG_W_64 : narrow ? SG_W_16 : SG_W_32;
    form->source[2] = third ? form->dest : SG_W_NONE;
    return true;
}
