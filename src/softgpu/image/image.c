/* Images, and helpers shared by all their readers. */
#include "softgpu/image/reader.h"

#include "base/growing_array.h"

#include <stdlib.h>
#include <string.h>

/* ---- arrays that grow during reading --------------------------------------------------------- */

char *sg_image_text(const char *bytes, size_t size) {
    size_t length = strnlen(bytes, size);
    char *text = malloc(length + 1);
    if (!text)
        return NULL;
    memcpy(text, bytes, length);
    text[length] = '\0';
    return text;
}

void *sg_image_grow(void *array, size_t *count, size_t size) {
    /* At powers of two the array is full. */
    bool full = (*count & (*count - 1)) == 0;
    if (full) {
        size_t room = *count;
        if (!gm_array_reserve(&array, &room, *count ? 2 * *count : 1, size))
            return NULL;
    }
    memset((char *)array + *count * size, 0, size);
    ++*count;
    return array;
}

bool sg_image_add_name(char ***names, size_t *count, const char *name, size_t length) {
    char *copy = sg_image_text(name, length);
    char **grown = copy ? sg_image_grow(*names, count, sizeof **names) : NULL;
    if (!grown) {
        free(copy);
        return false;
    }
    *names = grown;
    grown[*count - 1] = copy;
    return true;
}

/* ---- functions of the driver ----------------------------------------------------------------- */

bool sg_image_is_given(const char *name, size_t length) {
    static const char *const names[] = {"vprintf",     "malloc", "__cuda_syscall_aligned_malloc",
                                        "free",        "memcpy", "memset",
                                        "__assertfail"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (length == strlen(names[i]) && memcmp(name, names[i], length) == 0)
            return true;
    }
    return false;
}

/* ---- names ----------------------------------------------------------------------------------- */

static size_t hash(size_t scope, const char *name, size_t length) {
    uint64_t sum = 0xcbf29ce484222325u ^ (scope * 0x9e3779b97f4a7c15u);
    for (size_t i = 0; i < length; i++)
        sum = (sum ^ (unsigned char)name[i]) * 0x100000001b3u;
    sum ^= sum >> 32;
    return (size_t)(sum * 0x9e3779b97f4a7c15u >> 7);
}

static struct sg_name_slot *slot_of(const struct sg_name_table *table, size_t scope,
                                    const char *name, size_t length) {
    size_t at = hash(scope, name, length) & (table->room - 1);
    for (;; at = (at + 1) & (table->room - 1)) {
        struct sg_name_slot *slot = &table->slots[at];
        if (!slot->name || (slot->scope == scope && slot->length == length &&
                            memcmp(slot->name, name, length) == 0))
            return slot;
    }
}

static bool names_rehash(struct sg_name_table *table) {
    struct sg_name_table next = {.room = table->room ? 2 * table->room : 16, .used = table->used};
    next.slots = calloc(next.room, sizeof *next.slots);
    if (!next.slots)
        return false;
    for (size_t i = 0; i < table->room; i++) {
        const struct sg_name_slot *slot = &table->slots[i];
        if (slot->name)
            *slot_of(&next, slot->scope, slot->name, slot->length) = *slot;
    }
    free(table->slots);
    *table = next;
    return true;
}

bool sg_names_add(struct sg_name_table *table, size_t scope, const char *name, size_t length,
                  size_t value, size_t *found) {
    if (2 * table->used >= table->room && !names_rehash(table))
        return false;
    struct sg_name_slot *slot = slot_of(table, scope, name, length);
    if (!slot->name) {
        *slot = (struct sg_name_slot){name, length, scope, value};
        table->used++;
    }
    *found = slot->value;
    return true;
}

struct sg_name_slot *sg_names_slot(const struct sg_name_table *table, size_t scope,
                                   const char *name, size_t length) {
    if (table->room == 0)
        return NULL;
    struct sg_name_slot *slot = slot_of(table, scope, name, length);
    return slot->name ? slot : NULL;
}

bool sg_names_find(const struct sg_name_table *table, size_t scope, const char *name, size_t length,
                   size_t *value) {
    const struct sg_name_slot *slot = sg_names_slot(table, scope, name, length);
    if (slot)
        *value = slot->value;
    return slot != NULL;
}

void sg_names_clear(struct sg_name_table *table) {
    free(table->slots);
    *table = (struct sg_name_table){0};
}

/* ---- bytes ----------------------------------------------------------------------------------- */

bool sg_bytes_slice(struct sg_bytes from, uint64_t offset, uint64_t size, struct sg_bytes *slice) {
    if (offset > from.size || size > from.size - offset)
        return false;
    /* NULL + 0 is not an address. */
    *slice = (struct sg_bytes){from.data ? from.data + offset : NULL, (size_t)size};
    return true;
}

uint64_t sg_bytes_number(struct sg_bytes from, uint64_t offset, unsigned width) {
    struct sg_bytes slice;
    uint64_t number = 0;
    if (!sg_bytes_slice(from, offset, width, &slice) || !slice.data)
        return 0;
    for (unsigned i = 0; i < width; i++)
        number |= (uint64_t)slice.data[i] << (8 * i);
    return number;
}

const char *sg_bytes_name(struct sg_bytes table, uint64_t offset, uint64_t *budget) {
    if (offset >= table.size || table.data[table.size - 1] != 0)
        return NULL;
    const char *name = (const char *)table.data + offset;
    uint64_t length = strlen(name);
    if (length > *budget)
        return NULL;
    *budget -= length;
    return name;
}

/* ---- the result ------------------------------------------------------------------------------ */

static void free_names(char **names, size_t count) {
    for (size_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
}

struct sg_image_code *sg_image_add_code(struct sg_image *image, const char *name, size_t length) {
    struct sg_image_code *grown = sg_image_grow(image->code, &image->code_count, sizeof *grown);
    if (!grown)
        return NULL;
    image->code = grown;
    grown += image->code_count - 1;
    grown->name = sg_image_text(name, length);
    return grown->name ? grown : NULL;
}

bool sg_image_add_call(struct sg_image *image, size_t from, size_t to) {
    struct sg_image_call *grown = sg_image_grow(image->calls, &image->call_count, sizeof *grown);
    if (!grown)
        return false;
    image->calls = grown;
    grown[image->call_count - 1] = (struct sg_image_call){to, image->code[from].last_call};
    image->code[from].last_call = image->call_count;
    return true;
}

static void free_variable(struct sg_image_variable *variable) {
    for (size_t i = 0; i < variable->relocation_count; i++)
        free(variable->relocations[i].symbol);
    free(variable->relocations);
    free(variable->initial);
    free(variable->name);
}

void sg_image_clear(struct sg_image *image) {
    for (size_t i = 0; i < image->function_count; i++) {
        free(image->functions[i].name);
        free(image->functions[i].parameters);
    }
    for (size_t i = 0; i < image->variable_count; i++)
        free_variable(&image->variables[i]);
    free(image->outline);
    free(image->functions);
    free(image->variables);
    free_names(image->textures, image->texture_count);
    free_names(image->surfaces, image->surface_count);
    free_names(image->undefined, image->undefined_count);
    free_names(image->exported, image->exported_count);
    free_names(image->weak, image->weak_count);
    for (size_t i = 0; i < image->code_count; i++)
        free(image->code[i].name);
    free(image->code);
    free(image->calls);
    free(image->ptx);
    free_names(image->parts, image->part_count);
    free(image->machine);
    free(image->refused_text);
    *image = (struct sg_image){0};
}

void sg_image_free(struct sg_image *image) {
    if (!image)
        return;
    sg_image_clear(image);
    free(image);
}

const struct sg_image_function *sg_image_find_function(const struct sg_image *image,
                                                       const char *name) {
    for (size_t i = 0; i < image->function_count; i++) {
        if (strcmp(image->functions[i].name, name) == 0)
            return &image->functions[i];
    }
    return NULL;
}

const struct sg_image_variable *sg_image_find_variable(const struct sg_image *image,
                                                       const char *name) {
    const struct sg_image_variable *hidden = NULL;
    for (size_t i = 0; i < image->variable_count; i++) {
        if (strcmp(image->variables[i].name, name) != 0)
            continue;
        if (image->variables[i].visible)
            return &image->variables[i];
        if (!hidden)
            hidden = &image->variables[i];
    }
    return hidden;
}
