/* alloca, stacksave and stackrestore, and the prologue and epilogue of functions that use them. */
#include "softgpu/engine/code.h"
#include "softgpu/engine/stack.h"

static bool uses(const struct sg_program *program, const struct sg_program_function *function) {
    for (uint32_t i = 0; i < function->instructions; i++) {
        unsigned op = program->instructions[function->first_instruction + i].op;
        if (op == SG_OP_alloca || op == SG_OP_stacksave || op == SG_OP_stackrestore)
            return true;
    }
    return false;
}

/* The saved end of the caller's alloca is in front of the temporaries. */
void sg_maker_stack_begin(struct sg_maker *maker) {
    struct sg_code *code = maker->code;
    for (uint32_t f = 0; f < maker->program->function_count && maker->function_index == 0; f++)
        code->allocates |= uses(maker->program, &maker->program->functions[f]);
    maker->kept = SG_NOWHERE;
    if (maker->function_index == 0) {
        if (code->allocates)
            sg_maker_step(maker, sg_run_stack_begin);
        return;
    }
    if (!uses(maker->program, maker->function))
        return;
    maker->kept = SG_PLACE(SG_BASE_REGISTERS, maker->frame);
    maker->frame += sg_width_bytes(SG_W_32);
    struct sg_step *step = sg_maker_step(maker, sg_run_stack_save);
    step->d = maker->kept;
    step->second = SG_W_32;
}

void sg_maker_stack_end(struct sg_maker *maker, const struct sg_instruction *ret) {
    if (maker->kept == SG_NOWHERE)
        return;
    struct sg_step *step = sg_maker_step(maker, sg_run_stack_restore);
    step->a = maker->kept;
    step->second = SG_W_32;
    if (ret && ret->guard) {
        step->e = maker->code->register_place[maker->function->first_register + ret->guard - 1];
        step->flags = (uint16_t)(SG_STEP_GUARD | (ret->guard_negated ? SG_STEP_NOT : 0));
    }
}

bool sg_maker_stack(struct sg_maker *maker, bool *ok) {
    const struct sg_instruction *in = maker->in;
    unsigned width = sg_width_of_type(in->type);
    bool take = in->op == SG_OP_alloca, save = in->op == SG_OP_stacksave;
    uint32_t d = SG_NOWHERE, a = 0;
    int64_t alignment = 8;
    if (!take && !save && in->op != SG_OP_stackrestore)
        return false;
    *ok = (!take && !save) || sg_maker_result(maker, sg_maker_operand(maker, 0), width, false, &d);
    if (*ok && !save)
        *ok = sg_maker_source(maker, sg_maker_operand(maker, take), width, false, &a);
    if (take && in->operand_count > 2)
        alignment = sg_maker_operand(maker, 2)->value;
    if (*ok && (alignment <= 0 || alignment & (alignment - 1)))
        *ok = sg_maker_refuse(maker, "an alignment that is no power of two");
    if (!*ok)
        return true;
    struct sg_step *step = sg_maker_step(maker, take   ? sg_run_alloca
                                                : save ? sg_run_stack_save
                                                       : sg_run_stack_restore);
    step->d = d;
    step->a = a;
    step->value = alignment;
    step->second = (unsigned char)width;
    sg_maker_flush(maker);
    return true;
}
