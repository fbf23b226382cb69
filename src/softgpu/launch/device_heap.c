#include "softgpu/launch/device_heap.h"

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

static struct block *add_block(struct sg_device_heap *heap, uint64_t first, uint64_t steps) {
    struct block *block = calloc(1, sizeof *block);
    if (!block)
        return NULL;
    block->place.key = first;
    block->steps = steps;
    sg_tree_insert(&heap->blocks, &block->place);
    return block;
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
    struct block *all = add_block(heap, 0, size / heap->step);
    if (!all) {
        sg_segment_unmap(&heap->segment);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    add_free(heap, all);
    heap->size = all->steps * heap->step;
    return CUDA_SUCCESS;
}

void sg_heap_end(struct sg_device_heap *heap) {
    if (!heap->size)
        return;
    while (heap->blocks.root) {
        struct block *block = of_place(heap->blocks.root);
        sg_tree_remove(&heap->blocks, &block->place);
        free(block);
    }
    sg_segment_unmap(&heap->segment);
    *heap = (struct sg_device_heap){0};
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Best fit; of several the one with the lowest address. */
CUdeviceptr sg_heap_take(struct sg_device_heap *heap, uint64_t size) {
    if (size > heap->size)
        return 0;
    size += size == 0; /* malloc(0) is a block of its own */
    uint64_t steps = (size + heap->step - 1) / heap->step;
    struct block *block =
        SG_TREE_OWNER(sg_tree_at_least(&heap->free, steps << 32), struct block, size);
    if (!block)
        return 0;
    uint64_t left = block->steps - steps;
    struct block *rest = left ? add_block(heap, block->place.key + steps, left) : NULL;
    if (left && !rest)
        return 0;
    sg_tree_remove(&heap->free, &block->size);
    block->steps = steps;
    block->asked = size;
    if (rest)
        add_free(heap, rest);
    return address_of(heap, block);
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
