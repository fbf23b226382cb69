/* Checks calls of known functions: arguments and results must have the sizes of the callee's, and
 * constants get their types. Measures how deep calls go. */
#include "softgpu/program/build.h"

#include <stdlib.h>

static uint64_t size_of_operand(const struct sg_program *program, const struct sg_operand *one) {
    switch (one->kind) {
    case SG_OPERAND_VARIABLE:
        return program->variables[one->first].size;
    case SG_OPERAND_REGISTER:
    case SG_OPERAND_IMMEDIATE:
        return sg_type_bits(one->type) / 8;
    default:
        return 0;
    }
}

static uint64_t size_of_parameter(const struct sg_program *program,
                                  const struct sg_program_function *function,
                                  const struct sg_program_parameter *one) {
    if (one->variable != SG_NO_VARIABLE)
        return program->variables[one->variable].size;
    if (one->reg == SG_NO_REGISTER)
        return 0;
    const struct sg_register *reg = &program->registers[function->first_register + one->reg];
    return (uint64_t)one->count * (sg_type_bits(reg->type) / 8);
}

/* Predicates and `_` have no size, and are not compared. */
static bool agree(const struct sg_program *program, const struct sg_program_function *function,
                  const struct sg_operand *list, uint32_t first, uint32_t count) {
    if (list->count != count)
        return function->variadic && list->count > count;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t is = size_of_operand(program, &program->operands[list->first + i]);
        uint64_t wanted = size_of_parameter(program, function, &program->parameters[first + i]);
        if (is && wanted && is != wanted)
            return false;
    }
    return true;
}

static unsigned type_of_parameter(const struct sg_program *program,
                                  const struct sg_program_function *function,
                                  const struct sg_program_parameter *one) {
    if (one->reg != SG_NO_REGISTER)
        return program->registers[function->first_register + one->reg].type;
    const struct sg_program_variable *variable = &program->variables[one->variable];
    return variable->size == sg_type_bits(variable->type) / 8 ? variable->type
                                                              : (unsigned char)SG_TYPE_NONE;
}

/* Bytes of the result and of the parameters of the device runtime's functions; 0 ends them. */
static const struct {
    unsigned char result, parameters[6];
} runtime[] = {
    [SG_RUNTIME_VPRINTF] = {4, {8, 8}},
    [SG_RUNTIME_MALLOC] = {8, {8}},
    [SG_RUNTIME_ALIGNED_MALLOC] = {8, {8, 8}},
    [SG_RUNTIME_FREE] = {0, {8}},
    [SG_RUNTIME_ASSERTFAIL] = {0, {8, 8, 4, 8, 8}},
    [SG_RUNTIME_MEMCPY] = {8, {8, 8, 8}},
    [SG_RUNTIME_MEMSET] = {8, {8, 4, 8}},
    [SG_RUNTIME_GRAPH_SET_CONDITIONAL] = {0, {8, 4}},
};

/* A result may be ignored. */
static bool agrees_with_runtime(const struct sg_program *program, unsigned which,
                                const struct sg_operand *results,
                                const struct sg_operand *arguments) {
    uint32_t count = 0;
    for (; runtime[which].parameters[count]; count++) {
        if (count == arguments->count ||
            size_of_operand(program, &program->operands[arguments->first + count]) !=
                runtime[which].parameters[count])
            return false;
    }
    uint64_t size =
        results->count == 1 ? size_of_operand(program, &program->operands[results->first]) : 0;
    return count == arguments->count && results->count <= 1 &&
           (!size || size == runtime[which].result);
}

static bool call_agrees(const struct sg_program *program,
                        const struct sg_program_function *function,
                        const struct sg_operand *operands) {
    if (function->runtime)
        return agrees_with_runtime(program, function->runtime, &operands[1], &operands[2]);
    return agree(program, function, &operands[1], function->first_result, function->results) &&
           agree(program, function, &operands[2], function->first_parameter, function->parameters);
}

/* False: a constant that its parameter cannot be. */
static bool settle_constants(struct sg_program *program, const struct sg_program_function *function,
                             const struct sg_operand *list) {
    for (uint32_t i = 0; i < list->count; i++) {
        struct sg_operand *one = &program->operands[list->first + i];
        unsigned type = SG_TYPE_NONE;
        if (one->kind != SG_OPERAND_IMMEDIATE)
            continue;
        if (function->runtime && i < 6)
            type = runtime[function->runtime].parameters[i] == 4 ? SG_TYPE_B32 : SG_TYPE_B64;
        else if (!function->runtime && i < function->parameters)
            type = type_of_parameter(program, function,
                                     &program->parameters[function->first_parameter + i]);
        if (type == SG_TYPE_NONE || sg_build_immediate(one, type))
            return false;
    }
    return true;
}

bool sg_build_check_calls(struct sg_build *b) {
    struct sg_program *program = b->program;
    for (size_t i = 0; i < program->instruction_count; i++) {
        struct sg_instruction *one = &program->instructions[i];
        if (one->op != SG_OP_call || one->unsupported)
            continue;
        const struct sg_operand *operands = &program->operands[one->first_operand];
        if (operands->kind != SG_OPERAND_FUNCTION)
            continue;
        const struct sg_program_function *function = &program->functions[operands->first];
        if (settle_constants(program, function, &operands[2]) &&
            call_agrees(program, function, operands))
            continue;
        one->operand_count = 0;
        one->unsupported = sg_build_format(
            b, "call: '%.80s' has parameters or results of other sizes", function->name);
        if (!one->unsupported)
            return false;
    }
    return true;
}

/* ---- depth ----------------------------------------------------------------------------------- */

/* What is known of a function. */
enum { NEW, BEING_LOOKED_AT, CALLS_ITSELF, DONE };

struct depth {
    struct sg_program *program;
    uint64_t *bytes; /* by function: of the calls that it makes; when done, with its own frame */
    uint32_t *next;  /* by function: the instruction to look at next */
    uint32_t *stack; /* functions that are being looked at */
    uint32_t height;
    unsigned char *state;
    uint64_t deepest;
};

/* A frame begins at a multiple of 16, or of its alignment, and none is empty. */
static uint64_t bytes_of(const struct sg_program_function *function) {
    uint64_t more = function->frame_alignment > 16 ? function->frame_alignment : 0;
    return ((function->frame + !function->frame + 15) & ~UINT64_C(15)) + more;
}

static void push(struct depth *d, uint32_t function) {
    d->state[function] = BEING_LOOKED_AT;
    d->stack[d->height++] = function;
}

static void add_call(struct depth *d, uint32_t caller, uint32_t callee) {
    if (d->bytes[callee] > d->bytes[caller])
        d->bytes[caller] = d->bytes[callee];
}

/* Recursion takes nothing of what is known, and so do the calls that it makes. */
static void finish(struct depth *d, uint32_t function) {
    if (d->state[function] == CALLS_ITSELF)
        d->bytes[function] = 0;
    else if (function)
        d->bytes[function] += bytes_of(&d->program->functions[function]);
    d->state[function] = DONE;
    d->height--;
    if (function && d->bytes[function] > d->deepest)
        d->deepest = d->bytes[function];
    if (d->height)
        add_call(d, d->stack[d->height - 1], function);
}

static void note_cycle(struct depth *d, uint32_t callee) {
    uint32_t at = d->height;
    do
        d->state[d->stack[--at]] = CALLS_ITSELF;
    while (d->stack[at] != callee);
    d->program->open_stack = true;
}

/* The next function that the one on top calls directly; UINT32_MAX: there are no more. */
static uint32_t next_callee(struct depth *d, uint32_t function) {
    const struct sg_program_function *one = &d->program->functions[function];
    while (d->next[function] < one->instructions) {
        const struct sg_instruction *in =
            &d->program->instructions[one->first_instruction + d->next[function]++];
        const struct sg_operand *to = &d->program->operands[in->first_operand];
        if (in->op == SG_OP_call && in->operand_count && to->kind == SG_OPERAND_FUNCTION)
            return to->first;
    }
    return UINT32_MAX;
}

static void look_below(struct depth *d, uint32_t function) {
    push(d, function);
    while (d->height) {
        uint32_t top = d->stack[d->height - 1], callee = next_callee(d, top);
        if (callee == UINT32_MAX)
            finish(d, top);
        else if (d->state[callee] == NEW)
            push(d, callee);
        else if (d->state[callee] == DONE)
            add_call(d, top, callee);
        else
            note_cycle(d, callee);
    }
}

bool sg_build_measure_calls(struct sg_build *b) {
    struct sg_program *program = b->program;
    size_t count = program->function_count;
    struct depth d = {.program = program,
                      .bytes = calloc(count, sizeof *d.bytes),
                      .next = calloc(count, sizeof *d.next),
                      .stack = calloc(count, sizeof *d.stack),
                      .state = calloc(count, 1)};
    bool room = d.bytes && d.next && d.stack && d.state, indirect = false;
    for (uint32_t i = 0; room && i < count; i++) {
        indirect = indirect || program->functions[i].indirect_calls;
        if (d.state[i] == NEW)
            look_below(&d, i);
    }
    if (room)
        program->call_stack = d.bytes[0] + (indirect ? d.deepest : 0);
    program->open_stack = program->open_stack || indirect;
    free(d.bytes);
    free(d.next);
    free(d.stack);
    free(d.state);
    return room || sg_build_no_memory(b);
}
