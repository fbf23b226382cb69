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

/* Appends the steps behind the last block; there is room for them. */
static void add_steps(const struct spot *spot) {
    struct sg_pool_segment *segment = spot->segment;
    while (segment->size < spot->end) {
        size_t size = spot->end - segment->size;
        size = size < SG_POOL_STEP ? size : SG_POOL_STEP;
        segment->steps[segment->step_count++] =
            (struct sg_pool_step){.offset = segment->size, .size = size};
        segment->size += size;
    }
}

/* Undoes it. */
static void remove_steps(const struct spot *spot, size_t size) {
    struct sg_pool_segment *segment = spot->segment;
    while (segment->size > size)
        segment->size -= segment->steps[--segment->step_count].size;
}

/* The steps that the spot touches. */
static struct sg_pool_step *steps_of(const struct spot *spot, size_t *count) {
    struct sg_pool_step *first = sg_step_at(spot->segment, spot->from);
    *count = (size_t)(sg_step_at(spot->segment, spot->end - 1) - first) + 1;
    return first;
}

/* How many of them lack memory; `bytes` of it. */
static size_t missing_in(const struct spot *spot, size_t *bytes) {
    size_t count, missing = 0;
    const struct sg_pool_step *step = steps_of(spot, &count);
    for (*bytes = 0; count > 0; count--, step++)
        if (!step->phys) {
            *bytes += step->size;
            missing++;
        }
    return missing;
}

/* Does the spot take its memory from there? Then the step stays. */
static bool is_part(const struct spot *spot, const struct sg_pool_segment *segment,
                    const struct sg_pool_step *step) {
    return segment == spot->segment && step->offset < spot->end &&
           spot->from < step->offset + step->size;
}

/* The last idle step that is not the spot's. */
static struct sg_block *find_spare(const struct sg_pool *pool, const struct spot *spot,
                                   struct sg_pool_step **step) {
    for (struct sg_pool_segment *s = pool->last; s; s = s->previous)
        for (struct sg_block *b = s->last; b; b = b->previous) {
            size_t first, count;
            if (b->state != SG_BLOCK_IDLE || b->size < SG_POOL_STEP)
                continue;
            count = sg_steps_between(s, b->offset, b->offset + b->size, &first);
            while (count-- > 0) {
                *step = &s->steps[first + count];
                if ((*step)->size == SG_POOL_STEP && !is_part(spot, s, *step))
                    return b;
            }
        }
    return NULL;
}

/* Takes steps to spare, `most` at most. */
static size_t take_spare(struct sg_pool *pool, const struct spot *spot, struct sg_phys **parts,
                         size_t most) {
    size_t count = 0;
    while (count < most && pool->idle_steps > 0) {
        struct sg_pool_step *step;
        struct sg_block *block = find_spare(pool, spot, &step);
        struct sg_phys *phys = block ? sg_step_take(block, step) : NULL;
        if (!phys)
            break;
        parts[count++] = phys;
    }
    return count;
}

/* ---- All together ---------------------------------------------------------------------------- */

/* What may be needed, so that nothing fails once memory is there. */
struct set_aside {
    struct sg_block *spare;
    struct sg_phys **parts;
};

static bool set_aside(struct set_aside *aside, size_t parts) {
    aside->spare = calloc(1, sizeof *aside->spare);
    aside->parts = calloc(parts + 1, sizeof(struct sg_phys *));
    return aside->spare && aside->parts;
}

static void end_aside(struct set_aside *aside) {
    free(aside->spare);
    free(aside->parts);
}

/* New memory for each step that lacks it, one by one: steps near a limit are shorter. */
static CUresult make_each(struct sg_pool *pool, const struct spot *spot, struct sg_phys **parts,
                          size_t bytes, size_t *made) {
    size_t count;
    uint64_t offset;
    const struct sg_pool_step *step = steps_of(spot, &count);
    CUresult result =
        bytes > pool->limit - pool->reserved ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
    for (; count > 0 && result == CUDA_SUCCESS; count--, step++) {
        if (step->phys)
            continue;
        result = sg_pool_make_memory(pool, step->size, step->size, &parts[*made], &offset);
        *made += result == CUDA_SUCCESS;
    }
    return result;
}

/* The memory for all steps that lack it, in their order: what is to spare, then new. */
static CUresult gather(struct sg_pool *pool, const struct spot *spot, struct sg_phys **parts) {
    size_t bytes, missing = missing_in(spot, &bytes), count = 0;
    uint64_t offset;
    CUresult result = CUDA_SUCCESS;
    if (bytes != missing * SG_POOL_STEP) {
        result = make_each(pool, spot, parts, bytes, &count);
    } else {
        count = take_spare(pool, spot, parts, missing);
        bytes -= count * SG_POOL_STEP;
        if (bytes > 0)
            result = sg_pool_make_memory(pool, bytes, SG_POOL_STEP, parts + count, &offset);
    }
    for (size_t i = 0; result != CUDA_SUCCESS && i < count; i++)
        sg_phys_unref(parts[i]); /* what was to spare counts as given back */
    return result;
}

/* The spot's blocks become one, with memory. */
static void fill(const struct spot *spot, size_t was, struct set_aside *aside) {
    struct sg_pool_segment *segment = spot->segment;
    struct sg_block *block = spot->first;
    size_t count, part = 0;
    struct sg_pool_step *step = steps_of(spot, &count);
    if (block) {
        sg_blocks_join(block, spot->end, step[count - 1].offset + step[count - 1].size,
                       &aside->spare);
        block->size += segment->size - was;
    } else {
        block = aside->spare;
        aside->spare = NULL;
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

static void release_empty(struct sg_pool *pool) {
    struct sg_pool_segment *next;
    for (struct sg_pool_segment *s = pool->first; s; s = next) {
        next = s->next;
        if (s->present == 0)
            sg_segment_release(s);
    }
}

CUresult sg_pool_extend(struct sg_pool *pool, size_t size, size_t unit) {
    struct spot spot;
    struct set_aside aside;
    CUresult result = find_spot(pool, size, unit, &spot);
    if (result != CUDA_SUCCESS)
        return result;
    size_t was = spot.segment->size, bytes;
    add_steps(&spot);
    result = set_aside(&aside, missing_in(&spot, &bytes)) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS)
        result = gather(pool, &spot, aside.parts);
    if (result == CUDA_SUCCESS)
        fill(&spot, was, &aside);
    else
        remove_steps(&spot, was);
    end_aside(&aside);
    release_empty(pool);
    return result;
}
