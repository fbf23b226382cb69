/* Operands: names to registers, variables, functions and labels; constants to bits. */
#include "softgpu/program/build.h"

#include <string.h>

/* ---- special registers ----------------------------------------------------------------------- */

static const struct {
    const char *name;
    enum sg_special special;
} specials[] = {
#define SG_PROGRAM_SPECIAL(name, word) {#word, SG_SPECIAL_##name},
#include "softgpu/program/program_names.def"
};

/* The number that follows the first `skip` bytes; -1 if anything else follows. */
static int64_t number_after(const struct sg_ptx_name *name, size_t skip) {
    int64_t number = 0;
    for (size_t i = skip; i < name->length; i++) {
        if (name->text[i] < '0' || name->text[i] > '9' || number > 1000)
            return -1;
        number = number * 10 + (name->text[i] - '0');
    }
    return name->length > skip ? number : -1;
}

static bool numbered_special(const struct sg_ptx_name *name, struct sg_operand *to) {
    struct sg_ptx_name bare = *name;
    bool pm = name->length > 3 && memcmp(name->text, "%pm", 3) == 0;
    bool env = name->length > 7 && memcmp(name->text, "%envreg", 7) == 0;
    if (pm && name->length > 6 && memcmp(name->text + name->length - 3, "_64", 3) == 0) {
        to->part = 1;
        bare.length -= 3;
    }
    to->first = pm ? SG_SPECIAL_PM : SG_SPECIAL_ENVREG;
    to->value = pm ? number_after(&bare, 3) : env ? number_after(&bare, 7) : -1;
    return to->value >= 0 && to->value < (pm ? 8 : 32);
}

static bool special(const struct sg_ptx_name *name, struct sg_operand *to) {
    if (name->text[0] != '%' && name->text[0] != 'W')
        return false;
    to->kind = SG_OPERAND_SPECIAL;
    for (size_t i = 0; i < sizeof specials / sizeof specials[0]; i++) {
        if (strlen(specials[i].name) == name->length &&
            memcmp(specials[i].name, name->text, name->length) == 0) {
            to->first = specials[i].special;
            return true;
        }
    }
    return numbered_special(name, to);
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* 1 to 4 for .x to .w, likewise for .r to .a; 0 for others */
static unsigned coordinate(const struct sg_ptx_operand *from) {
    static const char all[] = "xyzwrgba";
    const char *found =
        from->member_length == 2 ? memchr(all, from->member[1], sizeof all - 1) : NULL;
    return found ? (unsigned)(found - all) % 4 + 1 : 0;
}

/* .b0, .h1, .b3210 of video instructions */
static bool video_part(const struct sg_ptx_operand *from, struct sg_operand *to) {
    const char *text = from->member + 1;
    size_t digits = from->member_length - 2;
    if (from->member_length < 3 || digits > 4 || (text[0] != 'b' && text[0] != 'h'))
        return false;
    int64_t value = 0;
    for (size_t i = 1; i <= digits; i++) {
        if (text[i] < '0' || text[i] > '7')
            return false;
        value = value << 4 | (text[i] - '0');
    }
    bool bytes = text[0] == 'b';
    if (digits == 1 && value > (bytes ? 3 : 1))
        return false;
    to->part =
        digits > 1 ? SG_PART_SELECTOR : (unsigned char)((bytes ? SG_PART_B0 : SG_PART_H0) + value);
    to->value = digits > 1 ? value : 0;
    to->count = (uint32_t)digits;
    return true;
}

/* ---- names ----------------------------------------------------------------------------------- */

bool sg_build_add_operands(struct sg_build *b, const struct sg_operand *operands, size_t count,
                           uint32_t *first) {
    struct sg_program *program = b->program;
    *first = (uint32_t)program->operand_count;
    for (size_t i = 0; i < count; i++) {
        struct sg_operand *grown =
            sg_image_grow(program->operands, &program->operand_count, sizeof *grown);
        if (!grown)
            return sg_build_no_memory(b);
        program->operands = grown;
        grown[program->operand_count - 1] = operands[i];
    }
    return true;
}

static bool whole_vector(struct sg_build *b, const struct sg_ptx_name *name, unsigned elements,
                         struct sg_operand *to) {
    struct sg_operand each[8] = {{0}};
    for (unsigned i = 0; i < elements; i++) {
        each[i] = (struct sg_operand){.kind = SG_OPERAND_REGISTER,
                                      .type = b->declarations[name->declaration - 1].type};
        if (!sg_build_register(b, name, i, &each[i].reg))
            return false;
    }
    *to = (struct sg_operand){.kind = SG_OPERAND_VECTOR,
                              .negated = to->negated,
                              .count = elements,
                              .reg = SG_NO_REGISTER};
    return sg_build_add_operands(b, each, elements, &to->first);
}

static bool register_operand(struct sg_build *b, const struct sg_ptx_operand *from,
                             struct sg_operand *to, const char **why) {
    const struct sg_build_declaration *declared = &b->declarations[from->name.declaration - 1];
    unsigned element = from->member ? coordinate(from) : 0;
    to->kind = SG_OPERAND_REGISTER;
    to->type = declared->type;
    to->value = from->offset;
    if (from->indexed)
        *why = "an array of registers";
    else if (declared->vector > 1 && !from->member)
        return from->offset ? (*why = "a sum with a vector", true)
                            : whole_vector(b, &from->name, declared->vector, to);
    else if (declared->vector > 1 ? element == 0 || element > declared->vector
                                  : from->member && !video_part(from, to))
        *why = "this part of a register";
    return sg_build_register(b, &from->name, element ? element - 1 : 0, &to->reg);
}

static bool variable_operand(struct sg_build *b, const struct sg_ptx_operand *from,
                             struct sg_operand *to, const char **why) {
    const struct sg_ptx_name *name = &from->name;
    uint64_t element = 1;
    to->kind = SG_OPERAND_VARIABLE;
    if (name->declaration) {
        const struct sg_build_declaration *declared = &b->declarations[name->declaration - 1];
        to->first = declared->variable + (uint32_t)name->index;
        element = declared->element;
    } else {
        const struct sg_ptx_symbol *symbol = &b->outline->symbols[name->symbol - 1];
        element = symbol->type.size;
        if (!sg_build_variable(b, name->symbol - 1, &to->first))
            return false;
        if (b->program->variables[to->first].place == SG_PLACE_IMAGE &&
            b->program->variables[to->first].image == UINT32_MAX)
            *why = "a variable that the image does not have";
    }
    to->value = from->indexed ? (int64_t)((uint64_t)from->offset * element) : from->offset;
    to->count = from->indexed; /* name[1] alone is an address too */
    if (from->member)
        *why = "a part of a variable";
    return true;
}

/* Loaded into a register of the function, which stands for it in this instruction. */
static bool module_register(struct sg_build *b, const struct sg_ptx_operand *from,
                            struct sg_operand *to, const char **why) {
    const struct sg_ptx_symbol *symbol = &b->outline->symbols[from->name.symbol - 1];
    to->kind = SG_OPERAND_REGISTER;
    to->value = from->offset;
    if (symbol->vector > 1 || symbol->type.size > 8 || from->member || from->indexed)
        *why = "a vector, or a part, of a register of the module";
    else if (!sg_build_load_module(b, &from->name, &to->reg))
        return false;
    else
        to->type =
            b->program->registers[b->program->functions[b->function].first_register + to->reg].type;
    return true;
}

static bool function_operand(struct sg_build *b, const struct sg_ptx_operand *from,
                             struct sg_operand *to, const char **why) {
    to->kind = SG_OPERAND_FUNCTION;
    if (from->offset || from->indexed || from->member)
        *why = "a sum with a function";
    return sg_build_function(b, from->name.symbol - 1, &to->first);
}

static bool label_operand(struct sg_build *b, const struct sg_ptx_operand *from,
                          struct sg_operand *to, const char **why) {
    struct sg_build_reference *grown =
        sg_image_grow(b->references, &b->reference_count, sizeof *grown);
    if (!grown)
        return sg_build_no_memory(b);
    b->references = grown;
    grown[b->reference_count - 1] =
        (struct sg_build_reference){from->name.text, from->name.length, b->block};
    to->kind = SG_OPERAND_LABEL;
    to->first = (uint32_t)b->reference_count - 1;
    if (from->offset || from->indexed || from->member)
        *why = "a sum with a label";
    return true;
}

static bool name_operand(struct sg_build *b, const struct sg_ptx_operand *from, bool label,
                         struct sg_operand *to, const char **why) {
    const struct sg_ptx_name *name = &from->name;
    if (name->declaration) {
        bool is_register = b->declarations[name->declaration - 1].space == SG_SPACE_REG;
        return is_register ? register_operand(b, from, to, why)
                           : variable_operand(b, from, to, why);
    }
    if (label)
        return label_operand(b, from, to, why);
    if (name->symbol) {
        const struct sg_ptx_symbol *symbol = &b->outline->symbols[name->symbol - 1];
        bool function = symbol->what == SG_SYMBOL_FUNCTION || symbol->what == SG_SYMBOL_ENTRY;
        if (symbol->what == SG_SYMBOL_VARIABLE && symbol->space == SG_SPACE_REG)
            return module_register(b, from, to, why);
        return function ? function_operand(b, from, to, why) : variable_operand(b, from, to, why);
    }
    if (!special(name, to))
        return label_operand(b, from, to, why);
    if (to->first == SG_SPECIAL_WARP_SZ && !from->member) {
        *to = (struct sg_operand){.kind = SG_OPERAND_IMMEDIATE, .reg = SG_RAW_INTEGER, .value = 32};
        to->value += from->offset;
        return true;
    }
    if (from->member)
        to->part = (unsigned char)coordinate(from);
    if (from->offset || from->indexed || (from->member && !to->part))
        *why = "this form of a special register";
    return true;
}

/* ---- brackets -------------------------------------------------------------------------------- */

static bool children(struct sg_build *b, const struct sg_ptx_statement *statement,
                     const struct sg_ptx_operand *from, struct sg_operand *to, const char **why) {
    struct sg_operand each[SG_MOST_ELEMENTS] = {{0}};
    size_t count = 0;
    for (size_t at = from->child; at; at = statement->operands[at - 1].next) {
        if (count == SG_MOST_ELEMENTS) {
            *why = "so many operands in brackets";
            return true;
        }
        if (!sg_build_operand(b, statement, &statement->operands[at - 1], false, &each[count++],
                              why))
            return false;
    }
    to->kind = SG_OPERAND_VECTOR;
    to->count = (uint32_t)count;
    return sg_build_add_operands(b, each, count, &to->first);
}

/* [a], [a + 4], [4]; for textures and surfaces a list in brackets */
static bool address(struct sg_build *b, const struct sg_ptx_statement *statement,
                    const struct sg_ptx_operand *from, struct sg_operand *to, const char **why) {
    struct sg_operand base = {0};
    if (from->children != 1)
        return children(b, statement, from, to, why);
    if (!sg_build_operand(b, statement, &statement->operands[from->child - 1], false, &base, why))
        return false;
    to->kind = SG_OPERAND_ADDRESS;
    to->first = SG_NO_VARIABLE;
    to->value = base.value;
    if (base.kind == SG_OPERAND_REGISTER && !base.part)
        to->reg = base.reg;
    else if (base.kind == SG_OPERAND_VARIABLE)
        to->first = base.first;
    else if (base.kind != SG_OPERAND_IMMEDIATE || base.reg != SG_RAW_INTEGER)
        *why = *why ? *why : "this form of an address";
    return true;
}

static bool pair(struct sg_build *b, const struct sg_ptx_statement *statement,
                 const struct sg_ptx_operand *from, struct sg_operand *to, const char **why) {
    struct sg_operand both[2] = {*to, {0}};
    const struct sg_ptx_operand *other = &statement->operands[from->other - 1];
    if (other->other) {
        *why = "more than two operands with | between them";
        return true;
    }
    if (!sg_build_operand(b, statement, other, false, &both[1], why))
        return false;
    *to = (struct sg_operand){.kind = SG_OPERAND_PAIR, .count = 2, .reg = SG_NO_REGISTER};
    return sg_build_add_operands(b, both, 2, &to->first);
}

bool sg_build_operand(struct sg_build *b, const struct sg_ptx_statement *statement,
                      const struct sg_ptx_operand *from, bool label, struct sg_operand *to,
                      const char **why) {
    bool good = true;
    *to = (struct sg_operand){.reg = SG_NO_REGISTER, .negated = from->negated || from->minus};
    switch (from->kind) {
    case SG_PTX_SINK:
        to->kind = SG_OPERAND_NONE;
        break;
    case SG_PTX_NAME:
        good = name_operand(b, from, label, to, why);
        break;
    case SG_PTX_INTEGER:
    case SG_PTX_REAL:
        to->kind = SG_OPERAND_IMMEDIATE;
        to->reg = from->kind == SG_PTX_INTEGER ? SG_RAW_INTEGER
                  : from->single               ? SG_RAW_SINGLE
                                               : SG_RAW_DOUBLE;
        memcpy(&to->value, &from->number, sizeof to->value);
        break;
    case SG_PTX_ADDRESS:
        good = address(b, statement, from, to, why);
        break;
    case SG_PTX_VECTOR:
    case SG_PTX_LIST:
        good = children(b, statement, from, to, why);
        break;
    case SG_PTX_UNREADABLE:
        *why = "an operand that is no name, constant or address";
        break;
    }
    if (good && from->minus && !*why &&
        (to->kind != SG_OPERAND_REGISTER || to->type == SG_TYPE_PRED))
        *why = "a sign before what is no number in a register";
    return good && (!from->other || pair(b, statement, from, to, why));
}

/* ---- constants ------------------------------------------------------------------------------- */

static bool is_real(unsigned type) {
    switch (type) {
    case SG_TYPE_F16:
    case SG_TYPE_F16X2:
    case SG_TYPE_BF16:
    case SG_TYPE_BF16X2:
    case SG_TYPE_F32:
    case SG_TYPE_F32X2:
    case SG_TYPE_F64:
    case SG_TYPE_TF32:
    case SG_TYPE_E4M3:
    case SG_TYPE_E5M2:
    case SG_TYPE_E4M3X2:
    case SG_TYPE_E5M2X2:
        return true;
    default:
        return false;
    }
}

/* Constants other than those of 32 bits are doubles, and are rounded to the instruction's type. */
static const char *real_bits(struct sg_operand *operand, unsigned type) {
    double wide;
    float narrow;
    uint32_t bits = (uint32_t)operand->value;
    bool single = operand->reg == SG_RAW_SINGLE;
    if (type == SG_TYPE_F32 || (type == SG_TYPE_B32 && single)) {
        if (!single) {
            memcpy(&wide, &operand->value, sizeof wide);
            narrow = (float)wide;
            memcpy(&bits, &narrow, sizeof bits);
        }
        operand->value = (int64_t)(uint64_t)bits;
    } else if (type == SG_TYPE_F64 || (type == SG_TYPE_B64 && !single)) {
        if (single) {
            memcpy(&narrow, &bits, sizeof narrow);
            wide = (double)narrow;
            memcpy(&operand->value, &wide, sizeof wide);
        }
    } else {
        return "a floating-point constant of this type";
    }
    return NULL;
}

const char *sg_build_immediate(struct sg_operand *operand, unsigned type) {
    unsigned bits = sg_type_bits(type);
    if (operand->reg != SG_RAW_INTEGER) {
        const char *why = real_bits(operand, type);
        if (why)
            return why;
    } else if (is_real(type)) {
        return "a whole number where a floating-point constant belongs";
    } else if (type == SG_TYPE_PRED) {
        operand->value = operand->value != 0;
    } else if (bits == 0 || bits > 64) {
        return "a constant of this type";
    } else if (bits < 64) {
        uint64_t sign = (uint64_t)1 << (bits - 1);
        uint64_t low = (uint64_t)operand->value & (2 * sign - 1);
        operand->value = (int64_t)((low ^ sign) - sign);
    }
    operand->reg = SG_NO_REGISTER;
    operand->type = (unsigned char)type;
    return NULL;
}
