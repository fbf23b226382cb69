#include "softgpu/address/small.h"

#include <limits.h>
#include <stdlib.h>

#define UNIT  ((size_t)512)
#define LISTS 14 /* by the power of two below the longest free run: 1 to 8192 units */
#define HEAPS (2 * SG_MAX_DEVICES + 2)
/* How many chunks of the list that may fit are tried before one that must. */
#define TRIES 8
/* How many runs after the first that fits are examined for a closer fit. */
#define CLOSER 16

struct sg_chunk {
    struct sg_chunk *next, *previous;
    struct sg_segment segment;
    int heap;
    unsigned units;
    unsigned taken;  /* units */
    unsigned bound;  /* no free run is longer; 0: full, and in no list */
    unsigned first;  /* no unit below is free */
    uint64_t bits[]; /* 1 for taken */
};

/* The devices', their variables', the host's and managed memory's. */
static struct sg_chunk *lists[HEAPS][LISTS];

static int heap_of(int place) {
    return place < 0 ? 2 * SG_MAX_DEVICES - 1 - place : place;
}

static bool of_variables(int heap) {
    return heap >= SG_MAX_DEVICES && heap < 2 * SG_MAX_DEVICES;
}

static size_t unit_of(int heap) {
    return of_variables(heap) ? SG_SMALL_VARIABLE_STEP : UNIT;
}

static int list_of(unsigned bound) {
    return 31 - __builtin_clz(bound);
}

static void unlink_chunk(struct sg_chunk *chunk) {
    if (chunk->bound == 0)
        return;
    if (chunk->previous)
        chunk->previous->next = chunk->next;
    else
        lists[chunk->heap][list_of(chunk->bound)] = chunk->next;
    if (chunk->next)
        chunk->next->previous = chunk->previous;
}

static void link_chunk(struct sg_chunk *chunk) {
    if (chunk->bound == 0)
        return;
    struct sg_chunk **head = &lists[chunk->heap][list_of(chunk->bound)];
    chunk->previous = NULL;
    chunk->next = *head;
    if (*head)
        (*head)->previous = chunk;
    *head = chunk;
}

static void set_bound(struct sg_chunk *chunk, unsigned bound) {
    if (bound == chunk->bound)
        return;
    unlink_chunk(chunk);
    chunk->bound = bound;
    link_chunk(chunk);
}

/* The first unit from `from` on that is taken (or free); the chunk's units when there is none. */
static unsigned next_unit(const struct sg_chunk *chunk, unsigned from, bool taken) {
    while (from < chunk->units) {
        uint64_t word = chunk->bits[from / 64];
        uint64_t wanted = (taken ? word : ~word) >> (from % 64);
        if (wanted)
            return from + (unsigned)__builtin_ctzll(wanted);
        from = (from / 64 + 1) * 64;
    }
    return chunk->units;
}

/* The start of the free run that fits `units` most closely, as recorded (tests/parity, the
 * scenarios layout/reuse-*); if there is none, returns false and sets the bound to the longest run.
 */
static bool find_run(struct sg_chunk *chunk, unsigned units, unsigned *found) {
    unsigned longest = 0, closest = UINT_MAX, closer = CLOSER;
    unsigned start = next_unit(chunk, chunk->first, false);
    chunk->first = start;
    while (start < chunk->units && closest > units && closer > 0) {
        unsigned end = next_unit(chunk, start, true), length = end - start;
        closer -= closest != UINT_MAX;
        if (length >= units && length < closest) {
            closest = length;
            *found = start;
        }
        if (length > longest)
            longest = length;
        start = next_unit(chunk, end, false);
    }
    if (closest == UINT_MAX)
        set_bound(chunk, longest);
    return closest != UINT_MAX;
}

static void mark(struct sg_chunk *chunk, unsigned start, unsigned units, bool taken) {
    for (unsigned at = start, end = start + units; at < end;) {
        unsigned bit = at % 64, count = 64 - bit < end - at ? 64 - bit : end - at;
        uint64_t mask = (count == 64 ? UINT64_MAX : ((uint64_t)1 << count) - 1) << bit;
        if (taken)
            chunk->bits[at / 64] |= mask;
        else
            chunk->bits[at / 64] &= ~mask;
        at += count;
    }
}

static CUresult map_chunk(int device, struct sg_segment *segment) {
    CUmemAllocationProp prop = sg_plain_prop(device);
    struct sg_phys *phys;
    CUresult result = sg_phys_create(&prop, SG_PAGE, &phys);
    if (result != CUDA_SUCCESS)
        return result;
    result = sg_segment_map(phys, (1u << SG_MAX_DEVICES) - 1, segment);
    sg_phys_unref(phys); /* the segment has its own reference */
    return result;
}

static CUresult new_chunk(int place, struct sg_chunk **made) {
    int heap = heap_of(place);
    unsigned units = (unsigned)(SG_PAGE / unit_of(heap));
    struct sg_chunk *chunk = calloc(1, sizeof *chunk + units / 64 * sizeof *chunk->bits);
    if (!chunk)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result =
        map_chunk(of_variables(heap) ? place - SG_MAX_DEVICES : place, &chunk->segment);
    if (result != CUDA_SUCCESS) {
        free(chunk);
        return result;
    }
    chunk->heap = heap;
    chunk->units = units;
    set_bound(chunk, units);
    *made = chunk;
    return CUDA_SUCCESS;
}

static struct sg_chunk *find_chunk(int heap, unsigned units, unsigned *start) {
    int list = list_of(units), tries = TRIES;
    struct sg_chunk *next;
    for (struct sg_chunk *chunk = lists[heap][list]; chunk && tries-- > 0; chunk = next) {
        next = chunk->next;
        if (chunk->bound >= units && find_run(chunk, units, start))
            return chunk;
    }
    while (++list < LISTS) {
        /* A failed search lowers the bound, and the chunk leaves this list. */
        for (struct sg_chunk *chunk; (chunk = lists[heap][list]) != NULL;) {
            unsigned bound = chunk->bound;
            if (find_run(chunk, units, start))
                return chunk;
            if (chunk->bound == bound)
                break;
        }
    }
    return NULL;
}

static unsigned units_of(int heap, size_t size) {
    return (unsigned)((size + unit_of(heap) - 1) / unit_of(heap));
}

CUresult sg_small_take(int place, size_t size, struct sg_chunk **chunk, CUdeviceptr *address) {
    int heap = heap_of(place);
    unsigned units = units_of(heap, size), start = 0;
    *chunk = find_chunk(heap, units, &start);
    if (!*chunk) {
        CUresult result = new_chunk(place, chunk);
        if (result != CUDA_SUCCESS)
            return result;
        start = 0;
    }
    mark(*chunk, start, units, true);
    (*chunk)->taken += units;
    if ((*chunk)->bound > (*chunk)->units - (*chunk)->taken)
        set_bound(*chunk, (*chunk)->units - (*chunk)->taken);
    *address = (*chunk)->segment.address + start * unit_of(heap);
    return CUDA_SUCCESS;
}

/* The length of the free run around a unit. */
static unsigned run_around(const struct sg_chunk *chunk, unsigned unit) {
    unsigned start = unit;
    while (start > 0 && !(chunk->bits[(start - 1) / 64] >> ((start - 1) % 64) & 1)) {
        if (start % 64 == 0 && chunk->bits[start / 64 - 1] == 0)
            start -= 64;
        else
            start--;
    }
    return next_unit(chunk, unit, true) - start;
}

void sg_small_give(struct sg_chunk *chunk, CUdeviceptr address, size_t size) {
    unsigned units = units_of(chunk->heap, size);
    unsigned start = (unsigned)((address - chunk->segment.address) / unit_of(chunk->heap));
    chunk->taken -= units;
    if (chunk->taken == 0) {
        unlink_chunk(chunk);
        sg_segment_unmap(&chunk->segment);
        free(chunk);
        return;
    }
    mark(chunk, start, units, false);
    if (start < chunk->first)
        chunk->first = start;
    unsigned run = run_around(chunk, start);
    if (run > chunk->bound)
        set_bound(chunk, run);
}

const struct sg_segment *sg_small_segment(const struct sg_chunk *chunk) {
    return &chunk->segment;
}
