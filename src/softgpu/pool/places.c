/*
 * Free blocks by address: a treap in which each block knows the largest size below it, so that a
 * single descent finds the lowest block that is large enough.
 */
#include "softgpu/pool/internal.h"

/* How many large enough blocks that were freed too late are skipped, so that many of them do not
 * make an allocation slow. */
#define TOO_LATE_LIMIT 64

/* The finalizer of a 64-bit mix: equal histories produce equal shapes. */
static uint32_t next_priority(void) {
    static uint64_t count;
    uint64_t x = ++count * 0x9e3779b97f4a7c15u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return (uint32_t)(x >> 32);
}

CUdeviceptr sg_block_address(const struct sg_block *block) {
    return block->segment->address + block->offset;
}

static size_t largest(const struct sg_block *block) {
    return block ? block->place.largest : 0;
}

static void measure(struct sg_block *block) {
    size_t most = block->size;
    for (int side = 0; side < 2; side++)
        if (largest(block->place.child[side]) > most)
            most = largest(block->place.child[side]);
    block->place.largest = most;
}

/* Puts `with` in the place of `block`. */
static void replace(struct sg_places *places, struct sg_block *block, struct sg_block *with) {
    struct sg_block *up = block->place.up;
    if (!up)
        places->root = with;
    else
        up->place.child[up->place.child[1] == block] = with;
    if (with)
        with->place.up = up;
}

/* Lifts a block above its parent, keeping the order of addresses. */
static void rotate_up(struct sg_places *places, struct sg_block *block) {
    struct sg_block *parent = block->place.up;
    int side = parent->place.child[1] == block;
    struct sg_block *inner = block->place.child[!side];
    replace(places, parent, block);
    block->place.child[!side] = parent;
    parent->place.up = block;
    parent->place.child[side] = inner;
    if (inner)
        inner->place.up = parent;
    measure(parent);
    measure(block);
}

void sg_places_add(struct sg_places *places, struct sg_block *block) {
    struct sg_block *up = NULL, **link = &places->root;
    CUdeviceptr address = sg_block_address(block);
    while (*link) {
        up = *link;
        if (up->place.largest < block->size)
            up->place.largest = block->size;
        link = &up->place.child[address > sg_block_address(up)];
    }
    block->place = (struct sg_block_place){
        .up = up,
        .largest = block->size,
        .priority = next_priority(),
    };
    *link = block;
    while (block->place.up && block->place.up->place.priority < block->place.priority)
        rotate_up(places, block);
}

void sg_places_remove(struct sg_places *places, struct sg_block *block) {
    struct sg_block **child = block->place.child;
    while (child[0] && child[1])
        rotate_up(places, child[child[0]->place.priority < child[1]->place.priority]);
    replace(places, block, child[0] ? child[0] : child[1]);
    for (struct sg_block *up = block->place.up; up; up = up->place.up)
        measure(up);
}

/* The lowest block of at least `size` at or below `block`, if any. */
static struct sg_block *lowest(struct sg_block *block, size_t size) {
    for (;;) {
        if (largest(block->place.child[0]) >= size)
            block = block->place.child[0];
        else if (block->size >= size)
            return block;
        else
            block = block->place.child[1];
    }
}

static struct sg_block *next(struct sg_block *block, size_t size) {
    while (largest(block->place.child[1]) < size) {
        struct sg_block *from = block;
        block = block->place.up;
        while (block && block->place.child[1] == from) {
            from = block;
            block = block->place.up;
        }
        if (!block || block->size >= size)
            return block;
    }
    return lowest(block->place.child[1], size);
}

struct sg_block *sg_places_find(const struct sg_places *places, size_t size, uint64_t most) {
    if (largest(places->root) < size)
        return NULL;
    struct sg_block *block = lowest(places->root, size);
    for (unsigned late = 0; block && block->number > most; late++)
        block = late < TOO_LATE_LIMIT ? next(block, size) : NULL;
    return block;
}
