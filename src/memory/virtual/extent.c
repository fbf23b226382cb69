#include "memory/virtual/extent.h"

#include "base/growing_array.h"
#include "memory/core/driver_error.h"
#include "memory/core/vmm_calls.h"
#include "memory/virtual/range_cache.h"

#include <stdlib.h>
#include <string.h>

void gm_extent_prepare(struct gm_extent *extent, gpumem_device *device, struct gm_meter *meter) {
    extent->device = device;
    extent->meter = meter;
}

void gm_extent_give(struct gm_extent *extent, const CUmemAccessDesc *access, size_t count) {
    extent->access = access;
    extent->access_count = count;
}

gpumem_status gm_extent_init(struct gm_extent *extent, size_t capacity, size_t alignment,
                             CUdeviceptr hint) {
    extent->committed = 0;
    atomic_init(&extent->holes, 0);
    extent->chunks = NULL;
    extent->mirrors = NULL;
    extent->given = NULL;
    extent->count = extent->room = 0;
    extent->capacity = capacity;
    return gm_vmm_reserve(extent->device, capacity, alignment, hint, &extent->address);
}

static pthread_mutex_t lists = PTHREAD_MUTEX_INITIALIZER;

void gm_extent_lock_lists(void) {
    pthread_mutex_lock(&lists);
}

void gm_extent_unlock_lists(void) {
    pthread_mutex_unlock(&lists);
}

static gpumem_status make_room(struct gm_extent *extent, size_t count) {
    size_t wanted = extent->count + count;
    size_t room = extent->room, given_room = extent->room;
    gm_extent_lock_lists();
    int made = GM_RESERVE(extent->chunks, room, wanted) &&
               (!extent->given || GM_RESERVE(extent->given, given_room, wanted));
    gm_extent_unlock_lists();
    if (!made)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to record %zu chunks", wanted);
    extent->room = room;
    return GPUMEM_OK;
}

/* Unmaps chunks mapped from `address` on, the last first. What remains mapped is counted.
 */
static void unmap_chunks(struct gm_extent *extent, CUdeviceptr address,
                         const struct gm_chunk *chunks, size_t count) {
    for (size_t i = 0; i < count; i++)
        address += chunks[i].bytes;
    while (count--) {
        address -= chunks[count].bytes;
        if (chunks[count].handle &&
            gm_vmm_unmap(extent->device, extent->meter, address, chunks[count].bytes) != GPUMEM_OK)
            gm_meter_quarantine(extent->meter, 0);
    }
}

/* Sets the access of mapped chunks, in one call for each run with the same. `index` is that of the
 * first. */
static gpumem_status give_access(struct gm_extent *extent, CUdeviceptr address,
                                 const struct gm_chunk *chunks, size_t count, size_t index) {
    gpumem_status status = GPUMEM_OK;
    for (size_t i = 0, next; i < count && status == GPUMEM_OK; i = next) {
        struct gm_access access = gm_extent_access(extent, index + i);
        size_t bytes = chunks[i].bytes;
        for (next = i + 1; chunks[i].handle && next < count && chunks[next].handle &&
                           gm_extent_access(extent, index + next).entries == access.entries;
             next++)
            bytes += chunks[next].bytes;
        if (chunks[i].handle)
            status = gm_vmm_access(extent->device, address, bytes, access.entries, access.count);
        address += bytes;
    }
    return status;
}

/* Maps chunks from `address` on and gives access to them all. */
static gpumem_status map_chunks(struct gm_extent *extent, CUdeviceptr address,
                                const struct gm_chunk *chunks, size_t count, size_t index) {
    gpumem_status status = GPUMEM_OK;
    size_t mapped = 0, bytes = 0;
    for (; mapped < count; mapped++) {
        if (chunks[mapped].handle)
            status = gm_vmm_map(extent->device, extent->meter, address + bytes,
                                chunks[mapped].bytes, chunks[mapped].handle);
        if (status != GPUMEM_OK)
            break;
        bytes += chunks[mapped].bytes;
    }
    if (status == GPUMEM_OK)
        status = give_access(extent, address, chunks, count, index);
    if (status == GPUMEM_OK)
        return GPUMEM_OK;
    struct gm_error_record saved;
    gm_error_save(&saved);
    unmap_chunks(extent, address, chunks, mapped);
    gm_error_restore(&saved);
    return status;
}

/* Makes the mirrors follow what was mapped after the rest, or unmaps it. */
static gpumem_status mirror_chunks(struct gm_extent *extent, const struct gm_chunk *chunks,
                                   size_t count) {
    gpumem_status status = GPUMEM_OK;
    size_t offset = extent->committed, done = 0;
    for (; done < count && extent->mirrors; done++) {
        status = gm_mirrors_attach(extent, offset, &chunks[done]);
        if (status != GPUMEM_OK)
            break;
        offset += chunks[done].bytes;
    }
    if (status == GPUMEM_OK)
        return GPUMEM_OK;
    struct gm_error_record saved;
    gm_error_save(&saved);
    while (done--) {
        offset -= chunks[done].bytes;
        gm_mirrors_detach(extent, offset, &chunks[done]);
    }
    unmap_chunks(extent, extent->address + extent->committed, chunks, count);
    gm_error_restore(&saved);
    return status;
}

gpumem_status gm_extent_adopt(struct gm_extent *extent, const struct gm_chunk *chunks,
                              size_t count) {
    gpumem_status status = make_room(extent, count);
    if (status != GPUMEM_OK)
        return status;
    for (size_t i = 0; extent->given && i < count; i++)
        extent->given[extent->count + i] = (struct gm_access){extent->access, extent->access_count};
    status = map_chunks(extent, extent->address + extent->committed, chunks, count, extent->count);
    if (status == GPUMEM_OK)
        status = mirror_chunks(extent, chunks, count);
    if (status != GPUMEM_OK)
        return status;
    gm_extent_lock_lists();
    for (size_t i = 0; i < count; i++) {
        extent->chunks[extent->count++] = chunks[i];
        extent->committed += chunks[i].bytes;
    }
    gm_extent_unlock_lists();
    return GPUMEM_OK;
}

gpumem_status gm_extent_double(struct gm_extent *extent, const struct gm_extent *other) {
    extent->borrowed = 1; /* until the caller says otherwise */
    extent->chunks = malloc((other->room + 1) * sizeof *extent->chunks);
    if (!extent->chunks)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to record %zu chunks",
                       other->count);
    extent->room = other->room;
    for (size_t i = 0; i < other->count; i++)
        extent->chunks[i] = other->chunks[i];
    gpumem_status status = map_chunks(extent, extent->address, extent->chunks, other->count, 0);
    if (status != GPUMEM_OK)
        return status;
    extent->count = other->count;
    extent->committed = other->committed;
    atomic_init(&extent->holes, atomic_load(&other->holes));
    return GPUMEM_OK;
}

static void release_chunk(struct gm_extent *extent, const struct gm_chunk *chunk) {
    struct gm_range_cache *cache = atomic_load(&extent->shared) ? NULL : extent->cache;
    if (!cache || !gm_range_cache_give_chunk(cache, chunk))
        gm_vmm_release(extent->device, extent->meter, chunk->handle, chunk->bytes);
}

static void release_chunks(struct gm_extent *extent, const struct gm_chunk *chunks, size_t count) {
    while (count--)
        if (chunks[count].handle)
            release_chunk(extent, &chunks[count]);
}

/* A chunk of `chunk->bytes`: a cached one, or a new one, as *fresh reports. */
static gpumem_status make_chunk(struct gm_extent *extent, const CUmemAllocationProp *prop,
                                struct gm_chunk *chunk, unsigned char *fresh) {
    *fresh = !extent->cache || !gm_range_cache_take_chunk(extent->cache, chunk);
    if (!*fresh)
        return GPUMEM_OK;
    return gm_vmm_create(extent->device, extent->meter, chunk->bytes, prop, &chunk->handle);
}

/* An unneeded chunk goes back to its origin: a failure leaves no more in the cache than before.
 */
static void unmake_chunks(struct gm_extent *extent, const struct gm_chunk *chunks,
                          const unsigned char *fresh, size_t count) {
    struct gm_error_record saved;
    gm_error_save(&saved);
    while (count--) {
        if (fresh[count])
            gm_vmm_release(extent->device, extent->meter, chunks[count].handle,
                           chunks[count].bytes);
        else
            release_chunk(extent, &chunks[count]);
    }
    gm_error_restore(&saved);
}

#define FEW 16

gpumem_status gm_extent_append(struct gm_extent *extent, const CUmemAllocationProp *prop,
                               const size_t *sizes, size_t count) {
    struct gm_chunk few[FEW] = {0}, *made = few;
    unsigned char few_fresh[FEW] = {0}, *fresh = few_fresh;
    if (count > FEW) {
        made = malloc(count * (sizeof *made + sizeof *fresh));
        fresh = (unsigned char *)(made + count);
    }
    if (!made)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to record %zu chunks", count);
    gpumem_status status = GPUMEM_OK;
    size_t created = 0;
    for (; created < count; created++) {
        made[created].bytes = sizes[created];
        status = make_chunk(extent, prop, &made[created], &fresh[created]);
        if (status != GPUMEM_OK)
            break;
    }
    if (status == GPUMEM_OK)
        status = gm_extent_adopt(extent, made, count);
    if (status != GPUMEM_OK)
        unmake_chunks(extent, made, fresh, created);
    if (made != few)
        free(made);
    return status;
}

gpumem_status gm_extent_drop(struct gm_extent *extent, size_t count) {
    size_t kept = extent->count - count;
    size_t unmapped = extent->count;
    CUdeviceptr end = extent->address + extent->committed;
    gpumem_status status = GPUMEM_OK;
    while (unmapped > kept) {
        size_t bytes = extent->chunks[unmapped - 1].bytes;
        if (extent->chunks[unmapped - 1].handle)
            status = gm_vmm_unmap(extent->device, extent->meter, end - bytes, bytes);
        if (status != GPUMEM_OK)
            break;
        unmapped--;
        end -= bytes;
    }
    if (status != GPUMEM_OK) {
        struct gm_error_record saved;
        gm_error_save(&saved);
        /* The handles are still ours, so unmapped chunks can be mapped again. */
        gpumem_status undone =
            map_chunks(extent, end, extent->chunks + unmapped, extent->count - unmapped, unmapped);
        if (undone == GPUMEM_OK) {
            gm_error_restore(&saved);
            return status;
        }
        kept = unmapped; /* it cannot: then unmapped chunks are dropped, and the caller is
                          * informed */
        gm_error_restore(&saved);
    }
    size_t offset = (size_t)(end - extent->address);
    for (size_t i = kept; i < extent->count; i++) {
        gm_mirrors_detach(extent, offset, &extent->chunks[i]);
        offset += extent->chunks[i].bytes;
    }
    release_chunks(extent, extent->chunks + kept, extent->count - kept);
    gm_extent_lock_lists();
    for (size_t i = kept; i < extent->count; i++)
        extent->holes -= extent->chunks[i].handle ? 0 : extent->chunks[i].bytes;
    extent->count = kept;
    gm_extent_unlock_lists();
    extent->committed = (size_t)(end - extent->address);
    return status;
}

void gm_extent_destroy(struct gm_extent *extent) {
    struct gm_error_record saved;
    gm_error_save(&saved);
    CUdeviceptr address = extent->address;
    int all = 1;
    while (extent->mirrors)
        gm_extent_remove_mirror(extent, extent->mirrors);
    for (size_t i = 0; i < extent->count; i++) {
        if (extent->chunks[i].handle)
            all &= gm_vmm_unmap(extent->device, extent->meter, address, extent->chunks[i].bytes) ==
                   GPUMEM_OK;
        address += extent->chunks[i].bytes;
    }
    if (!extent->borrowed)
        release_chunks(extent, extent->chunks, extent->count);
    /* Addresses of which some are still mapped must never be given to anyone else. */
    if (all) {
        gm_vmm_unreserve(extent->device, extent->meter, extent->address, extent->capacity);
    } else {
        gm_meter_quarantine(extent->meter, extent->capacity);
        gm_meter_add(extent->meter, GM_RESERVED, extent->capacity);
    }
    free(extent->chunks);
    free(extent->given);
    gm_error_restore(&saved);
}
