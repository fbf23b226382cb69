/*
 * An extent: a reservation with chunks mapped from its start, all of whose changes are whole or
 * nothing. The memory behind virtual buffers and imports.
 */
#ifndef GM_MEMORY_EXTENT_H
#define GM_MEMORY_EXTENT_H

#include "memory/objects.h"

struct gm_range_cache;

struct gm_extent {
    gpumem_device *device;
    struct gm_meter *meter;
    const CUmemAccessDesc *access; /* borrowed: given to every chunk */
    size_t access_count;
    CUdeviceptr address;
    size_t capacity;
    size_t committed; /* bytes mapped, from the start */
    struct gm_chunk *chunks;
    size_t count, room;
    struct gm_range_cache *cache; /* of the chunks that it takes and gives back; or NULL */
    atomic_int shared;            /* others may map its chunks: these are never cached */
};

/* Reserves. The first four members are set by the caller. */
gpumem_status gm_extent_init(struct gm_extent *extent, size_t capacity, size_t alignment,
                             CUdeviceptr hint);

/* Takes new memory in chunks of these sizes, `sizes[i]` bytes each, and maps it behind the rest. */
gpumem_status gm_extent_append(struct gm_extent *extent, const CUmemAllocationProp *prop,
                               const size_t *sizes, size_t count);

/* The same with handles that exist. They become the extent's, on success only. */
gpumem_status gm_extent_adopt(struct gm_extent *extent, const struct gm_chunk *chunks,
                              size_t count);

/* Unmaps and gives back the last `count` chunks. */
gpumem_status gm_extent_drop(struct gm_extent *extent, size_t count);

/* Gives back everything; cannot fail. */
void gm_extent_destroy(struct gm_extent *extent);

#endif
