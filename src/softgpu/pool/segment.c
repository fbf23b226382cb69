/* Segments: addresses, and the steps of memory that are mapped there. */
#include "base/growing_array.h"
#include "softgpu/address/pagetable.h"
#include "softgpu/address/phys.h"
#include "softgpu/address/window.h"
#include "softgpu/core/config.h"
#include "softgpu/pool/internal.h"

#include <stdlib.h>

/* The most addresses that a segment takes beyond what it needs. */
#define MOST_ROOM ((size_t)256 << 30)

static void link_segment(struct sg_pool *pool, struct sg_pool_segment *segment) {
    segment->previous = pool->last;
    *(pool->last ? &pool->last->next : &pool->first) = segment;
    pool->last = segment;
}

static void unlink_segment(struct sg_pool *pool, struct sg_pool_segment *segment) {
    *(segment->previous ? &segment->previous->next : &pool->first) = segment->next;
    *(segment->next ? &segment->next->previous : &pool->last) = segment->previous;
}

/* ---- Steps ----------------------------------------------------------------------------------- */

/* The first step that ends behind an offset. */
static size_t step_behind(const struct sg_pool_segment *segment, size_t offset) {
    size_t low = 0, high = segment->step_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const struct sg_pool_step *step = &segment->steps[middle];
        if (step->offset + step->size > offset)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

struct sg_pool_step *sg_step_at(const struct sg_pool_segment *segment, size_t offset) {
    return &segment->steps[step_behind(segment, offset)];
}

size_t sg_steps_between(const struct sg_pool_segment *segment, size_t offset, size_t end,
                        size_t *first) {
    size_t begin = step_behind(segment, offset), stop = step_behind(segment, end);
    if (begin < segment->step_count && segment->steps[begin].offset < offset)
        begin++;
    *first = begin;
    return stop > begin ? stop - begin : 0;
}

static void count_in(struct sg_pool_segment *segment, const struct sg_pool_step *step) {
    struct sg_pool *pool = segment->pool;
    segment->present += step->size;
    pool->reserved += step->size;
    if (pool->reserved > pool->reserved_high)
        pool->reserved_high = pool->reserved;
    if (pool->least_step == 0 || step->size < pool->least_step)
        pool->least_step = step->size;
}

void sg_step_map(struct sg_pool_segment *segment, struct sg_pool_step *step, struct sg_phys *phys) {
    sg_table_map(segment->address + step->offset, step->size, phys->host,
                 sg_rights_of_mask(segment->pool->devices));
    step->phys = phys;
    count_in(segment, step);
}

struct sg_phys *sg_step_take(struct sg_block *idle, struct sg_pool_step *step) {
    struct sg_pool_segment *segment = idle->segment;
    struct sg_block *part = sg_block_carve(idle, step->offset, step->size);
    struct sg_phys *phys = step->phys;
    if (!part)
        return NULL;
    sg_table_unmap(segment->address + step->offset, step->size);
    step->phys = NULL;
    segment->present -= step->size;
    segment->pool->reserved -= step->size;
    sg_block_gone(part);
    return phys;
}

/* ---- Making ---------------------------------------------------------------------------------- */

static void prefer(struct sg_page_facts *facts, const void *user) {
    facts->preferred = *(const CUmemLocation *)user;
}

/* Managed memory prefers the place of its pool. */
static bool begin_pages(struct sg_pool_segment *segment, const CUmemLocation *place) {
    struct sg_pages *pages = &segment->pages;
    if (!sg_pages_begin(pages, segment->address, segment->size))
        return false;
    if (!sg_pages_promise(pages)) {
        sg_pages_end(pages);
        return false;
    }
    pages->opened_to = &segment->pool->told;
    sg_pages_edit(pages, segment->address, segment->size, prefer, place);
    return true;
}

static void free_segment(struct sg_pool_segment *segment) {
    if (!segment)
        return;
    free(segment->steps);
    free(segment->blocks);
    free(segment);
}

/* Maps the only step of memory that the CPU sees, too, or that another process has. */
static CUresult map_whole(struct sg_pool_segment *segment, struct sg_phys *phys) {
    CUresult result = sg_segment_map(phys, segment->pool->devices, &segment->map);
    if (result != CUDA_SUCCESS)
        return result;
    segment->address = segment->map.address;
    if (segment->pool->managed && !begin_pages(segment, &segment->pool->props.location)) {
        sg_segment_unmap(&segment->map);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    segment->steps[0].phys = phys;
    count_in(segment, &segment->steps[0]);
    return CUDA_SUCCESS;
}

static CUresult map_steps(struct sg_pool_segment *segment, struct sg_phys *const *steps) {
    CUresult result = sg_addresses_take(segment->size, SG_PAGE, 0, &segment->address);
    if (result != CUDA_SUCCESS)
        return result;
    segment->room = segment->size;
    for (size_t i = 0; i < segment->step_count; i++) {
        sg_phys_ref(steps[i]);
        sg_step_map(segment, &segment->steps[i], steps[i]);
    }
    return CUDA_SUCCESS;
}

CUresult sg_pool_add_segment(struct sg_pool *pool, struct sg_phys *const *steps, size_t count,
                             uint64_t file_offset, struct sg_pool_segment **out) {
    struct sg_pool_segment *segment = calloc(1, sizeof *segment);
    struct sg_block *block = calloc(1, sizeof *block);
    struct sg_pool_step *list = calloc(count, sizeof *list);
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    if (segment && block && list) {
        *segment = (struct sg_pool_segment){.pool = pool,
                                            .blocks = block,
                                            .last = block,
                                            .steps = list,
                                            .step_count = count,
                                            .step_room = count,
                                            .file_offset = file_offset};
        for (size_t i = 0; i < count; segment->size += list[i++].size)
            list[i] = (struct sg_pool_step){.offset = segment->size, .size = steps[i]->size};
        result = sg_pool_has_steps(pool) ? map_steps(segment, steps) : map_whole(segment, *steps);
    }
    if (result != CUDA_SUCCESS) {
        free(list);
        free(block);
        free(segment);
        return result;
    }
    *block = (struct sg_block){.segment = segment, .size = segment->size};
    link_segment(pool, segment);
    *out = segment;
    return CUDA_SUCCESS;
}

/* Addresses cost next to nothing unless they are limited, and blocks join only where theirs do.
 * Twice what the pool can have, since blocks move behind those that are in their way. */
static size_t room_for(const struct sg_pool *pool, size_t size) {
    if (sg_config()->address_space)
        return size;
    uint64_t most = sg_device(pool->device)->limit;
    most = most < pool->limit ? most : pool->limit;
    most = most < MOST_ROOM / 2 ? 2 * most : MOST_ROOM;
    most = most / SG_POOL_STEP * SG_POOL_STEP;
    return most > size ? (size_t)most : size;
}

CUresult sg_pool_new_segment(struct sg_pool *pool, size_t size, struct sg_pool_segment **out) {
    struct sg_pool_segment *segment = calloc(1, sizeof *segment);
    if (!segment)
        return CUDA_ERROR_OUT_OF_MEMORY;
    segment->pool = pool;
    segment->room = room_for(pool, size);
    CUresult result = sg_addresses_take(segment->room, SG_PAGE, 0, &segment->address);
    if (result != CUDA_SUCCESS && size < segment->room) {
        segment->room = size;
        result = sg_addresses_take(size, SG_PAGE, 0, &segment->address);
    }
    if (result != CUDA_SUCCESS) {
        free(segment);
        return result;
    }
    link_segment(pool, segment);
    *out = segment;
    return CUDA_SUCCESS;
}

bool sg_segment_has_room(struct sg_pool_segment *segment, size_t size, size_t steps) {
    return size <= segment->room - segment->size &&
           GM_RESERVE(segment->steps, segment->step_room, segment->step_count + steps);
}

/* ---- Ending ---------------------------------------------------------------------------------- */

void sg_segment_release(struct sg_pool_segment *segment) {
    struct sg_pool *pool = segment->pool;
    struct sg_block *spare = NULL;
    if (segment->blocks)
        sg_blocks_join(segment->blocks, segment->size, segment->size, &spare);
    for (size_t i = 0; i < segment->step_count; i++) {
        struct sg_pool_step *step = &segment->steps[i];
        if (!step->phys)
            continue;
        pool->reserved -= step->size;
        if (segment->map.phys)
            continue;
        sg_table_unmap(segment->address + step->offset, step->size);
        sg_phys_unref(step->phys);
    }
    unlink_segment(pool, segment);
    sg_pages_end(&segment->pages);
    if (segment->map.phys)
        sg_segment_unmap(&segment->map);
    else
        sg_addresses_give(segment->address, segment->room);
    free_segment(segment);
}
