/* Where the functions of a text are, kept with its image, and rereading one of them. */
#include "softgpu/ptx/ptx_sink.h"

#include <stdlib.h>
#include <string.h>

/* ---- the outline ----------------------------------------------------------------------------- */

struct sg_ptx_outline *sg_ptx_outline_make(const struct sg_ptx *ptx, const char *text) {
    const size_t symbols = ptx->symbol_count * sizeof *ptx->symbols;
    const size_t slots = ptx->names.room * sizeof *ptx->names.slots;
    const size_t files = ptx->file_count * sizeof(struct sg_ptx_file);
    struct sg_ptx_outline *made = calloc(1, sizeof *made + symbols + slots + files);
    if (!made)
        return NULL;
    const char *before = ptx->words.end - strlen(text); /* the text that was read */
    struct sg_ptx_symbol *symbol = (struct sg_ptx_symbol *)(made + 1);
    struct sg_name_slot *slot = (struct sg_name_slot *)(symbol + ptx->symbol_count);
    struct sg_ptx_file *file = (struct sg_ptx_file *)(slot + ptx->names.room);
    *made = (struct sg_ptx_outline){
        .architecture = ptx->options->architecture,
        .symbols = symbol,
        .symbol_count = ptx->symbol_count,
        .names = {.slots = slot, .room = ptx->names.room, .used = ptx->names.used},
        .files = file,
        .file_count = ptx->file_count};
    for (size_t i = 0; i < ptx->symbol_count; i++) {
        symbol[i] = ptx->symbols[i];
        symbol[i].name = text + (symbol[i].name - before);
        symbol[i].start = symbol[i].start ? text + (symbol[i].start - before) : NULL;
    }
    for (size_t i = 0; i < ptx->names.room; i++) {
        slot[i] = ptx->names.slots[i];
        slot[i].name = slot[i].name ? text + (slot[i].name - before) : NULL;
    }
    for (size_t i = 0; i < ptx->file_count; i++) {
        const struct sg_word *name = &ptx->files[i].name;
        file[i] = (struct sg_ptx_file){ptx->files[i].number, text + (name->text + 1 - before),
                                       name->length - 2};
    }
    return made;
}

/* ---- reading again --------------------------------------------------------------------------- */

struct sg_ptx_again {
    const struct sg_image *image;
    struct sg_ptx ptx;
    struct sg_ptx_telling telling;
    struct sg_image_options options;
};

struct sg_ptx_again *sg_ptx_again_begin(const struct sg_image *image, struct sg_image_log *log) {
    const struct sg_ptx_outline *outline = image->outline;
    struct sg_ptx_again *again = calloc(1, sizeof *again);
    if (!again)
        return NULL;
    again->image = image;
    again->options = (struct sg_image_options){.architecture = outline->architecture,
                                               .newest_ptx = image->ptx_version,
                                               .relocatable = true};
    again->ptx = (struct sg_ptx){.options = &again->options,
                                 .log = log,
                                 .names = outline->names,
                                 .symbol_count = outline->symbol_count,
                                 .telling = &again->telling};
    /* Reading a body modifies symbols; names are only looked up. */
    again->ptx.symbols = malloc((outline->symbol_count + 1) * sizeof *again->ptx.symbols);
    if (!again->ptx.symbols) {
        free(again);
        return NULL;
    }
    if (outline->symbol_count)
        memcpy(again->ptx.symbols, outline->symbols,
               outline->symbol_count * sizeof *again->ptx.symbols);
    return again;
}

CUresult sg_ptx_again_read(struct sg_ptx_again *again, size_t symbol, struct sg_ptx_sink *sink) {
    struct sg_ptx *ptx = &again->ptx;
    const struct sg_image *image = again->image;
    const struct sg_ptx_symbol *function = &ptx->symbols[symbol];
    struct sg_image scratch = {.ptx_version = image->ptx_version, .target = image->target};
    ptx->image = &scratch;
    ptx->words =
        (struct sg_words){function->start, image->ptx + strlen(image->ptx), function->start_line};
    again->telling.sink = sink;
    again->telling.declared = again->telling.noted_count = 0;
    again->telling.statement = (struct sg_ptx_statement){0};
    bool good = sg_ptx_next(ptx) && sg_ptx_function(ptx, SG_LINK_OWN);
    for (size_t i = 0; i < scratch.function_count; i++) {
        free(scratch.functions[i].name);
        free(scratch.functions[i].parameters);
    }
    free(scratch.functions);
    if (!good && ptx->result == CUDA_SUCCESS)
        ptx->result = CUDA_ERROR_INVALID_PTX;
    return ptx->result;
}

void sg_ptx_again_end(struct sg_ptx_again *again) {
    if (!again)
        return;
    struct sg_ptx *ptx = &again->ptx;
    free(ptx->symbols);
    free(ptx->pending);
    free(ptx->uses);
    free(ptx->blocks);
    free(ptx->shadows);
    sg_names_clear(&ptx->locals);
    free(again->telling.noted);
    free(again->telling.operands);
    free(again);
}
