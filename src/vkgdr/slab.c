/*
 * Small buffers, in pieces of blocks. A slab is of one context. It is given back with its last
 * piece, except that one empty slab is kept while other small buffers of its context are alive; so
 * when all are freed, nothing remains that would need the context at the close.
 */
#include "vkgdr/internal.h"

#include <stdlib.h>

#define UNITS (GM_VKGDR_SLAB / GM_VKGDR_UNIT)
#define BITS  64

struct gm_vkgdr_slab {
    struct gm_vkgdr_slab *next;
    struct gm_vkgdr_block block;
    size_t pieces;     /* handed out */
    size_t free_units; /* not contiguous */
    size_t next_unit;  /* the search continues where the last piece ended */
    uint64_t used[UNITS / BITS];
};

struct gm_vkgdr_block *gm_vkgdr_slab_block(struct gm_vkgdr_slab *slab) {
    return &slab->block;
}

static size_t units_of(size_t size) {
    return (size + GM_VKGDR_UNIT - 1) / GM_VKGDR_UNIT;
}

/* ---- Units of a slab ------------------------------------------------------------------------- */

static bool is_used(const struct gm_vkgdr_slab *slab, size_t unit) {
    return slab->used[unit / BITS] >> unit % BITS & 1;
}

/* The number of units from `unit` on with the same state, within one word. */
static size_t alike(const struct gm_vkgdr_slab *slab, size_t unit) {
    uint64_t word = slab->used[unit / BITS] >> unit % BITS;
    uint64_t others = word & 1 ? ~word : word;
    size_t left = BITS - unit % BITS;
    size_t count = others ? (size_t)__builtin_ctzll(others) : left;
    return count < left ? count : left;
}

/* The first `count` free units in a row in [begin, end); UNITS for none. */
static size_t find_run(const struct gm_vkgdr_slab *slab, size_t begin, size_t end, size_t count) {
    size_t start = begin;
    for (size_t unit = begin; unit < end;) {
        size_t step = alike(slab, unit);
        bool used = is_used(slab, unit);
        unit += step;
        if (used)
            start = unit;
        else if (unit - start >= count)
            return start + count <= end ? start : UNITS;
    }
    return UNITS;
}

static void mark(struct gm_vkgdr_slab *slab, size_t first, size_t count, bool used) {
    for (size_t unit = first; unit < first + count; unit++) {
        uint64_t bit = (uint64_t)1 << unit % BITS;
        if (used)
            slab->used[unit / BITS] |= bit;
        else
            slab->used[unit / BITS] &= ~bit;
    }
    if (used)
        slab->free_units -= count;
    else
        slab->free_units += count;
}

static bool take_units(struct gm_vkgdr_slab *slab, size_t count, size_t *first) {
    if (slab->free_units < count)
        return false;
    size_t found = find_run(slab, slab->next_unit, UNITS, count);
    if (found == UNITS)
        found = find_run(slab, 0, UNITS, count);
    if (found == UNITS)
        return false;
    mark(slab, found, count, true);
    slab->pieces++;
    slab->next_unit = (found + count) % UNITS;
    *first = found;
    return true;
}

/* ---- Taking ---------------------------------------------------------------------------------- */

static struct gm_vkgdr_slab *take_locked(struct vkgdr *g, size_t count,
                                         struct gm_vkgdr_context context, size_t *first) {
    for (struct gm_vkgdr_slab *slab = g->slabs; slab; slab = slab->next)
        if (gm_vkgdr_context_same(slab->block.context, context) && take_units(slab, count, first))
            return slab;
    return NULL;
}

static struct gm_vkgdr_slab *make_slab(struct vkgdr *g, struct gm_vkgdr_context context) {
    struct gm_vkgdr_slab *slab = calloc(1, sizeof *slab);
    if (!slab) {
        gm_vkgdr_error_set("vkgdr_memory_alloc: out of host memory");
        return NULL;
    }
    if (!gm_vkgdr_block_make(g, GM_VKGDR_SLAB, context, &slab->block)) {
        free(slab);
        return NULL;
    }
    slab->free_units = UNITS;
    return slab;
}

struct gm_vkgdr_slab *gm_vkgdr_slab_take(struct vkgdr *g, size_t size,
                                         struct gm_vkgdr_context context, size_t *offset) {
    size_t count = units_of(size), first = 0;
    pthread_mutex_lock(&g->lock);
    struct gm_vkgdr_slab *slab = take_locked(g, count, context, &first);
    pthread_mutex_unlock(&g->lock);
    if (!slab) {
        /* Without the lock: this takes most of a millisecond, and others may free meanwhile. */
        slab = make_slab(g, context);
        if (!slab)
            return NULL;
        (void)take_units(slab, count, &first);
        pthread_mutex_lock(&g->lock);
        slab->next = g->slabs;
        g->slabs = slab;
        pthread_mutex_unlock(&g->lock);
    }
    *offset = first * GM_VKGDR_UNIT;
    return slab;
}

/* ---- Giving back ----------------------------------------------------------------------------- */

static void unlink_slab(struct vkgdr *g, struct gm_vkgdr_slab *slab, struct gm_vkgdr_slab **list) {
    struct gm_vkgdr_slab **at = &g->slabs;
    while (*at != slab)
        at = &(*at)->next;
    *at = slab->next;
    slab->next = *list;
    *list = slab;
}

/* Removes the slabs that need not be kept now that `slab` is empty. */
static struct gm_vkgdr_slab *unlink_empty(struct vkgdr *g, struct gm_vkgdr_slab *slab) {
    struct gm_vkgdr_context context = slab->block.context;
    struct gm_vkgdr_slab *ended = NULL, *next;
    size_t pieces = 0, empty = 0;
    for (struct gm_vkgdr_slab *each = g->slabs; each; each = each->next) {
        if (!gm_vkgdr_context_same(each->block.context, context))
            continue;
        pieces += each->pieces;
        empty += !each->pieces;
    }
    for (struct gm_vkgdr_slab *each = g->slabs; each; each = next) {
        next = each->next;
        bool useless = each == slab && (empty > 1 || slab->free_units < UNITS);
        bool surplus = pieces == 0 || useless;
        if (surplus && gm_vkgdr_context_same(each->block.context, context))
            unlink_slab(g, each, &ended);
    }
    return ended;
}

/* Whether no work queued in the slab's context can still touch its bytes. */
static bool drained(const struct vkgdr *g, const struct gm_vkgdr_slab *slab) {
    return gm_vkgdr_context_same(gm_vkgdr_context_current(g->cu), slab->block.context) &&
           g->cu->cuCtxSynchronize() == CUDA_SUCCESS;
}

void gm_vkgdr_slab_give(struct vkgdr *g, struct gm_vkgdr_slab *slab, size_t offset, size_t size) {
    struct gm_vkgdr_slab *ended = NULL;
    /* Memory whose work cannot be waited for is not reused: it goes with its slab. */
    bool idle = drained(g, slab);
    pthread_mutex_lock(&g->lock);
    if (idle)
        mark(slab, offset / GM_VKGDR_UNIT, units_of(size), false);
    if (--slab->pieces == 0)
        ended = unlink_empty(g, slab);
    pthread_mutex_unlock(&g->lock);
    while (ended) {
        struct gm_vkgdr_slab *next = ended->next;
        gm_vkgdr_block_end(g, &ended->block);
        free(ended);
        ended = next;
    }
}
