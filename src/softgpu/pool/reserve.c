/* Memory that pools hold: growing, shrinking, giving back. */
#include "softgpu/core/chapter.h"
#include "softgpu/pool/internal.h"

#include <stdlib.h>

/* Where the bytes are. */
static int home_of(const struct sg_pool *pool) {
    return pool->managed ? -1 : pool->device;
}

static size_t round_up(size_t size, size_t unit) {
    return (size + unit - 1) / unit * unit;
}

/* ---- Segments -------------------------------------------------------------------------------- */

static void link_segment(struct sg_pool *pool, struct sg_pool_segment *segment) {
    segment->previous = pool->last;
    if (pool->last)
        pool->last->next = segment;
    else
        pool->first = segment;
    pool->last = segment;
    pool->reserved += segment->map.size;
    if (pool->reserved > pool->reserved_high)
        pool->reserved_high = pool->reserved;
}

static void prefer(struct sg_page_facts *facts, const void *user) {
    facts->preferred = *(const CUmemLocation *)user;
}

/* Managed memory prefers the place of its pool. */
static bool begin_pages(struct sg_pool_segment *segment, const CUmemLocation *place) {
    struct sg_pages *pages = &segment->pages;
    CUdeviceptr start = segment->map.address;
    if (!sg_pages_begin(pages, start, segment->map.size))
        return false;
    if (!sg_pages_promise(pages)) {
        sg_pages_end(pages);
        return false;
    }
    pages->opened_to = &segment->pool->told;
    sg_pages_edit(pages, start, segment->map.size, prefer, place);
    return true;
}

CUresult sg_pool_add_segment(struct sg_pool *pool, struct sg_phys *phys, uint64_t file_offset,
                             struct sg_pool_segment **out) {
    struct sg_pool_segment *segment = calloc(1, sizeof *segment);
    struct sg_block *block = calloc(1, sizeof *block);
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    if (segment && block)
        result = sg_segment_map(phys, pool->devices, &segment->map);
    if (result != CUDA_SUCCESS) {
        free(segment);
        free(block);
        return result;
    }
    segment->pool = pool;
    if (pool->managed && !begin_pages(segment, &pool->props.location)) {
        sg_segment_unmap(&segment->map);
        free(segment);
        free(block);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    segment->file_offset = file_offset;
    segment->blocks = block;
    block->segment = segment;
    block->size = segment->map.size;
    link_segment(pool, segment);
    *out = segment;
    return CUDA_SUCCESS;
}

void sg_segment_release(struct sg_pool_segment *segment) {
    struct sg_pool *pool = segment->pool;
    sg_places_remove(&pool->idle, segment->blocks);
    pool->idle_segments--;
    if (segment->previous)
        segment->previous->next = segment->next;
    else
        pool->first = segment->next;
    if (segment->next)
        segment->next->previous = segment->previous;
    else
        pool->last = segment->previous;
    pool->reserved -= segment->map.size;
    sg_pages_end(&segment->pages);
    sg_segment_unmap(&segment->map);
    free(segment->blocks);
    free(segment);
}

static bool is_idle(const struct sg_pool_segment *segment) {
    return segment->blocks->state == SG_BLOCK_IDLE && !segment->blocks->next;
}

uint64_t sg_pool_shrink(struct sg_pool *pool, uint64_t keep) {
    uint64_t before = pool->reserved;
    struct sg_pool_segment *previous;
    for (struct sg_pool_segment *s = pool->last; s && pool->idle_segments > 0; s = previous) {
        previous = s->previous;
        if (is_idle(s) && pool->reserved - s->map.size >= keep)
            sg_segment_release(s);
    }
    return before - pool->reserved;
}

/* ---- Growing --------------------------------------------------------------------------------- */

static CUresult make_phys(struct sg_pool *pool, size_t size, struct sg_phys **phys,
                          uint64_t *offset) {
    *offset = 0;
    if (pool->file.fd >= 0)
        return sg_pool_file_extend(pool, size, phys, offset);
    CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = pool->props.location,
    };
    if (pool->managed)
        prop.location.type = CU_MEM_LOCATION_TYPE_HOST;
    return sg_phys_create(&prop, size, phys);
}

static CUresult add_memory(struct sg_pool *pool, size_t size) {
    struct sg_phys *phys;
    uint64_t offset;
    if (pool->reserved > pool->limit || size > pool->limit - pool->reserved)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = make_phys(pool, size, &phys, &offset);
    if (result != CUDA_SUCCESS)
        return result;
    struct sg_pool_segment *segment;
    result = sg_pool_add_segment(pool, phys, offset, &segment);
    sg_phys_unref(phys);
    if (result == CUDA_SUCCESS)
        sg_block_idle(segment->blocks);
    return result;
}

/* Near the limit of the pool or the device, a whole step may be too much. */
static CUresult add_step_or_page(struct sg_pool *pool, size_t size) {
    CUresult result = add_memory(pool, round_up(size, SG_POOL_STEP));
    if (result != CUDA_SUCCESS && size % SG_POOL_STEP != 0)
        result = add_memory(pool, round_up(size, SG_PAGE));
    return result;
}

CUresult sg_pool_grow(struct sg_pool *pool, size_t size) {
    CUresult result = add_step_or_page(pool, size);
    if (result == CUDA_SUCCESS)
        return result;
    /* If the pool is at its own limit, what it holds is fragmented. */
    uint64_t given = sg_pool_shrink(pool, 0);
    given += sg_chapters_reclaim(home_of(pool), size);
    return given > 0 ? add_step_or_page(pool, size) : result;
}

/* ---- Giving back ----------------------------------------------------------------------------- */

uint64_t sg_pools_reclaim(int device, uint64_t bytes) {
    uint64_t given = 0;
    struct sg_pool *next;
    for (struct sg_pool *pool = sg_pools; pool && given < bytes; pool = next) {
        next = pool->next;
        if (home_of(pool) != device || pool->imported)
            continue;
        (void)sg_pool_let_go(pool);
        sg_pool_promote(pool);
        given += sg_pool_shrink(pool, 0);
        sg_pool_collect(pool);
    }
    return given;
}

/* H200 keeps as many whole steps as fit the threshold: none for 1 byte. */
void sg_pools_synchronized(struct sg_context *context, struct sg_stream *stream) {
    struct sg_pool *next;
    for (struct sg_pool *pool = sg_pools; pool; pool = next) {
        next = pool->next;
        if (!pool->caches && pool->idle_segments == 0 && !pool->destroyed)
            continue;
        sg_pool_promote_seen(pool, context, stream);
        if (pool->reserved > pool->threshold)
            sg_pool_shrink(pool, pool->threshold / SG_POOL_STEP * SG_POOL_STEP);
        sg_pool_collect(pool);
    }
}
