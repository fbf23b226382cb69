#include "softgpu/check/spans.h"

#include <stdlib.h>

/* What a register may hold: no variable's address, one variable's, or several variables'. */
#define NOTHING (UINT32_MAX - 1)
#define SEVERAL UINT32_MAX

struct search {
    const struct sg_program *program;
    const struct sg_program_function *function;
    uint32_t *held; /* by register of the program */
    bool changed;
};

static bool is_array(const struct sg_program *program, uint32_t variable) {
    const struct sg_program_variable *one = &program->variables[variable];
    return one->place == SG_PLACE_SHARED || one->place == SG_PLACE_DYNAMIC_SHARED ||
           (one->place == SG_PLACE_FRAME && !one->of_call && one->space == SG_IN_LOCAL);
}

static uint32_t joined(uint32_t a, uint32_t b) {
    return a == NOTHING || a == b ? b : b == NOTHING ? a : SEVERAL;
}

/* The variable whose address an operand holds. */
static uint32_t of_operand(const struct search *search, const struct sg_operand *operand) {
    const struct sg_program *program = search->program;
    switch (operand->kind) {
    case SG_OPERAND_REGISTER:
        return search->held[search->function->first_register + operand->reg];
    case SG_OPERAND_ADDRESS:
    case SG_OPERAND_VARIABLE:
        if (operand->kind == SG_OPERAND_ADDRESS && operand->reg != SG_NO_REGISTER)
            return search->held[search->function->first_register + operand->reg];
        if (operand->first == SG_NO_VARIABLE)
            return NOTHING;
        return is_array(program, operand->first) ? operand->first : SEVERAL;
    default:
        return NOTHING;
    }
}

/* Whether an operation passes on an address from its sources, as sums do. Results of others may be
 * anything: several. */
static bool carries(unsigned op) {
    return op == SG_OP_mov || op == SG_OP_add || op == SG_OP_sub || op == SG_OP_mad ||
           op == SG_OP_cvta || op == SG_OP_cvt || op == SG_OP_selp || op == SG_OP_or;
}

/* Operations whose results cannot be addresses; a loaded or otherwise computed one may be. */
static bool makes_no_address(unsigned op) {
    return op == SG_OP_mul || op == SG_OP_shl || op == SG_OP_shr || op == SG_OP_rem ||
           op == SG_OP_and || op == SG_OP_bfe || op == SG_OP_mul24;
}

static void hold(struct search *search, const struct sg_operand *result, uint32_t what) {
    const struct sg_program *program = search->program;
    if (result->kind == SG_OPERAND_VECTOR || result->kind == SG_OPERAND_PAIR) {
        uint32_t count = result->kind == SG_OPERAND_PAIR ? 2 : result->count;
        for (uint32_t i = 0; i < count; i++)
            hold(search, &program->operands[result->first + i], what);
    } else if (result->kind == SG_OPERAND_REGISTER) {
        uint32_t *held = &search->held[search->function->first_register + result->reg];
        uint32_t now = joined(*held, what);
        search->changed = search->changed || now != *held;
        *held = now;
    }
}

static bool has_result(unsigned op) {
    return op != SG_OP_st && op != SG_OP_red && op != SG_OP_bra && op != SG_OP_bar &&
           op != SG_OP_barrier && op != SG_OP_membar && op != SG_OP_fence && op != SG_OP_cp;
}

static void look(struct search *search, const struct sg_instruction *in) {
    const struct sg_operand *operands = &search->program->operands[in->first_operand];
    if (!has_result(in->op) || in->operand_count == 0)
        return;
    if (in->op == SG_OP_call) { /* results follow the target */
        for (unsigned i = 1; i < in->operand_count; i++)
            hold(search, &operands[i], SEVERAL);
        return;
    }
    /* A load gives an address only if the program has stored one, in its own arrays. Parameters and
     * other global memory contain no addresses of shared or local memory. */
    uint32_t what = in->op == SG_OP_ld && (in->space == SG_IN_PARAM || in->space == SG_IN_GLOBAL)
                        ? NOTHING
                    : makes_no_address(in->op) ? NOTHING
                                               : SEVERAL;
    if (carries(in->op)) {
        what = NOTHING;
        for (unsigned i = 1; i < in->operand_count; i++)
            what = joined(what, of_operand(search, &operands[i]));
        if (in->op == SG_OP_mov && in->operand_count > 1 && operands[1].kind == SG_OPERAND_VECTOR)
            what = SEVERAL;
    }
    hold(search, &operands[0], what);
}

static const struct sg_operand *address_of(const struct sg_program *program,
                                           const struct sg_instruction *in) {
    for (unsigned i = 0; i < in->operand_count; i++) {
        const struct sg_operand *operand = &program->operands[in->first_operand + i];
        if (operand->kind == SG_OPERAND_ADDRESS)
            return operand;
    }
    return NULL;
}

/* What a caller hands over in registers may be any address; what it hands over in memory is loaded,
 * and so may be any, too. */
static void hold_parameters(const struct search *search) {
    const struct sg_program_function *function = search->function;
    for (uint32_t i = 0; i < function->parameters; i++) {
        const struct sg_program_parameter *one =
            &search->program->parameters[function->first_parameter + i];
        for (uint32_t k = 0; one->reg != SG_NO_REGISTER && k < one->count; k++)
            search->held[function->first_register + one->reg + k] = SEVERAL;
    }
}

/* Until nothing changes: a register only ever holds more. */
static void search_function(struct search *search) {
    const struct sg_program_function *function = search->function;
    do {
        search->changed = false;
        for (uint32_t i = 0; i < function->instructions; i++)
            look(search, &search->program->instructions[function->first_instruction + i]);
    } while (search->changed);
}

uint32_t *sg_spans_of(const struct sg_program *program) {
    uint32_t *spans = malloc((program->instruction_count + 1) * sizeof *spans);
    uint32_t *held = malloc((program->register_count + 1) * sizeof *held);
    struct search search = {.program = program, .held = held};
    for (size_t i = 0; held && i < program->register_count; i++)
        held[i] = NOTHING;
    for (size_t i = 0; spans && i < program->instruction_count; i++)
        spans[i] = SG_SPAN_UNKNOWN;
    for (size_t f = 0; held && spans && f < program->function_count; f++) {
        search.function = &program->functions[f];
        hold_parameters(&search);
        search_function(&search);
        for (uint32_t i = 0; i < search.function->instructions; i++) {
            uint32_t at = search.function->first_instruction + i;
            const struct sg_operand *address = address_of(program, &program->instructions[at]);
            uint32_t what = address ? of_operand(&search, address) : SEVERAL;
            spans[at] = what != SEVERAL && what != NOTHING ? what : SG_SPAN_UNKNOWN;
        }
    }
    free(held);
    if (!held) {
        free(spans);
        return NULL;
    }
    return spans;
}

uint64_t sg_span_shared(const struct sg_program *program, unsigned dynamic) {
    uint64_t fixed = program->static_shared;
    if (dynamic && program->dynamic_shared_offset > fixed)
        fixed = program->dynamic_shared_offset;
    return fixed + dynamic;
}

uint64_t sg_span_size(const struct sg_program *program, uint32_t variable, uint64_t shared) {
    const struct sg_program_variable *one = &program->variables[variable];
    if (one->place == SG_PLACE_DYNAMIC_SHARED)
        return shared > one->offset ? shared - one->offset : 0;
    return one->size;
}

static bool is_of_frame(const struct sg_program *program, uint32_t variable, uint32_t function) {
    return is_array(program, variable) && program->variables[variable].place == SG_PLACE_FRAME &&
           program->variables[variable].function == function;
}

static bool holds(const struct sg_program *program, uint32_t variable, uint64_t shared,
                  uint64_t offset, uint64_t size) {
    uint64_t start = program->variables[variable].offset;
    uint64_t room = sg_span_size(program, variable, shared);
    return offset >= start && offset - start <= room && size <= room - (offset - start);
}

uint32_t sg_span_at(const struct sg_program *program, uint64_t shared, uint64_t offset,
                    uint64_t size) {
    for (uint32_t i = 0; i < program->variable_count; i++)
        if (is_array(program, i) && program->variables[i].place != SG_PLACE_FRAME &&
            holds(program, i, shared, offset, size))
            return i;
    return SG_SPAN_UNKNOWN;
}

uint32_t sg_span_in_frame(const struct sg_program *program, uint32_t function, uint64_t offset,
                          uint64_t size) {
    for (uint32_t i = 0; i < program->variable_count; i++)
        if (is_of_frame(program, i, function) && holds(program, i, 0, offset, size))
            return i;
    return SG_SPAN_UNKNOWN;
}

bool sg_span_has_frame(const struct sg_program *program, uint32_t function) {
    for (uint32_t i = 0; i < program->variable_count; i++)
        if (is_of_frame(program, i, function))
            return true;
    return false;
}
