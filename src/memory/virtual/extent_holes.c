/* Holes in an extent: chunks in the middle that lose and regain memory. */
#include "memory/core/driver_error.h"
#include "memory/core/vmm_calls.h"
#include "memory/virtual/extent.h"
#include "memory/virtual/range_cache.h"

#include <stdlib.h>

static size_t offset_of(const struct gm_extent *extent, size_t index) {
    size_t offset = 0;
    for (size_t i = 0; i < index; i++)
        offset += extent->chunks[i].bytes;
    return offset;
}

static CUdeviceptr address_of(const struct gm_extent *extent, size_t index) {
    return extent->address + offset_of(extent, index);
}

int gm_extent_is_whole(const struct gm_extent *extent, size_t offset, size_t bytes) {
    int whole = 1;
    if (!atomic_load_explicit(&extent->holes, memory_order_relaxed) || !bytes)
        return whole;
    gm_extent_lock_lists();
    size_t at = 0;
    for (size_t i = 0; i < extent->count && at < offset + bytes && whole; i++) {
        at += extent->chunks[i].bytes;
        whole = extent->chunks[i].handle || at <= offset;
    }
    gm_extent_unlock_lists();
    return whole;
}

static gpumem_status map_one(struct gm_extent *extent, size_t index,
                             CUmemGenericAllocationHandle handle) {
    CUdeviceptr address = address_of(extent, index);
    size_t bytes = extent->chunks[index].bytes;
    struct gm_access access = gm_extent_access(extent, index);
    gpumem_status status = gm_vmm_map(extent->device, extent->meter, address, bytes, handle);
    if (status != GPUMEM_OK)
        return status;
    status = gm_vmm_access(extent->device, address, bytes, access.entries, access.count);
    if (status == GPUMEM_OK)
        return GPUMEM_OK;
    struct gm_error_record saved;
    gm_error_save(&saved);
    if (gm_vmm_unmap(extent->device, extent->meter, address, bytes) != GPUMEM_OK)
        gm_meter_quarantine(extent->meter, 0);
    gm_error_restore(&saved);
    return status;
}

static gpumem_status unmap_one(struct gm_extent *extent, size_t index) {
    return gm_vmm_unmap(extent->device, extent->meter, address_of(extent, index),
                        extent->chunks[index].bytes);
}

/* ---- Out ------------------------------------------------------------------------------------- */

/* Memory that another process also maps is not free yet. */
static size_t release(struct gm_extent *extent, size_t index) {
    struct gm_chunk *chunk = &extent->chunks[index];
    gm_mirrors_detach(extent, offset_of(extent, index), chunk);
    int taken = gm_vmm_release(extent->device, extent->meter, chunk->handle, chunk->bytes);
    gm_extent_lock_lists();
    chunk->handle = 0;
    extent->holes += chunk->bytes;
    gm_extent_unlock_lists();
    return taken && !atomic_load(&extent->shared) ? chunk->bytes : 0;
}

/* Chunks [first, end) that were unmapped are mapped again, or else given up. */
static size_t put_back(struct gm_extent *extent, size_t first, size_t end) {
    struct gm_error_record saved;
    gm_error_save(&saved);
    size_t released = 0;
    for (size_t i = first; i < end; i++)
        if (extent->chunks[i].handle && map_one(extent, i, extent->chunks[i].handle) != GPUMEM_OK)
            released += release(extent, i);
    gm_error_restore(&saved);
    return released;
}

gpumem_status gm_extent_punch(struct gm_extent *extent, size_t first, size_t count,
                              size_t *released) {
    gpumem_status status = GPUMEM_OK;
    *released = 0;
    size_t i = first;
    for (; i < first + count; i++) {
        if (extent->chunks[i].handle)
            status = unmap_one(extent, i);
        if (status != GPUMEM_OK)
            break;
    }
    if (status != GPUMEM_OK) {
        *released = put_back(extent, first, i);
        return status;
    }
    for (i = first; i < first + count; i++)
        if (extent->chunks[i].handle)
            *released += release(extent, i);
    return GPUMEM_OK;
}

/* ---- In -------------------------------------------------------------------------------------- */

/* Where a hole got its memory. */
enum filled { NOT_FILLED = 0, FROM_CACHE, MADE };

/* Takes the memory of a chunk back to its origin: a failure leaves no more in the cache than
 * before. */
static void discard(struct gm_extent *extent, const struct gm_chunk *chunk, enum filled how) {
    struct gm_range_cache *cache = atomic_load(&extent->shared) ? NULL : extent->cache;
    if (how == MADE || !cache || !gm_range_cache_give_chunk(cache, chunk))
        gm_vmm_release(extent->device, extent->meter, chunk->handle, chunk->bytes);
}

/* For memory that the mirrors refused. 0: it remains mapped, without an owner, and is counted. */
static int unmap_new(struct gm_extent *extent, size_t index) {
    struct gm_error_record saved;
    gm_error_save(&saved);
    int unmapped = unmap_one(extent, index) == GPUMEM_OK;
    if (!unmapped)
        gm_meter_quarantine(extent->meter, 0);
    gm_error_restore(&saved);
    return unmapped;
}

static gpumem_status fill_one(struct gm_extent *extent, const CUmemAllocationProp *prop,
                              size_t index, unsigned char *filled) {
    struct gm_chunk made = {.bytes = extent->chunks[index].bytes};
    gpumem_status status = GPUMEM_OK;
    enum filled how =
        extent->cache && gm_range_cache_take_chunk(extent->cache, &made) ? FROM_CACHE : MADE;
    if (how == MADE)
        status = gm_vmm_create(extent->device, extent->meter, made.bytes, prop, &made.handle);
    if (status != GPUMEM_OK)
        return status;
    status = map_one(extent, index, made.handle);
    if (status == GPUMEM_OK) {
        status = gm_mirrors_attach(extent, offset_of(extent, index), &made);
        if (status != GPUMEM_OK && !unmap_new(extent, index))
            return status;
    }
    if (status == GPUMEM_OK) {
        gm_extent_lock_lists();
        extent->chunks[index].handle = made.handle;
        extent->holes -= made.bytes;
        gm_extent_unlock_lists();
        *filled = (unsigned char)how;
        return GPUMEM_OK;
    }
    struct gm_error_record saved;
    gm_error_save(&saved);
    discard(extent, &made, how);
    gm_error_restore(&saved);
    return status;
}

/* Makes it a hole again. A mapping that the driver refuses to give up keeps its memory. */
static void empty(struct gm_extent *extent, size_t index, enum filled how) {
    struct gm_chunk *chunk = &extent->chunks[index];
    if (unmap_one(extent, index) != GPUMEM_OK)
        return;
    gm_mirrors_detach(extent, offset_of(extent, index), chunk);
    discard(extent, chunk, how);
    gm_extent_lock_lists();
    chunk->handle = 0;
    extent->holes += chunk->bytes;
    gm_extent_unlock_lists();
}

gpumem_status gm_extent_fill(struct gm_extent *extent, const CUmemAllocationProp *prop,
                             size_t first, size_t count) {
    unsigned char *filled = calloc(count + 1, 1);
    if (!filled)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to record %zu chunks", count);
    gpumem_status status = GPUMEM_OK;
    for (size_t i = 0; i < count && status == GPUMEM_OK; i++) {
        if (extent->chunks[first + i].handle)
            continue;
        status = fill_one(extent, prop, first + i, &filled[i]);
    }
    if (status != GPUMEM_OK) {
        struct gm_error_record saved;
        gm_error_save(&saved);
        for (size_t i = 0; i < count; i++)
            if (filled[i] != NOT_FILLED)
                empty(extent, first + i, (enum filled)filled[i]);
        gm_error_restore(&saved);
    }
    free(filled);
    return status;
}
