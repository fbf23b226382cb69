/* Handles of physical memory. */
#include "softgpu/core/calls.h"
#include "softgpu/core/handle.h"
#include "softgpu/device/device.h"
#include "softgpu/device/numa.h"
#include "softgpu/memory/vmm.h"
#include "softgpu/process/fabric.h"

#include <stdlib.h>
#include <string.h>

struct sg_memory *sg_memory_from_handle(CUmemGenericAllocationHandle handle) {
    return sg_handle_get(SG_KIND_MEMORY, handle);
}

CUresult sg_memory_new(struct sg_phys *phys, CUmemGenericAllocationHandle *handle) {
    struct sg_memory *memory = malloc(sizeof *memory);
    uint64_t value = memory ? sg_handle_new(SG_KIND_MEMORY, memory) : 0;
    if (!value) {
        free(memory);
        sg_phys_unref(phys);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *memory = (struct sg_memory){.handle = value, .refs = 1, .phys = phys};
    *handle = value;
    return CUDA_SUCCESS;
}

void sg_memory_settle(struct sg_memory *memory) {
    if (memory->refs || memory->mappings)
        return;
    sg_handle_drop(SG_KIND_MEMORY, memory->handle);
    sg_phys_unref(memory->phys);
    free(memory);
}

/* As on H200: location HOST accepts no handle type and ignores its number, and HOST_NUMA_CURRENT is
 * not for cuMemCreate. */
static CUresult check_location(const CUmemAllocationProp *prop) {
    const unsigned shared = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR | CU_MEM_HANDLE_TYPE_FABRIC;
    switch (prop->location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        return CUDA_SUCCESS; /* the device exists */
    case CU_MEM_LOCATION_TYPE_HOST:
        return ((unsigned)prop->requestedHandleTypes & shared) == 0 ? CUDA_SUCCESS
                                                                    : CUDA_ERROR_INVALID_VALUE;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        return sg_numa_node_exists(prop->location.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* As on H200: handle types above FABRIC, all usage flags except that of tile pools, and the last
 * reserved byte are ignored. Tile pools cannot be shared. */
static CUresult check_prop(const CUmemAllocationProp *prop) {
    static const unsigned char zeros[sizeof prop->allocFlags.reserved - 1];
    const unsigned windows = CU_MEM_HANDLE_TYPE_WIN32 | CU_MEM_HANDLE_TYPE_WIN32_KMT;
    if (!prop)
        return CUDA_ERROR_INVALID_VALUE;
    /* H200 checks the device before all of these. */
    if (prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE && !sg_device(prop->location.id))
        return CUDA_ERROR_INVALID_DEVICE;
    if (prop->type != CU_MEM_ALLOCATION_TYPE_PINNED || prop->win32HandleMetaData ||
        ((unsigned)prop->requestedHandleTypes & windows) != 0 ||
        prop->allocFlags.compressionType > CU_MEM_ALLOCATION_COMP_GENERIC ||
        memcmp(prop->allocFlags.reserved, zeros, sizeof zeros) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if ((prop->allocFlags.usage & CU_MEM_CREATE_USAGE_TILE_POOL) && prop->requestedHandleTypes != 0)
        return CUDA_ERROR_INVALID_VALUE;
    return check_location(prop);
}

CUresult sg_cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                        const CUmemAllocationProp *prop, unsigned long long flags) {
    if (!handle || !sg_page_aligned(0, size) || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = check_prop(prop);
    if (result != CUDA_SUCCESS)
        return result;
    /* As on H200 without an IMEX channel. */
    if ((prop->requestedHandleTypes & CU_MEM_HANDLE_TYPE_FABRIC) != 0 && !sg_fabric_permitted())
        return CUDA_ERROR_NOT_PERMITTED;
    if ((prop->requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0 &&
        !sg_device(0)->attributes[CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED])
        return CUDA_ERROR_NOT_SUPPORTED;
    struct sg_phys *phys;
    result = sg_phys_create(prop, size, &phys);
    return result == CUDA_SUCCESS ? sg_memory_new(phys, handle) : result;
}

CUresult sg_cuMemRelease(CUmemGenericAllocationHandle handle) {
    struct sg_memory *memory = sg_memory_from_handle(handle);
    if (!memory || memory->refs == 0)
        return CUDA_ERROR_INVALID_VALUE;
    memory->refs--;
    sg_memory_settle(memory);
    return CUDA_SUCCESS;
}

CUresult sg_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr) {
    struct sg_range *range = sg_range_find((CUdeviceptr)(uintptr_t)addr);
    if (!handle || !range || range->ops != &sg_mapping_ops)
        return CUDA_ERROR_INVALID_VALUE;
    struct sg_memory *memory = range->owner;
    memory->refs++;
    *handle = memory->handle;
    return CUDA_SUCCESS;
}

/* The answer is the same for all properties, valid or not, as on H200. */
CUresult sg_cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
                                          CUmemAllocationGranularity_flags option) {
    if (!granularity || !prop ||
        (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM &&
         option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED))
        return CUDA_ERROR_INVALID_VALUE;
    *granularity = SG_PAGE;
    return CUDA_SUCCESS;
}

CUresult sg_cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
                                                   CUmemGenericAllocationHandle handle) {
    struct sg_memory *memory = sg_memory_from_handle(handle);
    if (!prop || !memory || memory->phys->ops)
        return CUDA_ERROR_INVALID_VALUE;
    *prop = memory->phys->prop;
    prop->allocFlags.usage = 0; /* not reported on H200 */
    if (memory->imported)
        prop->requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
    /* H200 reports a node for host memory that was requested without one: node 0. */
    if (prop->location.type == CU_MEM_LOCATION_TYPE_HOST)
        prop->location = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = 0};
    return CUDA_SUCCESS;
}
