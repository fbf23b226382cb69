#include "memory/core/inventory.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM ((size_t)64)

/* ---- The hash; the inventory's lock is held -------------------------------------------------- */

static size_t home(const struct gm_held_table *table, uint64_t key) {
    return (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (table->room - 1);
}

/* The slot of the key, or the free one where it would be. The table is never full. */
static struct gm_held *slot_of(const struct gm_held_table *table, uint64_t key) {
    size_t at = home(table, key);
    while (table->slots[at].key && table->slots[at].key != key)
        at = (at + 1) & (table->room - 1);
    return &table->slots[at];
}

static int make_room(struct gm_held_table *table) {
    if (4 * (table->count + 1) <= 3 * table->room)
        return 0;
    struct gm_held_table grown = {.count = table->count,
                                  .room = table->room ? 2 * table->room : FIRST_ROOM};
    grown.slots = calloc(grown.room, sizeof *grown.slots);
    if (!grown.slots)
        return -1;
    for (size_t i = 0; i < table->room; i++)
        if (table->slots[i].key)
            *slot_of(&grown, table->slots[i].key) = table->slots[i];
    free(table->slots);
    *table = grown;
    return 0;
}

static void add(struct gm_inventory *inventory, struct gm_held_table *table,
                const struct gm_held *held) {
    pthread_mutex_lock(&inventory->lock);
    if (make_room(table) != 0) {
        inventory->missing++;
    } else {
        struct gm_held *slot = slot_of(table, held->key);
        int again = slot->key && table == &inventory->physical;
        table->count += !slot->key;
        if (again)
            slot->quarantined |= held->quarantined;
        else
            *slot = *held;
        slot->references = again ? slot->references + 1 : 1;
        slot->own = again ? slot->own + (slot->owner == held->owner) : 1;
    }
    pthread_mutex_unlock(&inventory->lock);
}

/* Entries after the emptied slot move up, unless they are in their home slot. */
static void empty(struct gm_held_table *table, size_t hole) {
    size_t mask = table->room - 1;
    for (size_t at = (hole + 1) & mask; table->slots[at].key; at = (at + 1) & mask) {
        size_t from = home(table, table->slots[at].key);
        if (((at - from) & mask) < ((at - hole) & mask))
            continue;
        table->slots[hole] = table->slots[at];
        hole = at;
    }
    table->slots[hole] = (struct gm_held){0};
    table->count--;
}

static struct gm_held drop(struct gm_held_table *table, uint64_t key) {
    struct gm_held none = {.key = key};
    struct gm_held *slot = table->room ? slot_of(table, key) : NULL;
    if (!slot || !slot->key)
        return none;
    struct gm_held found = *slot;
    if (--slot->references == 0)
        empty(table, (size_t)(slot - table->slots));
    return found;
}

static struct gm_held drop_locked(struct gm_inventory *inventory, struct gm_held_table *table,
                                  uint64_t key) {
    pthread_mutex_lock(&inventory->lock);
    struct gm_held found = drop(table, key);
    pthread_mutex_unlock(&inventory->lock);
    return found;
}

/* ---- What memory/core/vmm_calls tells
 * ------------------------------------------------------------------- */

void gm_inventory_init(struct gm_inventory *inventory) {
    *inventory = (struct gm_inventory){0};
    pthread_mutex_init(&inventory->lock, NULL);
}

void gm_inventory_destroy(struct gm_inventory *inventory) {
    free(inventory->reservations.slots);
    free(inventory->physical.slots);
    free(inventory->mappings.slots);
    pthread_mutex_destroy(&inventory->lock);
}

void gm_inventory_add_reservation(struct gm_inventory *inventory, CUdeviceptr address,
                                  size_t bytes) {
    add(inventory, &inventory->reservations, &(struct gm_held){.key = address, .bytes = bytes});
}

void gm_inventory_drop_reservation(struct gm_inventory *inventory, CUdeviceptr address) {
    (void)drop_locked(inventory, &inventory->reservations, address);
}

void gm_inventory_keep_reservation(struct gm_inventory *inventory, CUdeviceptr address,
                                   size_t bytes) {
    add(inventory, &inventory->reservations,
        &(struct gm_held){.key = address, .bytes = bytes, .quarantined = 1});
}

void gm_inventory_add_physical(struct gm_inventory *inventory, const struct gm_held *held) {
    add(inventory, &inventory->physical, held);
}

struct gm_held gm_inventory_drop_physical(struct gm_inventory *inventory,
                                          CUmemGenericAllocationHandle handle,
                                          const struct gm_meter *by) {
    struct gm_held_table *table = &inventory->physical;
    pthread_mutex_lock(&inventory->lock);
    struct gm_held *slot = table->room ? slot_of(table, handle) : NULL;
    struct gm_held found = slot && slot->key ? *slot : (struct gm_held){.key = handle};
    if (slot && slot->key && slot->own)
        slot->own -= slot->owner == by;
    (void)drop(table, handle);
    pthread_mutex_unlock(&inventory->lock);
    return found;
}

void gm_inventory_keep_physical(struct gm_inventory *inventory, const struct gm_held *held) {
    struct gm_held kept = *held;
    kept.quarantined = 1;
    add(inventory, &inventory->physical, &kept);
}

void gm_inventory_size_physical(struct gm_inventory *inventory, CUmemGenericAllocationHandle handle,
                                size_t bytes) {
    pthread_mutex_lock(&inventory->lock);
    struct gm_held *memory =
        inventory->physical.room ? slot_of(&inventory->physical, handle) : NULL;
    if (memory && memory->key && !memory->bytes)
        memory->bytes = bytes;
    pthread_mutex_unlock(&inventory->lock);
}

void gm_inventory_add_mapping(struct gm_inventory *inventory, CUdeviceptr address, size_t bytes,
                              CUmemGenericAllocationHandle handle, const struct gm_meter *owner) {
    gm_inventory_size_physical(inventory, handle, bytes); /* whole handles are mapped */
    add(inventory, &inventory->mappings,
        &(struct gm_held){.key = address, .bytes = bytes, .handle = handle, .owner = owner});
}

/* For a range that has several mappings, or begins with a hole. */
static void drop_range(struct gm_held_table *table, CUdeviceptr address, size_t bytes) {
    for (size_t i = 0; i < table->room;) {
        const struct gm_held *held = &table->slots[i];
        if (held->key >= address && held->key - address < bytes)
            empty(table, i); /* another one may have moved here */
        else
            i++;
    }
}

void gm_inventory_drop_mappings(struct gm_inventory *inventory, CUdeviceptr address, size_t bytes) {
    pthread_mutex_lock(&inventory->lock);
    struct gm_held first = drop(&inventory->mappings, address);
    if (first.bytes < bytes)
        drop_range(&inventory->mappings, address, bytes);
    pthread_mutex_unlock(&inventory->lock);
}

/* ---- Copies ---------------------------------------------------------------------------------- */

static int by_key(const void *left, const void *right) {
    uint64_t a = ((const struct gm_held *)left)->key, b = ((const struct gm_held *)right)->key;
    return (a > b) - (a < b);
}

static int copy_table(const struct gm_held_table *table, struct gm_held **copy, size_t *count) {
    *count = 0;
    *copy = malloc((table->count + 1) * sizeof **copy);
    if (!*copy)
        return -1;
    for (size_t i = 0; i < table->room; i++)
        if (table->slots[i].key)
            (*copy)[(*count)++] = table->slots[i];
    return 0;
}

int gm_inventory_copy(struct gm_inventory *inventory, struct gm_inventory_copy *copy) {
    *copy = (struct gm_inventory_copy){0};
    pthread_mutex_lock(&inventory->lock);
    int failed =
        copy_table(&inventory->reservations, &copy->reservations, &copy->reservation_count) |
        copy_table(&inventory->physical, &copy->physical, &copy->physical_count) |
        copy_table(&inventory->mappings, &copy->mappings, &copy->mapping_count);
    copy->missing = inventory->missing;
    pthread_mutex_unlock(&inventory->lock);
    if (failed) {
        gm_inventory_copy_free(copy);
        return -1;
    }
    qsort(copy->reservations, copy->reservation_count, sizeof *copy->reservations, by_key);
    qsort(copy->physical, copy->physical_count, sizeof *copy->physical, by_key);
    qsort(copy->mappings, copy->mapping_count, sizeof *copy->mappings, by_key);
    return 0;
}

void gm_inventory_copy_free(struct gm_inventory_copy *copy) {
    free(copy->reservations);
    free(copy->physical);
    free(copy->mappings);
    *copy = (struct gm_inventory_copy){0};
}
