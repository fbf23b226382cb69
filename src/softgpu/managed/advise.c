/* cuMemAdvise: advice about pages. It is stored and reported; nothing migrates here. */
#include "softgpu/core/calls.h"
#include "softgpu/device/numa.h"
#include "softgpu/managed/managed.h"
#include "softgpu/stream/capture.h"

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
        /* A node of the host is accepted and changes nothing: recorded on H200. */
        if (advice->location.type == CU_MEM_LOCATION_TYPE_DEVICE ||
            advice->location.type == CU_MEM_LOCATION_TYPE_HOST)
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

/* Only these use the location. */
static bool looks_at_location(CUmem_advise what) {
    return what == CU_MEM_ADVISE_SET_PREFERRED_LOCATION || what == CU_MEM_ADVISE_SET_ACCESSED_BY ||
           what == CU_MEM_ADVISE_UNSET_ACCESSED_BY;
}

/* In the order in which H200 checks them. */
static CUresult advise(CUdeviceptr address, size_t size, const struct advice *advice) {
    struct sg_pages *pages = sg_managed_pages(address, size);
    if (!pages)
        return CUDA_ERROR_INVALID_VALUE;
    if (pages->opened_to)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!sg_pages_promise(pages))
        return CUDA_ERROR_OUT_OF_MEMORY;
    sg_pages_edit(pages, address, size, apply, advice);
    return CUDA_SUCCESS;
}

/* Only a whole device or the CPU can be the accessor, not a part of it. */
static bool has_tables(CUmem_advise what, const CUmemLocation *location) {
    return what == CU_MEM_ADVISE_SET_PREFERRED_LOCATION ||
           location->type == CU_MEM_LOCATION_TYPE_DEVICE ||
           location->type == CU_MEM_LOCATION_TYPE_HOST;
}

static CUresult begin(void) {
    struct sg_context *context;
    CUresult result = sg_context_current(&context);
    return result == CUDA_SUCCESS ? sg_capture_unsafe() : result;
}

CUresult sg_cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device) {
    struct advice given = {.what = advice};
    CUresult result = begin();
    if (result != CUDA_SUCCESS)
        return result;
    if (!known(advice) || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (looks_at_location(advice))
        result = sg_location_of_device(device, &given.location);
    return result == CUDA_SUCCESS ? advise(devPtr, count, &given) : result;
}

CUresult sg_cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise advice,
                           CUmemLocation location) {
    struct advice given = {.what = advice, .location = location};
    if (!sg_location_type_known(&location))
        return CUDA_ERROR_INVALID_VALUE;
    if (!atomic_load(&sg_initialized))
        return CUDA_ERROR_NOT_INITIALIZED;
    CUresult result = begin();
    if (result != CUDA_SUCCESS)
        return result;
    if (!known(advice) || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (location.type == CU_MEM_LOCATION_TYPE_HOST)
        given.location.id = CU_DEVICE_CPU;
    if (looks_at_location(advice) &&
        (sg_location_check(&location) != CUDA_SUCCESS || !has_tables(advice, &location)))
        return CUDA_ERROR_INVALID_VALUE;
    return advise(devPtr, count, &given);
}
