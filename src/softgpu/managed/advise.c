/* cuMemAdvise: what is told of pages. Kept, and told again; nothing migrates here. */
#include "softgpu/core/calls.h"
#include "softgpu/managed/location.h"
#include "softgpu/managed/managed.h"

struct advice {
    CUmem_advise what;
    CUmemLocation location;
};

static uint32_t bit_of(const CUmemLocation *location) {
    return location->type == CU_MEM_LOCATION_TYPE_DEVICE ? 1u << location->id : SG_ACCESSED_BY_CPU;
}

static void apply(struct sg_page_facts *facts, const void *user) {
    const struct advice *advice = user;
    switch (advice->what) {
    case CU_MEM_ADVISE_SET_READ_MOSTLY:
    case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
        facts->read_mostly = advice->what == CU_MEM_ADVISE_SET_READ_MOSTLY;
        break;
    case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
        facts->preferred = advice->location;
        break;
    case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
        facts->preferred = (CUmemLocation){0};
        break;
    case CU_MEM_ADVISE_SET_ACCESSED_BY:
        facts->accessed_by |= bit_of(&advice->location);
        break;
    case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
        facts->accessed_by &= ~bit_of(&advice->location);
        break;
    }
}

static bool known(CUmem_advise what) {
    return what >= CU_MEM_ADVISE_SET_READ_MOSTLY && what <= CU_MEM_ADVISE_UNSET_ACCESSED_BY;
}

/* The location means something only to these. */
static bool looks_at_location(CUmem_advise what) {
    return what == CU_MEM_ADVISE_SET_PREFERRED_LOCATION || what == CU_MEM_ADVISE_SET_ACCESSED_BY ||
           what == CU_MEM_ADVISE_UNSET_ACCESSED_BY;
}

static CUresult advise(CUdeviceptr address, size_t size, const struct advice *advice) {
    struct sg_pages *pages = sg_managed_pages(address, size);
    if (!pages)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sg_pages_promise(pages))
        return CUDA_ERROR_OUT_OF_MEMORY;
    sg_pages_edit(pages, address, size, apply, advice);
    return CUDA_SUCCESS;
}

CUresult sg_cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device) {
    struct sg_context *context;
    struct advice given = {.what = advice};
    CUresult result = sg_context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!known(advice))
        return CUDA_ERROR_INVALID_VALUE;
    if (looks_at_location(advice))
        result = sg_location_of_device(device, &given.location);
    return result == CUDA_SUCCESS ? advise(devPtr, count, &given) : result;
}

CUresult sg_cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise advice,
                           CUmemLocation location) {
    struct sg_context *context;
    struct advice given = {.what = advice, .location = location};
    if (!sg_location_type_known(&location))
        return CUDA_ERROR_INVALID_VALUE;
    if (!atomic_load(&sg_initialized))
        return CUDA_ERROR_NOT_INITIALIZED;
    CUresult result = sg_context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!known(advice))
        return CUDA_ERROR_INVALID_VALUE;
    if (looks_at_location(advice) && sg_location_settle(&given.location) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    return advise(devPtr, count, &given);
}
