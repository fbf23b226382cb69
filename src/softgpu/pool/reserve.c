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

/* ---- Memory ---------------------------------------------------------------------------------- */

/* Fresh memory for a growth, in steps of at most `step` bytes, all or nothing. */
static CUresult make_parts(struct sg_pool *pool, size_t size, size_t step, struct sg_phys **parts,
                           uint64_t *offset) {
    CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = pool->props.location,
    };
    *offset = 0;
    if (pool->file.fd >= 0)
        return sg_pool_file_extend(pool, size, step, parts, offset);
    if (pool->managed)
        prop.location.type = CU_MEM_LOCATION_TYPE_HOST;
    return sg_phys_create_parts(&prop, size, step, parts);
}

bool sg_pool_may_have(const struct sg_pool *pool, size_t bytes) {
    return pool->reserved <= pool->limit && bytes <= pool->limit - pool->reserved;
}

CUresult sg_pool_make_memory(struct sg_pool *pool, size_t size, size_t step, struct sg_phys **parts,
                             uint64_t *offset) {
    if (!sg_pool_may_have(pool, size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return make_parts(pool, size, step, parts, offset);
}

/* ---- Growing --------------------------------------------------------------------------------- */

/* A segment of its own, for pools whose memory stays where it is. */
static CUresult add_memory(struct sg_pool *pool, size_t size) {
    size_t step = sg_pool_has_steps(pool) ? SG_POOL_STEP : size;
    size_t count = (size + step - 1) / step;
    struct sg_phys **parts = calloc(count, sizeof(struct sg_phys *));
    struct sg_pool_segment *segment;
    uint64_t offset;
    CUresult result =
        parts ? sg_pool_make_memory(pool, size, step, parts, &offset) : CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS) {
        result = sg_pool_add_segment(pool, parts, count, offset, &segment);
        for (size_t i = 0; i < count; i++)
            sg_phys_unref(parts[i]);
    }
    free(parts);
    if (result == CUDA_SUCCESS)
        sg_block_idle(segment->blocks);
    return result;
}

/* No address is above this: the list of parts of anything larger would be huge itself. */
#define MOST_BYTES ((size_t)1 << 47)

static CUresult add(struct sg_pool *pool, size_t size, size_t unit) {
    if (size >= MOST_BYTES)
        return CUDA_ERROR_OUT_OF_MEMORY;
    return sg_pool_moves(pool) ? sg_pool_extend(pool, size, unit)
                               : add_memory(pool, round_up(size, unit));
}

/* Near the limit of the pool or the device, a whole step may be too much. */
static CUresult add_step_or_page(struct sg_pool *pool, size_t size) {
    CUresult result = add(pool, size, SG_POOL_STEP);
    if (result != CUDA_SUCCESS && size % SG_POOL_STEP != 0)
        result = add(pool, size, SG_PAGE);
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

/* What ends the giving back: too little would remain, or enough is gone. */
struct until {
    uint64_t least, most;
};

static bool may_go(const struct sg_pool *pool, size_t size, const struct until *until) {
    return pool->reserved > until->most && pool->reserved >= until->least + size;
}

/* Of an idle block, from its last step on; the block may be another one then. False when out of
 * memory. */
static bool give_steps(struct sg_block *idle, const struct until *until) {
    struct sg_pool_segment *segment = idle->segment;
    size_t first, count;
    while ((count = sg_steps_between(segment, idle->offset, idle->offset + idle->size, &first))) {
        size_t begin = idle->offset;
        struct sg_pool_step *step = &segment->steps[first + count - 1];
        if (!may_go(segment->pool, step->size, until))
            return true;
        struct sg_phys *phys = sg_step_take(idle, step);
        if (!phys)
            return false;
        bool all = step->offset == begin;
        sg_phys_unref(phys);
        if (all)
            return true;
    }
    return true;
}

static void give_from(struct sg_pool_segment *segment, const struct until *until) {
    struct sg_block *previous;
    for (struct sg_block *b = segment->last; b && segment->pool->idle_steps > 0; b = previous) {
        previous = b->previous;
        if (b->state == SG_BLOCK_IDLE && b->size >= segment->pool->least_step &&
            !give_steps(b, until))
            return;
    }
}

static uint64_t give_back(struct sg_pool *pool, struct until until) {
    uint64_t before = pool->reserved;
    struct sg_pool_segment *previous;
    for (struct sg_pool_segment *s = pool->last; s && pool->idle_steps > 0; s = previous) {
        previous = s->previous;
        if (sg_pool_has_steps(pool))
            give_from(s, &until);
        bool goes = sg_pool_has_steps(pool) ? s->present == 0
                                            : s->blocks->state == SG_BLOCK_IDLE &&
                                                  !s->blocks->next && may_go(pool, s->size, &until);
        if (goes)
            sg_segment_release(s);
    }
    return before - pool->reserved;
}

uint64_t sg_pool_shrink(struct sg_pool *pool, uint64_t keep) {
    return give_back(pool, (struct until){.least = keep});
}

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

/* As recorded on an H200, which keeps as many whole steps as fit the threshold: none for 1 byte. */
void sg_pools_synchronized(struct sg_context *context, struct sg_stream *stream) {
    struct sg_pool *next;
    for (struct sg_pool *pool = sg_pools; pool; pool = next) {
        next = pool->next;
        if (!pool->caches && pool->idle_steps == 0 && !pool->destroyed)
            continue;
        sg_pool_promote_seen(pool, context, stream);
        if (pool->reserved > pool->threshold)
            give_back(pool, (struct until){.most = pool->threshold});
        sg_pool_collect(pool);
    }
}
