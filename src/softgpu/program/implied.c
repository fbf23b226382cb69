/*
 * Instructions that a text implies. An operand that is a sum, such as r+1, is computed by one of
 * its own. Arguments and results that a register does not hold whole, vectors and those of 128
 * bits, go through variables in the frame that have no names: the caller and the callee store and
 * load them. Registers of the module, which all functions share, are variables of the thread. vote
 * and shfl without .sync, of targets that run warps in step, are among the lanes that are together.
 */
#include "softgpu/program/build.h"

#include <stdlib.h>
#include <string.h>

/* ---- sums ------------------------------------------------------------------------------------ */

bool sg_build_new_register(struct sg_build *b, unsigned type, uint32_t *number) {
    struct sg_program *program = b->program;
    struct sg_register *grown =
        sg_image_grow(program->registers, &program->register_count, sizeof *grown);
    if (!grown)
        return sg_build_no_memory(b);
    program->registers = grown;
    grown += program->register_count - 1;
    grown->type = (unsigned char)type;
    grown->name = sg_build_text(b, "+", 1);
    *number = program->functions[b->function].registers++;
    return grown->name != NULL;
}

/* Whole numbers alone: what ptxas makes of a sum with a float was not asked. */
static unsigned whole(unsigned type) {
    switch (type) {
    case SG_TYPE_B16:
    case SG_TYPE_U16:
    case SG_TYPE_S16:
        return SG_TYPE_U16;
    case SG_TYPE_B32:
    case SG_TYPE_U32:
    case SG_TYPE_S32:
        return SG_TYPE_U32;
    case SG_TYPE_B64:
    case SG_TYPE_U64:
    case SG_TYPE_S64:
        return SG_TYPE_U64;
    default:
        return SG_TYPE_NONE;
    }
}

static bool is_sum(const struct sg_operand *one) {
    return one->kind == SG_OPERAND_REGISTER && one->value && !one->part && !one->negated &&
           whole(one->type) != SG_TYPE_NONE;
}

/* x+1 of a variable stands for an address, and a function's name for its own. */
static bool is_address(const struct sg_operand *one) {
    return (one->kind == SG_OPERAND_VARIABLE && one->value && !one->count && !one->negated) ||
           one->kind == SG_OPERAND_FUNCTION;
}

static bool compute(struct sg_build *b, const struct sg_instruction *in, struct sg_operand *one) {
    bool sum = one->kind == SG_OPERAND_REGISTER;
    unsigned type = sum ? whole(one->type) : (unsigned)SG_TYPE_B64;
    struct sg_operand made = {.kind = SG_OPERAND_REGISTER, .type = one->type}, from = *one;
    struct sg_operand added = {.kind = SG_OPERAND_IMMEDIATE, .value = one->value};
    if (!sg_build_new_register(b, type, &made.reg))
        return false;
    from.value = sum ? 0 : one->value;
    made.type = from.type = (unsigned char)type;
    added.type = (unsigned char)type;
    added.reg = SG_NO_REGISTER;
    *one = made;
    const struct sg_instruction step = {.op = sum ? SG_OP_add : SG_OP_mov,
                                        .type = (unsigned char)type,
                                        .vector = 1,
                                        .operand_count = sum ? 3 : 2,
                                        .result = true,
                                        .line = in->line,
                                        .location = in->location};
    return sg_build_append(b, &step, (struct sg_operand[]){made, from, added});
}

bool sg_build_sums(struct sg_build *b, const struct sg_instruction *in, struct sg_operand *operands,
                   unsigned count) {
    for (unsigned i = 0; i < count; i++)
        if ((is_sum(&operands[i]) || (is_address(&operands[i]) && !sg_build_takes_names(in->op))) &&
            !compute(b, in, &operands[i]))
            return false;
    return true;
}

/* ---- arguments and results ------------------------------------------------------------------- */

/* A load or store of a whole vector, or of a register of 128 bits. */
static bool move(struct sg_build *b, const struct sg_instruction *in, uint32_t variable,
                 const struct sg_operand *registers, bool load) {
    const bool vector = registers->kind == SG_OPERAND_VECTOR;
    const struct sg_operand *first = vector ? &b->program->operands[registers->first] : registers;
    struct sg_operand value = *registers;
    const struct sg_operand address = {
        .kind = SG_OPERAND_ADDRESS, .reg = SG_NO_REGISTER, .first = variable};
    struct sg_instruction step = {.op = load ? SG_OP_ld : SG_OP_st,
                                  .type = first->type,
                                  .space = SG_IN_PARAM_FRAME,
                                  .vector = vector ? (unsigned char)registers->count : 1,
                                  .operand_count = 2,
                                  .result = load,
                                  .line = in->line,
                                  .location = in->location,
                                  .guard = in->guard,
                                  .guard_negated = in->guard_negated};
    value.type = first->type;
    return sg_build_append(b, &step,
                           (struct sg_operand[]){load ? value : address, load ? address : value});
}

static bool is_wide(const struct sg_operand *one) {
    return (one->kind == SG_OPERAND_VECTOR && one->count > 1) ||
           (one->kind == SG_OPERAND_REGISTER && sg_type_bits(one->type) > 64);
}

static uint64_t size_of(const struct sg_build *b, const struct sg_operand *one) {
    bool vector = one->kind == SG_OPERAND_VECTOR;
    unsigned type = vector ? b->program->operands[one->first].type : one->type;
    return (uint64_t)(vector ? one->count : 1) * sg_type_bits(type) / 8;
}

/* Each wide one of a call's results or arguments is replaced by a variable; `moved` has them. */
static bool replace(struct sg_build *b, struct sg_operand *list, struct sg_operand *moved) {
    for (uint32_t i = 0; i < list->count; i++) {
        struct sg_operand *one = &b->program->operands[list->first + i];
        uint32_t variable;
        moved[i] = *one;
        if (!is_wide(one))
            continue;
        if (!sg_build_hidden(b, size_of(b, one), true, &variable))
            return false;
        b->program->operands[list->first + i] = (struct sg_operand){
            .kind = SG_OPERAND_VARIABLE, .reg = SG_NO_REGISTER, .first = variable};
    }
    return true;
}

static bool move_all(struct sg_build *b, const struct sg_instruction *in,
                     const struct sg_operand *list, const struct sg_operand *moved, bool load) {
    for (uint32_t i = 0; i < list->count; i++) {
        uint32_t variable = b->program->operands[list->first + i].first;
        if (is_wide(&moved[i]) && !move(b, in, variable, &moved[i], load))
            return false;
    }
    return true;
}

bool sg_build_before_call(struct sg_build *b, const struct sg_instruction *in,
                          struct sg_operand *operands, struct sg_operand *results) {
    struct sg_operand arguments[SG_MOST_ELEMENTS];
    return replace(b, &operands[1], results) && replace(b, &operands[2], arguments) &&
           move_all(b, in, &operands[2], arguments, false);
}

bool sg_build_after_call(struct sg_build *b, const struct sg_instruction *in,
                         const struct sg_operand *operands, const struct sg_operand *results) {
    return move_all(b, in, &operands[1], results, true);
}

bool sg_build_keep_wide(struct sg_build *b, const struct sg_ptx_declaration *from,
                        uint32_t variable) {
    struct sg_build_wide *grown = sg_image_grow(b->wide, &b->wide_count, sizeof *grown);
    if (!grown)
        return sg_build_no_memory(b);
    b->wide = grown;
    grown[b->wide_count - 1] =
        (struct sg_build_wide){.variable = variable,
                               .name = {.text = from->variable->name.text,
                                        .length = from->variable->name.length,
                                        .declaration = from->number},
                               .result = from->role == SG_ROLE_RESULT};
    return true;
}

bool sg_build_move_wide(struct sg_build *b, const struct sg_instruction *in, bool results) {
    for (size_t i = 0; i < b->wide_count; i++) {
        const struct sg_ptx_operand from = {.kind = SG_PTX_NAME, .name = b->wide[i].name};
        const char *why = NULL;
        struct sg_operand registers;
        if (b->wide[i].result != results || !from.name.declaration)
            continue;
        if (!sg_build_operand(b, NULL, &from, false, &registers, &why) ||
            !move(b, in, b->wide[i].variable, &registers, !results))
            return false;
    }
    return true;
}

/* ---- registers of the module ----------------------------------------------------------------- */

/* A predicate is a word in memory. */
static unsigned stored_type(unsigned type) {
    return type == SG_TYPE_PRED ? (unsigned)SG_TYPE_U32 : type;
}

static struct sg_operand of_register(uint32_t reg, unsigned type) {
    return (struct sg_operand){
        .kind = SG_OPERAND_REGISTER, .reg = reg, .type = (unsigned char)type};
}

static struct sg_operand constant_of(int64_t value) {
    return (struct sg_operand){
        .kind = SG_OPERAND_IMMEDIATE, .reg = SG_NO_REGISTER, .value = value, .type = SG_TYPE_U32};
}

static uint32_t line_of(const struct sg_build *b) {
    size_t count = b->program->instruction_count;
    return count ? b->program->instructions[count - 1].line : 0;
}

static bool access(struct sg_build *b, uint32_t variable, uint32_t reg, unsigned type, bool load) {
    const struct sg_instruction in = {.op = load ? SG_OP_ld : SG_OP_st,
                                      .type = (unsigned char)type,
                                      .space = SG_IN_LOCAL,
                                      .vector = 1,
                                      .operand_count = 2,
                                      .result = load,
                                      .line = line_of(b),
                                      .location = b->location};
    const struct sg_operand address = {
        .kind = SG_OPERAND_ADDRESS, .reg = SG_NO_REGISTER, .first = variable};
    const struct sg_operand value = of_register(reg, type);
    return sg_build_append(b, &in,
                           (struct sg_operand[]){load ? value : address, load ? address : value});
}

bool sg_build_load_module(struct sg_build *b, const struct sg_ptx_name *name, uint32_t *reg) {
    uint32_t variable, word = 0;
    if (!sg_build_module_register(b, name->symbol - 1, name->index, &variable))
        return false;
    unsigned type = b->program->variables[variable].type;
    struct sg_build_loaded *grown = sg_image_grow(b->loaded, &b->loaded_count, sizeof *grown);
    if (!grown)
        return sg_build_no_memory(b);
    b->loaded = grown;
    if (!sg_build_new_register(b, type, reg))
        return false;
    grown[b->loaded_count - 1] = (struct sg_build_loaded){*reg, variable};
    if (type != SG_TYPE_PRED)
        return access(b, variable, *reg, type, true);
    const struct sg_instruction setp = {.op = SG_OP_setp,
                                        .type = SG_TYPE_U32,
                                        .compare = SG_COMPARE_NE,
                                        .vector = 1,
                                        .operand_count = 3,
                                        .result = true,
                                        .line = line_of(b),
                                        .location = b->location};
    return sg_build_new_register(b, SG_TYPE_U32, &word) &&
           access(b, variable, word, SG_TYPE_U32, true) &&
           sg_build_append(b, &setp,
                           (struct sg_operand[]){of_register(*reg, type),
                                                 of_register(word, SG_TYPE_U32), constant_of(0)});
}

struct writes {
    uint32_t reg;
    bool found;
};

static void note_write(void *user, uint32_t reg, bool written) {
    struct writes *all = user;
    all->found = all->found || (written && reg == all->reg);
}

static bool store(struct sg_build *b, const struct sg_build_loaded *one) {
    unsigned type = b->program->variables[one->variable].type;
    uint32_t word = one->reg;
    const struct sg_instruction selp = {.op = SG_OP_selp,
                                        .type = SG_TYPE_U32,
                                        .vector = 1,
                                        .operand_count = 4,
                                        .result = true,
                                        .line = line_of(b),
                                        .location = b->location};
    if (type == SG_TYPE_PRED &&
        (!sg_build_new_register(b, SG_TYPE_U32, &word) ||
         !sg_build_append(b, &selp,
                          (struct sg_operand[]){of_register(word, SG_TYPE_U32), constant_of(1),
                                                constant_of(0), of_register(one->reg, type)})))
        return false;
    return access(b, one->variable, word, stored_type(type), false);
}

/* A lane whose guard is false stores what it has loaded: the register is the thread's own. */
bool sg_build_store_module(struct sg_build *b) {
    const struct sg_instruction done =
        b->loaded_count ? b->program->instructions[b->program->instruction_count - 1]
                        : (struct sg_instruction){0};
    for (size_t i = 0; i < b->loaded_count; i++) {
        struct writes writes = {.reg = b->loaded[i].reg};
        sg_instruction_registers(b->program, &done, note_write, &writes);
        if (writes.found && !store(b, &b->loaded[i]))
            return false;
    }
    b->loaded_count = 0;
    return true;
}

/* ---- lanes that are together ----------------------------------------------------------------- */

bool sg_build_together(struct sg_build *b, struct sg_instruction *in, struct sg_operand *operands) {
    uint32_t mask = 0;
    if ((in->op != SG_OP_vote && in->op != SG_OP_shfl) || in->modifiers & SG_MOD(SYNC))
        return true;
    const struct sg_instruction active = {.op = SG_OP_activemask,
                                          .type = SG_TYPE_B32,
                                          .vector = 1,
                                          .operand_count = 1,
                                          .result = true,
                                          .line = in->line,
                                          .location = in->location,
                                          .guard = in->guard,
                                          .guard_negated = in->guard_negated};
    if (!sg_build_new_register(b, SG_TYPE_B32, &mask))
        return false;
    const struct sg_operand members = of_register(mask, SG_TYPE_B32);
    operands[in->operand_count++] = members;
    operands[in->operand_count - 1].type = SG_TYPE_U32;
    in->modifiers |= SG_MOD(SYNC);
    return sg_build_append(b, &active, &members);
}
