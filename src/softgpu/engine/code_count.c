/* Adds the steps that count, before those of the instruction, with what is known of its
 * accesses. */
#include "softgpu/engine/code.h"
#include "softgpu/engine/count.h"

static struct sg_step *counting(struct sg_maker *maker, sg_run *run) {
    const struct sg_instruction *in = maker->in;
    struct sg_step *step = sg_maker_step(maker, run);
    step->a = step->c = SG_NOWHERE;
    if (in->guard) {
        uint32_t number = maker->function->first_register + in->guard - 1;
        step->e = maker->code->register_place[number];
        step->flags = (uint16_t)(SG_STEP_GUARD | (in->guard_negated ? SG_STEP_NOT : 0));
    }
    return step;
}

static struct sg_step *access_of(struct sg_maker *maker, unsigned direction, unsigned space,
                                 unsigned bytes) {
    struct sg_step *step = counting(maker, sg_run_count_access);
    step->choice = (unsigned char)direction;
    step->second = (unsigned char)space;
    step->count = (uint16_t)bytes;
    step->cache = maker->code->access_count++;
    return step;
}

/* SG_COUNT_SPACES: the address decides. */
static unsigned space_of(unsigned space) {
    switch (space) {
    case SG_IN_GLOBAL:
        return SG_COUNT_GLOBAL;
    case SG_IN_CONST:
        return SG_COUNT_CONSTANT;
    case SG_IN_SHARED:
    case SG_IN_SHARED_CLUSTER:
        return SG_COUNT_SHARED;
    case SG_IN_LOCAL:
        return SG_COUNT_LOCAL;
    case SG_IN_PARAM:
    case SG_IN_PARAM_FRAME:
        return SG_COUNT_PARAMETERS;
    default:
        return SG_COUNT_SPACES;
    }
}

/* An access whose address is looked at, unless its space makes that useless. If the instruction
 * cannot run, it is refused later, by its own steps. */
static void addressed(struct sg_maker *maker, unsigned direction, unsigned index, unsigned space,
                      unsigned bytes) {
    struct sg_maker_address address = {.base = SG_NOWHERE};
    unsigned known = space_of(space);
    if (known != SG_COUNT_LOCAL && known != SG_COUNT_PARAMETERS &&
        !sg_maker_address(maker, sg_maker_operand(maker, index), maker->in->space, &address))
        return;
    struct sg_step *step = access_of(maker, direction, known, bytes);
    step->a = address.base;
    step->value = address.offset;
    step->flags = (uint16_t)(step->flags | (address.wide ? SG_STEP_WIDE : 0));
}

static unsigned bytes_of(const struct sg_instruction *in) {
    return sg_type_bits(in->type) / 8 * (in->vector ? in->vector : 1u);
}

static void count_copy(struct sg_maker *maker) {
    const struct sg_instruction *in = maker->in;
    const struct sg_operand *fourth = in->operand_count > 3 ? sg_maker_operand(maker, 3) : NULL;
    unsigned bytes = (unsigned)sg_maker_operand(maker, 2)->value;
    access_of(maker, SG_COUNT_WRITTEN, SG_COUNT_SHARED, bytes);
    if (!fourth) {
        addressed(maker, SG_COUNT_READ, 1, SG_IN_GLOBAL, bytes);
        return;
    }
    bool ignore = fourth->type == SG_TYPE_PRED;
    uint32_t place;
    if (!sg_maker_source(maker, fourth, ignore ? SG_W_PRED : SG_W_32, false, &place))
        return;
    struct sg_step *step = access_of(maker, SG_COUNT_READ, SG_COUNT_GLOBAL, bytes);
    step->c = place;
    step->type = ignore ? SG_TYPE_PRED : SG_TYPE_U32;
}

static void count_bulk(struct sg_maker *maker) {
    const struct sg_instruction *in = maker->in;
    const unsigned spaces[] = {space_of(in->space), space_of(in->space2)};
    bool reduces = in->operation == SG_DO_BULK_REDUCE;
    uint32_t place;
    for (unsigned i = 0; i < 2; i++) {
        if (spaces[i] == SG_COUNT_SPACES ||
            !sg_maker_source(maker, sg_maker_operand(maker, 2), SG_W_32, false, &place))
            return;
        unsigned direction = i ? SG_COUNT_READ : reduces ? SG_COUNT_ATOMIC : SG_COUNT_WRITTEN;
        access_of(maker, direction, spaces[i], 0)->c = place;
    }
}

/* Each lane has the same number of a fragment's elements. */
static void count_fragment(struct sg_maker *maker) {
    const struct sg_instruction *in = maker->in;
    unsigned m = in->shape[0], n = in->shape[1], k = in->shape[2];
    unsigned elements = in->operation == SG_DO_LOAD_A   ? m * k
                        : in->operation == SG_DO_LOAD_B ? k * n
                                                        : m * n;
    bool store = in->operation == SG_DO_STORE_D;
    unsigned space = space_of(in->space), bytes = elements * sg_type_bits(in->type) / 8 / SG_LANES;
    /* For generic addresses the first lane's decides, for all lanes. */
    if (space == SG_COUNT_SPACES)
        addressed(maker, store ? SG_COUNT_WRITTEN : SG_COUNT_READ, store ? 0 : 1, in->space, bytes);
    else
        access_of(maker, store ? SG_COUNT_WRITTEN : SG_COUNT_READ, space, bytes);
}

static void count_texture(struct sg_maker *maker) {
    const struct sg_instruction *in = maker->in;
    const struct sg_operand *value =
        sg_maker_operand(maker, in->op == SG_OP_sust || in->op == SG_OP_sured ? 1 : 0);
    if (value->kind == SG_OPERAND_PAIR)
        value = &maker->program->operands[value->first];
    unsigned count = value->kind == SG_OPERAND_VECTOR ? value->count : 1;
    unsigned direction = in->op == SG_OP_sust    ? SG_COUNT_WRITTEN
                         : in->op == SG_OP_sured ? SG_COUNT_ATOMIC
                                                 : SG_COUNT_READ;
    access_of(maker, direction, SG_COUNT_TEXTURE, count * sg_type_bits(in->type) / 8);
}

static void count_accesses(struct sg_maker *maker) {
    const struct sg_instruction *in = maker->in;
    switch (in->op) {
    case SG_OP_ld:
    case SG_OP_ldu:
        addressed(maker, SG_COUNT_READ, 1, in->space ? in->space : SG_IN_GENERIC, bytes_of(in));
        break;
    case SG_OP_st:
        if (in->operation == SG_DO_ASYNC)
            access_of(maker, SG_COUNT_WRITTEN, SG_COUNT_SHARED, bytes_of(in));
        else
            addressed(maker, SG_COUNT_WRITTEN, 0, in->space, bytes_of(in));
        break;
    case SG_OP_red:
        if (in->operation == SG_DO_ASYNC)
            access_of(maker, SG_COUNT_ATOMIC, SG_COUNT_SHARED, bytes_of(in));
        else
            addressed(maker, SG_COUNT_ATOMIC, 0, in->space, bytes_of(in));
        break;
    case SG_OP_atom:
        addressed(maker, SG_COUNT_ATOMIC, 1, in->space, bytes_of(in));
        break;
    case SG_OP_cp:
        if (in->operation == SG_DO_ASYNC)
            count_copy(maker);
        else if (in->operation == SG_DO_BULK || in->operation == SG_DO_BULK_REDUCE)
            count_bulk(maker);
        break;
    case SG_OP_ldmatrix: /* 8 x 8 elements of 16 bits are 4 bytes per lane */
    case SG_OP_stmatrix:
        access_of(maker, in->op == SG_OP_ldmatrix ? SG_COUNT_READ : SG_COUNT_WRITTEN,
                  SG_COUNT_SHARED, 4u * in->vector);
        break;
    case SG_OP_wmma:
        if (in->operation != SG_DO_MMA)
            count_fragment(maker);
        break;
    case SG_OP_tex:
    case SG_OP_tld4:
    case SG_OP_suld:
    case SG_OP_sust:
    case SG_OP_sured:
        count_texture(maker);
        break;
    default:
        break;
    }
}

void sg_maker_count(struct sg_maker *maker) {
    /* Only the counting steps use these temporaries. */
    maker->temporary = 0;
    maker->temporary_count = 0;
    counting(maker, sg_run_count);
    if (!maker->in->unsupported)
        count_accesses(maker);
}
