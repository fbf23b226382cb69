/* Pools in the state dump and the leak report. */
#include "softgpu/core/chapter.h"
#include "softgpu/core/text.h"
#include "softgpu/pool/internal.h"

/* Whether nobody has used or changed a default pool; there is then nothing to report. */
static bool is_pristine(const struct sg_pool *pool) {
    bool attributes = pool->reuse_follow && pool->reuse_opportunistic && pool->reuse_internal &&
                      pool->threshold == 0;
    bool access = pool->managed ? pool->told == 0
                                : pool->devices == (pool->device < 0 ? 0 : 1u << pool->device);
    return pool->is_default && attributes && access && pool->reserved == 0;
}

static const char *kind_of(const struct sg_pool *pool) {
    if (pool->is_default)
        return "default";
    if (pool->destroyed)
        return "destroyed";
    return pool->imported ? "imported" : "created";
}

static void dump_blocks(struct sg_text *text, unsigned number, const struct sg_pool *pool) {
    unsigned segment_number = 0;
    for (const struct sg_pool_segment *s = pool->first; s; s = s->next) {
        sg_text_line(text, "pool %u segment %u size %zu", number, ++segment_number, s->present);
        for (const struct sg_block *b = s->blocks; b; b = b->next)
            if (b->state == SG_BLOCK_LIVE)
                sg_text_line(text, "pool %u segment %u allocation offset %zu size %zu", number,
                             segment_number, b->offset, b->range.size);
    }
}

static void dump_pool(struct sg_text *text, unsigned number, const struct sg_pool *pool) {
    sg_text_line(text,
                 "pool %u %s%s location %d:%d handles %d reserved %llu used %llu threshold %llu "
                 "reuse %d%d%d devices 0x%x",
                 number, kind_of(pool), pool->managed ? " managed" : "",
                 (int)pool->props.location.type, pool->props.location.id,
                 (int)pool->props.handleTypes, (unsigned long long)pool->reserved,
                 (unsigned long long)pool->used, (unsigned long long)pool->threshold,
                 pool->reuse_follow, pool->reuse_opportunistic, pool->reuse_internal,
                 pool->managed ? pool->told : pool->devices);
    dump_blocks(text, number, pool);
}

static void collect(void) {
    struct sg_pool *next;
    for (struct sg_pool *pool = sg_pools; pool; pool = next) {
        next = pool->next;
        sg_pool_collect(pool);
    }
}

static void dump_all(struct sg_text *text) {
    unsigned number = 0;
    for (struct sg_pool *pool = sg_pools; pool; pool = pool->next)
        if (!is_pristine(pool))
            dump_pool(text, ++number, pool);
    sg_pools_dump_current(text);
}

static void leaks(struct sg_text *text) {
    for (const struct sg_pool *pool = sg_pools; pool; pool = pool->next) {
        if (!pool->is_default && !pool->destroyed) {
            sg_text_handle(text, pool->handle, NULL);
            sg_text_line(text, "pool %llu: %s, not destroyed", (unsigned long long)pool->id,
                         kind_of(pool));
        }
        for (const struct sg_pool_segment *s = pool->first; s; s = s->next)
            for (const struct sg_block *b = s->blocks; b; b = b->next)
                if (b->state == SG_BLOCK_LIVE) {
                    sg_text_address(text, b->range.start, b->range.origin, NULL);
                    sg_text_line(text, "pool %llu: %zu bytes, not freed",
                                 (unsigned long long)pool->id, b->range.size);
                }
    }
}

const struct sg_chapter sg_pool_chapter = {
    .dump = dump_all,
    .leaks = leaks,
    .leak_kind = SG_LEAK_MEMORY,
    .settle = collect,
    .synchronized = sg_pools_synchronized,
    .reclaim = sg_pools_reclaim,
};
