/* Steps of video instructions: encodes parts, selectors and masks in the step. */
#include "softgpu/engine/code.h"
#include "softgpu/engine/video.h"

static const struct {
    uint16_t op;
    unsigned char elements, kind;
} forms[] = {
    {SG_OP_vadd, 1, SG_VIDEO_ADD},           {SG_OP_vadd2, 2, SG_VIDEO_ADD},
    {SG_OP_vadd4, 4, SG_VIDEO_ADD},          {SG_OP_vsub, 1, SG_VIDEO_SUB},
    {SG_OP_vsub2, 2, SG_VIDEO_SUB},          {SG_OP_vsub4, 4, SG_VIDEO_SUB},
    {SG_OP_vabsdiff, 1, SG_VIDEO_DISTANCE},  {SG_OP_vabsdiff2, 2, SG_VIDEO_DISTANCE},
    {SG_OP_vabsdiff4, 4, SG_VIDEO_DISTANCE}, {SG_OP_vmin, 1, SG_VIDEO_MIN},
    {SG_OP_vmin2, 2, SG_VIDEO_MIN},          {SG_OP_vmin4, 4, SG_VIDEO_MIN},
    {SG_OP_vmax, 1, SG_VIDEO_MAX},           {SG_OP_vmax2, 2, SG_VIDEO_MAX},
    {SG_OP_vmax4, 4, SG_VIDEO_MAX},          {SG_OP_vavrg2, 2, SG_VIDEO_AVERAGE},
    {SG_OP_vavrg4, 4, SG_VIDEO_AVERAGE},     {SG_OP_vshl, 1, SG_VIDEO_LEFT},
    {SG_OP_vshr, 1, SG_VIDEO_RIGHT},         {SG_OP_vset, 1, SG_VIDEO_COMPARE},
    {SG_OP_vset2, 2, SG_VIDEO_COMPARE},      {SG_OP_vset4, 4, SG_VIDEO_COMPARE},
};

/* The register or constant of an operand, whichever part of it is used. */
static bool whole(struct sg_maker *maker, unsigned index, uint32_t *place) {
    struct sg_operand operand = *sg_maker_operand(maker, index);
    operand.part = SG_PART_NONE;
    operand.negated = false;
    if (operand.kind == SG_OPERAND_REGISTER)
        operand.value = 0;
    return sg_maker_source(maker, &operand, SG_W_32, false, place);
}

static bool places(struct sg_maker *maker, uint32_t *d, uint32_t *sources) {
    struct sg_operand result = *sg_maker_operand(maker, 0);
    result.part = SG_PART_NONE;
    unsigned count = maker->in->operand_count;
    for (unsigned i = 1; i < count && i < 4; i++)
        if (!whole(maker, i, &sources[i - 1]))
            return false;
    return sg_maker_result(maker, &result, SG_W_32, false, d);
}

static struct sg_step *made(struct sg_maker *maker, sg_run *run, uint32_t d,
                            const uint32_t *sources) {
    struct sg_step *step = sg_maker_step(maker, run);
    step->d = d;
    step->a = sources[0];
    step->b = sources[1];
    step->c = sources[2];
    step->type = maker->in->type;
    step->flags = maker->in->modifiers & SG_MOD(SAT) ? SG_STEP_SAT : 0;
    return step;
}

/* vset has no result type. */
static void types(const struct sg_maker *maker, bool compare, unsigned *a, unsigned *b) {
    *a = compare ? maker->in->type : maker->in->type2;
    *b = compare ? maker->in->type2 : maker->in->type3;
}

static int64_t parts(const struct sg_maker *maker, unsigned type_b) {
    unsigned d = sg_maker_operand(maker, 0)->part, a = sg_maker_operand(maker, 1)->part;
    unsigned b = sg_maker_operand(maker, 2)->part;
    return (int64_t)(d | a << 8 | b << 16 | type_b << 24);
}

static bool multiplied(struct sg_maker *maker) {
    const struct sg_instruction *in = maker->in;
    bool a = sg_maker_operand(maker, 1)->negated, b = sg_maker_operand(maker, 2)->negated;
    bool c = sg_maker_operand(maker, 3)->negated, po = (in->modifiers & SG_MOD(PO)) != 0;
    uint32_t d, sources[3] = {0};
    if (po && (a || b || c))
        return sg_maker_refuse(maker, ".po and a minus");
    if ((a != b) && c)
        return sg_maker_refuse(maker, "a minus before the product and before what is added");
    if (!places(maker, &d, sources))
        return false;
    struct sg_step *step = made(maker, sg_run_video_mad, d, sources);
    step->type2 = in->type2;
    step->value = parts(maker, in->type3);
    step->choice = (unsigned char)((a != b) | c << 1 | po << 2);
    step->rounding = in->modifiers & SG_MOD(SHR7) ? 7 : in->modifiers & SG_MOD(SHR15) ? 15 : 0;
    sg_maker_flush(maker);
    return true;
}

/* The elements that a mask names; all without a mask. */
static int64_t mask_of(const struct sg_operand *operand, unsigned elements) {
    if (operand->part == SG_PART_NONE)
        return (1 << elements) - 1;
    if (operand->part != SG_PART_SELECTOR)
        return 1 << (operand->part - (operand->part >= SG_PART_H0 ? SG_PART_H0 : SG_PART_B0));
    int64_t mask = 0;
    for (unsigned i = 0; i < operand->count; i++)
        mask |= INT64_C(1) << (operand->value >> 4 * i & 15);
    return mask;
}

static bool selector_of(const struct sg_operand *operand, unsigned elements, int64_t usual,
                        int64_t *to) {
    *to = usual;
    if (operand->part == SG_PART_NONE)
        return true;
    *to = operand->value;
    bool fits = operand->part == SG_PART_SELECTOR && operand->count == elements;
    for (unsigned i = 0; i < elements; i++)
        fits = fits && (operand->value >> 4 * i & 15) < 2 * elements;
    return fits;
}

static bool several(struct sg_maker *maker, unsigned elements, unsigned kind) {
    const struct sg_instruction *in = maker->in;
    unsigned type_a, type_b;
    int64_t of_a, of_b, mask = mask_of(sg_maker_operand(maker, 0), elements);
    uint32_t d, sources[3] = {0};
    types(maker, kind == SG_VIDEO_COMPARE, &type_a, &type_b);
    if (!selector_of(sg_maker_operand(maker, 1), elements, elements == 2 ? 0x10 : 0x3210, &of_a) ||
        !selector_of(sg_maker_operand(maker, 2), elements, elements == 2 ? 0x32 : 0x7654, &of_b) ||
        mask >> elements)
        return sg_maker_refuse(maker, "a selector or mask of another size");
    if (!places(maker, &d, sources))
        return false;
    struct sg_step *step = made(maker, sg_run_video_several, d, sources);
    step->type2 = (unsigned char)type_a;
    step->count = (uint16_t)elements;
    step->choice = (unsigned char)kind;
    step->second = (unsigned char)in->operation2;
    step->rounding = in->compare;
    step->value = mask | of_a << 8 | of_b << 24 | (int64_t)type_b << 40;
    sg_maker_flush(maker);
    return true;
}

static bool single(struct sg_maker *maker, unsigned kind) {
    const struct sg_instruction *in = maker->in;
    unsigned type_a, type_b;
    uint32_t d, sources[3] = {0};
    types(maker, kind == SG_VIDEO_COMPARE, &type_a, &type_b);
    if (in->operand_count < 4 && sg_maker_operand(maker, 0)->part != SG_PART_NONE)
        return sg_maker_refuse(maker, "a part of the result, and nothing for the others");
    if (!places(maker, &d, sources))
        return false;
    bool shift = kind == SG_VIDEO_LEFT || kind == SG_VIDEO_RIGHT;
    struct sg_step *step = made(maker, sg_run_video, d, sources);
    step->type2 = (unsigned char)type_a;
    step->choice = (unsigned char)kind;
    step->second = (unsigned char)in->operation2;
    step->rounding = in->compare;
    step->value = parts(maker, type_b);
    step->count = shift && in->modifiers & SG_MOD(WRAP);
    if (kind == SG_VIDEO_COMPARE) /* 0 or 1: unsigned */
        step->type = SG_TYPE_U32;
    sg_maker_flush(maker);
    return true;
}

bool sg_maker_video(struct sg_maker *maker, bool *ok) {
    const struct sg_instruction *in = maker->in;
    if (in->op == SG_OP_vmad) {
        *ok = multiplied(maker);
        return true;
    }
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (forms[i].op != in->op)
            continue;
        *ok = forms[i].elements == 1 ? single(maker, forms[i].kind)
                                     : several(maker, forms[i].elements, forms[i].kind);
        return true;
    }
    return false;
}
