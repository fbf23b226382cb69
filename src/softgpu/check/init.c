/*
 * --check init: reads of uninitialized bytes in allocations and CUDA arrays (areas.h), in a block's
 * shared memory, and in arrays in the frames of functions.
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
#define NOT_YET     UINT64_MAX

/* A running block: which bytes of its shared memory and of its threads' frames have been
 * written. */
struct block {
    struct block *next;
    uint64_t index, shared_bytes;
    uint64_t *shared, *frames; /* bits; NULL: not known, or not yet */
    uint64_t frame;            /* bytes of each thread's frames that they are of */
};

struct watched {
    const struct sg_check_launch *launch;
    struct block *blocks;
    unsigned threads;
    bool clustered;          /* shared memory of other blocks is written, too */
    bool own_arrays, called; /* the entry, and functions that are called, have arrays */
};

static void report(struct watched *watched, const struct sg_watched_access *access, unsigned lane,
                   uint64_t missing, const char *details) {
    char what[96];
    if (watched->launch->quiet)
        return;
    /* In shared and local memory, compilers and scans read ahead, and may not use what they read:
     * only a warning. */
    bool own = access->space == SG_IN_SHARED || access->space == SG_IN_LOCAL;
    snprintf(what, sizeof what, "%llu of these bytes have not been written",
             (unsigned long long)missing);
    struct sg_hazard hazard = {.check = "init",
                               .kind = "uninitialized",
                               .level = own ? SG_HAZARD_WARNING : SG_HAZARD_ERROR,
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

static void look_shared(struct watched *watched, const struct sg_watched_access *access,
                        unsigned lane) {
    const struct block *block = block_of(watched, access->warp->block);
    uint64_t at = access->address[lane];
    if (block && block->shared && at < block->shared_bytes &&
        access->size <= block->shared_bytes - at)
        look_bits(watched, access, lane, block->shared, at);
}

/* ---- frames ---------------------------------------------------------------------------------- */

/* Bits for all frames of the threads, or for the entry's frame alone if that would be too many. */
static void take_frames(const struct watched *watched, struct block *block,
                        const struct sg_watched_warp *warp) {
    uint64_t entry = watched->launch->program->functions[0].frame;
    block->frame = watched->called ? warp->local_bytes : entry;
    if (block->frame * watched->threads > FRAMES_MOST)
        block->frame = watched->own_arrays ? entry : 0;
    uint64_t bits = block->frame * watched->threads;
    if (bits && bits <= FRAMES_MOST)
        block->frames = calloc(bits / 64 + 1, sizeof *block->frames);
    if (!block->frames)
        block->frame = 0; /* nothing is known of them */
}

/* Is it within an array of a function that runs? */
static bool is_in_array(const struct watched *watched, const struct sg_watched_warp *warp,
                        uint64_t at, uint64_t size) {
    const struct sg_watched_frame *frame = warp->frame;
    while (frame && at < frame->start)
        frame = frame->caller;
    return frame && sg_span_in_frame(watched->launch->program, frame->function, at - frame->start,
                                     size) != SG_SPAN_UNKNOWN;
}

static void look_local(struct watched *watched, const struct sg_watched_access *access,
                       unsigned lane) {
    struct block *block = block_of(watched, access->warp->block);
    uint64_t at = access->address[lane], thread = access->warp->first + lane;
    if (!block || (!watched->own_arrays && !watched->called))
        return;
    if (!block->frames && block->frame == NOT_YET)
        take_frames(watched, block, access->warp);
    if (at < block->frame && access->size <= block->frame - at &&
        is_in_array(watched, access->warp, at, access->size))
        look_bits(watched, access, lane, block->frames, thread * block->frame + at);
}

/* Frames of functions that have returned were in the same bytes: they are uninitialized again. */
static void enters(void *user, const struct sg_watched_warp *warp, uint32_t lanes) {
    struct watched *watched = user;
    const struct block *block = block_of(watched, warp->block);
    uint64_t start = warp->frame->start;
    if (!block || !block->frames || start >= block->frame)
        return;
    uint64_t size = watched->launch->program->functions[warp->frame->function].frame;
    size = size < block->frame - start ? size : block->frame - start;
    for (uint32_t left = lanes; left; left &= left - 1) {
        uint64_t thread = warp->first + (unsigned)__builtin_ctz(left);
        sg_bits_set(block->frames, thread * block->frame + start, size, false);
    }
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
    if (access->space == SG_IN_LOCAL)
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
    void (*look_lane)(struct watched *, const struct sg_watched_access *, unsigned) =
        access->space == SG_IN_SHARED                                  ? look_shared
        : access->space == SG_IN_LOCAL                                 ? look_local
        : access->space == SG_IN_GLOBAL || access->space == SG_IN_NONE ? look_global
                                                                       : NULL;
    if (!look_lane || (access->space == SG_IN_LOCAL && !access->warp->frame) ||
        look_at_all(watched, access))
        return;
    for (uint32_t left = access->lanes; left; left &= left - 1)
        look_lane(watched, access, (unsigned)__builtin_ctz(left));
}

static void block_begins(void *user, uint64_t index, uint64_t shared_bytes) {
    struct watched *watched = user;
    struct block *block = calloc(1, sizeof *block);
    if (!block)
        return; /* then nothing is known of it */
    uint64_t own = sg_span_shared(watched->launch->program, watched->launch->dynamic_shared);
    block->index = index;
    block->shared_bytes = own < shared_bytes ? own : shared_bytes;
    if (own && !watched->clustered)
        block->shared = calloc(own / 64 + 1, sizeof *block->shared);
    block->frame = NOT_YET;
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

static void *begin(const struct sg_check_launch *launch) {
    struct watched *watched = calloc(1, sizeof *watched);
    if (!watched) {
        sg_areas_lose(); /* its writes are not seen */
        return NULL;
    }
    watched->launch = launch;
    watched->threads = launch->block[0] * launch->block[1] * launch->block[2];
    watched->clustered = launch->clustered;
    watched->own_arrays = sg_span_has_frame(launch->program, 0);
    for (uint32_t f = 1; f < launch->program->function_count; f++)
        watched->called |= sg_span_has_frame(launch->program, f);
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
    .access = look, .enters = enters, .block_begins = block_begins, .block_ends = block_ends};

const struct sg_checker sg_init_checker = {.name = "init",
                                           .check = SG_CHECK_INIT,
                                           .watch = &watch,
                                           .start = start,
                                           .begin = begin,
                                           .end = end,
                                           .all = true};
