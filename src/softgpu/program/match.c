/* Matches an instruction with the table: the first rule whose modifiers, types and operands fit. */
#include "softgpu/program/build.h"

#include <string.h>

/* ---- operands -------------------------------------------------------------------------------- */

struct fitting {
    struct sg_program *program;
    struct sg_instruction *to;
    const char *why; /* a better reason than "does not fit", or NULL */
};

static unsigned bits_type(unsigned bits) {
    switch (bits) {
    case 8:
        return SG_TYPE_B8;
    case 16:
        return SG_TYPE_B16;
    case 32:
        return SG_TYPE_B32;
    case 64:
        return SG_TYPE_B64;
    default:
        return SG_TYPE_NONE;
    }
}

/* mul.wide.s16 writes s32 */
static unsigned double_type(unsigned type) {
    switch (type) {
    case SG_TYPE_U16:
        return SG_TYPE_U32;
    case SG_TYPE_S16:
        return SG_TYPE_S32;
    case SG_TYPE_U32:
        return SG_TYPE_U64;
    default:
        return SG_TYPE_S64;
    }
}

static bool bare(const struct sg_operand *operand) {
    return !operand->negated && !operand->part && operand->value == 0;
}

/* Until a rule gives it the instruction's type, a register operand has its declared one. */
static bool is_predicate(const struct sg_operand *operand) {
    return operand->type == SG_TYPE_PRED;
}

static bool written(struct sg_operand *operand, unsigned type) {
    if (operand->kind == SG_OPERAND_NONE)
        return true;
    bool predicate = is_predicate(operand);
    if (operand->kind != SG_OPERAND_REGISTER || !bare(operand) ||
        predicate != (type == SG_TYPE_PRED))
        return false;
    operand->type = (unsigned char)type;
    return true;
}

static bool constant(struct fitting *f, struct sg_operand *operand, unsigned type) {
    const char *why = sg_build_immediate(operand, type);
    f->why = f->why ? f->why : why;
    return !why && !operand->negated;
}

/* A special register of three numbers is named with .x, .y or .z, or read as a vector. */
static bool special(struct fitting *f, struct sg_operand *operand) {
    static const unsigned char vectors[SG_SPECIAL_COUNT] = {[SG_SPECIAL_TID] = 1,
                                                            [SG_SPECIAL_NTID] = 1,
                                                            [SG_SPECIAL_CTAID] = 1,
                                                            [SG_SPECIAL_NCTAID] = 1,
                                                            [SG_SPECIAL_CLUSTERID] = 1,
                                                            [SG_SPECIAL_NCLUSTERID] = 1,
                                                            [SG_SPECIAL_CLUSTER_CTAID] = 1,
                                                            [SG_SPECIAL_CLUSTER_NCTAID] = 1,
                                                            [SG_SPECIAL_PM] = 2};
    bool part = operand->part != 0;
    operand->type = f->to->type;
    if (operand->negated || vectors[operand->first] == 2)
        return !operand->negated && f->to->vector == 1;
    if (!vectors[operand->first])
        return !part && f->to->vector == 1;
    return part == (f->to->vector == 1);
}

static bool source(struct fitting *f, struct sg_operand *operand, unsigned type) {
    if (operand->kind == SG_OPERAND_IMMEDIATE)
        return constant(f, operand, type);
    if (operand->kind == SG_OPERAND_SPECIAL && f->to->op == SG_OP_cvt)
        return special(f, operand);
    if (operand->kind == SG_OPERAND_SPECIAL)
        f->why = "a special register outside of mov and cvt";
    if (operand->kind != SG_OPERAND_REGISTER || !bare(operand) || is_predicate(operand))
        return false;
    operand->type = (unsigned char)type;
    return true;
}

static bool predicate_source(struct fitting *f, struct sg_operand *operand) {
    if (operand->kind == SG_OPERAND_IMMEDIATE)
        return !operand->negated && constant(f, operand, SG_TYPE_PRED);
    if (operand->kind == SG_OPERAND_SPECIAL) /* the only one that is a predicate */
        return operand->first == SG_SPECIAL_IS_EXPLICIT_CLUSTER && f->to->op == SG_OP_mov &&
               !operand->negated && !operand->part;
    return operand->kind == SG_OPERAND_REGISTER && is_predicate(operand) && !operand->part &&
           operand->value == 0;
}

/* An operand of a video instruction: a register, a part of one, or a constant. Only vmad's may be
 * negated. */
static bool video(struct fitting *f, struct sg_operand *operand, unsigned type, bool selector,
                  bool result) {
    bool selected = operand->part == SG_PART_SELECTOR;
    if (operand->kind == SG_OPERAND_IMMEDIATE && !result)
        return constant(f, operand, type);
    if (operand->kind == SG_OPERAND_NONE && result)
        return true;
    if (operand->kind != SG_OPERAND_REGISTER || is_predicate(operand) ||
        (operand->negated && f->to->op != SG_OP_vmad))
        return false;
    if (!selected && operand->value != 0)
        return false;
    if (selected && !selector && !result)
        return false;
    operand->type = (unsigned char)type;
    return true;
}

static bool vector(struct fitting *f, struct sg_operand *operand, unsigned type, unsigned count,
                   bool result) {
    if (count <= 1 && operand->kind != SG_OPERAND_VECTOR)
        return result ? written(operand, type) : source(f, operand, type);
    if (operand->kind != SG_OPERAND_VECTOR || (count && operand->count != count))
        return false;
    for (uint32_t i = 0; i < operand->count; i++) {
        struct sg_operand *one = &f->program->operands[operand->first + i];
        if (result ? !written(one, type) : !source(f, one, type))
            return false;
    }
    operand->type = (unsigned char)type;
    return true;
}

/* A texture coordinate, or an operand after it: a constant has the type it is written in. */
static bool coordinate(struct fitting *f, struct sg_operand *one) {
    if (one->kind == SG_OPERAND_IMMEDIATE)
        return constant(f, one, one->reg == SG_RAW_INTEGER ? SG_TYPE_S32 : SG_TYPE_F32);
    return one->kind == SG_OPERAND_REGISTER && bare(one) && !is_predicate(one);
}

static bool coordinates(struct fitting *f, struct sg_operand *operand) {
    if (operand->kind != SG_OPERAND_VECTOR)
        return coordinate(f, operand);
    for (uint32_t i = 0; i < operand->count; i++) {
        if (!coordinate(f, &f->program->operands[operand->first + i]))
            return false;
    }
    return !operand->negated;
}

/* A constant in a matrix fragment: a float literal keeps the width it is written with, where the
 * fragment holds floats. */
static bool fragment_constant(struct fitting *f, struct sg_operand *one) {
    bool wide = f->to->type == SG_TYPE_F64;
    if (one->reg == SG_RAW_INTEGER)
        return constant(f, one, SG_TYPE_B32);
    return constant(f, one, wide ? SG_TYPE_F64 : SG_TYPE_F32);
}

/* {…} of a matrix: registers, each of its declared type; also constants where it is read, and _
 * where it is written. */
static bool fragment(struct fitting *f, struct sg_operand *operand, bool result) {
    if (operand->kind != SG_OPERAND_VECTOR || operand->negated)
        return false;
    for (uint32_t i = 0; i < operand->count; i++) {
        struct sg_operand *one = &f->program->operands[operand->first + i];
        bool fits = one->kind == SG_OPERAND_REGISTER ? bare(one) && !is_predicate(one)
                    : result                         ? one->kind == SG_OPERAND_NONE
                             : one->kind == SG_OPERAND_IMMEDIATE && fragment_constant(f, one);
        if (!fits)
            return false;
    }
    return true;
}

/* p|q and d|p */
static bool pair(struct fitting *f, struct sg_operand *operand, unsigned first) {
    if (operand->kind != SG_OPERAND_PAIR)
        return written(operand, first);
    struct sg_operand *both = &f->program->operands[operand->first];
    return written(&both[0], first) && written(&both[1], SG_TYPE_PRED);
}

static bool addressed(struct fitting *f, struct sg_operand *operand) {
    if (operand->kind == SG_OPERAND_IMMEDIATE)
        return constant(f, operand, SG_TYPE_U64);
    return (operand->kind == SG_OPERAND_REGISTER && bare(operand) && !is_predicate(operand)) ||
           (operand->kind == SG_OPERAND_VARIABLE && !operand->negated);
}

/* ---- mov ------------------------------------------------------------------------------------- */

/* mov.b64 {a, b}, d and mov.v2.b32 {a, b}, {c, d}: the type of an element */
static unsigned element_type(const struct fitting *f, const struct sg_operand *operand) {
    unsigned type = f->to->type;
    if (f->to->vector > 1)
        return operand->count == f->to->vector ? type : (unsigned)SG_TYPE_NONE;
    return operand->count ? bits_type(sg_type_bits(type) / operand->count) : (unsigned)SG_TYPE_NONE;
}

static bool moved_elements(struct fitting *f, struct sg_operand *operand, bool result) {
    unsigned type = element_type(f, operand);
    if (type == SG_TYPE_NONE || operand->negated)
        return false;
    return vector(f, operand, type, operand->count, result);
}

static bool moved(struct fitting *f, struct sg_operand *operand) {
    switch (operand->kind) {
    case SG_OPERAND_VECTOR:
        return moved_elements(f, operand, false);
    case SG_OPERAND_SPECIAL:
        return special(f, operand);
    case SG_OPERAND_VARIABLE:
    case SG_OPERAND_FUNCTION:
        operand->count = 0;
        operand->type = f->to->type;
        return !operand->negated && f->to->vector == 1 && sg_type_bits(f->to->type) >= 32;
    default:
        return f->to->vector == 1 && source(f, operand, f->to->type);
    }
}

static bool move_result(struct fitting *f, struct sg_operand *operand) {
    return operand->kind == SG_OPERAND_VECTOR ? moved_elements(f, operand, true)
                                              : f->to->vector == 1 && written(operand, f->to->type);
}

/* ---- letters of operands --------------------------------------------------------------------- */

/* [a], and a[1] of an array. */
static bool address(struct sg_operand *operand) {
    if (operand->kind == SG_OPERAND_VARIABLE && operand->count) {
        operand->kind = SG_OPERAND_ADDRESS;
        operand->count = 0;
    }
    return operand->kind == SG_OPERAND_ADDRESS && !operand->negated;
}

static bool texture(struct fitting *f, const struct sg_operand *operand) {
    if (operand->kind != SG_OPERAND_VECTOR || operand->count < 2 || operand->count > 3)
        return false;
    struct sg_operand *each = &f->program->operands[operand->first];
    for (uint32_t i = 0; i + 1 < operand->count; i++) {
        if (each[i].kind != SG_OPERAND_REGISTER && each[i].kind != SG_OPERAND_VARIABLE)
            return false;
    }
    return coordinates(f, &each[operand->count - 1]);
}

static bool texture_result(struct fitting *f, struct sg_operand *operand) {
    struct sg_operand *first = operand;
    if (operand->kind == SG_OPERAND_PAIR) {
        first = &f->program->operands[operand->first];
        if (!written(&first[1], SG_TYPE_PRED))
            return false;
    }
    return vector(f, first, f->to->type, f->to->vector, true);
}

static bool fits(struct fitting *f, char letter, struct sg_operand *operand) {
    struct sg_instruction *to = f->to;
    switch (letter) {
    case 'd':
        return written(operand, to->type);
    case 'U':
        return written(operand, SG_TYPE_U32);
    case 'Q':
        return written(operand, SG_TYPE_B64);
    case 'W':
        return written(operand, double_type(to->type));
    case '1':
        return source(f, operand, to->type);
    case '2':
        return source(f, operand, to->type2);
    case '3':
        return source(f, operand, to->type3);
    case 'u':
        return source(f, operand, SG_TYPE_U32);
    case 'q':
        return source(f, operand, SG_TYPE_B64);
    case 'w':
        return source(f, operand, double_type(to->type));
    case 'h':
        return source(f, operand, SG_TYPE_B16);
    case 'f':
        return source(f, operand, SG_TYPE_F32);
    case 'p':
        return written(operand, SG_TYPE_PRED);
    case 'P':
        return predicate_source(f, operand);
    case 'x':
        return pair(f, operand, SG_TYPE_PRED);
    case 'X':
        return pair(f, operand, to->type == SG_TYPE_NONE ? (unsigned)SG_TYPE_B32 : to->type);
    case 'D':
        return vector(f, operand, to->type, to->vector, true);
    case 'V':
        return vector(f, operand, to->type, to->vector, false);
    case 'A':
        return address(operand);
    case 'y':
        return addressed(f, operand);
    case 'N':
        return move_result(f, operand);
    case 'm':
        return moved(f, operand);
    case 'K':
    case 'k':
        return fragment(f, operand, letter == 'K');
    case 'L':
    case 'T':
        return operand->kind == SG_OPERAND_LABEL && !operand->negated;
    case 'H':
        return texture(f, operand);
    case 'G':
        return texture_result(f, operand);
    case 'R':
        return coordinates(f, operand);
    case 'i':
        return operand->kind == SG_OPERAND_IMMEDIATE && constant(f, operand, SG_TYPE_U32);
    case 'n':
        return operand->kind == SG_OPERAND_SPECIAL ? special(f, operand)
                                                   : predicate_source(f, operand);
    case 'v':
        return video(f, operand, to->type, true, true);
    case 'a':
    case 's':
        return video(f, operand, to->type2, letter == 's', false);
    case 'b':
    case 'S':
        return video(f, operand, to->type3, letter == 'S', false);
    case 'e':
    case 'E':
        return video(f, operand, to->type2, letter == 'E', false);
    case 'c':
    case 'g':
        return video(f, operand, to->type, letter == 'g', false);
    default:
        return false;
    }
}

/* Letters of operands that are written. Such an operand is a rule's first. */
#define WRITTEN "dUQWpxXDNKGv"

static bool operands_fit(struct fitting *f, const char *rule, struct sg_operand *operands,
                         unsigned count) {
    bool optional = false;
    unsigned at = 0;
    f->to->result = *rule && strchr(WRITTEN, *rule);
    for (; *rule; rule++) {
        if (*rule == '?')
            optional = true;
        else if (at == count)
            return optional || rule[0] == '\0';
        else if (!fits(f, *rule, &operands[at++]))
            return false;
    }
    return at == count;
}

/* ---- rules ----------------------------------------------------------------------------------- */

static const struct rule {
    unsigned op;
    const char *modifiers, *types, *operands;
    const char *refused;
} rules[] = {
#define SG_RULE(op, modifiers, types, operands) {SG_OP_##op, modifiers, types, operands, NULL},
#define SG_REFUSED(op, reason)                  {SG_OP_##op, NULL, NULL, NULL, reason},
#define SG_REFUSED_WORD(op, word, reason)       {SG_OP_##op, word, NULL, NULL, reason},
#include "softgpu/ptx/ptx_forms.def"
#undef SG_RULE
#undef SG_REFUSED
#undef SG_REFUSED_WORD
};

bool sg_build_takes_names(unsigned op) {
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (rules[i].op == op && rules[i].operands && strpbrk(rules[i].operands, "myH"))
            return true;
    return op == SG_OP_call;
}

/* The state space of an address that names a variable: the variable's own is more exact. */
static void settle_space(const struct sg_build *b, const struct sg_build_words *words,
                         struct sg_instruction *to, const struct sg_operand *operands) {
    const struct sg_program *program = b->program;
    unsigned at = 0;
    while (at < to->operand_count && operands[at].kind != SG_OPERAND_ADDRESS)
        at++;
    if (at == to->operand_count)
        return;
    bool parameter = to->space == SG_IN_PARAM || to->space == SG_IN_PARAM_FRAME;
    bool entry = program->functions[b->function].entry;
    for (size_t i = 0; i < words->count; i++)
        entry = entry || strcmp(words->each[i].text, "param_entry") == 0;
    if (to->space == SG_IN_NONE)
        to->space = SG_IN_GENERIC;
    if (operands[at].first == SG_NO_VARIABLE)
        to->space = to->space == SG_IN_PARAM && !entry ? SG_IN_PARAM_FRAME : to->space;
    else if (parameter || to->space == SG_IN_GENERIC)
        to->space = program->variables[operands[at].first].space;
}

static bool has_word(const struct sg_build_words *words, const char *word) {
    for (size_t i = 0; i < words->count; i++)
        if (strcmp(words->each[i].text, word) == 0)
            return true;
    return false;
}

#define MOST_CHILDREN 192

/* The elements of an instruction's vectors, as they were before a rule was tried on them. */
struct kept {
    struct sg_operand each[MOST_CHILDREN];
    size_t first, count;
};

/* The first rule that fits decides: NULL, or why none does. */
static const char *try_rules(struct sg_build *b, struct sg_build_words *words, unsigned count,
                             struct sg_instruction *instruction, struct sg_operand *operands) {
    static const char *const reasons[] = {"no form of it has these modifiers",
                                          "no form of it has these types",
                                          "no form of it has these operands"};
    unsigned stage = 0;
    const char *why = NULL;
    const struct sg_instruction before = *instruction;
    struct sg_program *program = b->program;
    struct kept kept = {.first = instruction->first_operand};
    kept.count = program->operand_count - kept.first;
    if (kept.count > MOST_CHILDREN)
        return "more operands than any form has";
    if (kept.count)
        memcpy(kept.each, program->operands + kept.first, kept.count * sizeof *kept.each);
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        const struct rule *rule = &rules[i];
        if (rule->op != instruction->op)
            continue;
        if (rule->refused && (!rule->modifiers || has_word(words, rule->modifiers)))
            return rule->refused;
        if (rule->refused)
            continue;
        struct sg_operand fitted[SG_MOST_OPERANDS];
        bool policy = false;
        struct fitting f = {.program = program, .to = instruction};
        *instruction = before;
        if (!sg_build_modifiers_fit(words, rule->modifiers, instruction, &policy))
            continue;
        stage = stage ? stage : 1;
        if (!sg_build_types_fit(words, rule->types, instruction))
            continue;
        stage = 2;
        memcpy(fitted, operands, count * sizeof *fitted);
        if (kept.count)
            memcpy(program->operands + kept.first, kept.each, kept.count * sizeof *kept.each);
        unsigned left = count - (policy && count);
        if (!operands_fit(&f, rule->operands, fitted, left)) {
            why = f.why ? f.why : why;
            continue;
        }
        memcpy(operands, fitted, left * sizeof *fitted);
        instruction->operand_count = (unsigned char)left;
        settle_space(b, words, instruction, operands);
        return sg_build_check(program, instruction, operands);
    }
    *instruction = before;
    if (kept.count)
        memcpy(program->operands + kept.first, kept.each, kept.count * sizeof *kept.each);
    return why ? why : reasons[stage];
}

/*
 * Targets before sm_20 have no subnormal floats of 32 bits, and an H200 computes as they did:
 * whatever may have .ftz has it, but for conversions from and to 64 bits in versions up to 1.4.
 */
static bool flushes(const struct sg_build *b, const struct sg_build_words *words, unsigned op) {
    const struct sg_image *image = b->parts[b->part].image;
    bool single = false, wide = false;
    for (unsigned i = 0; i < words->type_count; i++) {
        single = single || words->types[i] == SG_TYPE_F32;
        wide = wide || sg_type_bits(words->types[i]) == 64;
    }
    return single && image->target < 20 && !has_word(words, "ftz") &&
           words->count < SG_PTX_MODIFIERS &&
           !(op == SG_OP_cvt && wide && image->ptx_version <= 14);
}

const char *sg_build_match(struct sg_build *b, const struct sg_ptx_statement *statement,
                           struct sg_instruction *instruction, struct sg_operand *operands) {
    struct sg_build_words words = {0};
    unsigned count = statement->operand_count;
    sg_build_split(statement, &words);
    if (words.too_many)
        return "more modifiers than any form has";
    if (flushes(b, &words, instruction->op)) {
        strcpy(words.each[words.count++].text, "ftz");
        if (!try_rules(b, &words, count, instruction, operands))
            return NULL;
        words.count--;
    }
    return try_rules(b, &words, count, instruction, operands);
}
