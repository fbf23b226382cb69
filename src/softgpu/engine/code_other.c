/* Instructions that no theme of lanes has: vectors of registers, addresses, hints, `set`. */
#include "softgpu/engine/code.h"

static bool pack(struct sg_maker *maker, bool whole_first) {
    const struct sg_instruction *in = maker->in;
    const struct sg_operand *vector = sg_maker_operand(maker, whole_first ? 1 : 0);
    const struct sg_operand *each = &maker->program->operands[vector->first];
    unsigned width = sg_width_of_type(in->type);
    unsigned bits = vector->count ? sg_type_bits(in->type) / vector->count : 0;
    unsigned part = bits == 16 ? SG_W_16 : bits == 32 ? SG_W_32 : SG_W_NONE;
    uint32_t places[4], whole;
    if (!width || !part || vector->count > 4)
        return sg_maker_refuse(maker, "a vector of registers of these widths");
    for (uint32_t i = 0; i < vector->count; i++)
        if (whole_first ? !sg_maker_source(maker, &each[i], part, false, &places[i])
                        : !sg_maker_result(maker, &each[i], part, false, &places[i]))
            return false;
    if (whole_first ? !sg_maker_result(maker, sg_maker_operand(maker, 0), width, false, &whole)
                    : !sg_maker_source(maker, sg_maker_operand(maker, 1), width, false, &whole))
        return false;
    uint32_t list = sg_maker_list(maker, places, vector->count);
    struct sg_step *step = sg_maker_step(maker, whole_first ? sg_run_pack : sg_run_unpack);
    step->d = whole_first ? whole : SG_NOWHERE;
    step->a = whole_first ? 0 : whole;
    step->list = list;
    step->count = (uint16_t)vector->count;
    step->choice = (unsigned char)part;
    step->second = (unsigned char)width;
    sg_maker_flush(maker);
    return true;
}

static uint64_t window_of(unsigned space) {
    switch (space) {
    case SG_IN_SHARED:
    case SG_IN_SHARED_CLUSTER:
        return SG_SHARED_WINDOW;
    case SG_IN_LOCAL:
        return SG_LOCAL_WINDOW;
    case SG_IN_PARAM:
        return SG_PARAMETER_WINDOW;
    default:
        return 0; /* global and constant memory have one address */
    }
}

static bool two_operands(struct sg_maker *maker, unsigned op, unsigned type, uint32_t d, uint32_t a,
                         uint32_t b) {
    struct sg_instruction in = {.op = (uint16_t)op, .type = (unsigned char)type};
    struct sg_form form;
    if (!sg_maker_find(maker, &in, &form))
        return sg_maker_refuse(maker, "not among the instructions that run");
    struct sg_step *step = sg_maker_form(maker, &form);
    step->d = d;
    step->a = a;
    step->b = b;
    return true;
}

bool sg_maker_windowless(const struct sg_instruction *in) {
    return sg_type_bits(in->type) == 64 && in->space != SG_IN_PARAM_FRAME &&
           window_of(in->space) == 0;
}

static bool convert_address(struct sg_maker *maker) {
    const struct sg_instruction *in = maker->in;
    uint32_t d, a;
    if (sg_type_bits(in->type) != 64)
        return sg_maker_refuse(maker, "addresses of 32 bits");
    if (in->space == SG_IN_PARAM_FRAME)
        return sg_maker_refuse(maker, "the generic address of a function's parameter");
    if (!sg_maker_result(maker, sg_maker_operand(maker, 0), SG_W_64, false, &d) ||
        !sg_maker_source(maker, sg_maker_operand(maker, 1), SG_W_64, false, &a))
        return false;
    uint32_t window = sg_maker_constant(maker, SG_W_64, window_of(in->space));
    if (!two_operands(maker, in->modifiers & SG_MOD(TO) ? SG_OP_sub : SG_OP_add, SG_TYPE_U64, d, a,
                      window))
        return false;
    sg_maker_flush(maker);
    return true;
}

static bool is_space(struct sg_maker *maker) {
    uint32_t d, a;
    unsigned space = maker->in->space;
    if (space == SG_IN_CONST)
        return sg_maker_refuse(maker, "constant memory has no addresses of its own here");
    if (!sg_maker_result(maker, sg_maker_operand(maker, 0), SG_W_PRED, false, &d) ||
        !sg_maker_source(maker, sg_maker_operand(maker, 1), SG_W_64, false, &a))
        return false;
    struct sg_step *step = sg_maker_step(maker, sg_run_isspacep);
    step->d = d;
    step->a = a;
    step->choice = (unsigned char)(space == SG_IN_SHARED_CLUSTER ? SG_IN_SHARED : space);
    return true;
}

/* set: a comparison, and then a choice between "true" and 0. */
static bool set(struct sg_maker *maker) {
    struct sg_instruction compare = *maker->in, choose = {.op = SG_OP_selp};
    compare.op = SG_OP_setp;
    compare.type = maker->in->type2;
    choose.type = SG_TYPE_B32;
    bool single = maker->in->type == SG_TYPE_F32;
    struct sg_form first, second;
    uint32_t places[3] = {0}, d;
    if (sg_type_bits(maker->in->type) != 32 || maker->in->type == SG_TYPE_F16X2 ||
        maker->in->type == SG_TYPE_BF16X2 || !sg_maker_find(maker, &compare, &first) ||
        !sg_maker_find(maker, &choose, &second))
        return sg_maker_refuse(maker, "a comparison of these types");
    for (unsigned i = 0; i < 3 && first.source[i]; i++)
        if (!sg_maker_source(maker, sg_maker_operand(maker, i + 1), first.source[i], false,
                             &places[i]))
            return false;
    if (!sg_maker_result(maker, sg_maker_operand(maker, 0), SG_W_32, false, &d))
        return false;
    uint32_t p = sg_maker_temporary(maker, SG_W_PRED);
    uint32_t yes = sg_maker_constant(maker, SG_W_32, single ? 0x3f800000u : UINT32_MAX);
    uint32_t no = sg_maker_constant(maker, SG_W_32, 0);
    struct sg_step *step = sg_maker_form(maker, &first);
    step->a = places[0];
    step->b = places[1];
    step->c = places[2];
    step->d = p;
    step->e = SG_NOWHERE;
    step->choice = first.choice;
    step = sg_maker_form(maker, &second);
    step->d = d;
    step->a = yes;
    step->b = no;
    step->c = p;
    sg_maker_flush(maker);
    return true;
}

static bool active(struct sg_maker *maker) {
    uint32_t d;
    if (!sg_maker_result(maker, sg_maker_operand(maker, 0), SG_W_32, false, &d))
        return false;
    sg_maker_step(maker, sg_run_activemask)->d = d;
    sg_maker_flush(maker);
    return true;
}

static bool plain_step(struct sg_maker *maker, sg_run *run) {
    sg_maker_step(maker, run);
    return true;
}

/* cp.async [shared], [global], size {, bytes of the source}. */
static bool copy_async(struct sg_maker *maker) {
    const struct sg_instruction *in = maker->in;
    switch (in->operation) {
    case SG_DO_COMMIT_GROUP:
    case SG_DO_WAIT_GROUP:
    case SG_DO_WAIT_ALL:
        return plain_step(maker, sg_run_nothing);
    case SG_DO_ASYNC:
        break;
    default:
        return sg_maker_refuse(maker, "copies in bulk do not run yet");
    }
    struct sg_maker_address to, from;
    uint32_t bytes = SG_NOWHERE;
    if (in->operand_count < 3 || sg_maker_operand(maker, 2)->kind != SG_OPERAND_IMMEDIATE ||
        !sg_maker_address(maker, sg_maker_operand(maker, 0), &to) ||
        !sg_maker_address(maker, sg_maker_operand(maker, 1), &from))
        return sg_maker_refuse(maker, "operands of a kind that does not run yet");
    int64_t size = sg_maker_operand(maker, 2)->value;
    if (in->operand_count > 3) {
        const struct sg_operand *fourth = sg_maker_operand(maker, 3);
        if (in->operand_count > 4 || sg_width_of_type(fourth->type) != SG_W_32 ||
            !sg_maker_source(maker, fourth, SG_W_32, false, &bytes))
            return sg_maker_refuse(maker, "a source to ignore, or a cache policy");
    }
    if (!from.wide || (size != 4 && size != 8 && size != 16))
        return sg_maker_refuse(maker, "a copy of this size, or from an address of 32 bits");
    uint32_t offsets[4] = {(uint32_t)to.offset, (uint32_t)((uint64_t)to.offset >> 32),
                           (uint32_t)from.offset, (uint32_t)((uint64_t)from.offset >> 32)};
    uint32_t list = sg_maker_list(maker, offsets, 4);
    struct sg_step *step = sg_maker_step(maker, sg_run_copy_async);
    step->a = to.base;
    step->b = from.base;
    step->c = bytes;
    step->second = to.wide;
    step->count = (uint16_t)size;
    step->list = list;
    step->cache = maker->code->caches++;
    return true;
}

bool sg_maker_other(struct sg_maker *maker, bool *ok) {
    const struct sg_instruction *in = maker->in;
    switch (in->op) {
    case SG_OP_mov:
        if (sg_maker_operand(maker, 1)->kind == SG_OPERAND_VECTOR)
            *ok = pack(maker, true);
        else if (sg_maker_operand(maker, 0)->kind == SG_OPERAND_VECTOR)
            *ok = pack(maker, false);
        else
            return false;
        return true;
    case SG_OP_cp:
        *ok = copy_async(maker);
        return true;
    case SG_OP_cvta:
        *ok = convert_address(maker);
        return true;
    case SG_OP_isspacep:
        *ok = is_space(maker);
        return true;
    case SG_OP_set:
        *ok = set(maker);
        return true;
    case SG_OP_activemask:
        *ok = active(maker);
        return true;
    case SG_OP_nanosleep:
        *ok = plain_step(maker, sg_run_nanosleep);
        return true;
    case SG_OP_fence:
    case SG_OP_membar:
        *ok = plain_step(maker, sg_run_fence);
        return true;
    /* Hints about caches, and marks for profilers: nothing that a program could see. */
    case SG_OP_prefetch:
    case SG_OP_prefetchu:
    case SG_OP_applypriority:
    case SG_OP_discard:
    case SG_OP_pmevent:
        *ok = plain_step(maker, sg_run_nothing);
        return true;
    default:
        return false;
    }
}
