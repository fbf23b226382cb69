/*
 * Constants of code: numbers that the text names, and what is known at launch. Each is there once;
 * a table finds it by what it is, since a text may have a hundred thousand of them.
 */
#include "softgpu/engine/code.h"

#include <stdlib.h>
#include <string.h>

#define A_NUMBER (SG_NO_VARIABLE - 1) /* in place of the variable: the value itself */

struct sg_known_constant {
    uint64_t value;
    uint32_t variable; /* SG_NO_VARIABLE: a parameter, at `value` */
    uint32_t offset;   /* in the constants */
    unsigned width;    /* SG_W_NONE: a free place of the table */
};

bool sg_maker_grow(void **memory, uint32_t *room, uint32_t wanted, size_t size) {
    if (wanted <= *room)
        return true;
    uint32_t more = wanted * 2 < 64 ? 64 : wanted * 2;
    void *larger = realloc(*memory, more * size);
    if (!larger)
        return false;
    *memory = larger;
    *room = more;
    return true;
}

/* ---- the table ------------------------------------------------------------------------------- */

static uint32_t hash(const struct sg_known_constant *what) {
    uint64_t mixed =
        (what->value + what->variable * UINT64_C(31) + what->width) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(mixed >> 32);
}

/* Where it is, or would be: the table has free places, and its size is a power of two. */
static struct sg_known_constant *find(const struct sg_constants *known,
                                      const struct sg_known_constant *what) {
    for (uint32_t i = hash(what);; i++) {
        struct sg_known_constant *at = &known->table[i & (known->room - 1)];
        bool same =
            at->value == what->value && at->variable == what->variable && at->width == what->width;
        if (same || at->width == SG_W_NONE)
            return at;
    }
}

/* Keeps at least half of the places free. */
static bool make_room(struct sg_constants *known) {
    if (known->count * 2 < known->room)
        return true;
    struct sg_constants more = {.count = known->count, .room = known->room ? known->room * 2 : 64};
    more.table = calloc(more.room, sizeof *more.table);
    if (!more.table)
        return false;
    for (uint32_t i = 0; i < known->room; i++)
        if (known->table[i].width != SG_W_NONE)
            *find(&more, &known->table[i]) = known->table[i];
    free(known->table);
    *known = more;
    return true;
}

void sg_constants_free(struct sg_constants *known) {
    free(known->table);
    *known = (struct sg_constants){0};
}

/* ---- their memory ---------------------------------------------------------------------------- */

/* Their last bytes are never read past. */
static bool add(struct sg_maker *maker, unsigned width, uint32_t *offset) {
    struct sg_code *code = maker->code;
    uint32_t at = (code->constant_bytes + SG_SLOT_LINE - 1) & ~(SG_SLOT_LINE - 1);
    void *memory = code->constants;
    bool good = sg_maker_grow(&memory, &code->constant_room, at + 256, 1);
    code->constants = memory;
    if (!good)
        return false;
    memset(code->constants + at, 0, 256);
    code->constant_bytes = at + sg_width_bytes(width);
    *offset = at;
    return true;
}

static void splat(unsigned char *lanes, unsigned width, uint64_t value) {
    if (width == SG_W_PRED) {
        uint32_t all = value ? SG_ALL : 0;
        memcpy(lanes, &all, sizeof all);
        return;
    }
    size_t size = sg_width_bytes(width) / SG_LANES;
    for (unsigned l = 0; l < SG_LANES; l++)
        memcpy(lanes + l * size, &value, size); /* the low bytes: little-endian */
}

static bool add_patch(struct sg_code *code, const struct sg_known_constant *what) {
    void *patches = code->patches;
    bool good =
        sg_maker_grow(&patches, &code->patch_room, code->patch_count + 1, sizeof code->patches[0]);
    code->patches = patches;
    if (good)
        code->patches[code->patch_count++] = (struct sg_patch){
            what->offset, what->variable, (int64_t)what->value, (unsigned char)what->width};
    return good;
}

static uint32_t constant(struct sg_maker *maker, struct sg_known_constant what) {
    struct sg_code *code = maker->code;
    if (!make_room(&maker->constants)) {
        maker->no_memory = true;
        return 0;
    }
    struct sg_known_constant *known = find(&maker->constants, &what);
    if (known->width != SG_W_NONE)
        return SG_PLACE(SG_BASE_CONSTANTS, known->offset);
    bool number = what.variable == A_NUMBER;
    if (!add(maker, what.width, &what.offset) || (!number && !add_patch(code, &what))) {
        maker->no_memory = true;
        return 0;
    }
    if (number)
        splat(code->constants + what.offset, what.width, what.value);
    *known = what;
    maker->constants.count++;
    return SG_PLACE(SG_BASE_CONSTANTS, what.offset);
}

/* Bits above the width are not looked at. */
uint32_t sg_maker_constant(struct sg_maker *maker, unsigned width, uint64_t value) {
    if (width == SG_W_PRED)
        value = value != 0;
    else if (width == SG_W_16 || width == SG_W_32)
        value &= width == SG_W_16 ? UINT16_MAX : UINT32_MAX;
    return constant(
        maker, (struct sg_known_constant){.value = value, .variable = A_NUMBER, .width = width});
}

uint32_t sg_maker_parameter(struct sg_maker *maker, unsigned width, int64_t offset) {
    return constant(maker, (struct sg_known_constant){.value = (uint64_t)offset,
                                                      .variable = SG_NO_VARIABLE,
                                                      .width = width});
}

uint32_t sg_maker_address_of(struct sg_maker *maker, uint32_t variable, int64_t offset) {
    return constant(maker, (struct sg_known_constant){
                               .value = (uint64_t)offset, .variable = variable, .width = SG_W_64});
}
