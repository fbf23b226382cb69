/* Addresses of 32 bits, and the functions that give them out. */
#include "softgpu/context/address_32.h"

#include "softgpu/core/calls.h"

#include <stdlib.h>

#define FIRST ((uint64_t)1 << 24) /* below it, addresses are mistakes */
#define UNIT  ((uint64_t)512)
#define END   ((uint64_t)1 << 32)

/* In order of address. The range with that number is what the address belongs to: once it is gone,
 * or another one lies there, the address is free. */
struct mapping {
    struct mapping *next;
    uint64_t start, size;
    CUdeviceptr wide;
    uint64_t buffer_id;
};

static struct mapping *mappings;

bool sg_old_is(const struct sg_context *context) {
    return context->api_version < 3020;
}

CUresult sg_old_context(struct sg_context **context) {
    struct sg_context *current = sg_context_peek();
    if (!current || !sg_old_is(current))
        return CUDA_ERROR_INVALID_CONTEXT;
    *context = current;
    return current->sticky;
}

/* ---- The addresses -------------------------------------------------------------------------- */

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

/* The mapping behind which `size` bytes fit first, or the end of the list. */
static struct mapping **find_gap(uint64_t size, uint64_t *start) {
    struct mapping **link = &mappings;
    for (*start = FIRST; *link && (*link)->start - *start < size; link = &(*link)->next)
        *start = (*link)->start + (*link)->size;
    return link;
}

CUresult sg_old_address(const struct sg_range *range, CUdeviceptr_v1 *address) {
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

CUresult sg_old_translate(CUdeviceptr_v1 address, CUdeviceptr *wide) {
    const struct mapping *mapping = find(address);
    if (!mapping)
        return CUDA_ERROR_INVALID_VALUE;
    *wide = mapping->wide + (address - mapping->start);
    return CUDA_SUCCESS;
}

/* ---- Allocating ----------------------------------------------------------------------------- */

#define ZERO(output)                                                                               \
    do {                                                                                           \
        if (output)                                                                                \
            *(output) = 0;                                                                         \
    } while (0)

/* Gives out fresh memory at an address of 32 bits, or frees it again. */
static CUresult give_out(CUdeviceptr wide, CUdeviceptr_v1 *address) {
    CUresult result = sg_old_address(sg_range_find(wide), address);
    if (result != CUDA_SUCCESS)
        sg_cuMemFree_v2(wide);
    return result;
}

CUresult sg_cuMemAlloc(CUdeviceptr_v1 *dptr, unsigned int bytesize) {
    struct sg_context *context;
    CUdeviceptr wide;
    ZERO(dptr);
    CUresult result = sg_old_context(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!dptr || bytesize == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (bytesize > END - FIRST)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = sg_cuMemAlloc_v2(&wide, bytesize);
    return result == CUDA_SUCCESS ? give_out(wide, dptr) : result;
}

CUresult sg_cuMemAllocPitch(CUdeviceptr_v1 *dptr, unsigned int *pPitch, unsigned int WidthInBytes,
                            unsigned int Height, unsigned int ElementSizeBytes) {
    struct sg_context *context;
    CUdeviceptr wide;
    size_t pitch;
    ZERO(dptr);
    ZERO(pPitch);
    CUresult result = sg_old_context(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!dptr || !pPitch)
        return CUDA_ERROR_INVALID_VALUE;
    result = sg_cuMemAllocPitch_v2(&wide, &pitch, WidthInBytes, Height, ElementSizeBytes);
    if (result == CUDA_SUCCESS)
        result = give_out(wide, dptr);
    if (result == CUDA_SUCCESS)
        *pPitch = (unsigned)pitch;
    return result;
}

CUresult sg_cuMemFree(CUdeviceptr_v1 dptr) {
    struct sg_context *context;
    CUdeviceptr wide;
    if (dptr == 0 && !sg_context_peek())
        return CUDA_SUCCESS;
    CUresult result = sg_old_context(&context);
    if (result != CUDA_SUCCESS || dptr == 0)
        return result;
    result = sg_old_translate(dptr, &wide);
    return result == CUDA_SUCCESS ? sg_cuMemFree_v2(wide) : result;
}

CUresult sg_cuMemGetAddressRange(CUdeviceptr_v1 *pbase, unsigned int *psize, CUdeviceptr_v1 dptr) {
    struct sg_context *context;
    if (!pbase && !psize)
        return CUDA_SUCCESS;
    ZERO(pbase);
    ZERO(psize);
    if (!atomic_load(&sg_initialized))
        return CUDA_ERROR_NOT_INITIALIZED;
    CUresult result = sg_old_context(&context);
    if (result != CUDA_SUCCESS)
        return result;
    const struct mapping *mapping = find(dptr);
    const struct sg_range *range = mapping ? sg_range_find(mapping->wide) : NULL;
    if (!range || dptr - mapping->start >= range->size)
        return CUDA_ERROR_NOT_FOUND;
    if (pbase)
        *pbase = (CUdeviceptr_v1)mapping->start;
    if (psize)
        *psize = (unsigned)range->size;
    return CUDA_SUCCESS;
}

static unsigned clamped(size_t bytes) {
    return bytes > UINT32_MAX ? UINT32_MAX : (unsigned)bytes;
}

CUresult sg_cuMemGetInfo(unsigned int *free, unsigned int *total) {
    struct sg_context *context;
    size_t wide_free, wide_total;
    ZERO(free);
    ZERO(total);
    CUresult result = sg_old_context(&context);
    if (result == CUDA_SUCCESS)
        result = sg_cuMemGetInfo_v2(&wide_free, &wide_total);
    if (result != CUDA_SUCCESS)
        return result;
    if (free)
        *free = clamped(wide_free);
    if (total)
        *total = clamped(wide_total);
    return CUDA_SUCCESS;
}

CUresult sg_cuMemAllocHost(void **pp, unsigned int bytesize) {
    struct sg_context *context;
    ZERO(pp);
    CUresult result = sg_old_context(&context);
    return result == CUDA_SUCCESS ? sg_cuMemAllocHost_v2(pp, bytesize) : result;
}

CUresult sg_cuMemHostGetDevicePointer(CUdeviceptr_v1 *pdptr, void *p, unsigned int Flags) {
    struct sg_context *context;
    CUdeviceptr wide;
    ZERO(pdptr);
    CUresult result = sg_old_context(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pdptr)
        return CUDA_ERROR_INVALID_VALUE;
    result = sg_cuMemHostGetDevicePointer_v2(&wide, p, Flags);
    const struct sg_range *range = result == CUDA_SUCCESS ? sg_range_find(wide) : NULL;
    /* Without unified addresses, the device sees what was asked to be mapped for it. */
    if (range && !(range->flags & CU_MEMHOSTALLOC_DEVICEMAP))
        return CUDA_ERROR_INVALID_VALUE;
    if (!range)
        return result;
    result = sg_old_address(range, pdptr);
    if (result == CUDA_SUCCESS)
        *pdptr += (CUdeviceptr_v1)(wide - range->start);
    return result;
}
