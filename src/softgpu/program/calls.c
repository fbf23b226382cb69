/* Checks calls of known functions: arguments and results must have the sizes of the callee's, and
 * constants get their types. */
#include "softgpu/program/build.h"

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
