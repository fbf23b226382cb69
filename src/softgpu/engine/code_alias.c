/*
 * Registers that are aliases of a constant: the entry's, written once, without a guard, by a move
 * of something that never changes while a warp runs (immediates, parameters, addresses, most
 * special registers). Such a register has the constant's place, and the move needs no step. PTX
 * does not define what a read before the write gives.
 */
#include "softgpu/engine/code.h"

#include <stdlib.h>

static void count_writes(const struct sg_maker *maker, const struct sg_operand *operand,
                         unsigned char *writes) {
    if (operand->kind == SG_OPERAND_REGISTER && writes[operand->reg] < 2)
        writes[operand->reg]++;
    if (operand->kind != SG_OPERAND_VECTOR && operand->kind != SG_OPERAND_PAIR)
        return;
    for (uint32_t i = 0; i < operand->count; i++)
        count_writes(maker, &maker->program->operands[operand->first + i], writes);
}

/* Results are the first operands, in calls after the target. */
static void count_all(const struct sg_maker *maker, unsigned char *writes) {
    const struct sg_program *program = maker->program;
    const struct sg_program_function *entry = &program->functions[0];
    uint32_t end = entry->first_instruction + entry->instructions;
    for (uint32_t i = entry->first_instruction; i < end; i++) {
        const struct sg_instruction *in = &program->instructions[i];
        unsigned results = in->op == SG_OP_call ? 2 : 1;
        for (unsigned k = 0; k < results && k < in->operand_count; k++)
            count_writes(maker, &program->operands[in->first_operand + k], writes);
    }
}

static bool constant_place(uint32_t place) {
    return place >> 30 == SG_BASE_CONSTANTS || place >> 30 == SG_BASE_SPECIALS;
}

/* The place of a move's source, if it never changes. */
static bool source_of(struct sg_maker *maker, unsigned width, uint32_t *place) {
    const struct sg_operand *from = sg_maker_operand(maker, 1);
    switch (from->kind) {
    case SG_OPERAND_REGISTER: {
        uint32_t number = maker->function->first_register + from->reg;
        *place = maker->code->register_place[number];
        return sg_width_of_type(maker->program->registers[number].type) == width &&
               from->part == SG_PART_NONE && constant_place(*place);
    }
    case SG_OPERAND_SPECIAL:
        if (!sg_special_constant(from->first))
            return false;
        break;
    case SG_OPERAND_IMMEDIATE:
    case SG_OPERAND_VARIABLE:
        break;
    default:
        return false;
    }
    return sg_maker_source(maker, from, width, false, place) && constant_place(*place);
}

static bool moves(struct sg_maker *maker, unsigned width, uint32_t *place) {
    const struct sg_instruction *in = maker->in;
    if (in->guard || in->unsupported || in->operand_count < 2 ||
        sg_width_of_type(in->type) != width)
        return false;
    if (in->op == SG_OP_mov)
        return source_of(maker, width, place);
    if (in->op == SG_OP_cvta)
        return sg_maker_windowless(in) && source_of(maker, width, place);
    return (in->op == SG_OP_ld || in->op == SG_OP_ldu) &&
           sg_maker_parameter_of(maker, width, place);
}

void sg_maker_alias(struct sg_maker *maker) {
    const struct sg_program_function *entry = maker->function;
    unsigned char *writes = calloc(entry->registers + 1u, 1);
    if (!writes) {
        maker->no_memory = true;
        return;
    }
    count_all(maker, writes);
    uint32_t end = entry->first_instruction + entry->instructions;
    for (uint32_t i = entry->first_instruction; i < end && !maker->no_memory; i++) {
        maker->index = i;
        maker->in = &maker->program->instructions[i];
        const struct sg_operand *to = sg_maker_operand(maker, 0);
        if (maker->in->operand_count < 2 || to->kind != SG_OPERAND_REGISTER ||
            to->part != SG_PART_NONE || writes[to->reg] != 1)
            continue;
        uint32_t number = entry->first_register + to->reg, place;
        unsigned width = sg_width_of_type(maker->program->registers[number].type);
        if (width >= SG_W_16 && moves(maker, width, &place)) {
            maker->code->register_place[number] = place;
            maker->aliased[i] = true;
        }
    }
    maker->why[0] = 0; /* an invalid source is refused at its instruction */
    free(writes);
}
