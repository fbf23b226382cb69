/* What strong writes have released, by address. */
#include "softgpu/check/race_inside.h"

#include <stdlib.h>

static size_t slot_of(const struct sg_released_table *table, uint64_t address) {
    size_t mask = table->room - 1;
    size_t at = (size_t)(address * UINT64_C(0x9e3779b97f4a7c15) >> 32) & mask;
    while (table->slots[at].there && table->slots[at].address != address)
        at = (at + 1) & mask;
    return at;
}

struct sg_released *sg_released_find(const struct sg_released_table *table, uint64_t address) {
    if (table->count == 0)
        return NULL;
    struct sg_released *found = &table->slots[slot_of(table, address)];
    return found->there ? found : NULL;
}

static bool grow(struct sg_released_table *table) {
    struct sg_released_table bigger = {.count = table->count,
                                       .room = table->room ? 2 * table->room : 16};
    bigger.slots = calloc(bigger.room, sizeof *bigger.slots);
    if (!bigger.slots)
        return false;
    for (size_t i = 0; i < table->room; i++)
        if (table->slots[i].there)
            bigger.slots[slot_of(&bigger, table->slots[i].address)] = table->slots[i];
    free(table->slots);
    *table = bigger;
    return true;
}

struct sg_released *sg_released_at(struct sg_released_table *table, uint64_t address) {
    if (2 * (table->count + 1) > table->room && !grow(table))
        return NULL;
    struct sg_released *found = &table->slots[slot_of(table, address)];
    if (!found->there) {
        *found = (struct sg_released){.address = address, .there = true};
        table->count++;
    }
    return found;
}

void sg_released_free(struct sg_released_table *table) {
    for (size_t i = 0; i < table->room; i++) {
        sg_clock_drop(table->slots[i].clock);
        sg_clock_drop(table->slots[i].over);
    }
    free(table->slots);
    *table = (struct sg_released_table){0};
}
