/* cvt.pack: two integers, each saturated to a smaller type, packed side by side. */
#include "softgpu/engine/lanes/lanes.h"

static uint32_t narrowed(int32_t value, unsigned bits, bool has_sign) {
    int32_t most = (int32_t)((UINT32_C(1) << (has_sign ? bits - 1 : bits)) - 1);
    int32_t least = has_sign ? -most - 1 : 0;
    value = value > most ? most : value < least ? least : value;
    return (uint32_t)value & ((UINT32_C(1) << bits) - 1);
}

/* type: of an element. b is lowest, then a; above them the low bits of c. */
static const struct sg_step *pack(struct sg_warp *warp, const struct sg_step *step) {
    const u32 *a = SG_SLOT(warp, step->a), *b = SG_SLOT(warp, step->b);
    const u32 *c = SG_SLOT(warp, step->c);
    u32 *d = SG_SLOT(warp, step->d);
    unsigned bits = sg_type_bits(step->type);
    for (unsigned l = 0; l < SG_LANES; l++) {
        if (!(warp->mask >> l & 1))
            continue;
        uint32_t both = narrowed((int32_t)b[l], bits, step->choice) |
                        narrowed((int32_t)a[l], bits, step->choice) << bits;
        d[l] = step->second ? both | c[l] << 2 * bits : both;
    }
    return step + 1;
}

bool SG_LEVEL(sg_theme_pack)(const struct sg_instruction *in, struct sg_form *form) {
    if (in->op != SG_OP_cvt || in->operation != SG_DO_PACK)
        return false;
    form->run = pack;
    form->type = in->type;
    form->choice = in->type == SG_TYPE_S16 || in->type == SG_TYPE_S8 || in->type == SG_TYPE_S4 ||
                   in->type == SG_TYPE_S2;
    form->second = sg_type_bits(in->type) < 16;
    form->dest = form->source[0] = form->source[1] = SG_W_32;
    form->source[2] = form->second ? SG_W_32 : SG_W_NONE;
    return true;
}
