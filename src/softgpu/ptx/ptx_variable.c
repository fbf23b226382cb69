/* Declarations: state space, alignment, type, names with their extents. */
#include "softgpu/ptx/ptx.h"

#include <stdlib.h>
#include <string.h>

enum sg_space sg_ptx_space(const struct sg_word *word) {
    static const struct {
        const char *text;
        enum sg_space space;
    } spaces[] = {{".global", SG_SPACE_GLOBAL}, {".const", SG_SPACE_CONST},
                  {".shared", SG_SPACE_SHARED}, {".local", SG_SPACE_LOCAL},
                  {".param", SG_SPACE_PARAM},   {".reg", SG_SPACE_REG},
                  {".tex", SG_SPACE_TEX}};
    for (size_t i = 0; word->kind == SG_WORD_DOTTED && i < sizeof spaces / sizeof spaces[0]; i++) {
        if (sg_word_is(word, spaces[i].text))
            return spaces[i].space;
    }
    return SG_SPACE_NONE;
}

bool sg_ptx_type(const struct sg_word *word, struct sg_ptx_type *type) {
    static const struct {
        const char *text;
        struct sg_ptx_type type;
    } types[] = {
        {".b8", {.size = 1, .untyped = true, .class = SG_CLASS_BITS}},
        {".u8", {.size = 1, .class = SG_CLASS_INTEGER}},
        {".s8", {.size = 1, .class = SG_CLASS_INTEGER}},
        {".b16", {.size = 2, .untyped = true, .class = SG_CLASS_BITS}},
        {".u16", {.size = 2, .class = SG_CLASS_INTEGER}},
        {".s16", {.size = 2, .class = SG_CLASS_INTEGER}},
        {".b32", {.size = 4, .untyped = true, .class = SG_CLASS_BITS}},
        {".u32", {.size = 4, .class = SG_CLASS_INTEGER}},
        {".s32", {.size = 4, .class = SG_CLASS_INTEGER}},
        {".b64", {.size = 8, .untyped = true, .class = SG_CLASS_BITS}},
        {".u64", {.size = 8, .class = SG_CLASS_INTEGER}},
        {".s64", {.size = 8, .class = SG_CLASS_INTEGER}},
        {".b128", {.size = 16, .untyped = true, .class = SG_CLASS_BITS}},
        {".f32", {.size = 4, .real = true, .class = SG_CLASS_REAL}},
        {".f64", {.size = 8, .real = true, .class = SG_CLASS_REAL}},
        {".f16", {.size = 2, .half = true, .class = SG_CLASS_REAL}},
        {".bf16", {.size = 2, .half = true}},
        {".f16x2", {.size = 4, .half = true, .class = SG_CLASS_PAIR}},
        {".bf16x2", {.size = 4, .half = true}},
        {".tf32", {.size = 4, .half = true}},
        {".pred", {.size = 1, .predicate = true, .class = SG_CLASS_PREDICATE}},
        {".texref", {.size = 8, .opaque = SG_OPAQUE_TEXTURE}},
        {".samplerref", {.size = 8, .opaque = SG_OPAQUE_SAMPLER}},
        {".surfref", {.size = 8, .opaque = SG_OPAQUE_SURFACE}},
    };
    for (size_t i = 0; word->kind == SG_WORD_DOTTED && i < sizeof types / sizeof types[0]; i++) {
        if (sg_word_is(word, types[i].text)) {
            *type = types[i].type;
            type->name = types[i].text;
            return true;
        }
    }
    return false;
}

bool sg_ptx_alignment(struct sg_ptx *ptx, uint64_t *alignment) {
    if (!sg_ptx_next(ptx) || !sg_ptx_integer(ptx, alignment))
        return false;
    if (*alignment == 0 || (*alignment & (*alignment - 1)) != 0)
        return sg_ptx_wrong(ptx, "an alignment is a power of two");
    return *alignment <= (1u << 30) || sg_ptx_wrong(ptx, "the alignment is too large");
}

/* ---- what comes before the name -------------------------------------------------------------- */

static bool attributes(struct sg_ptx *ptx, struct sg_ptx_variable *variable) {
    if (!sg_ptx_next(ptx) || !sg_ptx_expect(ptx, "("))
        return false;
    do {
        uint64_t number;
        if (sg_ptx_accept(ptx, ".managed")) {
            variable->managed = true;
        } else if (sg_ptx_accept(ptx, ".unified")) {
            if (!ptx->options->relocatable)
                return sg_ptx_wrong(ptx, "unified addresses are for inputs of a link");
            if (!sg_ptx_expect(ptx, "(") || !sg_ptx_integer(ptx, &number) ||
                !sg_ptx_expect(ptx, ",") || !sg_ptx_integer(ptx, &number) ||
                !sg_ptx_expect(ptx, ")"))
                return false;
        } else {
            return sg_ptx_unexpected(ptx, ".managed or .unified");
        }
    } while (sg_ptx_accept(ptx, ","));
    if (variable->managed && variable->space != SG_SPACE_GLOBAL)
        return sg_ptx_wrong(ptx, "only variables in .global can be managed");
    return sg_ptx_expect(ptx, ")");
}

static bool vector(struct sg_ptx *ptx, struct sg_ptx_variable *variable) {
    variable->vector = (unsigned)(ptx->word.text[2] - '0');
    return sg_ptx_next(ptx);
}

/* Up to and including the type. */
static bool specifiers(struct sg_ptx *ptx, struct sg_ptx_variable *variable) {
    variable->vector = 1;
    while (!sg_ptx_type(&ptx->word, &variable->type)) {
        bool good;
        if (sg_ptx_is(ptx, ".align"))
            good = sg_ptx_alignment(ptx, &variable->alignment);
        else if (sg_ptx_is(ptx, ".attribute"))
            good = sg_ptx_since_directive(ptx, ".attribute") && attributes(ptx, variable);
        else if (sg_ptx_is(ptx, ".v2") || sg_ptx_is(ptx, ".v4") || sg_ptx_is(ptx, ".v8"))
            good = vector(ptx, variable);
        else
            good = sg_ptx_unexpected(ptx, "a type");
        if (!good)
            return false;
    }
    if (variable->type.size == 16 && ptx->image->ptx_version < 83)
        return sg_ptx_wrong(ptx, ".b128 came with version 8.3");
    if (variable->type.predicate && variable->space != SG_SPACE_REG)
        return sg_ptx_wrong(ptx, "a predicate lives in a register");
    return sg_ptx_next(ptx);
}

/* ---- the name and what follows it ------------------------------------------------------------ */

static bool extent(struct sg_ptx *ptx, struct sg_ptx_variable *variable) {
    uint64_t count = 0;
    if (!sg_ptx_next(ptx))
        return false;
    if (variable->dimensions == SG_PTX_DIMENSIONS)
        return sg_ptx_wrong(ptx, "too many dimensions");
    if (sg_ptx_is(ptx, "]")) {
        if (variable->dimensions)
            return sg_ptx_wrong(ptx, "only the first extent may be open");
        variable->open = true;
    } else if (!sg_ptx_integer(ptx, &count)) {
        return false;
    }
    variable->open = variable->open || (variable->dimensions == 0 && count == 0);
    variable->extents[variable->dimensions++] = count;
    return sg_ptx_expect(ptx, "]");
}

/* Each variable of a range has its own place, unlike registers, which get one when used. */
#define MOST_OF_RANGE 65536

static bool range(struct sg_ptx *ptx, struct sg_ptx_variable *variable) {
    variable->ranged = true;
    if (!sg_ptx_next(ptx) || !sg_ptx_integer(ptx, &variable->range) || !sg_ptx_expect(ptx, ">"))
        return false;
    if (sg_ptx_is(ptx, "="))
        return sg_ptx_wrong(ptx, "a range has no initial value");
    return variable->space == SG_SPACE_REG || variable->range <= MOST_OF_RANGE ||
           sg_ptx_wrong(ptx, "a range of more than %d variables", MOST_OF_RANGE);
}

static bool name_and_extents(struct sg_ptx *ptx, struct sg_ptx_variable *variable) {
    if (ptx->word.kind != SG_WORD_NAME || sg_ptx_is(ptx, "_"))
        return sg_ptx_unexpected(ptx, "a name");
    variable->name = ptx->word;
    if (!sg_ptx_next(ptx))
        return false;
    if (sg_ptx_is(ptx, "<"))
        return range(ptx, variable);
    while (sg_ptx_is(ptx, "[")) {
        if (!extent(ptx, variable))
            return false;
    }
    return true;
}

/* An initial value may have determined the first extent. */
static bool total(struct sg_ptx *ptx, struct sg_ptx_variable *variable) {
    /* Sums of what is laid out side by side in memory of threads and blocks then fit 64 bits. */
    bool apart = variable->space == SG_SPACE_GLOBAL || variable->space == SG_SPACE_CONST;
    const uint64_t most = apart ? INT64_MAX : UINT32_MAX;
    variable->size = (uint64_t)variable->type.size * variable->vector;
    for (unsigned i = 0; i < variable->dimensions; i++) {
        if (__builtin_mul_overflow(variable->size, variable->extents[i], &variable->size) ||
            variable->size > most)
            return sg_ptx_wrong(ptx, "the variable is too large");
    }
    uint64_t natural = (uint64_t)variable->type.size * variable->vector;
    if (variable->alignment == 0)
        variable->alignment = natural > 128 ? 128 : natural;
    return true;
}

/* ---- of the module --------------------------------------------------------------------------- */

static bool allowed(struct sg_ptx *ptx, const struct sg_ptx_variable *variable) {
    /* Registers and .local at module level occur in old texts, but hardware accepts them. */
    return variable->space != SG_SPACE_PARAM ||
           sg_ptx_wrong(ptx, "a parameter belongs to a function");
}

static bool initial_allowed(struct sg_ptx *ptx, const struct sg_ptx_variable *variable) {
    if (variable->linkage == SG_LINK_EXTERN)
        return sg_ptx_wrong(ptx, "what is external has no initial value");
    if (variable->space != SG_SPACE_GLOBAL && variable->space != SG_SPACE_CONST)
        return sg_ptx_wrong(ptx, "only .global and .const have initial values");
    if (variable->type.half)
        return sg_ptx_wrong(ptx, "this type has no initial values");
    return true;
}

static void discard(struct sg_ptx_variable *variable) {
    for (size_t i = 0; i < variable->relocation_count; i++)
        free(variable->relocations[i].symbol);
    free(variable->relocations);
    free(variable->initial);
}

/* Moves the variable of a symbol into the image, which then owns the initial value. */
static bool keep(struct sg_ptx *ptx, struct sg_ptx_variable *variable, size_t symbol) {
    struct sg_image *image = ptx->image;
    size_t *index = &ptx->symbols[symbol].index;
    struct sg_image_variable *to;
    if (*index == SIZE_MAX) {
        to = sg_image_grow(image->variables, &image->variable_count, sizeof *to);
        if (!to)
            return sg_ptx_no_memory(ptx);
        image->variables = to;
        *index = image->variable_count - 1;
        to += *index;
        to->name = sg_ptx_symbol_text(ptx, symbol);
        if (!to->name)
            return false;
    } else {
        to = &image->variables[*index];
    }
    to->size = variable->size;
    to->alignment = variable->alignment;
    to->constant = variable->space == SG_SPACE_CONST;
    to->managed = variable->managed;
    to->external = variable->linkage == SG_LINK_EXTERN;
    to->visible = variable->linkage != SG_LINK_OWN && variable->linkage != SG_LINK_EXTERN;
    to->common = variable->linkage == SG_LINK_COMMON;
    to->weak = to->common || variable->linkage == SG_LINK_WEAK;
    to->initial = variable->initial;
    to->initial_size = variable->initial_size;
    to->relocations = variable->relocations;
    to->relocation_count = variable->relocation_count;
    variable->initial = NULL;
    variable->relocations = NULL;
    variable->relocation_count = 0;
    return true;
}

static bool keep_opaque(struct sg_ptx *ptx, const struct sg_ptx_variable *variable) {
    struct sg_image *image = ptx->image;
    const struct sg_word *name = &variable->name;
    bool added = true;
    if (variable->type.opaque == SG_OPAQUE_SAMPLER && !ptx->independent)
        return sg_ptx_wrong(ptx, "a sampler by itself needs texmode_independent");
    if (variable->type.opaque == SG_OPAQUE_SURFACE)
        added =
            sg_image_add_name(&image->surfaces, &image->surface_count, name->text, name->length);
    else if (variable->type.opaque != SG_OPAQUE_SAMPLER)
        added =
            sg_image_add_name(&image->textures, &image->texture_count, name->text, name->length);
    return added || sg_ptx_no_memory(ptx);
}

/* An array without a size may have any. */
static bool same_type(const struct sg_ptx_symbol *symbol, const struct sg_ptx_variable *variable) {
    return symbol->type.name == variable->type.name &&
           (symbol->size == variable->size || symbol->size == 0 || variable->size == 0);
}

/* A name may be redeclared while it is external or common. */
static bool again(struct sg_ptx *ptx, const struct sg_ptx_symbol *symbol,
                  const struct sg_ptx_variable *variable) {
    bool loose = !symbol->defined || symbol->linkage == SG_LINK_COMMON ||
                 variable->linkage == SG_LINK_EXTERN;
    if (symbol->what == SG_SYMBOL_VARIABLE && symbol->space == variable->space && loose)
        return same_type(symbol, variable) ||
               sg_ptx_wrong(ptx, "the variable was declared with another type, in line %zu",
                            symbol->line);
    return sg_ptx_wrong(ptx, "'%.*s' was declared before, in line %zu",
                        symbol->length < 80 ? (int)symbol->length : 80, symbol->name, symbol->line);
}

static bool in_image(const struct sg_ptx_variable *variable) {
    return (variable->space == SG_SPACE_GLOBAL || variable->space == SG_SPACE_CONST) &&
           variable->type.opaque == SG_OPAQUE_NONE;
}

static void describe(struct sg_ptx_symbol *symbol, const struct sg_ptx_variable *variable) {
    symbol->what = variable->type.opaque != SG_OPAQUE_NONE ? SG_SYMBOL_OPAQUE : SG_SYMBOL_VARIABLE;
    symbol->space = variable->space;
    symbol->linkage = variable->linkage;
    symbol->defined = variable->linkage != SG_LINK_EXTERN;
    symbol->size = variable->size;
    symbol->alignment = variable->alignment;
    symbol->type = variable->type;
    symbol->vector = variable->vector;
    symbol->ranged = variable->ranged;
    symbol->range = variable->range;
}

/* A symbol for each of a range, or for the one variable of a body; `own`: of a body. */
static bool nameless(struct sg_ptx *ptx, struct sg_ptx_variable *variable, bool own) {
    uint64_t count = variable->ranged ? variable->range : 1;
    for (uint64_t i = 0; i < count; i++) {
        struct sg_ptx_symbol *symbol = sg_ptx_nameless(ptx, &variable->name);
        if (!symbol)
            return false;
        describe(symbol, variable);
        symbol->own = own;
        symbol->element = variable->ranged ? (size_t)i + 1 : 0;
        symbol->ranged = false;
        if (in_image(variable) && !keep(ptx, variable, ptx->symbol_count - 1))
            return false;
    }
    return true;
}

static bool enter(struct sg_ptx *ptx, struct sg_ptx_variable *variable) {
    bool made;
    struct sg_ptx_symbol *symbol = sg_ptx_symbol(ptx, &variable->name, &made);
    if (!symbol)
        return false;
    if (!made && !again(ptx, symbol, variable))
        return false;
    /* Nothing new; an array's size stays known. */
    if (!made && (symbol->defined || (variable->size == 0 && symbol->size)))
        return true;
    if (variable->ranged && (variable->type.opaque || variable->space == SG_SPACE_TEX))
        return sg_ptx_wrong(ptx, "a range of textures, samplers or surfaces is not read");
    describe(symbol, variable);
    symbol->first_element = ptx->symbol_count;
    if (variable->type.opaque != SG_OPAQUE_NONE || variable->space == SG_SPACE_TEX)
        return keep_opaque(ptx, variable);
    if (variable->ranged)
        return variable->space == SG_SPACE_REG || nameless(ptx, variable, false);
    return !in_image(variable) || keep(ptx, variable, (size_t)(symbol - ptx->symbols));
}

/* In a body, names last until their block ends. */
static bool enter_local(struct sg_ptx *ptx, struct sg_ptx_variable *variable) {
    if (variable->space != SG_SPACE_GLOBAL && variable->space != SG_SPACE_CONST)
        return sg_ptx_declare_local(ptx, variable);
    if (variable->type.opaque != SG_OPAQUE_NONE || variable->linkage == SG_LINK_EXTERN)
        return sg_ptx_wrong(ptx, "textures, and what is external, belong to the module");
    size_t first = ptx->telling ? ptx->next_own : ptx->symbol_count;
    if (ptx->telling)
        ptx->next_own += variable->ranged ? (size_t)variable->range : 1;
    else if (!nameless(ptx, variable, true))
        return false;
    return sg_ptx_declare_own(ptx, variable, first);
}

static bool one(struct sg_ptx *ptx, struct sg_ptx_variable *variable) {
    if (!name_and_extents(ptx, variable))
        return false;
    if (sg_ptx_is(ptx, "=") &&
        (!initial_allowed(ptx, variable) || !sg_ptx_next(ptx) ||
         !(variable->type.opaque ? sg_ptx_opaque_initial : sg_ptx_initial)(ptx, variable)))
        return false;
    if (variable->open && variable->extents[0] == 0 && variable->linkage != SG_LINK_EXTERN)
        return sg_ptx_wrong(ptx, "an extent is missing");
    if (!total(ptx, variable))
        return false;
    return ptx->body ? enter_local(ptx, variable) : enter(ptx, variable);
}

bool sg_ptx_variables(struct sg_ptx *ptx, enum sg_linkage linkage) {
    struct sg_ptx_variable common = {.space = sg_ptx_space(&ptx->word), .linkage = linkage};
    if ((!ptx->body && !allowed(ptx, &common)) || !sg_ptx_next(ptx))
        return false;
    if (!specifiers(ptx, &common))
        return false;
    do {
        struct sg_ptx_variable variable = common;
        bool good = one(ptx, &variable);
        discard(&variable);
        if (!good)
            return false;
    } while (sg_ptx_accept(ptx, ","));
    return sg_ptx_expect(ptx, ";");
}
