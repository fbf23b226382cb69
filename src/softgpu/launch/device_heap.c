#include "softgpu/launch/device_heap.h"

#include "softgpu/address/range.h"
#include "softgpu/core/config.h"

#include <stdlib.h>

#define LEAST_STEP 16u

struct block {
    struct sg_tree_node place; /* key: the first step */
    struct sg_tree_node size;  /* of free blocks; key: steps << 32 | first step */
    uint64_t steps;
    uint64_t asked; /* bytes; 0: free */
};

static struct block *of_place(struct sg_tree_node *node) {
    return SG_TREE_OWNER(node, struct block, place);
}

static CUdeviceptr address_of(const struct sg_device_heap *heap, const struct block *block) {
    return heap->segment.address + block->place.key * heap->step;
}

static void add_free(struct sg_device_heap *heap, struct block *block) {
    block->asked = 0;
    block->size.key = block->steps << 32 | block->place.key;
    sg_tree_insert(&heap->free, &block->size);
}

static void add_block(struct sg_device_heap *heap, struct block *block, uint64_t first,
                      uint64_t steps) {
    block->place.key = first;
    block->steps = steps;
    sg_tree_insert(&heap->blocks, &block->place);
}

/* ---- begin and end --------------------------------------------------------------------------- */

static CUresult map(struct sg_device_heap *heap, int device, size_t size) {
    CUmemAllocationProp prop = sg_plain_prop(device);
    struct sg_phys *phys;
    CUresult result = sg_phys_create(&prop, (size + SG_PAGE - 1) / SG_PAGE * SG_PAGE, &phys);
    if (result != CUDA_SUCCESS)
        return result;
    result = sg_segment_map(phys, 1U << device, &heap->segment);
    sg_phys_unref(phys); /* the segment has its own reference */
    return result;
}

CUresult sg_heap_begin(struct sg_device_heap *heap, int device, size_t size) {
    if (heap->size)
        return CUDA_SUCCESS;
    CUresult result = map(heap, device, size);
    if (result != CUDA_SUCCESS)
        return result;
    for (heap->step = LEAST_STEP; size / heap->step > UINT32_MAX; heap->step *= 2)
        ;
    struct block *all = calloc(1, sizeof *all);
    if (!all) {
        sg_segment_unmap(&heap->segment);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    add_block(heap, all, 0, size / heap->step);
    add_free(heap, all);
    heap->size = all->steps * heap->step;
    return CUDA_SUCCESS;
}

void sg_heap_end(struct sg_device_heap *heap) {
    if (!heap->size)
        return;
    while (heap->blocks.root) {
        struct block *block = of_place(heap->blocks.root);
        if (block->asked && sg_range_watch)
            sg_range_watch->block_ends(address_of(heap, block), true);
        sg_tree_remove(&heap->blocks, &block->place);
        free(block);
    }
    sg_segment_unmap(&heap->segment);
    *heap = (struct sg_device_heap){0};
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* The steps in front of the first aligned address of a free block. */
static uint64_t gap_of(const struct sg_device_heap *heap, const struct block *block,
                       uint64_t alignment) {
    uint64_t address = address_of(heap, block);
    alignment = alignment < heap->step ? heap->step : alignment;
    return ((address + alignment - 1) / alignment * alignment - address) / heap->step;
}

/* Best fit; of several the one with the lowest address. */
static struct block *find(const struct sg_device_heap *heap, uint64_t steps, uint64_t alignment) {
    struct sg_tree_node *at = sg_tree_at_least(&heap->free, steps << 32);
    for (; at; at = sg_tree_next(at)) {
        struct block *block = SG_TREE_OWNER(at, struct block, size);
        if (block->steps - steps >= gap_of(heap, block, alignment))
            return block;
    }
    return NULL;
}

/* Makes a block of what lies behind `gap` in a free one; before and after it stays free. NULL: out
 * of memory, and nothing has changed. */
static struct block *cut(struct sg_device_heap *heap, struct block *block, uint64_t gap,
                         uint64_t steps) {
    uint64_t first = block->place.key + gap, left = block->steps - gap - steps;
    struct block *own = gap ? calloc(1, sizeof *own) : block;
    struct block *rest = left ? calloc(1, sizeof *rest) : NULL;
    if (!own || (left && !rest)) {
        if (gap)
            free(own);
        free(rest);
        return NULL;
    }
    sg_tree_remove(&heap->free, &block->size);
    if (gap) {
        block->steps = gap;
        add_free(heap, block);
        add_block(heap, own, first, steps);
    }
    own->steps = steps;
    if (rest) {
        add_block(heap, rest, first + steps, left);
        add_free(heap, rest);
    }
    return own;
}

CUdeviceptr sg_heap_take_aligned(struct sg_device_heap *heap, uint64_t size, uint64_t alignment) {
    if (size > heap->size || alignment > heap->size || alignment == 0 ||
        (alignment & (alignment - 1)) != 0)
        return 0;
    size += size == 0; /* malloc(0) is a block of its own */
    uint64_t steps = (size + sg_red_zone(sg_config()) + heap->step - 1) / heap->step;
    struct block *block = find(heap, steps, alignment);
    if (block)
        block = cut(heap, block, gap_of(heap, block, alignment), steps);
    if (!block)
        return 0;
    block->asked = size;
    CUdeviceptr address = address_of(heap, block);
    if (sg_range_watch)
        sg_range_watch->block_begins(address, size);
    return address;
}

CUdeviceptr sg_heap_take(struct sg_device_heap *heap, uint64_t size) {
    return sg_heap_take_aligned(heap, size, heap->step);
}

/* Merges the free block `next` into the one before it. */
static void merge(struct sg_device_heap *heap, struct block *block, struct block *next) {
    sg_tree_remove(&heap->free, &next->size);
    sg_tree_remove(&heap->blocks, &next->place);
    block->steps += next->steps;
    free(next);
}

bool sg_heap_give(struct sg_device_heap *heap, CUdeviceptr address) {
    uint64_t offset = address - heap->segment.address;
    if (offset >= heap->size || offset % heap->step)
        return false;
    struct block *block = of_place(sg_tree_at_most(&heap->blocks, offset / heap->step));
    if (block->place.key != offset / heap->step || !block->asked)
        return false;
    if (sg_range_watch)
        sg_range_watch->block_ends(address, false);
    struct block *next = of_place(sg_tree_next(&block->place));
    if (next && !next->asked)
        merge(heap, block, next);
    struct block *before =
        block->place.key ? of_place(sg_tree_at_most(&heap->blocks, block->place.key - 1)) : NULL;
    if (!before || before->asked) {
        add_free(heap, block);
        return true;
    }
    sg_tree_remove(&heap->free, &before->size);
    sg_tree_remove(&heap->blocks, &block->place);
    before->steps += block->steps;
    free(block);
    add_free(heap, before);
    return true;
}

bool sg_heap_extent(const struct sg_device_heap *heap, CUdeviceptr address, uint64_t *low,
                    uint64_t *length) {
    if (address - heap->segment.address >= heap->size)
        return false;
    *low = heap->segment.address;
    *length = heap->size;
    return true;
}

bool sg_heap_block(const struct sg_device_heap *heap, CUdeviceptr address, uint64_t *start,
                   uint64_t *size) {
    uint64_t offset = address - heap->segment.address;
    if (offset >= heap->size)
        return false;
    const struct block *block = of_place(sg_tree_at_most(&heap->blocks, offset / heap->step));
    *start = address_of(heap, block);
    *size = block->asked;
    return true;
}
