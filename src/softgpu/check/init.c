/*
 * --check init: reads of unwritten bytes, in allocations of global memory (areas.h), a block's
 * shared memory, and arrays in the kernel's own frame.
 */
#include "softgpu/check/areas.h"
#include "softgpu/check/bits.h"
#include "softgpu/check/checkers.h"
#include "softgpu/check/copies.h"
#include "softgpu/check/fault.h"
#include "softgpu/check/lanes.h"
#include "softgpu/check/nearest.h"
#include "softgpu/check/spans.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bits for the frames of a block's threads at most: if more are needed, local memory is not
 * checked. */
#define FRAMES_MOST ((uint64_t)256 << 20)

/* A running block: which bytes of its shared memory and of its threads' frames have been
 * written. */
struct block {
    struct block *next;
    uint64_t index, shared_bytes;
    uint64_t *shared, *frames; /* bits; NULL: not known */
};

struct watched {
    const struct sg_check_launch *launch;
    struct block *blocks;
    uint64_t frame; /* bytes of the entry's frame */
    unsigned threads;
    bool clustered; /* blocks write each other's shared memory too */
};

static void report(struct watched *watched, const struct sg_watched_access *access, unsigned lane,
                   uint64_t missing, const char *details) {
    char what[96];
    snprintf(what, sizeof what, "%llu of these bytes have not been written",
             (unsigned long long)missing);
    struct sg_hazard hazard = {.check = "init",
                               .kind = "uninitialized",
                               .level = SG_HAZARD_ERROR,
                               .what = what,
                               .has_address = true,
                               .space = sg_space_name(access->space),
                               .address = access->address[lane],
                               .size = access->size,
                               .details = details};
    sg_hazard_place(watched->launch, access->instruction, access->warp->place,
                    access->warp->first + lane, &hazard.place);
    sg_hazard_report(&hazard);
}

/* ---- global memory --------------------------------------------------------------------------- */

static void look_global(struct watched *watched, const struct sg_watched_access *access,
                        unsigned lane) {
    char details[1024];
    uint64_t address = access->address[lane];
    size_t first = 0, missing = 0;
    sg_areas_lock();
    struct sg_area *area = sg_area_find(address);
    if (!area)
        area = sg_area_freed(address);
    size_t offset = area ? (size_t)(address - area->start) : 0;
    if (area && access->size <= area->size - offset) {
        if (access->kind != SG_WATCHED_WRITE)
            missing = sg_area_unwritten(area, offset, access->size, &first);
        if (access->kind != SG_WATCHED_READ)
            sg_area_write(area, offset, access->size);
    }
    sg_areas_unlock();
    if (!missing)
        return;
    sg_lock();
    sg_nearest_text(address, details, sizeof details);
    sg_unlock();
    report(watched, access, lane, missing, details);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static struct block *block_of(const struct watched *watched, uint64_t index) {
    struct block *block = watched->blocks;
    while (block && block->index != index)
        block = block->next;
    return block;
}

static void look_bits(struct watched *watched, const struct sg_watched_access *access,
                      unsigned lane, uint64_t *bits, uint64_t at) {
    uint32_t size = access->size;
    if (access->kind != SG_WATCHED_WRITE && sg_bits_first(bits, at, size, false) < size) {
        uint64_t missing = 0;
        for (uint32_t i = 0; i < size; i++)
            missing += !sg_bit(bits, at + i);
        report(watched, access, lane, missing, NULL);
    }
    if (access->kind != SG_WATCHED_READ)
        sg_bits_set(bits, at, size, true);
}

static void look_block(struct watched *watched, const struct sg_watched_access *access,
                       unsigned lane) {
    const struct block *block = block_of(watched, access->warp->block);
    uint64_t at = access->address[lane];
    if (!block)
        return;
    if (access->space == SG_IN_SHARED) {
        if (block->shared && at < block->shared_bytes && access->size <= block->shared_bytes - at)
            look_bits(watched, access, lane, block->shared, at);
        return;
    }
    uint64_t thread = access->warp->first + lane;
    if (block->frames &&
        sg_span_at(watched->launch->program, false, 0, at, access->size) != SG_SPAN_UNKNOWN)
        look_bits(watched, access, lane, block->frames, thread * watched->frame + at);
}

/* The largest span of lanes whose bytes are all looked at together. */
#define SPAN_MOST 4096u

/* All lanes at once; true: there is nothing to report. A read of a span that is all written, or a
 * write of a run. */
static bool look_at_all(struct watched *watched, const struct sg_watched_access *access) {
    struct sg_lanes_span span = sg_lanes_span(access);
    uint64_t size = span.end - span.low;
    size_t first;
    bool reads = access->kind != SG_WATCHED_WRITE, writes = access->kind != SG_WATCHED_READ;
    if (access->space == SG_IN_SHARED) {
        const struct block *block = block_of(watched, access->warp->block);
        if (!block || !block->shared || span.end > block->shared_bytes || span.end < span.low)
            return false;
        if (reads && sg_bits_first(block->shared, span.low, size, false) < size)
            return false;
        if (writes && span.run)
            sg_bits_set(block->shared, span.low, size, true);
        return !writes || span.run || reads; /* what it read is written already */
    }
    if (access->space != SG_IN_GLOBAL)
        return false;
    sg_areas_lock();
    struct sg_area *area = sg_area_find(span.low);
    bool done = area && span.end <= area->start + area->size && span.end >= span.low;
    size_t offset = done ? (size_t)(span.low - area->start) : 0;
    if (done && area->tracked && !area->all) {
        done = size <= SPAN_MOST && !area->pattern &&
               (!reads || sg_area_unwritten(area, offset, size, &first) == 0) &&
               (!writes || span.run || reads);
        if (done && writes && span.run)
            sg_area_write(area, offset, size);
    }
    sg_areas_unlock();
    return done;
}

static void look(void *user, const struct sg_watched_access *access) {
    struct watched *watched = user;
    bool in_block = access->space == SG_IN_SHARED || access->space == SG_IN_LOCAL;
    if ((!in_block && access->space != SG_IN_GLOBAL) || look_at_all(watched, access))
        return;
    for (uint32_t left = access->lanes; left; left &= left - 1)
        (in_block ? look_block : look_global)(watched, access, (unsigned)__builtin_ctz(left));
}

static void block_begins(void *user, uint64_t index, uint64_t shared_bytes) {
    struct watched *watched = user;
    struct block *block = calloc(1, sizeof *block);
    if (!block)
        return; /* out of memory: nothing is known of the block */
    uint64_t frames = watched->frame * watched->threads;
    uint64_t own = sg_span_shared(watched->launch->program, watched->launch->dynamic_shared);
    block->index = index;
    block->shared_bytes = own < shared_bytes ? own : shared_bytes;
    if (own && !watched->clustered)
        block->shared = calloc(own / 64 + 1, sizeof *block->shared);
    if (frames && frames <= FRAMES_MOST)
        block->frames = calloc(frames / 64 + 1, sizeof *block->frames);
    block->next = watched->blocks;
    watched->blocks = block;
}

static void block_free(struct block *block) {
    free(block->shared);
    free(block->frames);
    free(block);
}

static void block_ends(void *user, uint64_t index) {
    struct watched *watched = user;
    struct block **link = &watched->blocks;
    while (*link && (*link)->index != index)
        link = &(*link)->next;
    struct block *block = *link;
    if (!block)
        return;
    *link = block->next;
    block_free(block);
}

/* ---- launches -------------------------------------------------------------------------------- */

static bool has_arrays(const struct sg_program *program) {
    for (size_t i = 0; i < program->variable_count; i++)
        if (program->variables[i].place == SG_PLACE_FRAME && program->variables[i].function == 0 &&
            program->variables[i].space == SG_IN_LOCAL)
            return true;
    return false;
}

static void *begin(const struct sg_check_launch *launch) {
    struct watched *watched = calloc(1, sizeof *watched);
    if (!watched)
        return NULL;
    watched->launch = launch;
    watched->threads = launch->block[0] * launch->block[1] * launch->block[2];
    watched->clustered = launch->clustered;
    if (has_arrays(launch->program))
        watched->frame = launch->program->functions[0].frame;
    return watched;
}

static CUresult end(void *state, const struct sg_grid_fault *fault) {
    struct watched *watched = state;
    (void)fault;
    while (watched->blocks)
        block_ends(watched, watched->blocks->index);
    free(watched);
    return CUDA_SUCCESS;
}

static void start(void) {
    sg_areas_begin(true);
    sg_copies_begin(true);
}

static const struct sg_watch watch = {
    .access = look, .block_begins = block_begins, .block_ends = block_ends};

const struct sg_checker sg_init_checker = {.name = "init",
                                           .check = SG_CHECK_INIT,
                                           .watch = &watch,
                                           .start = start,
                                           .begin = begin,
                                           .end = end};
