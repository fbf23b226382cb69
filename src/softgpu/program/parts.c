/* The texts that a program is made of: one, or those that a linker has joined. */
#include "softgpu/program/build.h"

#include <stdlib.h>
#include <string.h>

/* A function's number: the text's above these bits, the symbol's in them; below 2^28 in all. */
#define SYMBOL_BITS 20
#define PART_BITS   8

/* A linked image contains its texts, not yet read. */
static CUresult read_part(const struct sg_build *b, const char *text, struct sg_build_part *part) {
    const struct sg_image_options options = {.architecture = b->image->target,
                                             .suffix = b->image->target >= 90 ? 'a' : 0,
                                             .newest_ptx = b->image->ptx_version,
                                             .relocatable = true};
    part->own = calloc(1, sizeof *part->own);
    if (!part->own)
        return CUDA_ERROR_OUT_OF_MEMORY;
    part->image = part->own;
    const struct sg_bytes bytes = {(const unsigned char *)text, strlen(text)};
    return sg_ptx_read(bytes, &options, b->log, part->own);
}

static CUresult begin_part(const struct sg_build *b, const char *text, struct sg_build_part *part) {
    part->image = b->image;
    CUresult result = b->image->outline ? CUDA_SUCCESS : read_part(b, text, part);
    if (result != CUDA_SUCCESS)
        return result;
    size_t symbols = part->image->outline->symbol_count;
    part->again = sg_ptx_again_begin(part->image, b->log);
    part->function_of = calloc(symbols + 1, sizeof *part->function_of);
    part->variable_of = calloc(symbols + 1, sizeof *part->variable_of);
    return part->again && part->function_of && part->variable_of ? CUDA_SUCCESS
                                                                 : CUDA_ERROR_OUT_OF_MEMORY;
}

void sg_build_use(struct sg_build *b, uint32_t part) {
    const struct sg_build_part *one = &b->parts[part];
    b->part = part;
    b->outline = one->image->outline;
    b->again = one->again;
    b->function_of = one->function_of;
    b->variable_of = one->variable_of;
}

static bool is_entry(const struct sg_build_part *part, const char *name, size_t *symbol) {
    const struct sg_ptx_outline *outline = part->image->outline;
    return outline && sg_names_find(&outline->names, 0, name, strlen(name), symbol) &&
           outline->symbols[*symbol].what == SG_SYMBOL_ENTRY && outline->symbols[*symbol].start;
}

static CUresult read_parts(struct sg_build *b) {
    const struct sg_image *image = b->image;
    size_t count = image->ptx ? 1 : image->part_count;
    if (count > 1u << PART_BITS)
        return CUDA_ERROR_NOT_SUPPORTED;
    b->parts = calloc(count + 1, sizeof *b->parts);
    if (!b->parts)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < count; i++) {
        const char *text = image->ptx ? image->ptx : image->parts[i];
        if (!text[0]) /* machine code: nothing it defines is found */
            continue;
        CUresult result = begin_part(b, text, &b->parts[i]);
        b->part_count = (uint32_t)i + 1;
        if (result == CUDA_SUCCESS && count > 1 &&
            b->parts[i].image->outline->symbol_count >> SYMBOL_BITS)
            result = CUDA_ERROR_NOT_SUPPORTED;
        if (result != CUDA_SUCCESS)
            return result;
    }
    return CUDA_SUCCESS;
}

CUresult sg_build_parts_begin(struct sg_build *b, const char *entry, size_t *symbol) {
    CUresult result = read_parts(b);
    if (result != CUDA_SUCCESS)
        return result;
    for (uint32_t i = 0; i < b->part_count; i++)
        if (b->parts[i].image && is_entry(&b->parts[i], entry, symbol)) {
            sg_build_use(b, i);
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_NOT_FOUND;
}

void sg_build_parts_end(struct sg_build *b) {
    for (uint32_t i = 0; i < b->part_count; i++) {
        sg_ptx_again_end(b->parts[i].again);
        free(b->parts[i].function_of);
        free(b->parts[i].variable_of);
        sg_image_free(b->parts[i].own);
    }
    free(b->parts);
}

/* ---- names of several texts ------------------------------------------------------------------ */

static bool is_defined(const struct sg_ptx_symbol *symbol) {
    return symbol->what == SG_SYMBOL_FUNCTION || symbol->what == SG_SYMBOL_ENTRY
               ? symbol->start || symbol->alias
               : symbol->defined;
}

/* The first strong definition, else the first weak one, as linkers do. */
void sg_build_definer(const struct sg_build *b, size_t symbol, uint32_t *part, size_t *there) {
    const struct sg_ptx_symbol *wanted = &b->outline->symbols[symbol];
    *part = b->part;
    *there = symbol;
    bool found = false;
    if (b->part_count == 1 || wanted->linkage == SG_LINK_OWN)
        return;
    for (uint32_t i = 0; i < b->part_count; i++) {
        const struct sg_image *image = b->parts[i].image;
        size_t at;
        if (!image || !sg_names_find(&image->outline->names, 0, wanted->name, wanted->length, &at))
            continue;
        const struct sg_ptx_symbol *one = &image->outline->symbols[at];
        bool strong = one->linkage == SG_LINK_VISIBLE;
        if (one->linkage == SG_LINK_OWN || !is_defined(one) || (found && !strong))
            continue;
        *part = i;
        *there = at;
        if (strong)
            return;
        found = true;
    }
}

uint32_t sg_build_ordinal(uint32_t part, size_t symbol) {
    return part << SYMBOL_BITS | (uint32_t)symbol;
}

uint64_t sg_build_file_number(uint32_t part, uint64_t number) {
    return (uint64_t)part << 32 | number;
}

size_t sg_build_alias(const struct sg_build *b, size_t symbol) {
    /* An alias may name an alias; each was declared before, so this ends. */
    for (size_t i = 0; i < b->outline->symbol_count && b->outline->symbols[symbol].alias; i++)
        symbol = b->outline->symbols[symbol].alias - 1;
    return symbol;
}

/* ---- functions by name ----------------------------------------------------------------------- */

struct sg_function_names {
    struct sg_build build;
};

CUresult sg_function_names_begin(const struct sg_image *image, struct sg_function_names **names) {
    if (!image->ptx && !image->part_count)
        return CUDA_ERROR_INVALID_VALUE;
    struct sg_function_names *made = calloc(1, sizeof *made);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made->build.image = image;
    CUresult result = read_parts(&made->build);
    if (result == CUDA_SUCCESS)
        *names = made;
    else
        sg_function_names_end(made);
    return result;
}

bool sg_function_ordinal(struct sg_function_names *names, unsigned part, const char *name,
                         uint32_t *ordinal) {
    struct sg_build *b = &names->build;
    uint32_t definer;
    size_t symbol;
    if (part >= b->part_count || !b->parts[part].image)
        return false;
    sg_build_use(b, part);
    if (!sg_names_find(&b->outline->names, 0, name, strlen(name), &symbol))
        return false;
    sg_build_definer(b, symbol, &definer, &symbol);
    sg_build_use(b, definer);
    symbol = sg_build_alias(b, symbol);
    const struct sg_ptx_symbol *found = &b->outline->symbols[symbol];
    if (found->what != SG_SYMBOL_FUNCTION || !found->start)
        return false;
    *ordinal = sg_build_ordinal(definer, symbol);
    return true;
}

void sg_function_names_end(struct sg_function_names *names) {
    if (!names)
        return;
    sg_build_parts_end(&names->build);
    free(names);
}
