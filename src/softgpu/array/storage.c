/* Bytes of arrays: device memory at an address that no range of the application covers. */
#include "softgpu/address/phys.h"
#include "softgpu/address/range.h"
#include "softgpu/array/internal.h"
#include "softgpu/memory/allocation.h"

#include <stdlib.h>

struct sg_array_storage {
    CUdeviceptr address;
    size_t size;
    struct sg_chunk *chunk; /* of small storage; else NULL, and the segment is its own */
    struct sg_segment segment;
};

static CUresult take_pages(struct sg_array_storage *storage, int device) {
    CUmemAllocationProp prop = sg_plain_prop(device);
    size_t size = (storage->size + SG_PAGE - 1) / SG_PAGE * SG_PAGE;
    struct sg_phys *phys;
    if (size < storage->size)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = sg_phys_create(&prop, size, &phys);
    if (result != CUDA_SUCCESS)
        return result;
    result = sg_segment_map(phys, (1u << SG_MAX_DEVICES) - 1, &storage->segment);
    sg_phys_unref(phys);
    storage->address = storage->segment.address;
    return result;
}

CUresult sg_storage_new(int device, size_t size, struct sg_array_storage **storage) {
    struct sg_array_storage *made = calloc(1, sizeof *made);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made->size = size;
    CUresult result = size <= SG_SMALL_LIMIT
                          ? sg_small_take(device, size, &made->chunk, &made->address)
                          : take_pages(made, device);
    if (result != CUDA_SUCCESS) {
        free(made);
        return result;
    }
    if (sg_range_watch)
        sg_range_watch->array_begins(made->address, size);
    *storage = made;
    return CUDA_SUCCESS;
}

CUdeviceptr sg_storage_address(const struct sg_array_storage *storage) {
    return storage->address;
}

void sg_storage_free(struct sg_array_storage *storage, const struct sg_context *of) {
    if (!storage)
        return;
    if (sg_range_watch)
        sg_range_watch->array_ends(storage->address, !of->alive);
    if (storage->chunk)
        sg_small_give(storage->chunk, storage->address, storage->size);
    else
        sg_segment_unmap(&storage->segment);
    free(storage);
}
