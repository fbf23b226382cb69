/* Textures and surfaces: the places of their instructions' operands. */
#include "softgpu/engine/code.h"
#include "softgpu/engine/texture_inside.h"

static bool nowhere(uint32_t *places) {
    for (unsigned i = 0; i < SG_AT_COUNT; i++)
        places[i] = SG_NOWHERE;
    return true;
}

/* A vector or a single operand, of 32 bits each. */
static bool sources(struct sg_maker *maker, const struct sg_operand *operand, unsigned width,
                    unsigned most, uint32_t *places, unsigned *count) {
    const struct sg_operand *each = operand;
    *count = 1;
    if (operand->kind == SG_OPERAND_VECTOR) {
        each = &maker->program->operands[operand->first];
        *count = operand->count;
    }
    for (unsigned i = 0; i < *count && i < most; i++)
        if (!sg_maker_source(maker, &each[i], width, false, &places[i]))
            return false;
    return true;
}

static bool results(struct sg_maker *maker, const struct sg_operand *operand, unsigned width,
                    uint32_t *places, unsigned *count) {
    const struct sg_operand *vector = operand;
    if (operand->kind == SG_OPERAND_PAIR) {
        vector = &maker->program->operands[operand->first];
        if (!sg_maker_result(maker, &vector[1], SG_W_PRED, false, &places[SG_AT_RESIDENT]))
            return false;
    }
    const struct sg_operand *each = vector;
    *count = 1;
    if (vector->kind == SG_OPERAND_VECTOR) {
        each = &maker->program->operands[vector->first];
        *count = vector->count;
    }
    if (*count > 4)
        return sg_maker_refuse(maker, "a vector of more than four elements");
    for (unsigned i = 0; i < *count; i++)
        if (!sg_maker_result(maker, &each[i], width, false, &places[SG_AT_VALUE + i]))
            return false;
    return true;
}

/* [a, c] and [a, b, c]: the image, its sampler, the coordinates. */
static bool brackets(struct sg_maker *maker, const struct sg_operand *operand, uint32_t *places) {
    const struct sg_operand *each = &maker->program->operands[operand->first];
    struct sg_texture_shape shape = sg_texture_shape(maker->in->geometry);
    unsigned count, wanted = shape.coordinates + shape.layered;
    if (!shape.coordinates)
        return sg_maker_refuse(maker, "several samples for each texel, which only graphics has");
    if (!sg_maker_source(maker, &each[0], SG_W_64, false, &places[SG_AT_HANDLE]) ||
        (operand->count == 3 &&
         !sg_maker_source(maker, &each[1], SG_W_64, false, &places[SG_AT_SAMPLER])) ||
        !sources(maker, &each[operand->count - 1], SG_W_32, 4, &places[SG_AT_COORDINATE], &count))
        return false;
    return count >= wanted || sg_maker_refuse(maker, "fewer coordinates than its geometry has");
}

static bool make(struct sg_maker *maker, sg_run *run, const uint32_t *places, unsigned count) {
    const struct sg_instruction *in = maker->in;
    uint32_t list = sg_maker_list(maker, places, SG_AT_COUNT);
    struct sg_step *step = sg_maker_step(maker, run);
    step->list = list;
    step->count = (uint16_t)count;
    step->type = in->type;
    step->type2 = in->type2;
    step->choice = (unsigned char)in->geometry;
    step->cache = maker->code->caches++;
    sg_maker_flush(maker);
    return true;
}

/* ---- tex, tld4 ------------------------------------------------------------------------------- */

/* After the coordinates there may be offsets, and a depth to compare with. */
static bool is_offset(const struct sg_maker *maker, const struct sg_operand *operand) {
    unsigned geometry = maker->in->geometry;
    bool one = geometry == SG_GEOMETRY_1D || geometry == SG_GEOMETRY_A1D;
    return operand->kind == SG_OPERAND_VECTOR || (one && operand->type != SG_TYPE_F32);
}

static bool texture(struct sg_maker *maker) {
    const struct sg_instruction *in = maker->in;
    uint32_t places[SG_AT_COUNT];
    unsigned count, at = 2, ignored;
    unsigned width = in->type == SG_TYPE_F16 ? SG_W_16 : SG_W_32;
    nowhere(places);
    if (!results(maker, sg_maker_operand(maker, 0), width, places, &count) ||
        !brackets(maker, sg_maker_operand(maker, 1), places))
        return false;
    unsigned more = in->operation == SG_DO_LEVEL ? 1 : in->operation == SG_DO_GRAD ? 2 : 0;
    if (in->op == SG_OP_tex && in->operand_count < 2 + more)
        return sg_maker_refuse(maker, "no level or gradient");
    for (unsigned i = 0; in->op == SG_OP_tex && i < more; i++) {
        unsigned to = more == 1 ? SG_AT_LEVEL : i == 0 ? SG_AT_DX : SG_AT_DY;
        if (!sources(maker, sg_maker_operand(maker, at++), SG_W_32, more == 1 ? 1 : 3, &places[to],
                     &ignored))
            return false;
    }
    if (at < in->operand_count && is_offset(maker, sg_maker_operand(maker, at)) &&
        !sources(maker, sg_maker_operand(maker, at++), SG_W_32, 3, &places[SG_AT_OFFSET], &ignored))
        return false;
    if (at < in->operand_count)
        return sg_maker_refuse(maker, "a comparison of depths, which only graphics has");
    return make(maker, sg_run_texture, places, count);
}

/* ---- suld, sust, sured ----------------------------------------------------------------------- */

static bool surface(struct sg_maker *maker) {
    const struct sg_instruction *in = maker->in;
    uint32_t places[SG_AT_COUNT];
    unsigned count, width = sg_width_of_type(in->type);
    bool load = in->op == SG_OP_suld;
    nowhere(places);
    if (!brackets(maker, sg_maker_operand(maker, load ? 1 : 0), places))
        return false;
    if (load ? !results(maker, sg_maker_operand(maker, 0), width, places, &count)
             : !sources(maker, sg_maker_operand(maker, 1), width, 4, &places[SG_AT_VALUE], &count))
        return false;
    return make(maker, sg_run_surface, places, count);
}

/* ---- txq, suq, istypep ----------------------------------------------------------------------- */

static bool query(struct sg_maker *maker) {
    const struct sg_instruction *in = maker->in;
    const struct sg_operand *operand = sg_maker_operand(maker, 1);
    struct sg_operand handle = *operand;
    bool type = in->op == SG_OP_istypep;
    uint32_t places[SG_AT_COUNT];
    nowhere(places);
    if (operand->kind == SG_OPERAND_ADDRESS) {
        bool variable = operand->first != SG_NO_VARIABLE;
        handle.kind = variable ? SG_OPERAND_VARIABLE : SG_OPERAND_REGISTER;
        if ((!variable && operand->reg == SG_NO_REGISTER) || operand->value != 0)
            return sg_maker_refuse(maker, "a handle that is no register or variable");
    }
    if (!sg_maker_result(maker, sg_maker_operand(maker, 0), type ? SG_W_PRED : SG_W_32, false,
                         &places[SG_AT_VALUE]) ||
        !sg_maker_source(maker, &handle, SG_W_64, false, &places[SG_AT_HANDLE]))
        return false;
    if (in->operand_count > 2 &&
        !sg_maker_source(maker, sg_maker_operand(maker, 2), SG_W_32, false, &places[SG_AT_LEVEL]))
        return false;
    return make(maker, sg_run_texture_query, places, 1);
}

bool sg_maker_texture(struct sg_maker *maker) {
    switch (maker->in->op) {
    case SG_OP_tex:
    case SG_OP_tld4:
        return texture(maker);
    case SG_OP_suld:
    case SG_OP_sust:
    case SG_OP_sured:
        return surface(maker);
    default:
        return query(maker);
    }
}
