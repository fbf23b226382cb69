/*
 * Growth of pools whose memory moves. As recorded on an H200: a larger block than any free one is
 * made behind the last block, from its free end on, or of addresses that have lost their memory;
 * idle steps that are elsewhere move there, the last ones first, and only what is missing is new.
 * What is pending stays where it is, even if there is no more memory.
 */
#include "softgpu/pool/internal.h"

#include <stdlib.h>

/* Where the block will be. It begins with `first`, which with those behind it is idle or gone; NULL
 * if it begins behind the last block. */
struct spot {
    struct sg_pool_segment *segment;
    struct sg_block *first;
    size_t from, end; /* offsets */
};

static bool is_empty(const struct sg_block *block) {
    return block->state == SG_BLOCK_IDLE || block->state == SG_BLOCK_GONE;
}

/* The last run of addresses between other blocks. */
static bool find_hole(const struct sg_pool *pool, size_t size, struct spot *spot) {
    for (struct sg_pool_segment *s = pool->gone ? pool->last : NULL; s; s = s->previous) {
        size_t run = 0;
        for (struct sg_block *b = s->last; b; b = b->previous) {
            run = is_empty(b) ? run + b->size : 0;
            bool begins = run > 0 && (!b->previous || !is_empty(b->previous));
            if (!begins || run < size)
                continue;
            *spot = (struct spot){s, b, b->offset, b->offset + size};
            return true;
        }
    }
    return false;
}

/* Behind the last block of a segment, from its free end on. */
static struct spot at_end(struct sg_pool_segment *segment, size_t size, size_t unit) {
    struct spot spot = {.segment = segment, .from = segment->size};
    for (struct sg_block *b = segment->last; b && is_empty(b); b = b->previous) {
        spot.first = b;
        spot.from = b->offset;
    }
    size_t have = segment->size - spot.from, more = size > have ? size - have : 0;
    spot.end = more ? segment->size + (more + unit - 1) / unit * unit : spot.from + size;
    return spot;
}

static bool has_room(const struct spot *spot) {
    size_t more = spot->end > spot->segment->size ? spot->end - spot->segment->size : 0;
    return sg_segment_has_room(spot->segment, more, (more + SG_POOL_STEP - 1) / SG_POOL_STEP);
}

static CUresult find_spot(struct sg_pool *pool, size_t size, size_t unit, struct spot *spot) {
    if (find_hole(pool, size, spot))
        return CUDA_SUCCESS;
    for (struct sg_pool_segment *s = pool->last; s; s = s->previous) {
        *spot = at_end(s, size, unit);
        if (has_room(spot))
            return CUDA_SUCCESS;
    }
    struct sg_pool_segment *segment;
    CUresult result = sg_pool_new_segment(pool, (size + unit - 1) / unit * unit, &segment);
    if (result != CUDA_SUCCESS)
        return result;
    *spot = at_end(segment, size, unit);
    if (has_room(spot))
        return CUDA_SUCCESS;
    sg_segment_release(segment);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* ---- Steps without memory, and steps to spare ------------------------------------------------ */

/* What a spot lacks, in the order of addresses. */
struct lack {
    size_t count, bytes;
    size_t spare; /* how many of the steps are elsewhere, idle */
};

static size_t step_size(size_t left) {
    return left < SG_POOL_STEP ? left : SG_POOL_STEP;
}

/* The steps of the spot that there are. */
static struct sg_pool_step *steps_of(const struct spot *spot, size_t *count) {
    const struct sg_pool_segment *segment = spot->segment;
    size_t end = spot->end < segment->size ? spot->end : segment->size;
    *count = 0;
    if (spot->from >= end)
        return NULL;
    struct sg_pool_step *first = sg_step_at(segment, spot->from);
    *count = (size_t)(sg_step_at(segment, end - 1) - first) + 1;
    return first;
}

static bool is_part(const struct spot *spot, const struct sg_pool_segment *segment,
                    const struct sg_pool_step *step) {
    return segment == spot->segment && step->offset < spot->end &&
           spot->from < step->offset + step->size;
}

/* The last idle step that is not the spot's, but for `after` of them. */
static struct sg_block *find_spare(const struct sg_pool *pool, const struct spot *spot,
                                   size_t after, struct sg_pool_step **step) {
    for (struct sg_pool_segment *s = pool->idle_steps ? pool->last : NULL; s; s = s->previous)
        for (struct sg_block *b = s->last; b; b = b->previous) {
            size_t first, count;
            if (b->state != SG_BLOCK_IDLE || b->size < SG_POOL_STEP)
                continue;
            count = sg_steps_between(s, b->offset, b->offset + b->size, &first);
            while (count-- > 0) {
                *step = &s->steps[first + count];
                if ((*step)->size == SG_POOL_STEP && !is_part(spot, s, *step) && after-- == 0)
                    return b;
            }
        }
    return NULL;
}

/* Lists the sizes of the steps that lack memory. Steps near a limit are shorter than others, and
 * only new memory is as short. */
static struct lack find_lack(const struct sg_pool *pool, const struct spot *spot, size_t *sizes) {
    struct lack lack = {0};
    size_t count, end = spot->segment->size;
    const struct sg_pool_step *step = steps_of(spot, &count);
    struct sg_pool_step *unused;
    for (; count > 0; count--, step++)
        if (!step->phys)
            lack.bytes += sizes[lack.count++] = step->size;
    for (; end < spot->end; end += sizes[lack.count - 1])
        lack.bytes += sizes[lack.count++] = step_size(spot->end - end);
    bool whole = lack.bytes == lack.count * SG_POOL_STEP;
    while (whole && lack.spare < lack.count && find_spare(pool, spot, lack.spare, &unused))
        lack.spare++;
    return lack;
}

/* ---- All together ---------------------------------------------------------------------------- */

/* What is needed, so that nothing fails once memory is there. */
struct set_aside {
    struct sg_block *block;
    struct sg_phys **parts;
    size_t *sizes;
};

static bool set_aside(struct set_aside *aside, size_t parts) {
    aside->block = calloc(1, sizeof *aside->block);
    aside->parts = calloc(parts, sizeof(struct sg_phys *));
    aside->sizes = calloc(parts, sizeof *aside->sizes);
    return aside->block && aside->parts && aside->sizes;
}

static void end_aside(struct set_aside *aside) {
    free(aside->block);
    free(aside->parts);
    free(aside->sizes);
}

static void unref_all(struct sg_phys **parts, size_t count) {
    while (count > 0)
        sg_phys_unref(parts[--count]);
}

/* New memory for all but what is to spare. The pool may have given back idle steps after that. */
static CUresult make_new(struct sg_pool *pool, const struct lack *lack, struct set_aside *aside) {
    size_t made = lack->spare, bytes = lack->bytes - lack->spare * SG_POOL_STEP;
    uint64_t offset;
    bool regular = true; /* one request, of steps and a rest */
    for (size_t i = made; i + 1 < lack->count; i++)
        regular &= aside->sizes[i] == SG_POOL_STEP;
    if (bytes == 0)
        return CUDA_SUCCESS;
    if (regular)
        return sg_pool_make_memory(pool, bytes, SG_POOL_STEP, aside->parts + made, &offset);
    CUresult result = sg_pool_may_have(pool, bytes) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    for (; result == CUDA_SUCCESS && made < lack->count; made++)
        result = sg_pool_make_memory(pool, aside->sizes[made], SG_POOL_STEP, &aside->parts[made],
                                     &offset);
    if (result != CUDA_SUCCESS && made > lack->spare)
        unref_all(aside->parts + lack->spare, made - 1 - lack->spare);
    return result;
}

/* Takes what is to spare, all or, out of memory, nothing that counts. */
static bool take_spare(struct sg_pool *pool, const struct spot *spot, size_t count,
                       struct sg_phys **parts) {
    for (size_t i = 0; i < count; i++) {
        struct sg_pool_step *step;
        struct sg_block *block = find_spare(pool, spot, 0, &step);
        parts[i] = block ? sg_step_take(block, step) : NULL;
        if (!parts[i]) {
            unref_all(parts, i); /* these have been given back */
            return false;
        }
    }
    return true;
}

/* Appends the steps behind the last block; there is room for them. */
static void add_steps(const struct spot *spot) {
    struct sg_pool_segment *segment = spot->segment;
    while (segment->size < spot->end) {
        size_t size = step_size(spot->end - segment->size);
        segment->steps[segment->step_count++] =
            (struct sg_pool_step){.offset = segment->size, .size = size};
        segment->size += size;
    }
}

/* The spot's blocks become one, with memory. */
static void fill(const struct spot *spot, struct set_aside *aside) {
    struct sg_pool_segment *segment = spot->segment;
    struct sg_block *block = spot->first;
    size_t was = segment->size, count, part = 0;
    add_steps(spot);
    struct sg_pool_step *step = steps_of(spot, &count);
    if (block) {
        sg_blocks_join(block, spot->end, step[count - 1].offset + step[count - 1].size,
                       &aside->block);
        block->size += segment->size - was;
    } else {
        block = aside->block;
        aside->block = NULL;
        *block = (struct sg_block){.segment = segment,
                                   .offset = was,
                                   .size = segment->size - was,
                                   .previous = segment->last};
        *(segment->last ? &segment->last->next : &segment->blocks) = block;
        segment->last = block;
    }
    for (; count > 0; count--, step++)
        if (!step->phys)
            sg_step_map(segment, step, aside->parts[part++]);
    sg_block_idle(block);
}

/* Nothing of the spot is kept while new memory is made, since a pool that is short of it gives back
 * its own. *again: it has, and more is missing now. */
static CUresult extend(struct sg_pool *pool, size_t size, size_t unit, bool *again) {
    struct spot spot;
    struct set_aside aside;
    struct lack lack, now;
    const size_t least =
        pool->least_step && pool->least_step < SG_POOL_STEP ? pool->least_step : SG_POOL_STEP;
    const size_t most = size / least + 3;
    bool made = false;
    CUresult result =
        set_aside(&aside, most) ? find_spot(pool, size, unit, &spot) : CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS) {
        lack = find_lack(pool, &spot, aside.sizes);
        result = make_new(pool, &lack, &aside);
        made = result == CUDA_SUCCESS;
    }
    if (made)
        result = find_spot(pool, size, unit, &spot);
    if (made && result == CUDA_SUCCESS) {
        now = find_lack(pool, &spot, aside.sizes);
        *again = now.count != lack.count || now.bytes != lack.bytes || now.spare != lack.spare;
        if (*again || !take_spare(pool, &spot, lack.spare, aside.parts))
            result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result == CUDA_SUCCESS)
        fill(&spot, &aside);
    else if (made)
        unref_all(aside.parts + lack.spare, lack.count - lack.spare);
    end_aside(&aside);
    return result;
}

static void release_empty(struct sg_pool *pool) {
    struct sg_pool_segment *next;
    for (struct sg_pool_segment *s = pool->first; s; s = next) {
        next = s->next;
        if (s->present == 0)
            sg_segment_release(s);
    }
}

CUresult sg_pool_extend(struct sg_pool *pool, size_t size, size_t unit) {
    bool again = false;
    CUresult result = extend(pool, size, unit, &again);
    if (again) /* there is nothing left to give back */
        result = extend(pool, size, unit, &again);
    release_empty(pool);
    return result;
}
