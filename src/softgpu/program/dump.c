/* A program as text: for tests, and for reports that show what was decoded. */
#include "softgpu/program/liveness.h"
#include "softgpu/program/uniformity.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct out {
    char *text;
    size_t used, room;
    bool failed;
    const struct sg_program *program;
    const struct sg_program_function *function;
    struct sg_liveness live; /* the function's */
    struct sg_uniformity uniformity;
};

static void put(struct out *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(struct out *out, const char *format, ...) {
    while (!out->failed) {
        va_list list;
        va_start(list, format);
        size_t left = out->room - out->used;
        int length = vsnprintf(out->text ? out->text + out->used : NULL, left, format, list);
        va_end(list);
        if (length < 0 || (size_t)length < left) {
            out->used += length < 0 ? 0 : (size_t)length;
            return;
        }
        size_t room = 2 * (out->used + (size_t)length) + 256;
        char *grown = realloc(out->text, room);
        out->failed = !grown;
        out->text = grown ? grown : out->text;
        out->room = grown ? room : out->room;
    }
}

/* ---- words ----------------------------------------------------------------------------------- */

static const char *const roundings[] = {
    "",
#define SG_PROGRAM_ROUNDING(name, word) #word,
#include "softgpu/program/program_names.def"
};
static const char *const compares[] = {
    "",
#define SG_PROGRAM_COMPARE(name, word) #word,
#include "softgpu/program/program_names.def"
};
static const char *const booleans[] = {
    "",
#define SG_PROGRAM_BOOLEAN(name, word) #word,
#include "softgpu/program/program_names.def"
};
static const char *const semantics[] = {
    "",
#define SG_PROGRAM_SEMANTICS(name, word) #word,
#include "softgpu/program/program_names.def"
};
static const char *const scopes[] = {
    "",
#define SG_PROGRAM_SCOPE(name, word) #word,
#include "softgpu/program/program_names.def"
};
static const char *const spaces[] = {
    "",
#define SG_PROGRAM_SPACE(name, word) #word,
#include "softgpu/program/program_names.def"
};
static const char *const operations[] = {
    "",
#define SG_PROGRAM_OPERATION(name, word) #word,
#include "softgpu/program/program_names.def"
};
static const char *const geometries[] = {
    "",
#define SG_PROGRAM_GEOMETRY(name, word) #word,
#include "softgpu/program/program_names.def"
};
static const char *const specials[] = {
    "",
#define SG_PROGRAM_SPECIAL(name, word) #word,
#include "softgpu/program/program_names.def"
};
static const char *const places[] = {"image",      "shared",  "dynamic", "frame",
                                     "parameters", "texture", "thread"};

static void word(struct out *out, const char *text) {
    if (*text)
        put(out, ".%s", text);
}

static void flags(struct out *out, uint64_t modifiers) {
#define SG_PROGRAM_MODIFIER(name, word, bit)                                                       \
    if (modifiers >> (bit)&1)                                                                      \
        put(out, "+%s", #name);
#include "softgpu/program/program_names.def"
}

/* ---- operands -------------------------------------------------------------------------------- */

static void operand(struct out *out, const struct sg_operand *one, unsigned depth);

static void reg(struct out *out, uint32_t number) {
    put(out, "%s", out->program->registers[out->function->first_register + number].name);
}

static void elements(struct out *out, const struct sg_operand *list, const char *between,
                     unsigned depth) {
    for (uint32_t i = 0; i < list->count; i++) {
        put(out, "%s", i ? between : "");
        operand(out, &out->program->operands[list->first + i], depth + 1);
    }
}

static void address(struct out *out, const struct sg_operand *one) {
    put(out, "[");
    if (one->reg != SG_NO_REGISTER)
        reg(out, one->reg);
    else if (one->first != SG_NO_VARIABLE)
        put(out, "%s", out->program->variables[one->first].name);
    put(out, "%+" PRId64 "]", one->value);
}

static void part(struct out *out, const struct sg_operand *one) {
    static const char *const parts[] = {"", ".b0", ".b1", ".b2", ".b3", ".h0", ".h1"};
    if (one->part == SG_PART_SELECTOR)
        put(out, ".sel%0*" PRIx64, (int)one->count, (uint64_t)one->value);
    else if (one->part < sizeof parts / sizeof parts[0])
        put(out, "%s", parts[one->part]);
}

static void special(struct out *out, const struct sg_operand *one) {
    put(out, "%s", specials[one->first]);
    if (one->first == SG_SPECIAL_ENVREG || one->first == SG_SPECIAL_PM)
        put(out, "%" PRId64 "%s", one->value, one->part ? "_64" : "");
    else if (one->part)
        put(out, ".%c", "xyzw"[one->part - 1]);
}

static void operand(struct out *out, const struct sg_operand *one, unsigned depth) {
    if (depth > 4)
        return;
    put(out, "%s", one->negated ? "!" : "");
    switch (one->kind) {
    case SG_OPERAND_REGISTER:
        reg(out, one->reg);
        part(out, one);
        break;
    case SG_OPERAND_IMMEDIATE:
        put(out, "#%" PRIx64, (uint64_t)one->value);
        break;
    case SG_OPERAND_SPECIAL:
        special(out, one);
        break;
    case SG_OPERAND_ADDRESS:
        address(out, one);
        break;
    case SG_OPERAND_VARIABLE:
        put(out, "&%s%+" PRId64, out->program->variables[one->first].name, one->value);
        break;
    case SG_OPERAND_FUNCTION:
        put(out, "%s()", out->program->functions[one->first].name);
        break;
    case SG_OPERAND_LABEL:
        put(out, "->%" PRIu32, one->first);
        break;
    case SG_OPERAND_TARGETS:
        put(out, "targets%" PRIu32, one->first);
        break;
    case SG_OPERAND_VECTOR:
        put(out, "{");
        elements(out, one, ", ", depth);
        put(out, "}");
        break;
    case SG_OPERAND_PAIR:
        elements(out, one, "|", depth);
        break;
    default:
        put(out, "_");
    }
}

/* ---- instructions ---------------------------------------------------------------------------- */

static void members(struct out *out, const struct sg_instruction *one) {
    put(out, "%s", sg_op_name(one->op));
    word(out, operations[one->operation]);
    word(out, operations[one->operation2]);
    word(out, semantics[one->semantics]);
    word(out, scopes[one->scope]);
    word(out, spaces[one->space]);
    word(out, spaces[one->space2]);
    word(out, geometries[one->geometry]);
    word(out, compares[one->compare]);
    word(out, booleans[one->boolean]);
    word(out, roundings[one->rounding]);
    if (one->shape[0])
        put(out, ".m%un%uk%u", one->shape[0], one->shape[1], one->shape[2]);
    if (one->vector > 1)
        put(out, ".v%u", one->vector);
    word(out, sg_type_name(one->type));
    word(out, sg_type_name(one->type2));
    word(out, sg_type_name(one->type3));
    word(out, sg_type_name(one->type4));
    flags(out, one->modifiers);
}

static void instruction(struct out *out, uint32_t number) {
    const struct sg_instruction *one = &out->program->instructions[number];
    put(out, "%" PRIu32 " ", number);
    if (one->guard) {
        put(out, "@%s", one->guard_negated ? "!" : "");
        reg(out, one->guard - 1);
        put(out, " ");
    }
    if (one->unsupported) {
        put(out, "? %s\n", one->unsupported);
        return;
    }
    members(out, one);
    for (unsigned i = 0; i < one->operand_count; i++) {
        put(out, "%s", i ? ", " : " ");
        operand(out, &out->program->operands[one->first_operand + i], 0);
    }
    put(out, "%s\n", one->backward ? " (back)" : "");
}

/* The registers that are live at the beginning of a block. */
static void live(struct out *out, uint32_t block) {
    const char *between = " live ";
    for (uint32_t i = 0; i < out->function->registers; i++) {
        if (!sg_live_in(&out->live, block, i))
            continue;
        put(out, "%s", between);
        reg(out, i);
        between = ", ";
    }
}

static void block(struct out *out, uint32_t number) {
    const struct sg_program_block *one = &out->program->blocks[number];
    bool parts = out->uniformity.parts[number - out->function->first_block];
    put(out, "block %" PRIu32 "%s%s ->", number, one->loop_header ? " loop" : "",
        parts ? " parts" : "");
    for (uint32_t i = 0; i < one->successors; i++)
        put(out, " %" PRIu32, out->program->successors[one->first_successor + i]);
    if (one->post_dominator != SG_NO_BLOCK)
        put(out, " join %" PRIu32, one->post_dominator);
    live(out, number);
    put(out, "\n");
    for (uint32_t i = one->first; i < one->end; i++)
        instruction(out, i);
}

/* ---- functions ------------------------------------------------------------------------------- */

static void parameters(struct out *out, const char *title, uint32_t first, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        const struct sg_program_parameter *one = &out->program->parameters[first + i];
        put(out, " %s ", title);
        if (one->variable != SG_NO_VARIABLE)
            put(out, "%s", out->program->variables[one->variable].name);
        else if (one->reg != SG_NO_REGISTER)
            reg(out, one->reg);
        else
            put(out, "_");
    }
}

static void function(struct out *out, const struct sg_program_function *one) {
    out->function = one;
    put(out, "%s %s", one->entry ? "entry" : one->runtime ? "runtime" : "function", one->name);
    parameters(out, "result", one->first_result, one->results);
    parameters(out, "parameter", one->first_parameter, one->parameters);
    put(out, " registers %" PRIu32 " frame %" PRIu64 "%s%s\n", one->registers, one->frame,
        one->indirect_calls ? " indirect" : "", one->address_taken ? " taken" : "");
    bool found = sg_liveness_find(out->program, one, &out->live) &&
                 sg_uniformity_find(out->program, one, &out->uniformity);
    for (uint32_t i = 0; found && i < one->blocks; i++)
        block(out, one->first_block + i);
    out->failed |= !found;
    sg_liveness_free(&out->live);
    sg_uniformity_free(&out->uniformity);
}

static void variables(struct out *out) {
    const struct sg_program *program = out->program;
    for (size_t i = 0; i < program->variable_count; i++) {
        const struct sg_program_variable *one = &program->variables[i];
        put(out, "variable %s %s offset %" PRIu64 " size %" PRIu64 " align %" PRIu64 "\n",
            one->name, places[one->place], one->offset, one->size, one->alignment);
    }
}

static void targets(struct out *out) {
    const struct sg_program *program = out->program;
    for (size_t i = 0; i < program->target_count; i++) {
        const struct sg_program_targets *one = &program->targets[i];
        put(out, "targets%zu", i);
        for (uint32_t j = 0; j < one->count; j++)
            put(out, " %" PRIu32, program->target_list[one->first + j]);
        put(out, "\n");
    }
}

char *sg_program_dump(const struct sg_program *program) {
    struct out out = {.program = program};
    put(&out, "program %s shared %" PRIu64 " dynamic %" PRIu64 "\n", program->name,
        program->static_shared, program->dynamic_shared_offset);
    variables(&out);
    targets(&out);
    for (size_t i = 0; i < program->function_count; i++)
        function(&out, &program->functions[i]);
    if (out.failed) {
        free(out.text);
        return NULL;
    }
    return out.text;
}
