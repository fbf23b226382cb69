/* Control flow, and instructions at which lanes wait. */
#include "softgpu/engine/code.h"
#include "softgpu/engine/device_call.h"

bool sg_is_control(unsigned op) {
    switch (op) {
    case SG_OP_bra:
    case SG_OP_brx:
    case SG_OP_call:
    case SG_OP_ret:
    case SG_OP_exit:
    case SG_OP_bar:
    case SG_OP_barrier:
    case SG_OP_shfl:
    case SG_OP_vote:
    case SG_OP_match:
    case SG_OP_redux:
    case SG_OP_elect:
    case SG_OP_nanosleep:
    case SG_OP_trap:
    case SG_OP_brkpt:
    case SG_OP_griddepcontrol:
        return true;
    default:
        return false;
    }
}

/* The step, with its guard. Its operands must be ready: making more steps moves it. */
static struct sg_step *guarded(struct sg_maker *maker, sg_run *run) {
    const struct sg_instruction *in = maker->in;
    struct sg_step *step = sg_maker_step(maker, run);
    step->d = SG_NOWHERE;
    if (in->guard) {
        uint32_t number = maker->function->first_register + in->guard - 1;
        step->e = maker->code->register_place[number];
        step->flags = (uint16_t)(SG_STEP_GUARD | (in->guard_negated ? SG_STEP_NOT : 0));
    }
    return step;
}

/* Targets are instructions until all steps are made; code.c then replaces them by steps. */
static bool branch(struct sg_maker *maker) {
    const struct sg_operand *label = sg_maker_operand(maker, 0);
    if (label->kind != SG_OPERAND_LABEL)
        return sg_maker_refuse(maker, "a branch to what is no label");
    guarded(maker, sg_run_branch)->target = label->first;
    return true;
}

static bool indexed(struct sg_maker *maker) {
    const struct sg_operand *index = sg_maker_operand(maker, 0);
    const struct sg_operand *list = sg_maker_operand(maker, 1);
    if (list->kind != SG_OPERAND_TARGETS)
        return sg_maker_refuse(maker, "a branch without its targets");
    const struct sg_program_targets *targets = &maker->program->targets[list->first];
    uint32_t place;
    if (!sg_maker_source(maker, index, SG_W_32, false, &place))
        return false;
    uint32_t at =
        sg_maker_list(maker, maker->program->target_list + targets->first, targets->count);
    struct sg_step *step = guarded(maker, sg_run_indexed);
    step->a = place;
    step->list = at;
    step->target = targets->count;
    return true;
}

/* ---- calls ----------------------------------------------------------------------------------- */

#define MOST_PARAMETERS 64

/* Size of a parameter or result, as the caller sees it; 0 for a predicate. */
static uint32_t bytes_of(const struct sg_maker *maker, const struct sg_operand *operand) {
    unsigned type = operand->type;
    if (operand->kind == SG_OPERAND_VARIABLE)
        return (uint32_t)maker->program->variables[operand->first].size;
    if (operand->kind == SG_OPERAND_REGISTER)
        type = maker->program->registers[maker->function->first_register + operand->reg].type;
    return type == SG_TYPE_PRED ? 0 : sg_type_bits(type) / 8;
}

/* The caller's place of a parameter or result: in its frame, or a register. */
static bool handed(struct sg_maker *maker, const struct sg_operand *operand, bool result,
                   uint32_t *place) {
    if (operand->kind == SG_OPERAND_VARIABLE) {
        const struct sg_program_variable *what = &maker->program->variables[operand->first];
        if (what->place != SG_PLACE_FRAME)
            return sg_maker_refuse(maker, "an argument that is not in the frame");
        *place = SG_PLACE_OF_FRAME((uint32_t)what->offset);
        return true;
    }
    *place = SG_NOWHERE;
    if (result && operand->kind == SG_OPERAND_NONE)
        return true;
    if (operand->kind == SG_OPERAND_REGISTER) {
        uint32_t number = maker->function->first_register + operand->reg;
        *place = maker->code->register_place[number];
        maker->unalias |= result && *place >> 30 != SG_BASE_REGISTERS;
        return !operand->negated || sg_maker_refuse(maker, "a negated argument");
    }
    if (result || operand->kind != SG_OPERAND_IMMEDIATE)
        return sg_maker_refuse(maker, "an argument of a kind that does not run yet");
    unsigned width = sg_width_of_type(operand->type);
    return sg_maker_source(maker, operand, width ? width : SG_W_64, false, place);
}

static bool handed_all(struct sg_maker *maker, const struct sg_operand *vector, bool results,
                       uint32_t *places, uint32_t *count) {
    const struct sg_operand *each = &maker->program->operands[vector->first];
    if (*count + vector->count > MOST_PARAMETERS)
        return sg_maker_refuse(maker, "more parameters than a call may have here");
    for (uint32_t i = 0; i < vector->count; i++)
        if (!handed(maker, &each[i], results, &places[(*count)++]))
            return false;
    return true;
}

/* Two words of the list: the place of a value passed to the device runtime, and its width. */
static bool handed_to_runtime(struct sg_maker *maker, const struct sg_operand *operand, bool result,
                              uint32_t *pair) {
    if (!handed(maker, operand, result, &pair[0]))
        return false;
    if (operand->kind == SG_OPERAND_VARIABLE) {
        uint64_t size = maker->program->variables[operand->first].size;
        pair[1] = SG_ARGUMENT_FRAME | (size < 8 ? (uint32_t)size : 8u);
    } else {
        pair[1] = sg_width_of_type(operand->type);
    }
    return true;
}

static bool runtime(struct sg_maker *maker, const struct sg_program_function *function) {
    uint32_t pairs[2 * (1 + SG_DEVICE_ARGUMENTS)] = {SG_NOWHERE, SG_W_NONE}, count = 1;
    if (function->runtime == SG_RUNTIME_OTHER)
        return sg_maker_refuse(maker, "a function of the device runtime that does not run");
    for (unsigned i = 1; i < 3 && i < maker->in->operand_count; i++) {
        const struct sg_operand *vector = sg_maker_operand(maker, i);
        const struct sg_operand *each = &maker->program->operands[vector->first];
        for (uint32_t k = 0; vector->kind == SG_OPERAND_VECTOR && k < vector->count; k++) {
            uint32_t at = i == 1 ? 0 : count++;
            if (at > SG_DEVICE_ARGUMENTS)
                return sg_maker_refuse(maker, "more arguments than the device runtime takes");
            if (!handed_to_runtime(maker, &each[k], i == 1, &pairs[2 * (size_t)at]))
                return false;
        }
    }
    uint32_t list = sg_maker_list(maker, pairs, 2 * count);
    struct sg_step *step = guarded(maker, sg_run_device_call);
    step->list = list;
    step->count = (uint16_t)(count - 1);
    step->choice = function->runtime;
    return true;
}

static bool call(struct sg_maker *maker) {
    const struct sg_operand *target = sg_maker_operand(maker, 0);
    /* An indirect call's list continues with the sizes, which its target must match. */
    uint32_t places[2 * MOST_PARAMETERS], count = 0, results = 0, address = 0, sizes = 0;
    bool direct = target->kind == SG_OPERAND_FUNCTION;
    if (direct && maker->program->functions[target->first].runtime != SG_RUNTIME_NONE)
        return runtime(maker, &maker->program->functions[target->first]);
    if (direct && maker->program->functions[target->first].instructions == 0)
        return sg_maker_refuse(maker, "a function without a body");
    for (unsigned i = 1; i < 3 && i < maker->in->operand_count; i++) {
        const struct sg_operand *operand = sg_maker_operand(maker, i);
        if (operand->kind == SG_OPERAND_VECTOR &&
            !handed_all(maker, operand, i == 1, places, &count))
            return false;
        results = i == 1 ? count : results;
    }
    if (!direct && !sg_maker_source(maker, target, SG_W_64, false, &address))
        return false;
    for (unsigned i = 1; i < 3 && i < maker->in->operand_count && !direct; i++) {
        const struct sg_operand *operand = sg_maker_operand(maker, i);
        const struct sg_operand *each = &maker->program->operands[operand->first];
        for (uint32_t k = 0; operand->kind == SG_OPERAND_VECTOR && k < operand->count; k++)
            places[count + sizes++] = bytes_of(maker, &each[k]);
    }
    uint32_t list = sg_maker_list(maker, places, count + sizes);
    struct sg_step *step = guarded(maker, direct ? sg_run_call : sg_run_indirect);
    step->a = address;
    step->value = direct ? target->first : 0;
    step->list = list;
    step->count = (uint16_t)results;
    step->choice = (unsigned char)(count - results);
    return true;
}

/* ---- barriers and warp functions ------------------------------------------------------------- */

static bool collective(struct sg_maker *maker, const struct sg_operand *result,
                       const struct sg_operand *members, unsigned sources) {
    const struct sg_instruction *in = maker->in;
    unsigned type = in->type ? in->type : SG_TYPE_B32;
    bool predicate = in->op == SG_OP_vote && in->operation != SG_DO_BALLOT;
    unsigned width = in->op == SG_OP_vote ? SG_W_PRED : sg_width_of_type(type);
    uint32_t d = SG_NOWHERE, second = SG_NOWHERE, member, places[3] = {0};
    if (result && result->kind == SG_OPERAND_PAIR) {
        const struct sg_operand *pair = &maker->program->operands[result->first];
        if (!sg_maker_result(maker, &pair[0], SG_W_32, false, &d) ||
            !sg_maker_result(maker, &pair[1], SG_W_PRED, false, &second))
            return false;
    } else if (result &&
               !sg_maker_result(maker, result, predicate ? SG_W_PRED : SG_W_32, false, &d)) {
        return false;
    }
    if (maker->sink_count)
        return sg_maker_refuse(maker, "a result in a register of another width");
    for (unsigned i = 0; i < sources; i++)
        if (!sg_maker_source(maker, sg_maker_operand(maker, i + 1), i == 0 ? width : SG_W_32, false,
                             &places[i]))
            return false;
    if (!sg_maker_source(maker, members, SG_W_32, false, &member))
        return false;
    uint32_t list = sg_maker_list(maker, (uint32_t[]){member, second}, 2);
    struct sg_step *step = guarded(maker, sg_run_collective);
    step->d = d;
    step->a = places[0];
    step->b = places[1];
    step->c = places[2];
    step->list = list;
    step->type = (unsigned char)(in->op == SG_OP_vote ? SG_TYPE_PRED : type);
    step->second = predicate;
    return true;
}

static bool warp_function(struct sg_maker *maker) {
    const struct sg_instruction *in = maker->in;
    unsigned sources = in->op == SG_OP_shfl ? 3 : in->op == SG_OP_elect ? 0 : 1;
    if (in->operand_count != sources + 2)
        return sg_maker_refuse(maker, "a warp function with other operands than it has");
    if (in->op == SG_OP_redux && in->type >= SG_TYPE_F16)
        return sg_maker_refuse(maker, "redux of floats");
    return collective(maker, sg_maker_operand(maker, 0), sg_maker_operand(maker, sources + 1),
                      sources);
}

static bool barrier(struct sg_maker *maker) {
    const struct sg_instruction *in = maker->in;
    if (in->operation == SG_DO_WARP_SYNC)
        return collective(maker, NULL, sg_maker_operand(maker, 0), 0);
    bool red = in->operation == SG_DO_RED;
    if (in->operation == SG_DO_CLUSTER_ARRIVE || in->operation == SG_DO_CLUSTER_WAIT) {
        bool arrives = in->operation == SG_DO_CLUSTER_ARRIVE;
        guarded(maker, arrives ? sg_run_cluster_arrive : sg_run_cluster_wait);
        return true;
    }
    if (!red && in->operation != SG_DO_SYNC && in->operation != SG_DO_ARRIVE)
        return sg_maker_refuse(maker, "a barrier of a kind that does not run yet");
    unsigned at = red ? 1 : 0, left = in->operand_count - at;
    uint32_t number, count = SG_NOWHERE, predicate = 0, d = SG_NOWHERE;
    if (red && !sg_maker_result(maker, sg_maker_operand(maker, 0),
                                in->operation2 == SG_DO_POPC ? SG_W_32 : SG_W_PRED, false, &d))
        return false;
    if (maker->sink_count)
        return sg_maker_refuse(maker, "a result in a register of another width");
    if (!sg_maker_source(maker, sg_maker_operand(maker, at), SG_W_32, false, &number) ||
        (left > (red ? 2 : 1) &&
         !sg_maker_source(maker, sg_maker_operand(maker, at + 1), SG_W_32, false, &count)) ||
        (red && !sg_maker_source(maker, sg_maker_operand(maker, in->operand_count - 1u), SG_W_PRED,
                                 false, &predicate)))
        return false;
    struct sg_step *step = guarded(maker, sg_run_barrier);
    step->a = number;
    step->b = count;
    step->c = predicate;
    step->d = d;
    step->choice = (unsigned char)in->operation;
    step->second = (unsigned char)in->operation2;
    return true;
}

static bool nanosleep_(struct sg_maker *maker) {
    uint32_t place;
    if (!sg_maker_source(maker, sg_maker_operand(maker, 0), SG_W_32, false, &place))
        return false;
    guarded(maker, sg_run_nanosleep)->a = place;
    return true;
}

bool sg_maker_control(struct sg_maker *maker, bool *ok) {
    *ok = true;
    switch (maker->in->op) {
    case SG_OP_bra:
        *ok = branch(maker);
        return true;
    case SG_OP_brx:
        *ok = indexed(maker);
        return true;
    case SG_OP_call:
        *ok = call(maker);
        return true;
    case SG_OP_ret:
        guarded(maker, sg_run_return);
        return true;
    case SG_OP_exit:
        guarded(maker, sg_run_exit);
        return true;
    case SG_OP_nanosleep:
        *ok = nanosleep_(maker);
        return true;
    case SG_OP_trap:
        guarded(maker, sg_run_trap);
        return true;
    case SG_OP_brkpt:
        guarded(maker, sg_run_brkpt);
        return true;
    case SG_OP_bar:
    case SG_OP_barrier:
        *ok = barrier(maker);
        return true;
    case SG_OP_griddepcontrol:
        guarded(maker, maker->in->operation == SG_DO_WAIT ? sg_run_dependency_wait
                                                          : sg_run_launch_dependents);
        return true;
    case SG_OP_shfl:
    case SG_OP_vote:
    case SG_OP_match:
    case SG_OP_redux:
    case SG_OP_elect:
        *ok = warp_function(maker);
        return true;
    default:
        return false;
    }
}
