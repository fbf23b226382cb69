#include "softgpu/memory/allocation.h"

#include <stdlib.h>

#define UNIT        ((size_t)512)
#define CLASS_COUNT 23 /* 1, 2, 3, 4, 6, 8, ... 2048 units */
#define HEAP_COUNT  (SG_MAX_DEVICES + 1)

struct sg_chunk {
    struct sg_chunk *next, *previous; /* in its class's list while it has a free slot */
    struct sg_segment segment;
    int heap, class;
    size_t slot_size;
    uint32_t slots, taken;
    uint32_t first_word; /* words before this one are full */
    uint64_t bits[];     /* 1: taken */
};

/* Chunks with a free slot. The last heap is the host's. */
static struct sg_chunk *partial[HEAP_COUNT][CLASS_COUNT];

static size_t class_size(int class) {
    if (class == 0)
        return UNIT;
    size_t base = UNIT << ((class + 1) / 2);
    return class % 2 ? base : base / 2 * 3;
}

static int class_of(size_t size) {
    int class = 0;
    while (class_size(class) < size)
        class ++;
    return class;
}

static void link_chunk(struct sg_chunk *chunk) {
    struct sg_chunk **head = &partial[chunk->heap][chunk->class];
    chunk->previous = NULL;
    chunk->next = *head;
    if (*head)
        (*head)->previous = chunk;
    *head = chunk;
}

static void unlink_chunk(struct sg_chunk *chunk) {
    if (chunk->previous)
        chunk->previous->next = chunk->next;
    else
        partial[chunk->heap][chunk->class] = chunk->next;
    if (chunk->next)
        chunk->next->previous = chunk->previous;
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

static CUresult new_chunk(int device, int class, struct sg_chunk **made) {
    uint32_t slots = (uint32_t)(SG_PAGE / class_size(class));
    struct sg_chunk *chunk = calloc(1, sizeof *chunk + (slots + 63) / 64 * sizeof(uint64_t));
    if (!chunk)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = map_chunk(device, &chunk->segment);
    if (result != CUDA_SUCCESS) {
        free(chunk);
        return result;
    }
    chunk->heap = device < 0 ? SG_MAX_DEVICES : device;
    chunk->class = class;
    chunk->slot_size = class_size(class);
    chunk->slots = slots;
    link_chunk(chunk);
    *made = chunk;
    return CUDA_SUCCESS;
}

/* The lowest free slot of a chunk that has one. */
static uint32_t take_slot(struct sg_chunk *chunk) {
    uint32_t word = chunk->first_word;
    while (chunk->bits[word] == UINT64_MAX)
        word++;
    uint32_t bit = (uint32_t)__builtin_ctzll(~chunk->bits[word]);
    chunk->first_word = word;
    chunk->bits[word] |= (uint64_t)1 << bit;
    if (++chunk->taken == chunk->slots)
        unlink_chunk(chunk);
    return word * 64 + bit;
}

CUresult sg_small_take(int device, size_t size, struct sg_chunk **chunk, CUdeviceptr *address) {
    int class = class_of(size);
    *chunk = partial[device < 0 ? SG_MAX_DEVICES : device][class];
    if (!*chunk) {
        CUresult result = new_chunk(device, class, chunk);
        if (result != CUDA_SUCCESS)
            return result;
    }
    *address = (*chunk)->segment.address + take_slot(*chunk) * (*chunk)->slot_size;
    return CUDA_SUCCESS;
}

void sg_small_give(struct sg_chunk *chunk, CUdeviceptr address) {
    uint32_t slot = (uint32_t)((address - chunk->segment.address) / chunk->slot_size);
    if (chunk->taken == chunk->slots)
        link_chunk(chunk);
    chunk->bits[slot / 64] &= ~((uint64_t)1 << (slot % 64));
    if (slot / 64 < chunk->first_word)
        chunk->first_word = slot / 64;
    if (--chunk->taken > 0)
        return;
    unlink_chunk(chunk);
    sg_segment_unmap(&chunk->segment);
    free(chunk);
}

const struct sg_segment *sg_small_segment(const struct sg_chunk *chunk) {
    return &chunk->segment;
}
