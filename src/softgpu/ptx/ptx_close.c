/* The end of the text: the shared and local memory that entries use, and what nobody defined. */
#include "softgpu/ptx/ptx.h"

#include <stdlib.h>
#include <string.h>

/* Limit on calls followed for all entries together; compiled text needs a few for each. */
#define MOST_STEPS ((size_t)20000000)

static bool begins(const struct sg_ptx_symbol *symbol, const char *with) {
    return symbol->length > strlen(with) && memcmp(symbol->name, with, strlen(with)) == 0;
}

/*
 * cudaGraphSetConditional, cudaLaunchDevice, __cudaCDP2GetParameterBuffer and the like: for
 * hardware they come from a library of machine code that is linked in, or from the driver
 * (__cuda_syscall_…). Here they are known by name, and refused at the kernel where they do not run;
 * at once in a text that is loaded without a linker, unless they do run.
 */
static bool of_the_runtime(const struct sg_ptx_symbol *symbol) {
    size_t skip = symbol->length > 2 && memcmp(symbol->name, "__", 2) == 0 ? 2 : 0;
    const char *name = symbol->name + skip;
    return begins(symbol, "__cuda_syscall_") ||
           (symbol->length - skip > 4 && memcmp(name, "cuda", 4) == 0 && name[4] >= 'A' &&
            name[4] <= 'Z');
}

static bool runs_here(const struct sg_ptx_symbol *symbol) {
    static const char name[] = "cudaGraphSetConditional";
    return begins(symbol, "__cuda_syscall_") ||
           (symbol->length == strlen(name) && memcmp(symbol->name, name, strlen(name)) == 0);
}

/* Functions that the driver itself provides. */
static bool of_the_driver(const struct sg_ptx *ptx, const struct sg_ptx_symbol *symbol) {
    return sg_image_is_given(symbol->name, symbol->length) ||
           (symbol->linkage == SG_LINK_EXTERN && of_the_runtime(symbol) &&
            (ptx->options->relocatable || runs_here(symbol)));
}

static bool undefined(struct sg_ptx *ptx, const struct sg_ptx_symbol *symbol) {
    struct sg_image *image = ptx->image;
    if (!ptx->options->relocatable) {
        ptx->word.line = symbol->line;
        return sg_ptx_wrong(ptx, "'%.*s' is declared, but nowhere defined",
                            symbol->length < 80 ? (int)symbol->length : 80, symbol->name);
    }
    return sg_image_add_name(&image->undefined, &image->undefined_count, symbol->name,
                             symbol->length) ||
           sg_ptx_no_memory(ptx);
}

/* Lists what other images of a link may call; false when out of memory. */
static bool export(struct sg_image *image, const struct sg_ptx_symbol *symbol) {
    if (symbol->linkage == SG_LINK_VISIBLE)
        return sg_image_add_name(&image->exported, &image->exported_count, symbol->name,
                                 symbol->length);
    return symbol->linkage != SG_LINK_WEAK ||
           sg_image_add_name(&image->weak, &image->weak_count, symbol->name, symbol->length);
}

/*
 * An external variable that the text does not define, and no linker looks for: an H200 makes it as
 * if .extern were not there, zero, if it has a size.
 */
static bool settle_variable(struct sg_ptx *ptx, struct sg_ptx_symbol *symbol) {
    if (symbol->defined || symbol->index == SIZE_MAX || ptx->options->relocatable)
        return true;
    if (symbol->size == 0)
        return undefined(ptx, symbol);
    struct sg_image_variable *variable = &ptx->image->variables[symbol->index];
    variable->external = false;
    variable->visible = true;
    return true;
}

static bool settle_symbols(struct sg_ptx *ptx) {
    for (size_t i = 0; i < ptx->symbol_count; i++) {
        struct sg_ptx_symbol *symbol = &ptx->symbols[i];
        if (symbol->what == SG_SYMBOL_VARIABLE && !settle_variable(ptx, symbol))
            return false;
        bool function = symbol->what == SG_SYMBOL_FUNCTION, entry = symbol->what == SG_SYMBOL_ENTRY;
        bool missing = function && symbol->referenced && !of_the_driver(ptx, symbol);
        /* A declaration that is not external promises a body in this text. */
        missing = missing || (function && symbol->linkage != SG_LINK_EXTERN) || entry;
        if (!symbol->defined && missing && !undefined(ptx, symbol))
            return false;
        if (symbol->defined && function && !export(ptx->image, symbol))
            return sg_ptx_no_memory(ptx);
    }
    return true;
}

/* ---- calls, for linkers ---------------------------------------------------------------------- */

static bool is_code(const struct sg_ptx_symbol *symbol) {
    return symbol->what == SG_SYMBOL_FUNCTION || symbol->what == SG_SYMBOL_ENTRY;
}

static bool add_code(struct sg_ptx *ptx, size_t *code_of) {
    for (size_t i = 0; i < ptx->symbol_count; i++) {
        const struct sg_ptx_symbol *symbol = &ptx->symbols[i];
        if (!is_code(symbol))
            continue;
        code_of[i] = ptx->image->code_count;
        struct sg_image_code *code = sg_image_add_code(ptx->image, symbol->name, symbol->length);
        if (!code)
            return false;
        code->defined = symbol->defined;
        code->shared = !symbol->defined || symbol->linkage != SG_LINK_OWN;
        code->needed = symbol->defined
                           ? symbol->what == SG_SYMBOL_ENTRY
                           : symbol->what == SG_SYMBOL_ENTRY || symbol->linkage != SG_LINK_EXTERN;
    }
    return true;
}

static bool add_calls(struct sg_ptx *ptx, const size_t *code_of) {
    for (size_t i = 0; i < ptx->symbol_count; i++) {
        const struct sg_ptx_symbol *symbol = &ptx->symbols[i];
        for (size_t u = 0; is_code(symbol) && u < symbol->use_count; u++) {
            size_t to = ptx->uses[symbol->first_use + u];
            if (to != i && is_code(&ptx->symbols[to]) &&
                !sg_image_add_call(ptx->image, code_of[i], code_of[to]))
                return false;
        }
    }
    return true;
}

static bool keep_calls(struct sg_ptx *ptx) {
    size_t *code_of = calloc(ptx->symbol_count + 1, sizeof *code_of);
    bool kept = code_of && add_code(ptx, code_of) && add_calls(ptx, code_of);
    free(code_of);
    return kept || sg_ptx_no_memory(ptx);
}

/* ---- memory of entries ----------------------------------------------------------------------- */

struct walk {
    size_t *queue; /* functions reached but not yet visited */
    size_t queued, mark, steps;
    size_t *visited; /* those of an entry, itself first */
    size_t visited_count;
    size_t *found; /* what has shared memory: variables, and functions with some of their own */
    size_t found_count;
    uint64_t shared, unit;
    uint64_t local[8];
};

static void add_aligned(uint64_t *sum, uint64_t alignment, uint64_t size) {
    *sum = (*sum + alignment - 1) / alignment * alignment + size;
}

uint64_t sg_ptx_shared_unit(const struct sg_ptx_symbol *symbols, size_t count) {
    uint64_t unit = 1;
    for (size_t i = 0; i < count; i++) {
        const struct sg_ptx_symbol *one = &symbols[i];
        uint64_t wanted = one->alignment > 16 ? one->alignment : 16;
        if (one->what == SG_SYMBOL_VARIABLE && one->space == SG_SPACE_SHARED && !one->defined &&
            one->size == 0 && wanted > unit)
            unit = wanted;
    }
    return unit;
}

static void add_local(uint64_t *local, const struct sg_ptx_symbol *variable) {
    unsigned log = (unsigned)__builtin_ctzll(variable->alignment | 1u << 7);
    add_aligned(&local[log < 7 ? log : 7], variable->alignment, variable->size);
}

static void reach(struct walk *walk, struct sg_ptx_symbol *symbol, size_t index) {
    if (symbol->last_user == walk->mark)
        return;
    symbol->last_user = walk->mark;
    if (symbol->what == SG_SYMBOL_FUNCTION)
        walk->queue[walk->queued++] = index;
    else if (symbol->what == SG_SYMBOL_VARIABLE && symbol->space == SG_SPACE_SHARED)
        walk->found[walk->found_count++] = index;
    else if (symbol->what == SG_SYMBOL_VARIABLE && symbol->space == SG_SPACE_LOCAL)
        add_local(walk->local, symbol);
}

static int by_number(const void *a, const void *b) {
    size_t first = *(const size_t *)a, second = *(const size_t *)b;
    return first < second ? -1 : first > second;
}

/* As ptxas 13.0 lays them out: the entry's own are there already; variables of the module, then
 * other functions', in the order of the text. */
static void add_found(const struct sg_ptx *ptx, struct walk *walk) {
    qsort(walk->found, walk->found_count, sizeof *walk->found, by_number);
    for (size_t i = 0; i < walk->found_count; i++) {
        const struct sg_ptx_symbol *symbol = &ptx->symbols[walk->found[i]];
        if (symbol->what == SG_SYMBOL_VARIABLE)
            add_aligned(&walk->shared, symbol->alignment, symbol->size);
    }
    for (size_t i = 0; i < walk->found_count; i++) {
        const struct sg_ptx_symbol *symbol = &ptx->symbols[walk->found[i]];
        if (symbol->what != SG_SYMBOL_VARIABLE)
            add_aligned(&walk->shared, symbol->shared_alignment, symbol->shared);
    }
}

static bool follow(struct sg_ptx *ptx, struct walk *walk) {
    while (walk->queued) {
        size_t here = walk->queue[--walk->queued];
        const struct sg_ptx_symbol *symbol = &ptx->symbols[here];
        walk->visited[walk->visited_count++] = here;
        if (symbol->shared && symbol->what == SG_SYMBOL_FUNCTION)
            walk->found[walk->found_count++] = here;
        walk->steps += symbol->use_count + 1;
        if (walk->steps > MOST_STEPS)
            return sg_ptx_wrong(ptx, "the calls of the text are too many to follow");
        for (size_t i = 0; i < symbol->use_count; i++) {
            size_t index = ptx->uses[symbol->first_use + i];
            reach(walk, &ptx->symbols[index], index);
        }
    }
    return true;
}

static bool memory_of(struct sg_ptx *ptx, struct walk *walk, size_t index) {
    const struct sg_ptx_symbol *entry = &ptx->symbols[index];
    struct sg_image_function *function = &ptx->image->functions[entry->index];
    function->weak = entry->linkage == SG_LINK_WEAK;
    function->visible = function->weak || entry->linkage == SG_LINK_VISIBLE;
    /* These marks must differ from those of bodies. */
    walk->mark = ptx->symbol_count + 2 + index;
    walk->shared = entry->shared;
    memcpy(walk->local, entry->local, sizeof walk->local);
    walk->found_count = walk->visited_count = 0;
    walk->queue[walk->queued++] = index;
    if (!follow(ptx, walk))
        return false;
    add_found(ptx, walk);
    if (!ptx->options->relocatable)
        add_aligned(&walk->shared, walk->unit, 0);
    uint64_t local =
        sg_ptx_local_bytes(ptx, walk->local, walk->visited, walk->visited_count, walk->queue);
    /* An H200 accepts more than the 48 KiB that ptxas allows: all that a block can have. */
    const uint64_t most = ptx->options->most_shared ? ptx->options->most_shared : UINT32_MAX;
    if (walk->shared > most || local > UINT32_MAX)
        return sg_ptx_wrong(ptx, "%s uses too much shared or local memory", function->name);
    function->static_shared = (unsigned)walk->shared;
    function->local = (unsigned)local;
    return true;
}

static bool constants(struct sg_ptx *ptx) {
    struct sg_image *image = ptx->image;
    uint64_t sum = 0;
    for (size_t i = 0; i < image->variable_count; i++) {
        const struct sg_image_variable *variable = &image->variables[i];
        if (!variable->constant || variable->external)
            continue;
        add_aligned(&sum, variable->alignment, variable->size);
        if (sum > 0x10000)
            return sg_ptx_wrong(ptx, "the constants take more than 65536 bytes");
    }
    for (size_t i = 0; i < image->function_count; i++)
        image->functions[i].constant = (unsigned)sum;
    return true;
}

bool sg_ptx_close(struct sg_ptx *ptx) {
    if (ptx->debug && !ptx->debug_found)
        return sg_ptx_wrong(ptx, "target debug, but no debug information");
    ptx->image->unoptimized = ptx->debug;
    /* The narrowest register decides how wide addresses are, and only 32 bits are refused, with
     * .address_size 64 and without. */
    if (ptx->short_address && !ptx->tiny_addresses) {
        ptx->word.line = ptx->short_address;
        return sg_ptx_wrong(ptx, "an address has 64 bits, its register 32");
    }
    if (!settle_symbols(ptx) || !constants(ptx))
        return false;
    struct walk walk = {.unit = sg_ptx_shared_unit(ptx->symbols, ptx->symbol_count),
                        .queue = calloc(ptx->symbol_count + 1, sizeof *walk.queue),
                        .found = calloc(ptx->symbol_count + 1, sizeof *walk.found),
                        .visited = calloc(ptx->symbol_count + 1, sizeof *walk.visited)};
    bool good = walk.queue && walk.found && walk.visited;
    if (!good)
        (void)sg_ptx_no_memory(ptx);
    for (size_t i = 0; good && i < ptx->symbol_count; i++) {
        if (ptx->symbols[i].what == SG_SYMBOL_ENTRY && ptx->symbols[i].defined)
            good = memory_of(ptx, &walk, i);
    }
    free(walk.queue);
    free(walk.found);
    free(walk.visited);
    return good && (!ptx->options->relocatable || keep_calls(ptx));
}
