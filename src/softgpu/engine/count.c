/* Steps that count, each before the instruction that it counts. */
#include "softgpu/engine/count.h"
#include "softgpu/engine/inside.h"

#include <stdlib.h>
#include <string.h>

/* ---- numbers --------------------------------------------------------------------------------- */

struct sg_counts *sg_counts_new(const struct sg_code *code) {
    struct sg_counts *counts = calloc(1, sizeof *counts);
    if (!counts)
        return NULL;
    counts->instruction_count = code->program->instruction_count;
    counts->access_count = code->access_count;
    counts->instructions = calloc(counts->instruction_count + 1, sizeof *counts->instructions);
    counts->accesses = calloc(counts->access_count + 1, sizeof *counts->accesses);
    if (!counts->instructions || !counts->accesses) {
        sg_counts_free(counts);
        return NULL;
    }
    for (size_t i = 0; i < code->step_count; i++) {
        const struct sg_step *step = &code->steps[i];
        if (step->run == sg_run_count_access)
            counts->accesses[step->cache] = (struct sg_access_count){
                .instruction = step->instruction, .direction = step->choice};
    }
    return counts;
}

void sg_counts_free(struct sg_counts *counts) {
    if (!counts)
        return;
    free(counts->instructions);
    free(counts->accesses);
    free(counts);
}

static void add(struct sg_counts *to, const struct sg_counts *from) {
    for (size_t i = 0; i < from->instruction_count; i++) {
        to->instructions[i].warps += from->instructions[i].warps;
        to->instructions[i].threads += from->instructions[i].threads;
        to->instructions[i].taken += from->instructions[i].taken;
    }
    for (size_t i = 0; i < from->access_count; i++)
        for (unsigned s = 0; s < SG_COUNT_SPACES; s++) {
            to->accesses[i].bytes[s] += from->accesses[i].bytes[s];
            for (unsigned p = 0; p < SG_COUNT_PATTERNS; p++)
                to->accesses[i].warps[s][p] += from->accesses[i].warps[s][p];
        }
    to->nanoseconds += from->nanoseconds;
}

void sg_grid_counts(const struct sg_grid *grid, struct sg_counts *to) {
    const struct sg_worker *worker;
    for (unsigned i = 0; (worker = sg_grid_worker(grid, i)); i++)
        if (worker->counts)
            add(to, worker->counts);
}

/* ---- instructions ---------------------------------------------------------------------------- */

static void count(const struct sg_warp *warp, const struct sg_step *step) {
    struct sg_count *of = &warp->counts->instructions[step->instruction];
    of->warps++;
    of->threads += (uint64_t)__builtin_popcount(warp->mask);
    of->taken += (uint64_t)__builtin_popcount(sg_taken(warp, step));
}

const struct sg_step *sg_run_count(struct sg_warp *warp, const struct sg_step *step) {
    count(warp, step);
    return step + 1;
}

const struct sg_step *sg_gang_count(struct sg_warp *gang, const struct sg_step *step) {
    for (unsigned g = 0; g < gang->together; g++)
        if (gang[g].mask)
            count(&gang[g], step);
    return step + 1;
}

/* ---- accesses -------------------------------------------------------------------------------- */

/* The lanes' values in a register of 4 or 8 bytes, of one warp of a gang, or of a warp by itself
 * (gang: NULL). */
static void values_of(const struct sg_warp *gang, const struct sg_warp *warp, uint32_t place,
                      bool wide, uint64_t *values) {
    const struct sg_tag *tag = gang ? sg_tag(gang, place) : NULL;
    const unsigned char *at = sg_place(warp, place);
    for (unsigned l = 0; l < SG_LANES; l++) {
        values[l] = 0;
        if (tag && tag->kind & SG_TAG_NO_DATA) {
            uint64_t lane = (uint64_t)(warp - gang) * SG_LANES + l;
            values[l] = tag->base + (lane & (gang->across - 1)) * (uint64_t)tag->s +
                        (lane >> gang->across_log) * (uint64_t)tag->t;
            values[l] = wide ? values[l] : (uint32_t)values[l];
        } else {
            memcpy(&values[l], at + l * (wide ? 8 : 4), wide ? 8 : 4);
        }
    }
}

static unsigned window_of(uint64_t address) {
    switch (address & ~(uint64_t)UINT32_MAX) {
    case SG_SHARED_WINDOW:
        return SG_COUNT_SHARED;
    case SG_LOCAL_WINDOW:
        return SG_COUNT_LOCAL;
    case SG_PARAMETER_WINDOW:
        return SG_COUNT_PARAMETERS;
    default:
        return SG_COUNT_GLOBAL;
    }
}

static bool has_pattern(unsigned space) {
    return space == SG_COUNT_GLOBAL || space == SG_COUNT_SHARED || space == SG_COUNT_CONSTANT;
}

static unsigned pattern_of(const uint64_t *at, uint32_t lanes, uint64_t size) {
    unsigned first = (unsigned)__builtin_ctz(lanes);
    bool same = true, contiguous = true;
    for (uint32_t left = lanes; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        same &= at[l] == at[first];
        contiguous &= at[l] == at[first] + (l - first) * size;
    }
    return same ? SG_COUNT_SAME : contiguous ? SG_COUNT_CONTIGUOUS : SG_COUNT_SCATTERED;
}

/* The distance of neighbouring lanes' addresses, if they are affine over a warp: then no lane needs
 * to be read. */
static bool grow_evenly(const struct sg_warp *gang, const struct sg_step *step, int64_t *by) {
    const struct sg_tag *tag = gang ? sg_tag(gang, step->a) : NULL;
    if (!tag || !(tag->kind & SG_TAG_KNOWN) || gang->across < SG_LANES ||
        step->second == SG_COUNT_SPACES)
        return false;
    *by = step->flags & SG_STEP_WIDE ? tag->s : (int32_t)tag->s;
    return true;
}

static void count_even(const struct sg_step *step, uint32_t lanes, int64_t by,
                       struct sg_access_count *to) {
    bool same = by == 0 || (lanes & (lanes - 1)) == 0;
    to->bytes[step->second] += (uint64_t)__builtin_popcount(lanes) * step->count;
    if (has_pattern(step->second))
        to->warps[step->second][same                ? SG_COUNT_SAME
                                : by == step->count ? SG_COUNT_CONTIGUOUS
                                                    : SG_COUNT_SCATTERED]++;
}

/* a, value: the address, if it is looked at. */
static void count_addresses(const struct sg_warp *gang, const struct sg_warp *warp,
                            const struct sg_step *step, uint32_t lanes,
                            struct sg_access_count *to) {
    uint64_t at[SG_LANES];
    bool wide = step->flags & SG_STEP_WIDE;
    int64_t by;
    if (grow_evenly(gang, step, &by)) {
        count_even(step, lanes, by, to);
        return;
    }
    values_of(gang, warp, step->a, wide, at);
    for (unsigned l = 0; l < SG_LANES; l++) {
        at[l] += (uint64_t)step->value;
        at[l] = wide ? at[l] : (uint32_t)at[l];
    }
    for (uint32_t left = lanes; left;) {
        unsigned space = step->second;
        uint32_t together = left;
        for (unsigned l = 0; space == SG_COUNT_SPACES && l < SG_LANES; l++)
            if (window_of(at[l]) != window_of(at[__builtin_ctz(left)]))
                together &= ~(UINT32_C(1) << l);
        if (space == SG_COUNT_SPACES)
            space = window_of(at[__builtin_ctz(left)]);
        to->bytes[space] += (uint64_t)__builtin_popcount(together) * step->count;
        if (has_pattern(space))
            to->warps[space][pattern_of(at, together, step->count)]++;
        left &= ~together;
    }
}

/* c: bytes per lane, at most `count` if that is not 0. `type`: c is a predicate instead, and lanes
 * where it is true access none. */
static void count_sizes(const struct sg_warp *gang, const struct sg_warp *warp,
                        const struct sg_step *step, uint32_t lanes, struct sg_access_count *to) {
    uint64_t sizes[SG_LANES];
    if (step->type == SG_TYPE_PRED) {
        lanes &= ~sg_predicate(warp, step->c);
        to->bytes[step->second] += (uint64_t)__builtin_popcount(lanes) * step->count;
        return;
    }
    values_of(gang, warp, step->c, false, sizes);
    for (uint32_t left = lanes; left; left &= left - 1) {
        uint64_t size = sizes[__builtin_ctz(left)];
        to->bytes[step->second] += step->count && size > step->count ? step->count : size;
    }
}

static void count_access(const struct sg_warp *gang, const struct sg_warp *warp,
                         const struct sg_step *step) {
    uint32_t lanes = sg_taken(warp, step);
    struct sg_access_count *to = &warp->counts->accesses[step->cache];
    if (!lanes)
        return;
    if (step->a != SG_NOWHERE)
        count_addresses(gang, warp, step, lanes, to);
    else if (step->c != SG_NOWHERE)
        count_sizes(gang, warp, step, lanes, to);
    else
        to->bytes[step->second] += (uint64_t)__builtin_popcount(lanes) * step->count;
}

const struct sg_step *sg_run_count_access(struct sg_warp *warp, const struct sg_step *step) {
    count_access(NULL, warp, step);
    return step + 1;
}

const struct sg_step *sg_gang_count_access(struct sg_warp *gang, const struct sg_step *step) {
    for (unsigned g = 0; g < gang->together; g++)
        if (gang[g].mask)
            count_access(gang, &gang[g], step);
    return step + 1;
}
