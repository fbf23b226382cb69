/* Which version of PTX something came with: what an older text cannot have. */
#include "softgpu/ptx/ptx.h"

#include <string.h>

struct row {
    const char *name; /* the opcode; NULL: any */
    int version;
    const char *words;
};

/* Greater than any version. */
#define NEVER    1000
#define SPECIFIC 2000

static const struct row rows[] = {
#define SG_PTX_SINCE(opcode, version, words) {#opcode, version, words},
#define SG_PTX_NEVER(opcode, words)          {#opcode, NEVER, words},
#define SG_PTX_SPECIFIC(opcode, words)       {#opcode, SPECIFIC, words},
#define SG_PTX_SINCE_ANY(version, words)
#define SG_PTX_SINCE_REGISTER(version, name)
#define SG_PTX_SINCE_DIRECTIVE(version, name)
#include "softgpu/ptx/ptx_since.def"
#undef SG_PTX_SINCE
#undef SG_PTX_NEVER
#undef SG_PTX_SPECIFIC
#undef SG_PTX_SINCE_ANY
};

static const struct row of_any[] = {
#define SG_PTX_SINCE(opcode, version, words)
#define SG_PTX_NEVER(opcode, words)
#define SG_PTX_SPECIFIC(opcode, words)
#define SG_PTX_SINCE_ANY(version, words) {NULL, version, words},
#include "softgpu/ptx/ptx_since.def"
#undef SG_PTX_SINCE_ANY
#undef SG_PTX_SINCE_REGISTER
};

static const struct row registers[] = {
#define SG_PTX_SINCE_ANY(version, words)
#define SG_PTX_SINCE_REGISTER(version, name) {name, version, NULL},
#include "softgpu/ptx/ptx_since.def"
#undef SG_PTX_SINCE_REGISTER
#undef SG_PTX_SINCE_DIRECTIVE
};

static const struct row directives[] = {
#define SG_PTX_SINCE_REGISTER(version, name)
#define SG_PTX_SINCE_DIRECTIVE(version, name) {name, version, NULL},
#include "softgpu/ptx/ptx_since.def"
#undef SG_PTX_SINCE
#undef SG_PTX_NEVER
#undef SG_PTX_SINCE_ANY
#undef SG_PTX_SINCE_REGISTER
#undef SG_PTX_SINCE_DIRECTIVE
};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* No version from this one on lacks anything of the words of any instruction, or of registers. */
#define COMPLETE 88

static bool came_later(struct sg_ptx *ptx, const char *what, size_t length, int version) {
    return sg_ptx_wrong(ptx, "%.*s came with version %d.%d", length < 80 ? (int)length : 80, what,
                        version / 10, version % 10);
}

/* ---- modifiers ------------------------------------------------------------------------------- */

static bool continues(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == ':';
}

/* Behind .word in a text of modifiers, or NULL. */
static const char *behind(const char *at, const char *end, const char *word, size_t length) {
    for (; at < end && (at = memchr(at, '.', (size_t)(end - at))) != NULL; at++)
        if ((size_t)(end - at) > length && memcmp(at + 1, word, length) == 0 &&
            (at + 1 + length == end || !continues(at[1 + length])))
            return at + 1 + length;
    return NULL;
}

/* The same of the first of a|b that is there. */
static const char *behind_either(const char *at, const char *end, const char *words,
                                 size_t length) {
    const char *found = NULL;
    for (const char *word = words; word < words + length && !found;) {
        const char *bar = memchr(word, '|', (size_t)(words + length - word));
        size_t size = (size_t)((bar ? bar : words + length) - word);
        found = behind(at, end, word, size);
        word += size + 1;
    }
    return found;
}

/* Whether the modifiers have these words in this order. */
static bool have(const struct sg_ptx_given *given, const char *words) {
    const char *at = given->modifiers, *end = at + given->modifiers_length;
    while (at && *words) {
        size_t length = strcspn(words, " ");
        at = behind_either(at, end, words, length);
        words += length + (words[length] == ' ');
    }
    return at != NULL;
}

static bool old_enough(struct sg_ptx *ptx, const struct sg_ptx_opcode *opcode,
                       const struct sg_ptx_given *given, const struct row *row) {
    bool never = row->version == NEVER, specific = row->version == SPECIFIC;
    if (row->version <= ptx->image->ptx_version ||
        ((never || specific) && ptx->image->target > 90) ||
        (specific && ptx->image->target_suffix == 'a') || !have(given, row->words))
        return true;
    if (specific)
        return sg_ptx_wrong(ptx, "%s%.*s needs target sm_90a", opcode->name,
                            given->modifiers_length < 80 ? (int)given->modifiers_length : 80,
                            given->modifiers);
    if (never)
        return sg_ptx_wrong(ptx, "illegal modifier: there is no %s%.*s", opcode->name,
                            given->modifiers_length < 80 ? (int)given->modifiers_length : 80,
                            given->modifiers);
    return sg_ptx_wrong(ptx, "%s%.*s came with version %d.%d", opcode->name,
                        given->modifiers_length < 80 ? (int)given->modifiers_length : 80,
                        given->modifiers, row->version / 10, row->version % 10);
}

/* The first row of an opcode, or where it would be. */
static size_t first_row(const char *name) {
    size_t low = 0, high = COUNT(rows);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(rows[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool sg_ptx_since_modifiers(struct sg_ptx *ptx, const struct sg_ptx_opcode *opcode,
                            const struct sg_ptx_given *given) {
    if (!given->modifiers)
        return true;
    for (size_t i = 0; i < COUNT(of_any) && ptx->image->ptx_version < COMPLETE; i++)
        if (!old_enough(ptx, opcode, given, &of_any[i]))
            return false;
    for (size_t i = first_row(opcode->name);
         i < COUNT(rows) && strcmp(rows[i].name, opcode->name) == 0; i++)
        if (!old_enough(ptx, opcode, given, &rows[i]))
            return false;
    return true;
}

/* ---- names ----------------------------------------------------------------------------------- */

bool sg_ptx_since_register(struct sg_ptx *ptx, const char *name, size_t length) {
    if (ptx->image->ptx_version >= COMPLETE)
        return true;
    for (size_t i = 0; i < COUNT(registers); i++) {
        size_t size = strlen(registers[i].name);
        if (registers[i].version > ptx->image->ptx_version && length >= size &&
            memcmp(name, registers[i].name, size) == 0)
            return came_later(ptx, name, length, registers[i].version);
    }
    /* %pm0_64 came after %pm0. */
    bool wide = length > 3 && memcmp(name, "%pm", 3) == 0 && name[length - 1] == '4';
    return !wide || length < 6 || ptx->image->ptx_version >= 40 ||
           came_later(ptx, name, length, 40);
}

bool sg_ptx_since_directive(struct sg_ptx *ptx, const char *name) {
    for (size_t i = 0; i < COUNT(directives); i++)
        if (directives[i].version > ptx->image->ptx_version &&
            strcmp(name, directives[i].name) == 0)
            return came_later(ptx, name, strlen(name), directives[i].version);
    return true;
}
