/* Which registers an instruction reads and writes. */
#include "softgpu/program/program.h"

struct use {
    const struct sg_program *program;
    sg_register_use *tell;
    void *user;
};

static void operand(const struct use *use, const struct sg_operand *one, bool written) {
    switch (one->kind) {
    case SG_OPERAND_REGISTER:
        use->tell(use->user, one->reg, written);
        break;
    case SG_OPERAND_ADDRESS: /* of memory that is written, perhaps: the base is read */
        if (one->reg != SG_NO_REGISTER)
            use->tell(use->user, one->reg, false);
        break;
    case SG_OPERAND_VECTOR:
    case SG_OPERAND_PAIR:
        for (uint32_t i = 0; i < one->count; i++)
            operand(use, &use->program->operands[one->first + i], written);
        break;
    default:
        break;
    }
}

void sg_instruction_registers(const struct sg_program *program,
                              const struct sg_instruction *instruction, sg_register_use *use,
                              void *user) {
    const struct use all = {program, use, user};
    const struct sg_operand *operands = &program->operands[instruction->first_operand];
    unsigned result = instruction->result ? instruction->op == SG_OP_call : UINT32_MAX;
    if (instruction->guard)
        use(user, instruction->guard - 1, false);
    for (unsigned i = 0; i < instruction->operand_count; i++) {
        if (i != result)
            operand(&all, &operands[i], false);
    }
    if (result < instruction->operand_count)
        operand(&all, &operands[result], true);
}
