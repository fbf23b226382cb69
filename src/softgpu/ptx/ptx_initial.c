/* Initial values: braces, numbers and addresses, laid out as bytes and relocations. */
#include "softgpu/ptx/ptx.h"

#include <stdlib.h>
#include <string.h>

/* ---- bytes ----------------------------------------------------------------------------------- */

static bool reach(struct sg_ptx *ptx, struct sg_ptx_variable *variable, uint64_t size) {
    if (size <= variable->initial_size)
        return true;
    /* By doubling: initial_size is what is used, the capacity is the next power of two. */
    uint64_t room = 64;
    while (room < variable->initial_size)
        room *= 2;
    if (size > room || !variable->initial) {
        while (room < size)
            room *= 2;
        unsigned char *grown = realloc(variable->initial, room);
        if (!grown)
            return sg_ptx_no_memory(ptx);
        variable->initial = grown;
    }
    memset(variable->initial + variable->initial_size, 0, (size_t)(size - variable->initial_size));
    variable->initial_size = size;
    return true;
}

static bool put(struct sg_ptx *ptx, struct sg_ptx_variable *variable, uint64_t at, uint64_t bits) {
    unsigned size = variable->type.size;
    if (!reach(ptx, variable, at + size))
        return false;
    for (unsigned i = 0; i < size && i < 8; i++)
        variable->initial[at + i] = (unsigned char)(bits >> (8 * i));
    return true;
}

/* ---- addresses ------------------------------------------------------------------------------- */

static struct sg_relocation *relocation(struct sg_ptx *ptx, struct sg_ptx_variable *variable,
                                        const struct sg_ptx_value *value, uint64_t at) {
    struct sg_relocation *grown =
        sg_image_grow(variable->relocations, &variable->relocation_count, sizeof *grown);
    if (!grown) {
        sg_ptx_no_memory(ptx);
        return NULL;
    }
    variable->relocations = grown;
    grown += variable->relocation_count - 1;
    grown->offset = at;
    grown->addend = (int64_t)value->number;
    grown->generic = value->generic;
    grown->symbol = sg_ptx_symbol_text(ptx, value->symbol);
    return grown->symbol ? grown : NULL;
}

static bool whole_address(struct sg_ptx *ptx, struct sg_ptx_variable *variable,
                          const struct sg_ptx_value *value, uint64_t at) {
    if (variable->type.size != 4 && variable->type.size != 8)
        return sg_ptx_wrong(ptx, "an address does not fit into an element of this type");
    struct sg_relocation *made = relocation(ptx, variable, value, at);
    if (made)
        made->size = variable->type.size;
    return made && put(ptx, variable, at, 0);
}

/* 0xFF(x), 0xFF00(x), …: the bytes of one address, one after the other. */
static bool piece(struct sg_ptx *ptx, struct sg_ptx_variable *variable,
                  const struct sg_ptx_value *value, uint64_t at) {
    unsigned number = (unsigned)__builtin_ctzll(value->mask) / 8;
    if (variable->type.size != 1 || variable->type.untyped ||
        value->mask != (uint64_t)0xff << (8 * number))
        return sg_ptx_wrong(ptx, "a masked address is one byte of it, in an element of one byte");
    if (number == 0) {
        struct sg_relocation *made = relocation(ptx, variable, value, at);
        if (!made)
            return false;
        made->size = 1;
        variable->pieces = 1;
        return put(ptx, variable, at, 0);
    }
    if (variable->pieces != number)
        return sg_ptx_wrong(ptx, "the bytes of an address stand one behind the other");
    char *symbol = sg_ptx_symbol_text(ptx, value->symbol);
    if (!symbol)
        return false;
    struct sg_relocation *last = variable->relocations + variable->relocation_count - 1;
    bool next = last->offset + number == at && last->addend == (int64_t)value->number &&
                last->generic == value->generic && strcmp(last->symbol, symbol) == 0;
    free(symbol);
    if (!next)
        return sg_ptx_wrong(ptx, "the bytes of an address stand one behind the other");
    last->size = ++number;
    variable->pieces = number;
    return put(ptx, variable, at, 0);
}

/* ---- elements -------------------------------------------------------------------------------- */

static bool real_element(struct sg_ptx *ptx, struct sg_ptx_variable *variable, double real,
                         uint64_t at) {
    uint64_t bits;
    if (variable->type.size == 4) {
        float narrow = (float)real;
        uint32_t low;
        memcpy(&low, &narrow, sizeof low);
        bits = low;
    } else {
        memcpy(&bits, &real, sizeof bits);
    }
    return put(ptx, variable, at, bits);
}

static bool element(struct sg_ptx *ptx, struct sg_ptx_variable *variable, uint64_t at) {
    struct sg_ptx_value value;
    if (!sg_ptx_value(ptx, &value))
        return false;
    bool address = value.kind == SG_VALUE_ADDRESS, real = value.kind == SG_VALUE_REAL;
    if (address && value.mask)
        return piece(ptx, variable, &value, at);
    variable->pieces = 0;
    if (address)
        return whole_address(ptx, variable, &value, at);
    if (variable->type.real != real &&
        !(real && variable->type.untyped && variable->type.size >= 4))
        return sg_ptx_wrong(ptx, "the value is not of the variable's type");
    if (real)
        return real_element(ptx, variable, value.real, at);
    return put(ptx, variable, at, value.number);
}

/* ---- braces ---------------------------------------------------------------------------------- */

struct braces {
    uint64_t index[SG_PTX_DIMENSIONS + 1], extents[SG_PTX_DIMENSIONS + 1];
    unsigned levels, depth;
    bool open;     /* the braces determine the first extent */
    uint64_t next; /* where the next value goes */
};

static void prepare(const struct sg_ptx_variable *variable, struct braces *b) {
    for (unsigned i = 0; i < variable->dimensions; i++)
        b->extents[b->levels++] = variable->extents[i];
    if (variable->vector > 1)
        b->extents[b->levels++] = variable->vector;
    b->open = variable->open;
}

static bool room_for_next(struct sg_ptx *ptx, const struct braces *b) {
    unsigned level = b->depth - 1;
    if ((level == 0 && b->open) || b->index[level] < b->extents[level])
        return true;
    return sg_ptx_wrong(ptx, "more values than elements");
}

/* One value or one opening brace; *complete when a value was read. */
static bool begin(struct sg_ptx *ptx, struct sg_ptx_variable *variable, struct braces *b,
                  bool *complete) {
    if (b->depth && !room_for_next(ptx, b))
        return false;
    if (sg_ptx_is(ptx, "{")) {
        if (b->depth == b->levels)
            return sg_ptx_wrong(ptx, "braces around what has no elements");
        b->index[b->depth++] = 0;
        if (!sg_ptx_next(ptx))
            return false;
        *complete = sg_ptx_is(ptx, "}");
        return true;
    }
    if (b->depth != b->levels)
        return sg_ptx_unexpected(ptx, "{");
    *complete = true;
    if (!element(ptx, variable, b->next))
        return false;
    b->next += variable->type.size;
    if (b->depth)
        b->index[b->depth - 1]++;
    return true;
}

/* Closes braces after a value; afterwards either a comma was consumed or all are closed. */
static bool finish(struct sg_ptx *ptx, struct sg_ptx_variable *variable, struct braces *b) {
    while (b->depth) {
        if (sg_ptx_accept(ptx, ","))
            return true;
        if (!sg_ptx_expect(ptx, "}"))
            return false;
        b->depth--;
        if (b->depth == 0 && b->open)
            variable->extents[0] = b->index[0];
        if (b->depth)
            b->index[b->depth - 1]++;
    }
    return true;
}

bool sg_ptx_initial(struct sg_ptx *ptx, struct sg_ptx_variable *variable) {
    struct braces b = {0};
    prepare(variable, &b);
    do {
        bool complete = false;
        while (!complete) {
            if (!begin(ptx, variable, &b, &complete))
                return false;
        }
        if (!finish(ptx, variable, &b))
            return false;
    } while (b.depth);
    return true;
}
