#include "softgpu/context/address_32.h"

#include <stdlib.h>

#define FIRST ((uint64_t)SG_ADDRESS_32_FIRST)
#define UNIT  ((uint64_t)512)
#define END   ((uint64_t)1 << 32)

/* Ordered by address. An address belongs to the range with that number: once that range is gone, or
 * another one is at its place, the address is free. */
struct mapping {
    struct mapping *next;
    uint64_t start, size;
    CUdeviceptr wide;
    uint64_t buffer_id;
};

static struct mapping *mappings;

bool sg_context_has_32_bit_addresses(const struct sg_context *context) {
    return context->api_version < 3020;
}

CUresult sg_context_current_32(struct sg_context **context) {
    struct sg_context *current = sg_context_peek();
    if (!current || !sg_context_has_32_bit_addresses(current))
        return CUDA_ERROR_INVALID_CONTEXT;
    *context = current;
    return current->sticky;
}

static bool live(const struct mapping *mapping) {
    const struct sg_range *range = sg_range_find(mapping->wide);
    return range && range->buffer_id == mapping->buffer_id;
}

static void forget_dead(void) {
    struct mapping **link = &mappings;
    while (*link) {
        struct mapping *mapping = *link;
        if (live(mapping)) {
            link = &mapping->next;
            continue;
        }
        *link = mapping->next;
        free(mapping);
    }
}

/* The first mapping with room for `size` bytes after it, or the end of the list. */
static struct mapping **find_gap(uint64_t size, uint64_t *start) {
    struct mapping **link = &mappings;
    for (*start = FIRST; *link && (*link)->start - *start < size; link = &(*link)->next)
        *start = (*link)->start + (*link)->size;
    return link;
}

CUresult sg_address_32_of(const struct sg_range *range, CUdeviceptr_v1 *address) {
    forget_dead();
    for (const struct mapping *mapping = mappings; mapping; mapping = mapping->next) {
        if (mapping->buffer_id != range->buffer_id)
            continue;
        *address = (CUdeviceptr_v1)mapping->start;
        return CUDA_SUCCESS;
    }
    uint64_t start, size = (range->size + UNIT - 1) / UNIT * UNIT;
    struct mapping **link = find_gap(size, &start);
    if (size > END - FIRST || start > END - size)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct mapping *made = malloc(sizeof *made);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *made = (struct mapping){*link, start, size, range->start, range->buffer_id};
    *link = made;
    *address = (CUdeviceptr_v1)start;
    return CUDA_SUCCESS;
}

static const struct mapping *find(CUdeviceptr_v1 address) {
    for (const struct mapping *mapping = mappings; mapping; mapping = mapping->next)
        if (address >= mapping->start && address - mapping->start < mapping->size)
            return live(mapping) ? mapping : NULL;
    return NULL;
}

CUresult sg_address_32_find(CUdeviceptr_v1 address, CUdeviceptr *wide) {
    const struct mapping *mapping = find(address);
    if (!mapping)
        return CUDA_ERROR_INVALID_VALUE;
    *wide = mapping->wide + (address - mapping->start);
    return CUDA_SUCCESS;
}

struct sg_range *sg_address_32_range(CUdeviceptr_v1 address, CUdeviceptr_v1 *start) {
    const struct mapping *mapping = find(address);
    struct sg_range *range = mapping ? sg_range_find(mapping->wide) : NULL;
    if (!range || address - mapping->start >= range->size)
        return NULL;
    *start = (CUdeviceptr_v1)mapping->start;
    return range;
}
