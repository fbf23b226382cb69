/* Properties of physical memory, and the memory mapped at an address. */
#include "base/cancel.h"
#include "base/options.h"
#include "memory/by_hand/by_hand.h"
#include "memory/core/current_context.h"
#include "memory/core/driver_error.h"
#include "memory/core/vmm_calls.h"
#include "memory/object/resource.h"

#include <stdlib.h>

/* -1 when there is none. */
static int ordinal_of(const gpumem_device *device, CUdevice handle) {
    for (int i = 0; i < device->library->device_count; i++) {
        CUdevice found = 0;
        if (device->cu->cuDeviceGet(&found, i) == CUDA_SUCCESS && found == handle)
            return i;
    }
    return -1;
}

static gpumem_status name_place(const gpumem_device *device, CUmemLocation place,
                                gpumem_physical_properties *out) {
    out->ordinal = -1;
    out->numa_node = -1;
    switch (place.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        out->location = GPUMEM_LOCATION_DEVICE;
        out->ordinal = ordinal_of(device, place.id);
        if (out->ordinal >= 0)
            return GPUMEM_OK;
        return gm_fail(GPUMEM_ERROR_NO_DEVICE,
                       "the memory is on device %d, which this library has not found", place.id);
    case CU_MEM_LOCATION_TYPE_HOST:
        out->location = GPUMEM_LOCATION_HOST;
        return GPUMEM_OK;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        out->location = GPUMEM_LOCATION_HOST_NUMA;
        out->numa_node = place.id;
        return GPUMEM_OK;
    default:
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "the driver reports a location of unknown type %d", (int)place.type);
    }
}

static gpumem_status name_type(CUmemAllocationType type, gpumem_physical_properties *out) {
    if (type != CU_MEM_ALLOCATION_TYPE_PINNED && type != CU_MEM_ALLOCATION_TYPE_MANAGED)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "the driver reports an unknown allocation type %d", (int)type);
    out->allocation_type = type == CU_MEM_ALLOCATION_TYPE_PINNED ? GPUMEM_ALLOCATION_PINNED
                                                                 : GPUMEM_ALLOCATION_MANAGED;
    return GPUMEM_OK;
}

static int has_type(const CUmemAllocationProp *prop, CUmemAllocationHandleType type) {
    return ((unsigned)prop->requestedHandleTypes & (unsigned)type) != 0;
}

gpumem_status gpumem_physical_get_properties(gpumem_physical *physical,
                                             gpumem_physical_properties *properties) {
    GM_UNCANCELLED;
    GM_CHECK(physical, "gpumem_physical_get_properties");
    const gpumem_device *device = physical->device;
    gpumem_physical_properties filled = {.size = sizeof filled, .bytes = physical->bytes};
    CUmemAllocationProp prop;
    gpumem_status status = gm_vmm_properties(device, physical->handle, &prop);
    if (status == GPUMEM_OK)
        status = name_type(prop.type, &filled);
    if (status == GPUMEM_OK)
        status = name_place(device, prop.location, &filled);
    if (status != GPUMEM_OK)
        return status;
    filled.granularity = physical->granularity;
    filled.exports_fd = has_type(&prop, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    filled.exports_fabric = has_type(&prop, CU_MEM_HANDLE_TYPE_FABRIC);
    filled.gpu_direct_rdma = prop.allocFlags.gpuDirectRDMACapable != 0;
    filled.compression = prop.allocFlags.compressionType != 0;
    return GM_RESULT_WRITE(gpumem_physical_properties, properties, &filled);
}

/* ---- By address ------------------------------------------------------------------------------ */

/* Handles do not reveal their size; cuMemGetAddressRange reports one mapping, that is, a whole
 * handle. An H200 knows a mapping only while some device has access. */
static gpumem_status find_size(gpumem_device *device, CUdeviceptr address, size_t *bytes) {
    struct gm_current current;
    gpumem_status status = gm_current_enter(&current, device);
    if (status != GPUMEM_OK)
        return status;
    CUdeviceptr base = 0;
    size_t size = 0;
    CUresult result = device->cu->cuMemGetAddressRange_v2(&base, &size, address);
    if (result == CUDA_SUCCESS)
        *bytes = size;
    else
        status = gm_cu_fail(device->cu, result, "cuMemGetAddressRange",
                            "cannot get the size of the memory at 0x%llx: pass it, or give access "
                            "to the mapping first",
                            (unsigned long long)address);
    gm_current_leave(&current);
    return status;
}

/* A size given by the caller is trusted only if the driver knows none. */
static gpumem_status check_size(gpumem_device *device, CUdeviceptr address, size_t bytes) {
    size_t size = 0;
    GM_REQUIRE(bytes <= SIZE_MAX / 2, "gpumem_physical_from_address: no memory has %zu bytes",
               bytes);
    if (find_size(device, address, &size) != GPUMEM_OK)
        return GPUMEM_OK;
    GM_REQUIRE(size == bytes,
               "gpumem_physical_from_address: the mapping at 0x%llx has %zu bytes, not %zu",
               (unsigned long long)address, size, bytes);
    return GPUMEM_OK;
}

static gpumem_status describe_retained(gpumem_device *device, CUdeviceptr address,
                                       gpumem_physical *made) {
    CUmemAllocationProp prop;
    gpumem_status status = gm_vmm_properties(device, made->handle, &prop);
    if (status == GPUMEM_OK)
        status = gm_vmm_granularity(device, &prop, GPUMEM_GRANULARITY_MINIMUM, &made->granularity);
    if (status == GPUMEM_OK)
        status = made->bytes ? check_size(device, address, made->bytes)
                             : find_size(device, address, &made->bytes);
    if (status != GPUMEM_OK)
        return status;
    made->exports_fd = has_type(&prop, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    made->exports_fabric = has_type(&prop, CU_MEM_HANDLE_TYPE_FABRIC);
    GM_REQUIRE(made->bytes % made->granularity == 0,
               "gpumem_physical_from_address: %zu bytes are not a multiple of the granularity %zu",
               made->bytes, made->granularity);
    return GPUMEM_OK;
}

static void tell(gpumem_resource *resource, void *data) {
    struct gm_mapped *mapped = resource->mapped;
    if (mapped && mapped->resource == resource && mapped->handle_taken)
        (void)mapped->handle_taken(resource->user, *(const CUdeviceptr *)data);
}

gpumem_status gpumem_physical_from_address(gpumem_device *device, CUdeviceptr address, size_t bytes,
                                           gpumem_physical **physical) {
    GM_UNCANCELLED;
    GM_CHECK(device, "gpumem_physical_from_address");
    GM_REQUIRE(physical, "gpumem_physical_from_address: physical is NULL");
    GM_REQUIRE(address, "gpumem_physical_from_address: address is 0");
    gpumem_status status = gm_vmm_supported(device);
    if (status != GPUMEM_OK)
        return status;
    gpumem_physical *made = gm_physical_new(device, bytes, 0, GM_RETAINED);
    if (!made)
        return GPUMEM_ERROR_OUT_OF_HOST_MEMORY;
    status = gm_vmm_retain(device, &device->meter, address, &made->handle);
    if (status == GPUMEM_OK) {
        status = describe_retained(device, address, made);
        if (status == GPUMEM_OK) {
            gm_resources_visit(device, tell, &address);
            gm_physical_hand_out(made, physical);
            return GPUMEM_OK;
        }
        gm_vmm_release(device, &device->meter, made->handle, 0);
    }
    free(made);
    return status;
}
