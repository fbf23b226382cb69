/* PTX text: its head, the directives of the module, and the image they produce. */
#include "softgpu/image/float_modes.h"
#include "softgpu/ptx/ptx_sink.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the next word --------------------------------------------------------------------------- */

bool sg_ptx_wrong(struct sg_ptx *ptx, const char *format, ...) {
    if (ptx->result != CUDA_SUCCESS)
        return false;
    ptx->result = CUDA_ERROR_INVALID_PTX;
    char text[300];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    sg_image_log_error(ptx->log, ptx->options->name, ptx->word.line, "%s", text);
    return false;
}

bool sg_ptx_no_memory(struct sg_ptx *ptx) {
    if (ptx->result == CUDA_SUCCESS)
        ptx->result = CUDA_ERROR_OUT_OF_MEMORY;
    return false;
}

bool sg_ptx_unexpected(struct sg_ptx *ptx, const char *wanted) {
    if (ptx->word.kind == SG_WORD_END)
        return sg_ptx_wrong(ptx, "the text ends where %s should come", wanted);
    int length = ptx->word.length < 60 ? (int)ptx->word.length : 60;
    return sg_ptx_wrong(ptx, "found '%.*s' where %s should come", length, ptx->word.text, wanted);
}

bool sg_ptx_next(struct sg_ptx *ptx) {
    sg_words_next(&ptx->words, &ptx->word);
    if (ptx->word.kind != SG_WORD_WRONG)
        return true;
    int length = ptx->word.length < 40 ? (int)ptx->word.length : 40;
    return sg_ptx_wrong(ptx, "cannot make sense of '%.*s'", length, ptx->word.text);
}

bool sg_ptx_is(const struct sg_ptx *ptx, const char *text) {
    return sg_word_is(&ptx->word, text);
}

bool sg_ptx_accept(struct sg_ptx *ptx, const char *text) {
    return ptx->result == CUDA_SUCCESS && sg_ptx_is(ptx, text) &&
           sg_ptx_since_directive(ptx, text) && sg_ptx_next(ptx);
}

bool sg_ptx_expect(struct sg_ptx *ptx, const char *text) {
    if (!sg_ptx_is(ptx, text))
        return sg_ptx_unexpected(ptx, text);
    return sg_ptx_next(ptx);
}

bool sg_ptx_integer(struct sg_ptx *ptx, uint64_t *number) {
    if (ptx->word.kind != SG_WORD_INTEGER)
        return sg_ptx_unexpected(ptx, "a whole number");
    *number = ptx->word.number;
    return sg_ptx_next(ptx);
}

bool sg_ptx_skip_block(struct sg_ptx *ptx) {
    size_t depth = 0;
    do {
        if (ptx->word.kind == SG_WORD_END)
            return sg_ptx_unexpected(ptx, "}");
        if (sg_ptx_is(ptx, "{"))
            depth++;
        else if (sg_ptx_is(ptx, "}"))
            depth--;
        if (!sg_ptx_next(ptx))
            return false;
    } while (depth > 0);
    return true;
}

/* ---- symbols of the module ------------------------------------------------------------------- */

struct sg_ptx_symbol *sg_ptx_find(struct sg_ptx *ptx, const char *name, size_t length) {
    size_t index;
    return sg_names_find(&ptx->names, 0, name, length, &index) ? &ptx->symbols[index] : NULL;
}

struct sg_ptx_symbol *sg_ptx_symbol(struct sg_ptx *ptx, const struct sg_word *name, bool *made) {
    size_t found;
    if (!sg_names_add(&ptx->names, 0, name->text, name->length, ptx->symbol_count, &found)) {
        sg_ptx_no_memory(ptx);
        return NULL;
    }
    *made = found == ptx->symbol_count;
    return *made ? sg_ptx_nameless(ptx, name) : &ptx->symbols[found];
}

struct sg_ptx_symbol *sg_ptx_nameless(struct sg_ptx *ptx, const struct sg_word *name) {
    struct sg_ptx_symbol *grown = sg_image_grow(ptx->symbols, &ptx->symbol_count, sizeof *grown);
    if (!grown) {
        sg_ptx_no_memory(ptx);
        return NULL;
    }
    ptx->symbols = grown;
    grown += ptx->symbol_count - 1;
    *grown = (struct sg_ptx_symbol){
        .name = name->text, .length = name->length, .index = SIZE_MAX, .line = name->line};
    return grown;
}

/* Two bodies, or two blocks of one, may each have a variable of the same name. A name of the text
 * has no point in it. */
static void end_of_name(const struct sg_ptx_symbol *of, size_t symbol, char end[48]) {
    int used = 0;
    end[0] = '\0';
    if (of->element)
        used = snprintf(end, 48, "%zu", of->element - 1);
    if (of->own)
        snprintf(end + used, 48 - (size_t)used, ".%zu", symbol);
}

char *sg_ptx_symbol_text(struct sg_ptx *ptx, size_t symbol) {
    const struct sg_ptx_symbol *of = &ptx->symbols[symbol];
    char end[48];
    end_of_name(of, symbol, end);
    char *text = malloc(of->length + strlen(end) + 1);
    if (text) {
        memcpy(text, of->name, of->length);
        strcpy(text + of->length, end);
    } else {
        sg_ptx_no_memory(ptx);
    }
    return text;
}

bool sg_ptx_symbol_is(const struct sg_ptx_symbol *of, size_t symbol, const char *text) {
    char end[48];
    if (strncmp(text, of->name, of->length) != 0)
        return false;
    end_of_name(of, symbol, end);
    return strcmp(text + of->length, end) == 0;
}

/* ---- directives of the module ---------------------------------------------------------------- */

/* .file 1 "name" [, time, size] */
static bool file_directive(struct sg_ptx *ptx) {
    uint64_t number = 0;
    if (!sg_ptx_next(ptx) || !sg_ptx_integer(ptx, &number))
        return false;
    if (ptx->word.kind != SG_WORD_STRING)
        return sg_ptx_unexpected(ptx, "the name of a file");
    struct sg_ptx_source *grown = sg_image_grow(ptx->files, &ptx->file_count, sizeof *grown);
    if (!grown)
        return sg_ptx_no_memory(ptx);
    ptx->files = grown;
    grown[ptx->file_count - 1] = (struct sg_ptx_source){number, ptx->word};
    if (!sg_ptx_next(ptx))
        return false;
    while (sg_ptx_accept(ptx, ",")) {
        if (!sg_ptx_integer(ptx, &number))
            return false;
    }
    return ptx->result == CUDA_SUCCESS;
}

static bool section_directive(struct sg_ptx *ptx) {
    ptx->debug_found = true;
    if (!sg_ptx_next(ptx))
        return false;
    if (ptx->word.kind != SG_WORD_DOTTED && ptx->word.kind != SG_WORD_NAME)
        return sg_ptx_unexpected(ptx, "the name of a section");
    if (!sg_ptx_next(ptx))
        return false;
    return sg_ptx_is(ptx, "{") ? sg_ptx_skip_block(ptx) : sg_ptx_unexpected(ptx, "{");
}

/* .alias name, of; */
static bool alias_directive(struct sg_ptx *ptx) {
    if (!sg_ptx_next(ptx))
        return false;
    struct sg_ptx_symbol *alias = sg_ptx_find(ptx, ptx->word.text, ptx->word.length);
    if (!alias || alias->what != SG_SYMBOL_FUNCTION)
        return sg_ptx_unexpected(ptx, "a function that was declared");
    if (!sg_ptx_next(ptx) || !sg_ptx_expect(ptx, ","))
        return false;
    const struct sg_ptx_symbol *of = sg_ptx_find(ptx, ptx->word.text, ptx->word.length);
    if (!of || of->what != SG_SYMBOL_FUNCTION)
        return sg_ptx_unexpected(ptx, "a function that was declared");
    alias->defined = true;
    alias->alias = (size_t)(of - ptx->symbols) + 1;
    return sg_ptx_next(ptx) && sg_ptx_expect(ptx, ";");
}

static bool pragma_directive(struct sg_ptx *ptx) {
    do {
        if (!sg_ptx_next(ptx))
            return false;
        if (ptx->word.kind != SG_WORD_STRING)
            return sg_ptx_unexpected(ptx, "a text in quotes");
        if (!sg_ptx_next(ptx))
            return false;
    } while (sg_ptx_is(ptx, ","));
    return sg_ptx_expect(ptx, ";");
}

/* @@DWARF of old compilers: the rest of the line is data. */
static bool dwarf_line(struct sg_ptx *ptx) {
    size_t line = ptx->word.line;
    ptx->debug_found = true;
    do {
        if (!sg_ptx_next(ptx))
            return false;
    } while (ptx->word.kind != SG_WORD_END && ptx->word.line == line);
    return true;
}

static bool linkage_of(struct sg_ptx *ptx, enum sg_linkage *linkage) {
    static const struct {
        const char *text;
        enum sg_linkage linkage;
    } all[] = {{".visible", SG_LINK_VISIBLE},
               {".extern", SG_LINK_EXTERN},
               {".weak", SG_LINK_WEAK},
               {".common", SG_LINK_COMMON}};
    *linkage = SG_LINK_OWN;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (sg_ptx_accept(ptx, all[i].text)) {
            *linkage = all[i].linkage;
            break;
        }
    }
    return ptx->result == CUDA_SUCCESS;
}

static bool directive(struct sg_ptx *ptx) {
    enum sg_linkage linkage;
    if (sg_ptx_is(ptx, ".file"))
        return file_directive(ptx);
    if (sg_ptx_is(ptx, ".section"))
        return section_directive(ptx);
    if (sg_ptx_is(ptx, ".alias"))
        return sg_ptx_since_directive(ptx, ".alias") && alias_directive(ptx);
    if (sg_ptx_is(ptx, ".pragma"))
        return pragma_directive(ptx);
    if (sg_ptx_is(ptx, "@"))
        return dwarf_line(ptx);
    if (!linkage_of(ptx, &linkage))
        return false;
    if (sg_ptx_is(ptx, ".entry") || sg_ptx_is(ptx, ".func"))
        return sg_ptx_function(ptx, linkage);
    if (sg_ptx_space(&ptx->word) != SG_SPACE_NONE)
        return sg_ptx_variables(ptx, linkage);
    return sg_ptx_unexpected(ptx, "a directive of the module");
}

static bool read_all(struct sg_ptx *ptx) {
    if (!sg_ptx_head(ptx))
        return false;
    while (ptx->word.kind != SG_WORD_END) {
        if (!directive(ptx))
            return false;
    }
    return sg_ptx_close(ptx);
}

/* A zero may occur in a comment, where it counts as a blank: the copy is a string. */
static char *text_of(struct sg_bytes bytes) {
    char *text = malloc(bytes.size + 1);
    if (!text)
        return NULL;
    if (bytes.size)
        memcpy(text, bytes.data, bytes.size);
    text[bytes.size] = '\0';
    for (char *zero = text; (size_t)((zero += strlen(zero)) - text) < bytes.size;)
        *zero = ' ';
    return text;
}

CUresult sg_ptx_read(struct sg_bytes bytes, const struct sg_image_options *options,
                     struct sg_image_log *log, struct sg_image *image) {
    struct sg_ptx ptx = {
        .words = {(const char *)bytes.data, (const char *)bytes.data + bytes.size, 1},
        .options = options,
        .log = log,
        .image = image,
    };
    image->source = SG_IMAGE_PTX;
    image->ptx = text_of(bytes);
    if (!image->ptx)
        return CUDA_ERROR_OUT_OF_MEMORY;
    fenv_t own;
    sg_float_modes_set(&own);
    bool good = read_all(&ptx);
    sg_float_modes_restore(&own);
    if (good) {
        image->outline = sg_ptx_outline_make(&ptx, image->ptx);
        good = image->outline || sg_ptx_no_memory(&ptx);
    }
    free(ptx.files);
    free(ptx.symbols);
    free(ptx.pending);
    free(ptx.uses);
    free(ptx.blocks);
    free(ptx.shadows);
    sg_ptx_forms_clear(&ptx.combinations);
    sg_names_clear(&ptx.names);
    sg_names_clear(&ptx.locals);
    if (!good && ptx.result == CUDA_SUCCESS)
        ptx.result = CUDA_ERROR_INVALID_PTX;
    return ptx.result;
}
