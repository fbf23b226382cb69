#include "memory/virtual/virtual_range.h"

#include "memory/core/driver_error.h"
#include "memory/core/vmm_calls.h"

#include <stdlib.h>
#include <string.h>

struct gm_virtual_resource *gm_virtual_of_device(const gpumem_resource *resource) {
    struct gm_virtual_resource *v = gm_virtual_behind(resource);
    if (!v || v->resource != resource || v->maker || v->host_accessible)
        return NULL;
    const gpumem_virtual_options *o = &v->options;
    int any_size =
        o->minimum_chunk_bytes == v->granularity && o->maximum_chunk_bytes > o->minimum_chunk_bytes;
    return any_size && v->prop.location.type == CU_MEM_LOCATION_TYPE_DEVICE ? v : NULL;
}

/* ---- The list of chunks, with holes in between ----------------------------------------------- */

/* The chunk in which `offset` lies; *begin is where it begins. */
static size_t find(const struct gm_extent *extent, size_t offset, size_t *begin) {
    size_t i = extent->count - 1; /* in a range that is being filled, the last */
    *begin = extent->committed - extent->chunks[i].bytes;
    if (*begin <= offset)
        return i;
    i = 0;
    for (*begin = 0; *begin + extent->chunks[i].bytes <= offset; i++)
        *begin += extent->chunks[i].bytes;
    return i;
}

static void insert(struct gm_extent *extent, size_t at, size_t bytes) {
    memmove(extent->chunks + at + 1, extent->chunks + at,
            (extent->count - at) * sizeof *extent->chunks);
    extent->chunks[at] = (struct gm_chunk){.bytes = bytes};
    extent->count++;
}

static void drop(struct gm_extent *extent, size_t at) {
    extent->count--;
    memmove(extent->chunks + at, extent->chunks + at + 1,
            (extent->count - at) * sizeof *extent->chunks);
}

/* There is room for a chunk of each granule: gm_range_open. */
static void put(struct gm_extent *extent, const struct gm_placed *page) {
    size_t end = page->offset + page->chunk.bytes, begin;
    if (end > extent->committed) {
        insert(extent, extent->count, end - extent->committed);
        extent->holes += end - extent->committed;
        extent->committed = end;
    }
    size_t at = find(extent, page->offset, &begin);
    while (begin + extent->chunks[at].bytes < end) { /* holes are apart where one was added */
        extent->chunks[at].bytes += extent->chunks[at + 1].bytes;
        drop(extent, at + 1);
    }
    if (begin < page->offset) {
        insert(extent, at, page->offset - begin);
        extent->chunks[++at].bytes -= page->offset - begin;
    }
    if (extent->chunks[at].bytes > page->chunk.bytes) {
        insert(extent, at + 1, extent->chunks[at].bytes - page->chunk.bytes);
        extent->chunks[at].bytes = page->chunk.bytes;
    }
    extent->chunks[at].handle = page->chunk.handle;
    extent->holes -= page->chunk.bytes;
}

static void take(struct gm_extent *extent, size_t offset) {
    size_t begin, at = find(extent, offset, &begin);
    extent->chunks[at].handle = 0;
    extent->holes += extent->chunks[at].bytes;
    if (at + 1 < extent->count && !extent->chunks[at + 1].handle) {
        extent->chunks[at].bytes += extent->chunks[at + 1].bytes;
        drop(extent, at + 1);
    }
    if (at && !extent->chunks[at - 1].handle) {
        extent->chunks[at - 1].bytes += extent->chunks[at].bytes;
        drop(extent, at--);
    }
    if (at + 1 == extent->count) {
        extent->committed -= extent->chunks[at].bytes;
        extent->holes -= extent->chunks[at].bytes;
        extent->count--;
    }
}

/* ---- Ranges ---------------------------------------------------------------------------------- */

gpumem_status gm_range_open(struct gm_virtual_resource *v, size_t capacity,
                            struct gm_range **made) {
    struct gm_range *range = calloc(1, sizeof *range);
    size_t room = capacity / v->granularity + 2;
    struct gm_chunk *chunks = calloc(room, sizeof *chunks);
    if (!range || !chunks) {
        free(range);
        free(chunks);
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a range of addresses");
    }
    struct gm_extent *extent = &range->extent;
    range->last.state = GM_WAIT_PASSED;
    gm_extent_prepare(extent, v->device, &v->resource->meter);
    atomic_init(&extent->shared, 0);
    pthread_rwlock_rdlock(&v->mapped.lock);
    gm_extent_give(extent, v->access, v->access_count);
    gpumem_status status = gm_extent_init(extent, capacity, v->alignment, 0);
    extent->chunks = chunks;
    extent->room = room;
    if (status == GPUMEM_OK)
        gm_virtual_enlist(v, range);
    pthread_rwlock_unlock(&v->mapped.lock);
    if (status != GPUMEM_OK) {
        free(chunks);
        free(range);
        return status;
    }
    *made = range;
    return GPUMEM_OK;
}

void gm_range_close(struct gm_virtual_resource *v, struct gm_range *range) {
    pthread_rwlock_rdlock(&v->mapped.lock);
    gm_virtual_discard(v, range);
    pthread_rwlock_unlock(&v->mapped.lock);
}

/* ---- Pages ----------------------------------------------------------------------------------- */

/* In one call for each run. */
static gpumem_status give_access(struct gm_virtual_resource *v, const struct gm_extent *extent,
                                 const struct gm_placed *pages, size_t count) {
    gpumem_status status = GPUMEM_OK;
    for (size_t i = 0, next; i < count && status == GPUMEM_OK; i = next) {
        size_t bytes = pages[i].chunk.bytes;
        for (next = i + 1; next < count && pages[next].offset == pages[i].offset + bytes; next++)
            bytes += pages[next].chunk.bytes;
        status = gm_vmm_access(v->device, extent->address + pages[i].offset, bytes, extent->access,
                               extent->access_count);
    }
    return status;
}

static gpumem_status unmap(struct gm_virtual_resource *v, const struct gm_extent *extent,
                           const struct gm_placed *page) {
    return gm_vmm_unmap(v->device, &v->resource->meter, extent->address + page->offset,
                        page->chunk.bytes);
}

/* The last first. Returns how many of the first are still there. */
static size_t unmap_all(struct gm_virtual_resource *v, const struct gm_extent *extent,
                        const struct gm_placed *pages, size_t count) {
    struct gm_error_record saved;
    gm_error_save(&saved);
    while (count && unmap(v, extent, &pages[count - 1]) == GPUMEM_OK)
        count--;
    gm_error_restore(&saved);
    return count;
}

static gpumem_status map(struct gm_virtual_resource *v, struct gm_extent *extent,
                         const struct gm_placed *pages, size_t count, size_t *stuck) {
    gpumem_status status = GPUMEM_OK;
    size_t mapped = 0;
    for (; mapped < count && status == GPUMEM_OK; mapped += status == GPUMEM_OK)
        status = gm_vmm_map(v->device, &v->resource->meter, extent->address + pages[mapped].offset,
                            pages[mapped].chunk.bytes, pages[mapped].chunk.handle);
    if (status == GPUMEM_OK)
        status = give_access(v, extent, pages, count);
    *stuck = status == GPUMEM_OK ? 0 : unmap_all(v, extent, pages, mapped);
    for (size_t i = 0; i < (status == GPUMEM_OK ? count : *stuck); i++)
        put(extent, &pages[i]);
    return status;
}

gpumem_status gm_range_map(struct gm_virtual_resource *v, struct gm_range *range,
                           const struct gm_placed *pages, size_t count, size_t *stuck) {
    pthread_rwlock_rdlock(&v->mapped.lock);
    gpumem_status status = map(v, &range->extent, pages, count, stuck);
    pthread_rwlock_unlock(&v->mapped.lock);
    return status;
}

gpumem_status gm_range_unmap(struct gm_virtual_resource *v, struct gm_range *range, size_t offset,
                             size_t bytes, int moves) {
    const struct gm_placed page = {offset, {.bytes = bytes}};
    pthread_rwlock_rdlock(&v->mapped.lock);
    gpumem_status status = moves && gm_range_is_shared(range)
                               ? gm_fail(GPUMEM_ERROR_BUSY, "others have handles of this memory")
                               : unmap(v, &range->extent, &page);
    if (status == GPUMEM_OK)
        take(&range->extent, offset);
    pthread_rwlock_unlock(&v->mapped.lock);
    return status;
}
