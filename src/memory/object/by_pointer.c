/* Allocations that callers know only by their address: a table per resource maps addresses to
 * buffers. */
#include "memory/object/by_pointer.h"
#include "base/cancel.h"
#include "memory/core/driver_error.h"

#include <stdlib.h>

/* A power of two, at most three quarters full; the search for a buffer begins at its home slot. */
struct gm_pointer_table {
    pthread_mutex_t lock;
    gpumem_buffer **slots;
    size_t room, count;
};

static size_t home(const struct gm_pointer_table *table, CUdeviceptr pointer) {
    return (size_t)((pointer >> 4) * 0x9e3779b97f4a7c15u >> 20) & (table->room - 1);
}

static void put(const struct gm_pointer_table *table, gpumem_buffer *buffer) {
    size_t at = home(table, gpumem_buffer_pointer(buffer));
    while (table->slots[at])
        at = (at + 1) & (table->room - 1);
    table->slots[at] = buffer;
}

/* The lock is held. -1 without memory. */
static int grow(struct gm_pointer_table *table) {
    size_t room = table->room ? 2 * table->room : 64;
    gpumem_buffer **before = table->slots, **slots = calloc(room, sizeof *slots);
    if (!slots)
        return -1;
    size_t count = table->room;
    table->slots = slots;
    table->room = room;
    for (size_t i = 0; i < count; i++)
        if (before[i])
            put(table, before[i]);
    free(before);
    return 0;
}

static int add(struct gm_pointer_table *table, gpumem_buffer *buffer) {
    pthread_mutex_lock(&table->lock);
    int full = 4 * (table->count + 1) > 3 * table->room;
    int added = !full || grow(table) == 0;
    if (added) {
        put(table, buffer);
        table->count++;
    }
    pthread_mutex_unlock(&table->lock);
    return added ? 0 : -1;
}

/* Entries after the emptied slot move up, unless they are in their home slot. */
static void empty(const struct gm_pointer_table *table, size_t hole) {
    size_t mask = table->room - 1;
    for (size_t at = (hole + 1) & mask; table->slots[at]; at = (at + 1) & mask) {
        size_t from = home(table, gpumem_buffer_pointer(table->slots[at]));
        if (((at - from) & mask) < ((at - hole) & mask))
            continue;
        table->slots[hole] = table->slots[at];
        hole = at;
    }
    table->slots[hole] = NULL;
}

/* The slot of the buffer at `pointer`, or table->room. The lock is held. */
static size_t find(const struct gm_pointer_table *table, CUdeviceptr pointer) {
    if (!table->room)
        return 0;
    size_t at = home(table, pointer), mask = table->room - 1;
    while (table->slots[at] && gpumem_buffer_pointer(table->slots[at]) != pointer)
        at = (at + 1) & mask;
    return table->slots[at] ? at : table->room;
}

/* Finds the buffer and removes it if it has `bytes`, or if that is 0. The lock is held. */
static gpumem_buffer *take_out(struct gm_pointer_table *table, CUdeviceptr pointer, size_t bytes,
                               size_t *found_bytes) {
    size_t at = find(table, pointer);
    if (at == table->room)
        return NULL;
    gpumem_buffer *found = table->slots[at];
    *found_bytes = gpumem_buffer_size(found);
    if (bytes && *found_bytes != bytes)
        return NULL;
    empty(table, at);
    table->count--;
    return found;
}

static struct gm_pointer_table *table_of(gpumem_resource *resource) {
    struct gm_pointer_table *table = atomic_load(&resource->pointers);
    if (table)
        return table;
    struct gm_pointer_table *made = calloc(1, sizeof *made), *other = NULL;
    if (!made)
        return NULL;
    pthread_mutex_init(&made->lock, NULL);
    if (atomic_compare_exchange_strong(&resource->pointers, &other, made))
        return made;
    pthread_mutex_destroy(&made->lock); /* another thread was faster */
    free(made);
    return other;
}

void gm_pointers_discard(gpumem_resource *resource) {
    struct gm_pointer_table *table = atomic_load(&resource->pointers);
    if (!table)
        return;
    pthread_mutex_destroy(&table->lock);
    free(table->slots);
    free(table);
}

static gpumem_status unknown(const gpumem_resource *resource, CUdeviceptr pointer,
                             const char *call) {
    return gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT,
                   "%s: 0x%llx was not allocated from this %s resource with "
                   "gpumem_resource_allocate, or was freed",
                   call, pointer, resource->kind);
}

gpumem_status gpumem_resource_allocate(gpumem_resource *resource, size_t bytes,
                                       const gpumem_buffer_options *options, CUdeviceptr *pointer) {
    GM_UNCANCELLED;
    GM_CHECK(resource, "gpumem_resource_allocate");
    GM_REQUIRE(pointer, "gpumem_resource_allocate: pointer is NULL");
    struct gm_pointer_table *table = table_of(resource);
    gpumem_buffer *buffer;
    if (!table)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to record an address");
    gpumem_status status = gpumem_buffer_allocate(resource, bytes, options, &buffer);
    if (status != GPUMEM_OK)
        return status;
    if (add(table, buffer) != 0) {
        (void)gpumem_buffer_free(buffer, NULL);
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to record an address");
    }
    *pointer = gpumem_buffer_pointer(buffer);
    return GPUMEM_OK;
}

gpumem_status gpumem_resource_deallocate(gpumem_resource *resource, CUdeviceptr pointer,
                                         size_t bytes, CUstream stream) {
    GM_UNCANCELLED;
    GM_CHECK(resource, "gpumem_resource_deallocate");
    if (!pointer)
        return GPUMEM_OK;
    struct gm_pointer_table *table = atomic_load(&resource->pointers);
    gpumem_buffer *buffer = NULL;
    size_t found = 0;
    if (table) {
        pthread_mutex_lock(&table->lock);
        buffer = take_out(table, pointer, bytes, &found);
        pthread_mutex_unlock(&table->lock);
    }
    if (buffer)
        return gpumem_buffer_free(buffer, stream);
    GM_REQUIRE(!found, "gpumem_resource_deallocate: 0x%llx was allocated with %zu bytes, not %zu",
               pointer, found, bytes);
    return unknown(resource, pointer, "gpumem_resource_deallocate");
}

/* ---- The buffer behind an address ------------------------------------------------------------ */

gpumem_status gpumem_resource_find(gpumem_resource *resource, CUdeviceptr pointer,
                                   gpumem_buffer **buffer) {
    GM_UNCANCELLED;
    static const char call[] = "gpumem_resource_find";
    GM_CHECK(resource, call);
    GM_REQUIRE(buffer, "%s: buffer is NULL", call);
    struct gm_pointer_table *table = atomic_load(&resource->pointers);
    gpumem_buffer *found = NULL;
    if (table) {
        pthread_mutex_lock(&table->lock);
        size_t at = find(table, pointer);
        found = at < table->room ? table->slots[at] : NULL;
        pthread_mutex_unlock(&table->lock);
    }
    if (!found)
        return unknown(resource, pointer, call);
    *buffer = found;
    return GPUMEM_OK;
}

gpumem_status gpumem_resource_use(gpumem_resource *resource, CUdeviceptr pointer, CUstream stream) {
    GM_UNCANCELLED;
    gpumem_buffer *buffer;
    gpumem_status status = gpumem_resource_find(resource, pointer, &buffer);
    return status == GPUMEM_OK ? gpumem_buffer_use(buffer, stream) : status;
}
