/* .entry and .func: parameters with their offsets in the buffer, limits, body. */
#include "softgpu/ptx/ptx_sink.h"

#include <stdlib.h>
#include <string.h>

/* ---- parameters ------------------------------------------------------------------------------ */

/*
 * Where parameters begin in the constant bank. Alignments apply to addresses in the bank: a
 * parameter aligned to more than 16 bytes shifts with the base, as the KPARAM_INFO that ptxas
 * writes shows.
 */
static uint64_t bank_base(const struct sg_ptx *ptx) {
    int device = ptx->options->architecture < 0 ? ptx->image->target : ptx->options->architecture;
    if (device >= 100)
        return 0x380;
    if (device >= 90)
        return 0x210;
    return device >= 70 ? 0x160 : 0x140;
}

struct parameters {
    struct sg_image_function *function; /* NULL: a .func */
    uint64_t end;                       /* of the buffer so far */
    enum sg_ptx_role role;
    size_t count;
    bool open; /* the last has no size */
};

static bool place(struct sg_ptx *ptx, struct parameters *list, const struct sg_ptx_variable *of) {
    /* Since version 8.1, for sm_70 and later; earlier documents have 4352 and 4096. */
    const uint64_t most = 32764;
    uint64_t base = bank_base(ptx), at = base + list->end;
    at = (at + of->alignment - 1) & ~(of->alignment - 1);
    uint64_t offset = at - base;
    if (of->size > most || offset > most || offset + of->size > most)
        return sg_ptx_wrong(ptx, "the parameters take more than %u bytes", (unsigned)most);
    struct sg_image_function *function = list->function;
    size_t count = function->parameter_count;
    struct sg_parameter *grown = sg_image_grow(function->parameters, &count, sizeof *grown);
    if (!grown)
        return sg_ptx_no_memory(ptx);
    function->parameters = grown;
    function->parameter_count = (unsigned)count;
    grown[count - 1] = (struct sg_parameter){(uint32_t)offset, (uint32_t)of->size};
    list->end = offset + of->size;
    return true;
}

/* .ptr [.space] [.align n], which says what a pointer points to. */
static bool pointer(struct sg_ptx *ptx) {
    uint64_t alignment;
    if (!sg_ptx_next(ptx))
        return false;
    if (sg_ptx_space(&ptx->word) != SG_SPACE_NONE && !sg_ptx_next(ptx))
        return false;
    return !sg_ptx_is(ptx, ".align") || sg_ptx_alignment(ptx, &alignment);
}

static bool vector(struct sg_ptx *ptx, struct sg_ptx_variable *parameter) {
    parameter->vector = (unsigned)(ptx->word.text[2] - '0');
    return sg_ptx_next(ptx);
}

/* ptxas accepts vectors in registers and arrays of them, and no others. */
static bool vector_allowed(struct sg_ptx *ptx, const struct sg_ptx_variable *parameter) {
    if (parameter->vector == 1)
        return true;
    if (parameter->type.size * parameter->vector > 16)
        return sg_ptx_wrong(ptx, "a vector has 128 bits at most");
    return parameter->space == SG_SPACE_REG || parameter->dimensions ||
           sg_ptx_wrong(ptx, "a vector that is no array is no parameter");
}

static bool parameter_specifiers(struct sg_ptx *ptx, struct sg_ptx_variable *parameter) {
    bool typed = false;
    parameter->vector = 1;
    while (ptx->word.kind == SG_WORD_DOTTED) {
        bool good;
        if (sg_ptx_is(ptx, ".align") && parameter->vector == 1)
            good = sg_ptx_alignment(ptx, &parameter->alignment);
        else if (sg_ptx_is(ptx, ".ptr") && typed)
            good = pointer(ptx);
        else if (!typed && parameter->vector == 1 &&
                 (sg_ptx_is(ptx, ".v2") || sg_ptx_is(ptx, ".v4")))
            good = vector(ptx, parameter);
        else if (!typed && sg_ptx_type(&ptx->word, &parameter->type))
            good = typed = sg_ptx_next(ptx);
        else
            good = sg_ptx_unexpected(ptx, "the parameter's type or name");
        if (!good)
            return false;
    }
    return typed || sg_ptx_unexpected(ptx, "the parameter's type");
}

static bool parameter_extents(struct sg_ptx *ptx, struct sg_ptx_variable *parameter) {
    uint64_t natural = (uint64_t)parameter->type.size * parameter->vector;
    parameter->size = natural;
    if (parameter->alignment == 0)
        parameter->alignment = natural;
    if (!sg_ptx_accept(ptx, "["))
        return ptx->result == CUDA_SUCCESS;
    uint64_t count = 0;
    if (!sg_ptx_is(ptx, "]") && !sg_ptx_integer(ptx, &count))
        return false;
    parameter->open = count == 0;
    parameter->dimensions = 1;
    parameter->extents[0] = count;
    if (__builtin_mul_overflow(natural, count, &parameter->size))
        return sg_ptx_wrong(ptx, "the parameter is too large");
    return sg_ptx_expect(ptx, "]");
}

static bool parameter(struct sg_ptx *ptx, struct parameters *list) {
    struct sg_ptx_variable one = {.space = sg_ptx_space(&ptx->word)};
    bool entry = list->function != NULL;
    if (one.space != SG_SPACE_PARAM && (entry || one.space != SG_SPACE_REG))
        return sg_ptx_unexpected(ptx, ".param");
    if (!sg_ptx_next(ptx) || !parameter_specifiers(ptx, &one))
        return false;
    if (one.type.size == 16 && ptx->image->ptx_version < 83)
        return sg_ptx_wrong(ptx, ".b128 came with version 8.3");
    if (one.type.predicate && one.space != SG_SPACE_REG)
        return sg_ptx_wrong(ptx, "a predicate is no parameter");
    if (ptx->word.kind != SG_WORD_NAME)
        return sg_ptx_unexpected(ptx, "the parameter's name");
    one.name = ptx->word;
    if (!sg_ptx_next(ptx) || !parameter_extents(ptx, &one) || !vector_allowed(ptx, &one))
        return false;
    if (entry && one.type.opaque != SG_OPAQUE_NONE) {
        /* The text compiles, but the result does not load. */
        sg_ptx_wrong(ptx, "a parameter of an entry is no texture, sampler or surface");
        ptx->result = CUDA_ERROR_INVALID_IMAGE;
        return false;
    }
    if (entry && one.open)
        return sg_ptx_wrong(ptx, "a parameter of an entry has a size");
    if (!sg_word_is(&one.name, "_") && !sg_ptx_declare_local(ptx, &one))
        return false;
    list->count++;
    list->open = one.open;
    if (entry && !place(ptx, list, &one))
        return false;
    if (!ptx->telling)
        return true;
    uint64_t offset = entry ? list->function->parameters[list->count - 1].offset : 0;
    return sg_ptx_tell_declaration(ptx, &one, list->role, offset);
}

/* ( … ), optional. */
static bool parameters(struct sg_ptx *ptx, struct parameters *list) {
    if (!sg_ptx_accept(ptx, "("))
        return ptx->result == CUDA_SUCCESS;
    if (sg_ptx_accept(ptx, ")"))
        return true;
    do {
        if (!parameter(ptx, list))
            return false;
    } while (sg_ptx_accept(ptx, ","));
    return sg_ptx_expect(ptx, ")");
}

/* ---- limits ---------------------------------------------------------------------------------- */

static bool numbers(struct sg_ptx *ptx, uint64_t *to, unsigned most) {
    for (unsigned i = 0; i < most; i++)
        to[i] = 1;
    unsigned i = 0;
    do {
        if (i == most)
            return sg_ptx_unexpected(ptx, "the end of the list");
        if (!sg_ptx_integer(ptx, &to[i]))
            return false;
        if (to[i] == 0 || to[i] > UINT32_MAX)
            return sg_ptx_wrong(ptx, "the number must be greater than zero, and fit");
        i++;
    } while (sg_ptx_accept(ptx, ","));
    return ptx->result == CUDA_SUCCESS;
}

struct limits {
    bool max_threads, required_threads, cluster, rank, registers;
};

static unsigned product(const uint64_t *of) {
    uint64_t all;
    if (__builtin_mul_overflow(of[0], of[1], &all) || __builtin_mul_overflow(all, of[2], &all) ||
        all > UINT32_MAX)
        return UINT32_MAX;
    return (unsigned)all;
}

static bool cluster_allowed(struct sg_ptx *ptx) {
    return ptx->image->target >= 90 || sg_ptx_wrong(ptx, "clusters need target sm_90 or later");
}

static void set_three(unsigned *to, const uint64_t *from) {
    for (unsigned i = 0; i < 3; i++)
        to[i] = (unsigned)from[i];
}

static bool limit(struct sg_ptx *ptx, struct sg_image_function *function, struct limits *given,
                  bool *known) {
    uint64_t n[3];
    *known = true;
    if (sg_ptx_accept(ptx, ".maxntid")) {
        given->max_threads = true;
        if (!numbers(ptx, n, 3))
            return false;
        function->max_threads = product(n);
    } else if (sg_ptx_accept(ptx, ".reqntid")) {
        given->required_threads = true;
        if (!numbers(ptx, n, 3))
            return false;
        set_three(function->required_threads, n);
    } else if (sg_ptx_accept(ptx, ".minnctapersm") || sg_ptx_accept(ptx, ".maxnctapersm")) {
        return numbers(ptx, n, 1);
    } else if (sg_ptx_accept(ptx, ".maxnreg")) {
        given->registers = true;
        return numbers(ptx, n, 1);
    } else if (sg_ptx_accept(ptx, ".reqnctapercluster")) {
        given->cluster = true;
        if (!numbers(ptx, n, 3))
            return false;
        set_three(function->cluster, n);
        return cluster_allowed(ptx);
    } else if (sg_ptx_accept(ptx, ".maxclusterrank")) {
        given->rank = true;
        if (!numbers(ptx, n, 1))
            return false;
        function->max_cluster_rank = (unsigned)n[0];
        return cluster_allowed(ptx);
    } else if (sg_ptx_accept(ptx, ".explicitcluster")) {
        function->explicit_cluster = true;
        return cluster_allowed(ptx);
    } else if (sg_ptx_accept(ptx, ".blocksareclusters")) {
        return cluster_allowed(ptx);
    } else {
        *known = false;
    }
    return ptx->result == CUDA_SUCCESS;
}

static bool pragmas(struct sg_ptx *ptx) {
    while (sg_ptx_accept(ptx, ".pragma")) {
        do {
            if (ptx->word.kind != SG_WORD_STRING)
                return sg_ptx_unexpected(ptx, "a text in quotes");
            if (!sg_ptx_next(ptx))
                return false;
        } while (sg_ptx_accept(ptx, ","));
        if (!sg_ptx_expect(ptx, ";"))
            return false;
    }
    return ptx->result == CUDA_SUCCESS;
}

static bool limits(struct sg_ptx *ptx, struct sg_image_function *function) {
    struct limits given = {0};
    for (bool known = true; known;) {
        if (!pragmas(ptx) || !limit(ptx, function, &given, &known))
            return false;
    }
    if (given.max_threads && given.required_threads)
        return sg_ptx_wrong(ptx, ".maxntid and .reqntid contradict each other");
    if (given.cluster && given.rank)
        return sg_ptx_wrong(ptx, ".reqnctapercluster and .maxclusterrank contradict each other");
    return true;
}

/* .noreturn, .unique, .abi_preserve n, .abi_preserve_control n */
static bool function_directives(struct sg_ptx *ptx) {
    uint64_t number;
    for (;;) {
        if (!pragmas(ptx))
            return false;
        if (sg_ptx_accept(ptx, ".noreturn") || sg_ptx_accept(ptx, ".unique"))
            continue;
        if (!sg_ptx_accept(ptx, ".abi_preserve") && !sg_ptx_accept(ptx, ".abi_preserve_control"))
            return ptx->result == CUDA_SUCCESS;
        if (!sg_ptx_integer(ptx, &number))
            return false;
    }
}

/* ---- the function ---------------------------------------------------------------------------- */

static struct sg_image_function *add_entry(struct sg_ptx *ptx, const struct sg_word *name) {
    struct sg_image *image = ptx->image;
    struct sg_image_function *grown =
        sg_image_grow(image->functions, &image->function_count, sizeof *grown);
    if (grown) {
        image->functions = grown;
        grown += image->function_count - 1;
        grown->name = sg_image_text(name->text, name->length);
        if (grown->name)
            return grown;
    }
    sg_ptx_no_memory(ptx);
    return NULL;
}

/* The symbol of a name that may already have been declared, but not with a body. */
static bool introduce(struct sg_ptx *ptx, bool entry, enum sg_linkage linkage, size_t *index) {
    bool made;
    if (ptx->word.kind != SG_WORD_NAME || sg_ptx_is(ptx, "_"))
        return sg_ptx_unexpected(ptx, "the name of a function");
    struct sg_ptx_symbol *symbol = sg_ptx_find(ptx, ptx->word.text, ptx->word.length);
    made = !symbol;
    if (made)
        symbol = sg_ptx_symbol(ptx, &ptx->word, &made);
    if (!symbol)
        return false;
    if (made) {
        symbol->what = entry ? SG_SYMBOL_ENTRY : SG_SYMBOL_FUNCTION;
        symbol->linkage = linkage;
    } else if (symbol->what != (entry ? SG_SYMBOL_ENTRY : SG_SYMBOL_FUNCTION)) {
        return sg_ptx_wrong(ptx, "the name was declared as something else, in line %zu",
                            symbol->line);
    }
    *index = (size_t)(symbol - ptx->symbols);
    return true;
}

static bool body(struct sg_ptx *ptx, size_t index, enum sg_linkage linkage) {
    struct sg_ptx_symbol *symbol = &ptx->symbols[index];
    if (symbol->defined && !ptx->telling)
        return sg_ptx_wrong(ptx, "the function has two bodies");
    if (linkage == SG_LINK_EXTERN)
        return sg_ptx_wrong(ptx, "an external function has no body here");
    symbol->defined = true;
    symbol->start = ptx->function_start;
    symbol->start_line = ptx->function_line;
    symbol->first_use = ptx->use_count;
    if (!ptx->telling)
        symbol->first_own = ptx->symbol_count;
    ptx->next_own = symbol->first_own;
    bool good = sg_ptx_next(ptx) && sg_ptx_body(ptx);
    symbol = &ptx->symbols[index];
    symbol->use_count = ptx->use_count - symbol->first_use;
    return good;
}

/* Of an entry's declarations, the image lists the one with the body. */
static bool entry(struct sg_ptx *ptx, size_t index, enum sg_linkage linkage,
                  const struct sg_word *name) {
    struct sg_image *image = ptx->image;
    struct parameters list = {.function = add_entry(ptx, name), .role = SG_ROLE_PARAMETER};
    if (!list.function || !parameters(ptx, &list))
        return false;
    list.function->parameter_bytes = (unsigned)list.end;
    if (!limits(ptx, list.function))
        return false;
    if (sg_ptx_is(ptx, "{")) {
        ptx->symbols[index].index = image->function_count - 1;
        return body(ptx, index, linkage);
    }
    free(list.function->name);
    free(list.function->parameters);
    /* The memory is kept: growing looks at the count alone, and only at powers of two. */
    image->function_count--;
    return sg_ptx_expect(ptx, ";");
}

static bool attribute(struct sg_ptx *ptx) {
    uint64_t number;
    if (!sg_ptx_accept(ptx, ".attribute"))
        return ptx->result == CUDA_SUCCESS;
    return sg_ptx_expect(ptx, "(") && sg_ptx_expect(ptx, ".unified") && sg_ptx_expect(ptx, "(") &&
           sg_ptx_integer(ptx, &number) && sg_ptx_expect(ptx, ",") &&
           sg_ptx_integer(ptx, &number) && sg_ptx_expect(ptx, ")") && sg_ptx_expect(ptx, ")");
}

/* How a function is called: all its declarations must agree. */
static bool prototype(struct sg_ptx *ptx, struct sg_ptx_symbol *symbol,
                      const struct parameters *results, const struct parameters *list) {
    if (symbol->prototyped &&
        (symbol->parameters != list->count || symbol->results != results->count))
        return sg_ptx_wrong(ptx, "the function was declared with other parameters, in line %zu",
                            symbol->line);
    symbol->prototyped = true;
    symbol->variadic = list->open;
    symbol->parameters = list->count;
    symbol->results = results->count;
    return true;
}

static bool device_function(struct sg_ptx *ptx, size_t index, enum sg_linkage linkage,
                            const struct parameters *results) {
    struct parameters list = {.role = SG_ROLE_PARAMETER};
    if (!sg_ptx_next(ptx) || !parameters(ptx, &list) ||
        !prototype(ptx, &ptx->symbols[index], results, &list) || !function_directives(ptx))
        return false;
    if (sg_ptx_is(ptx, "{"))
        return body(ptx, index, linkage);
    /* A prototype's semicolon may be left out, as old compilers did: a directive follows. */
    return sg_ptx_accept(ptx, ";") || ptx->result == CUDA_SUCCESS;
}

bool sg_ptx_function(struct sg_ptx *ptx, enum sg_linkage linkage) {
    bool is_entry = sg_ptx_is(ptx, ".entry");
    struct parameters results = {.role = SG_ROLE_RESULT};
    size_t index = 0;
    ptx->function_start = ptx->word.text;
    ptx->function_line = ptx->word.line;
    if (!sg_ptx_next(ptx))
        return false;
    sg_names_clear(&ptx->locals);
    ptx->shadow_count = ptx->block_count = ptx->block_ids = 0;
    free(ptx->shadows);
    free(ptx->blocks);
    ptx->shadows = NULL;
    ptx->blocks = NULL;
    ptx->body = ptx->symbol_count + 1;
    bool good = (is_entry || (attribute(ptx) && parameters(ptx, &results))) &&
                introduce(ptx, is_entry, linkage, &index);
    if (good) {
        struct sg_word name = ptx->word;
        ptx->body = index + 1;
        good = is_entry ? sg_ptx_next(ptx) && entry(ptx, index, linkage, &name)
                        : device_function(ptx, index, linkage, &results);
    }
    ptx->body = 0;
    return good;
}
