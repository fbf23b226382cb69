/* Instructions outside of the themes of lanes/: parts of registers, addresses, hints. */
#include "softgpu/engine/code.h"

static bool pack(struct sg_maker *maker, bool whole_first) {
    const struct sg_instruction *in = maker->in;
    const struct sg_operand *vector = sg_maker_operand(maker, whole_first ? 1 : 0);
    const struct sg_operand *each = &maker->program->operands[vector->first];
    unsigned width = sg_width_of_type(in->type);
    unsigned bits = vector->count ? sg_type_bits(in->type) / vector->count : 0;
    unsigned part = bits == 8 || bits == 16 ? SG_W_16 : bits == 32 ? SG_W_32 : SG_W_NONE;
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
    step->value = bits;
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
        return 0; /* addresses in global and constant memory are generic */
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

#define MOST_CONSTANTS 64

/* Lists pairs: the place of the address of each .const variable, and its size. */
static bool constants(struct sg_maker *maker, unsigned space, uint32_t *list, uint32_t *count) {
    const struct sg_program *program = maker->program;
    uint32_t pairs[2 * MOST_CONSTANTS];
    bool matters = space == SG_IN_CONST || space == SG_IN_GLOBAL;
    *list = *count = 0;
    for (uint32_t i = 0; i < program->variable_count && matters; i++) {
        const struct sg_program_variable *one = &program->variables[i];
        struct sg_operand address = {
            .kind = SG_OPERAND_VARIABLE, .type = SG_TYPE_U64, .first = i, .reg = SG_NO_REGISTER};
        if (one->place != SG_PLACE_IMAGE || one->space != SG_IN_CONST)
            continue;
        if (*count == MOST_CONSTANTS)
            return sg_maker_refuse(maker, "more variables in constant memory than are told apart");
        if (!sg_maker_source(maker, &address, SG_W_64, false, &pairs[2 * *count]))
            return false;
        pairs[2 * (*count)++ + 1] = (uint32_t)one->size;
    }
    *list = sg_maker_list(maker, pairs, 2 * *count);
    return true;
}

static bool is_space(struct sg_maker *maker) {
    uint32_t d, a, list, count;
    unsigned space = maker->in->space;
    if (!constants(maker, space, &list, &count))
        return false;
    if (!sg_maker_result(maker, sg_maker_operand(maker, 0), SG_W_PRED, false, &d) ||
        !sg_maker_source(maker, sg_maker_operand(maker, 1), SG_W_64, false, &a))
        return false;
    struct sg_step *step = sg_maker_step(maker, sg_run_isspacep);
    step->d = d;
    step->a = a;
    step->choice = (unsigned char)space;
    step->list = list;
    step->count = (uint16_t)count;
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

bool sg_maker_other(struct sg_maker *maker, bool *ok) {
    const struct sg_instruction *in = maker->in;
    if (sg_maker_vector(maker, ok) || sg_maker_async(maker, ok))
        return true;
    switch (in->op) {
    case SG_OP_mov:
        if (sg_maker_operand(maker, 1)->kind == SG_OPERAND_VECTOR)
            *ok = pack(maker, true);
        else if (sg_maker_operand(maker, 0)->kind == SG_OPERAND_VECTOR)
            *ok = pack(maker, false);
        else
            return false;
        return true;
    case SG_OP_tex:
    case SG_OP_tld4:
    case SG_OP_txq:
    case SG_OP_suq:
    case SG_OP_istypep:
    case SG_OP_suld:
    case SG_OP_sust:
    case SG_OP_sured:
        *ok = sg_maker_texture(maker);
        return true;
    case SG_OP_cvta:
        *ok = convert_address(maker);
        return true;
    case SG_OP_isspacep:
        *ok = is_space(maker);
        return true;
    case SG_OP_activemask:
        *ok = active(maker);
        return true;
    case SG_OP_fence:
    case SG_OP_membar:
        sg_maker_watch_fence(maker);
        *ok = plain_step(maker, sg_run_fence);
        return true;
    case SG_OP_mma:
    case SG_OP_wmma:
    case SG_OP_ldmatrix:
    case SG_OP_stmatrix:
    case SG_OP_movmatrix:
        *ok = sg_maker_matrix(maker);
        return true;
    /* Hints for caches and marks for profilers have no visible effect. */
    case SG_OP_prefetch:
    case SG_OP_prefetchu:
    case SG_OP_applypriority:
    case SG_OP_discard:
    case SG_OP_pmevent:
        *ok = plain_step(maker, sg_run_nothing);
        return true;
    default:
        return sg_maker_compound(maker, ok) || sg_maker_video(maker, ok) ||
               sg_maker_stack(maker, ok);
    }
}
