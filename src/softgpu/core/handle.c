#include "softgpu/core/handle.h"

#include "base/growing_array.h"

#define SLOT_BITS        24
#define GENERATION_BITS  20
#define SLOT_SHIFT       4
#define GENERATION_SHIFT (SLOT_SHIFT + SLOT_BITS)
#define KIND_SHIFT       (GENERATION_SHIFT + GENERATION_BITS)
#define SLOT_LIMIT       (1u << SLOT_BITS)
#define GENERATION_MASK  ((1u << GENERATION_BITS) - 1)

struct slot {
    void *object; /* NULL when free */
    uint32_t generation;
    uint32_t next_free; /* of a free slot: slot number + 1; 0 ends the list */
    struct sg_origin origin;
};

struct table {
    struct slot *slots;
    uint32_t used;   /* slots ever handed out */
    size_t capacity; /* slots allocated */
    uint32_t free_head, free_tail;
    uint64_t live;
};

static struct table tables[SG_KIND_COUNT];

/* Freed slots are reused oldest first, so that generations last as long as possible. */
static uint32_t take_slot(struct table *table) {
    if (table->free_head) {
        uint32_t slot = table->free_head - 1;
        table->free_head = table->slots[slot].next_free;
        if (!table->free_head)
            table->free_tail = 0;
        return slot;
    }
    if (table->used == SLOT_LIMIT ||
        !GM_RESERVE(table->slots, table->capacity, (size_t)table->used + 1))
        return SLOT_LIMIT;
    table->slots[table->used] = (struct slot){.generation = 1};
    return table->used++;
}

uint64_t sg_handle_new(enum sg_kind kind, void *object) {
    struct table *table = &tables[kind];
    uint32_t slot = take_slot(table);
    if (slot == SLOT_LIMIT)
        return 0;
    table->slots[slot].object = object;
    table->slots[slot].origin = sg_origin_here();
    table->live++;
    return (uint64_t)kind << KIND_SHIFT |
           (uint64_t)table->slots[slot].generation << GENERATION_SHIFT |
           (uint64_t)slot << SLOT_SHIFT;
}

static struct slot *find(enum sg_kind kind, uint64_t handle) {
    struct table *table = &tables[kind];
    uint64_t slot = (handle >> SLOT_SHIFT) & (SLOT_LIMIT - 1);
    bool shaped = handle >> KIND_SHIFT == (uint64_t)kind && (handle & 0xf) == 0;
    if (!shaped || slot >= table->used)
        return NULL;
    struct slot *found = &table->slots[slot];
    bool current = ((handle >> GENERATION_SHIFT) & GENERATION_MASK) == found->generation;
    return current && found->object ? found : NULL;
}

void *sg_handle_get(enum sg_kind kind, uint64_t handle) {
    struct slot *slot = find(kind, handle);
    return slot ? slot->object : NULL;
}

struct sg_origin sg_handle_origin(uint64_t handle) {
    uint64_t kind = handle >> KIND_SHIFT;
    const struct slot *slot = kind < SG_KIND_COUNT ? find((enum sg_kind)kind, handle) : NULL;
    return slot ? slot->origin : (struct sg_origin){0};
}

void sg_handle_drop(enum sg_kind kind, uint64_t handle) {
    struct slot *slot = find(kind, handle);
    if (!slot)
        return;
    struct table *table = &tables[kind];
    uint32_t number = (uint32_t)(slot - table->slots) + 1;
    slot->object = NULL;
    slot->generation = (slot->generation + 1) & GENERATION_MASK;
    if (slot->generation == 0)
        slot->generation = 1;
    slot->next_free = 0;
    if (table->free_tail)
        table->slots[table->free_tail - 1].next_free = number;
    else
        table->free_head = number;
    table->free_tail = number;
    table->live--;
}

void sg_handle_each(enum sg_kind kind, void (*visit)(uint64_t handle, void *object, void *user),
                    void *user) {
    struct table *table = &tables[kind];
    for (uint32_t i = 0; i < table->used; i++) {
        struct slot *slot = &table->slots[i];
        if (!slot->object)
            continue;
        uint64_t handle = (uint64_t)kind << KIND_SHIFT |
                          (uint64_t)slot->generation << GENERATION_SHIFT |
                          (uint64_t)i << SLOT_SHIFT;
        visit(handle, slot->object, user);
    }
}

uint64_t sg_handle_count(enum sg_kind kind) {
    return tables[kind].live;
}
