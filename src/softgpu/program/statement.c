/* Decodes one instruction: guard, operands, modifiers; and calls, which no table describes. */
#include "softgpu/program/build.h"

#include <string.h>

/* ---- calls ----------------------------------------------------------------------------------- */

static bool is_bare(const struct sg_operand *one) {
    return one->kind == SG_OPERAND_REGISTER && !one->negated && !one->part && !one->value;
}

/* A register, or a vector register. */
static bool in_registers(const struct sg_program *program, const struct sg_operand *one) {
    if (one->kind != SG_OPERAND_VECTOR)
        return is_bare(one);
    for (uint32_t i = 0; i < one->count; i++) {
        if (!is_bare(&program->operands[one->first + i]))
            return false;
    }
    return true;
}

/* A constant gets the type of the parameter, which only a call by name tells (calls.c). */
static const char *list_of(const struct sg_program *program, const struct sg_operand *list,
                           bool results, bool constants) {
    for (uint32_t i = 0; i < list->count; i++) {
        const struct sg_operand *one = &program->operands[list->first + i];
        bool frame = one->kind == SG_OPERAND_VARIABLE && one->value == 0 &&
                     program->variables[one->first].place == SG_PLACE_FRAME;
        bool constant = constants && one->kind == SG_OPERAND_IMMEDIATE && !one->negated;
        if (!frame && !constant && !in_registers(program, one) &&
            !(results && one->kind == SG_OPERAND_NONE))
            return results ? "a result that is no .param and no register"
                           : "an argument that is no .param and no register";
    }
    return NULL;
}

static const char *direct(struct sg_build *b, const struct sg_operand *target) {
    const struct sg_program_function *function = &b->program->functions[target->first];
    if (function->runtime == SG_RUNTIME_OTHER) {
        const char *why =
            sg_build_format(b, "'%.80s' of the device runtime, which does not run", function->name);
        return why ? why : "a function of the device runtime that does not run";
    }
    if (!function->defined && function->runtime == SG_RUNTIME_NONE)
        return "a function that has no body in this text";
    return function->entry ? "an entry" : NULL;
}

/* [(results),] target [, (arguments)] [, prototype or list] */
static const char *call(struct sg_build *b, const struct sg_ptx_statement *statement,
                        struct sg_instruction *to, const struct sg_operand *from,
                        struct sg_operand *operands) {
    const struct sg_operand none = {.kind = SG_OPERAND_VECTOR, .reg = SG_NO_REGISTER};
    unsigned at = 0, count = statement->operand_count;
    operands[1] = operands[2] = none;
    if (count > 1 && from[0].kind == SG_OPERAND_VECTOR)
        operands[1] = from[at++];
    operands[0] = from[at++];
    if (at < count && from[at].kind == SG_OPERAND_VECTOR)
        operands[2] = from[at++];
    to->operand_count = 3;
    to->result = true;
    bool indirect = operands[0].kind == SG_OPERAND_REGISTER;
    if (indirect && at < count && from[at].kind == SG_OPERAND_LABEL)
        operands[to->operand_count++] = from[at++];
    if (at != count)
        return "no form of it has these operands";
    for (size_t i = 0; i < statement->modifier_count; i++) {
        if (i >= SG_PTX_MODIFIERS || !sg_word_is(&statement->modifiers[i], ".uni"))
            return "no form of it has these modifiers";
        to->modifiers |= SG_MOD(UNI);
    }
    if (indirect)
        b->program->functions[b->function].indirect_calls = true;
    else if (operands[0].kind != SG_OPERAND_FUNCTION)
        return "a target that is no function and no register";
    const char *why = indirect ? NULL : direct(b, &operands[0]);
    why = why ? why : list_of(b->program, &operands[1], true, false);
    return why ? why : list_of(b->program, &operands[2], false, !indirect);
}

/* ---- operands -------------------------------------------------------------------------------- */

/* Whether an operand is a label, should there be one of its name. */
static bool is_label(const struct sg_ptx_statement *statement, unsigned at) {
    switch (statement->number) {
    case SG_OP_bra:
        return at == 0;
    case SG_OP_brx:
        return at == 1;
    case SG_OP_call:
        return at > 1 && at + 1 == statement->operand_count;
    default:
        return false;
    }
}

/* A function that is named other than by a direct call can be called through a register. */
static void note_addresses(struct sg_build *b, const struct sg_ptx_statement *statement,
                           const struct sg_operand *operands, unsigned count) {
    bool is_call = statement->number == SG_OP_call;
    for (unsigned i = 0; i < count && !is_call; i++) {
        if (operands[i].kind == SG_OPERAND_FUNCTION)
            b->program->functions[operands[i].first].address_taken = true;
    }
}

static bool operands_of(struct sg_build *b, const struct sg_ptx_statement *statement,
                        struct sg_operand *operands, const char **why) {
    unsigned count = 0;
    for (size_t at = statement->first; at && count < SG_MOST_OPERANDS; count++) {
        const struct sg_ptx_operand *from = &statement->operands[at - 1];
        if (!sg_build_operand(b, statement, from, is_label(statement, count), &operands[count],
                              why))
            return false;
        at = from->next;
    }
    if (statement->operand_count > SG_MOST_OPERANDS)
        *why = "so many operands";
    note_addresses(b, statement, operands, count);
    return true;
}

static bool guard(struct sg_build *b, const struct sg_ptx_statement *statement,
                  struct sg_instruction *to, const char **why) {
    uint32_t number = 0;
    if (!statement->guarded)
        return true;
    const struct sg_ptx_name *name = &statement->guard;
    const struct sg_build_declaration *declared =
        name->declaration ? &b->declarations[name->declaration - 1] : NULL;
    const struct sg_ptx_symbol *symbol =
        name->symbol ? &b->outline->symbols[name->symbol - 1] : NULL;
    if (symbol && symbol->what == SG_SYMBOL_VARIABLE && symbol->space == SG_SPACE_REG &&
        symbol->type.predicate) {
        to->guard_negated = statement->guard_negated;
        if (!sg_build_load_module(b, name, &number))
            return false;
        to->guard = number + 1;
        return true;
    }
    if (!declared || declared->space != SG_SPACE_REG || declared->type != SG_TYPE_PRED) {
        *why = "a guard that is no predicate of the function";
        return true;
    }
    if (!sg_build_register(b, name, 0, &number))
        return false;
    to->guard = number + 1;
    to->guard_negated = statement->guard_negated;
    return true;
}

/* ---- the instruction ------------------------------------------------------------------------- */

/* "add.rn.f16: why" */
static bool refuse(struct sg_build *b, const struct sg_ptx_statement *statement,
                   struct sg_instruction *to, const char *why) {
    char name[200];
    size_t used = strlen(statement->opcode);
    memcpy(name, statement->opcode, used);
    for (size_t i = 0; i < statement->modifier_count && i < SG_PTX_MODIFIERS; i++) {
        const struct sg_word *word = &statement->modifiers[i];
        if (used + word->length >= sizeof name)
            break;
        memcpy(name + used, word->text, word->length);
        used += word->length;
    }
    to->unsupported = sg_build_format(b, "%.*s: %s", (int)used, name, why);
    to->operand_count = 0;
    return to->unsupported != NULL;
}

bool sg_build_append(struct sg_build *b, const struct sg_instruction *in,
                     const struct sg_operand *operands) {
    struct sg_program *program = b->program;
    struct sg_instruction one = *in;
    if (!sg_build_add_operands(b, operands, one.operand_count, &one.first_operand))
        return false;
    struct sg_instruction *grown =
        sg_image_grow(program->instructions, &program->instruction_count, sizeof *grown);
    if (!grown)
        return sg_build_no_memory(b);
    program->instructions = grown;
    grown[program->instruction_count - 1] = one;
    return true;
}

/* ptxas encodes the count of a shift of 16 bits in 16 bits, where it is a constant; that of a
 * register counts whole. */
static void shorten_count(const struct sg_instruction *one, struct sg_operand *operands) {
    if ((one->op == SG_OP_shl || one->op == SG_OP_shr) && sg_type_bits(one->type) == 16 &&
        operands[2].kind == SG_OPERAND_IMMEDIATE)
        operands[2].value &= 0xffff;
}

static bool call_instruction(struct sg_build *b, const struct sg_ptx_statement *statement,
                             struct sg_instruction *one, const struct sg_operand *from,
                             const char *why) {
    struct sg_operand operands[SG_MOST_OPERANDS] = {{0}}, results[SG_MOST_ELEMENTS];
    why = why ? why : call(b, statement, one, from, operands);
    if (why)
        return refuse(b, statement, one, why) && sg_build_append(b, one, operands);
    return sg_build_before_call(b, one, operands, results) && sg_build_append(b, one, operands) &&
           sg_build_store_module(b) && sg_build_after_call(b, one, operands, results);
}

bool sg_build_instruction(struct sg_build *b, const struct sg_ptx_statement *statement) {
    struct sg_operand from[SG_MOST_OPERANDS] = {{0}}, operands[SG_MOST_OPERANDS] = {{0}};
    struct sg_instruction one = {.op = (uint16_t)statement->number,
                                 .vector = 1,
                                 .line = (uint32_t)statement->line,
                                 .location = b->location,
                                 .first_operand = (uint32_t)b->program->operand_count};
    const char *why = NULL;
    b->loaded_count = 0;
    if (!guard(b, statement, &one, &why) || !operands_of(b, statement, from, &why))
        return false;
    if (one.op == SG_OP_call)
        return call_instruction(b, statement, &one, from, why);
    if (one.op == SG_OP_ret && !sg_build_move_wide(b, &one, true))
        return false;
    if (!why) {
        memcpy(operands, from, sizeof operands);
        if (!sg_build_sums(b, &one, operands, statement->operand_count))
            return false;
        why = sg_build_match(b, statement, &one, operands);
        shorten_count(&one, operands);
    }
    if (why ? !refuse(b, statement, &one, why) : !sg_build_together(b, &one, operands))
        return false;
    return sg_build_append(b, &one, operands) && sg_build_store_module(b);
}
