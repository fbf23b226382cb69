#include "memory/core/vmm_calls.h"

#include "base/descriptor.h"
#include "memory/core/driver_error.h"
#include "memory/host/numa.h"
#include "memory/host/pinning.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

gpumem_status gm_vmm_supported(const gpumem_device *device) {
    if (device->has_virtual && device->granularity)
        return GPUMEM_OK;
    return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                   "device %d has no virtual memory management (attribute "
                   "VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED is %d)",
                   device->ordinal, device->has_virtual);
}

gpumem_status gm_vmm_reserve(gpumem_device *device, size_t bytes, size_t alignment,
                             CUdeviceptr hint, CUdeviceptr *address) {
    const gpumem_driver_api *cu = device->cu;
    CUdeviceptr made = 0;
    CUresult result = cu->cuMemAddressReserve(&made, bytes, alignment, hint, 0);
    if (result == CUDA_SUCCESS) {
        gm_inventory_add_reservation(&device->inventory, made, bytes);
        *address = made;
        return GPUMEM_OK;
    }
    gpumem_status status =
        gm_cu_fail(cu, result, "cuMemAddressReserve",
                   "cannot reserve %zu bytes of addresses aligned to %zu%s", bytes, alignment,
                   result == CUDA_ERROR_OUT_OF_MEMORY
                       ? " (addresses are short, not memory: ask for less capacity, or free "
                         "buffers and reservations)"
                       : "");
    if (made)
        gm_vmm_unreserve(device, &device->meter, made, bytes);
    return status;
}

void gm_vmm_unreserve(gpumem_device *device, struct gm_meter *meter, CUdeviceptr address,
                      size_t bytes) {
    gm_inventory_drop_reservation(&device->inventory, address);
    /* Not tried twice: another thread may hold the same range by then. */
    if (device->cu->cuMemAddressFree(address, bytes) != CUDA_SUCCESS) {
        gm_inventory_keep_reservation(&device->inventory, address, bytes);
        gm_meter_quarantine(meter, bytes);
        gm_meter_add(meter, GM_RESERVED, bytes);
    }
}

/* After a call that failed but may have created it nevertheless; not counted as a chunk. */
static void discard_handle(gpumem_device *device, struct gm_meter *meter,
                           CUmemGenericAllocationHandle handle, size_t bytes) {
    if (handle && device->cu->cuMemRelease(handle) != CUDA_SUCCESS)
        gm_meter_quarantine_memory(meter, bytes);
}

static const char *fabric_hint(CUresult result) {
    return result == CUDA_ERROR_NOT_SUPPORTED || result == CUDA_ERROR_NOT_PERMITTED
               ? "; fabric handles need an IMEX channel"
               : "";
}

/* Two refusals of an H200 that do not mean what their code says: memory of location HOST has no
 * handle types (INVALID_VALUE), and fabric handles need a channel (NOT_PERMITTED). */
static gpumem_status explain_refusal(CUresult result, const CUmemAllocationProp *prop,
                                     const char **hint) {
    *hint = "";
    if (result == CUDA_ERROR_INVALID_VALUE && prop->location.type == CU_MEM_LOCATION_TYPE_HOST &&
        prop->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE) {
        *hint = "; such memory has no shareable handles: ask for GPUMEM_HANDLE_NONE, or for "
                "GPUMEM_LOCATION_HOST_NUMA";
        return GPUMEM_ERROR_NOT_SUPPORTED;
    }
    if (prop->requestedHandleTypes == CU_MEM_HANDLE_TYPE_FABRIC)
        *hint = fabric_hint(result);
    return gm_status_of(result);
}

static gpumem_status create(gpumem_device *device, struct gm_meter *meter, size_t bytes,
                            const CUmemAllocationProp *prop, CUmemGenericAllocationHandle *handle) {
    const gpumem_driver_api *cu = device->cu;
    CUmemGenericAllocationHandle made = 0;
    CUresult result = cu->cuMemCreate(&made, bytes, prop, 0);
    if (result == CUDA_SUCCESS) {
        gm_meter_add(meter, GM_CHUNKS, 1);
        gm_inventory_add_physical(&device->inventory,
                                  &(struct gm_held){.key = made,
                                                    .bytes = bytes,
                                                    .owner = meter,
                                                    .location = prop->location,
                                                    .handle_types = prop->requestedHandleTypes});
        *handle = made;
        return GPUMEM_OK;
    }
    char place[48] = "device memory";
    if (prop->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA)
        snprintf(place, sizeof place, "memory of NUMA node %d", prop->location.id);
    else if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        snprintf(place, sizeof place, "host memory");
    const char *hint;
    gpumem_status status = explain_refusal(result, prop, &hint);
    status =
        gm_cu_fail_as(status, cu, result, "cuMemCreate", "cannot get %zu bytes of %s (device %d)%s",
                      bytes, place, device->ordinal, hint);
    discard_handle(device, meter, made, bytes);
    return status;
}

static gpumem_status create_there(gpumem_device *device, struct gm_meter *meter, size_t bytes,
                                  const CUmemAllocationProp *prop,
                                  CUmemGenericAllocationHandle *handle) {
    if (prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        return create(device, meter, bytes, prop, handle);
    gpumem_status status = gm_pinning_begin(bytes);
    if (status != GPUMEM_OK)
        return status;
    status = create(device, meter, bytes, prop, handle);
    gm_pinning_end(bytes);
    return status;
}

gpumem_status gm_vmm_create(gpumem_device *device, struct gm_meter *meter, size_t bytes,
                            const CUmemAllocationProp *prop, CUmemGenericAllocationHandle *handle) {
    struct gm_bound *bound = atomic_load_explicit(&meter->bound, memory_order_relaxed);
    gpumem_status status = gm_bound_take(bound, bytes);
    if (status != GPUMEM_OK)
        return status;
    status = create_there(device, meter, bytes, prop, handle);
    if (status != GPUMEM_OK)
        gm_bound_give(bound, bytes);
    return status;
}

/* Memory that a resource has twice, as a mirrored ring does, counts once. */
static int is_last(const struct gm_held *held, const struct gm_meter *meter) {
    return held->owner != meter || held->own <= 1;
}

int gm_vmm_release(gpumem_device *device, struct gm_meter *meter,
                   CUmemGenericAllocationHandle handle, size_t bytes) {
    gm_meter_subtract(meter, GM_CHUNKS, 1);
    struct gm_held held = gm_inventory_drop_physical(&device->inventory, handle, meter);
    /* Not tried twice: another thread may hold a new handle of the same value by then. */
    int taken = device->cu->cuMemRelease(handle) == CUDA_SUCCESS;
    if (!taken) {
        gm_inventory_keep_physical(&device->inventory, &held);
        gm_meter_quarantine_memory(meter, bytes); /* and stays within the bound */
    } else if (is_last(&held, meter)) {
        gm_bound_give(atomic_load_explicit(&meter->bound, memory_order_relaxed), bytes);
    }
    return taken;
}

gpumem_status gm_vmm_map(gpumem_device *device, struct gm_meter *meter, CUdeviceptr address,
                         size_t bytes, CUmemGenericAllocationHandle handle) {
    const gpumem_driver_api *cu = device->cu;
    CUresult result = cu->cuMemMap(address, bytes, 0, handle, 0);
    if (result == CUDA_SUCCESS) {
        gm_meter_add(meter, GM_MAPPINGS, 1);
        gm_inventory_add_mapping(&device->inventory, address, bytes, handle, meter);
        return GPUMEM_OK;
    }
    gpumem_status status = gm_cu_fail(cu, result, "cuMemMap", "cannot map %zu bytes at 0x%llx",
                                      bytes, (unsigned long long)address);
    /* If it did map; where nothing is mapped, an H200 reports success and does nothing. */
    (void)cu->cuMemUnmap(address, bytes);
    return status;
}

gpumem_status gm_vmm_unmap(gpumem_device *device, struct gm_meter *meter, CUdeviceptr address,
                           size_t bytes) {
    return gm_vmm_unmap_all(device, meter, address, bytes, 1);
}

gpumem_status gm_vmm_unmap_all(gpumem_device *device, struct gm_meter *meter, CUdeviceptr address,
                               size_t bytes, size_t count) {
    const gpumem_driver_api *cu = device->cu;
    CUresult result = cu->cuMemUnmap(address, bytes);
    /* Again: it may or may not have been done, and repeating it is harmless. The range is reserved
     * by us, so nobody else can have mapped there. */
    if (result != CUDA_SUCCESS && cu->cuMemUnmap(address, bytes) == CUDA_SUCCESS)
        result = CUDA_SUCCESS;
    if (result == CUDA_SUCCESS) {
        gm_meter_subtract(meter, GM_MAPPINGS, count);
        gm_inventory_drop_mappings(&device->inventory, address, bytes);
        return GPUMEM_OK;
    }
    return gm_cu_fail(cu, result, "cuMemUnmap", "cannot unmap %zu bytes at 0x%llx", bytes,
                      (unsigned long long)address);
}

static int names_cpu(const CUmemAccessDesc *access, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
            return 1;
    return 0;
}

gpumem_status gm_vmm_access(gpumem_device *device, CUdeviceptr address, size_t bytes,
                            const CUmemAccessDesc *access, size_t count) {
    if (count == 0)
        return GPUMEM_OK;
    CUresult result = device->cu->cuMemSetAccess(address, bytes, access, count);
    if (result == CUDA_SUCCESS)
        return GPUMEM_OK;
    const char *hint = result == CUDA_ERROR_NOT_SUPPORTED && names_cpu(access, count)
                           ? "; the CPU can access only host memory"
                           : "";
    return gm_cu_fail(device->cu, result, "cuMemSetAccess",
                      "cannot give access to %zu bytes at 0x%llx%s", bytes,
                      (unsigned long long)address, hint);
}

gpumem_status gm_vmm_export_fd(gpumem_device *device, CUmemGenericAllocationHandle handle,
                               int *fd) {
    const gpumem_driver_api *cu = device->cu;
    int made = -1;
    CUresult result = cu->cuMemExportToShareableHandle(&made, handle,
                                                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    if (result != CUDA_SUCCESS) {
        gpumem_status status =
            gm_cu_fail(cu, result, "cuMemExportToShareableHandle",
                       "device %d: no file descriptor (a descriptor limit has the same effect)",
                       device->ordinal);
        if (made >= 0)
            close(made);
        return status;
    }
    made = gm_fd_keep(made);
    if (made < 0)
        return gm_fail_system(GPUMEM_ERROR_SYSTEM, errno, "fcntl", "an exported descriptor");
    *fd = made;
    return GPUMEM_OK;
}

gpumem_status gm_vmm_export_fabric(gpumem_device *device, CUmemGenericAllocationHandle handle,
                                   CUmemFabricHandle *fabric) {
    const gpumem_driver_api *cu = device->cu;
    CUmemFabricHandle made;
    CUresult result = cu->cuMemExportToShareableHandle(&made, handle, CU_MEM_HANDLE_TYPE_FABRIC, 0);
    if (result != CUDA_SUCCESS)
        return gm_cu_fail(cu, result, "cuMemExportToShareableHandle",
                          "device %d: no fabric handle%s", device->ordinal, fabric_hint(result));
    *fabric = made;
    return GPUMEM_OK;
}

/* A handle that a driver call has returned, or not. `held`: what is known of it. */
static int counted(gpumem_device *device, struct gm_meter *meter, CUresult result,
                   CUmemGenericAllocationHandle made, const struct gm_held *held,
                   CUmemGenericAllocationHandle *handle) {
    if (result != CUDA_SUCCESS) {
        discard_handle(device, meter, made, 0);
        return 0;
    }
    gm_meter_add(meter, GM_CHUNKS, 1);
    struct gm_held line = *held;
    line.key = made;
    line.owner = meter;
    gm_inventory_add_physical(&device->inventory, &line);
    *handle = made;
    return 1;
}

gpumem_status gm_vmm_import_fd(gpumem_device *device, struct gm_meter *meter, int fd,
                               CUmemGenericAllocationHandle *handle) {
    const gpumem_driver_api *cu = device->cu;
    CUmemGenericAllocationHandle made = 0;
    CUresult result = cu->cuMemImportFromShareableHandle(&made, (void *)(intptr_t)fd,
                                                         CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    if (counted(device, meter, result, made, &(struct gm_held){.imported = 1}, handle))
        return GPUMEM_OK;
    return gm_cu_fail(cu, result, "cuMemImportFromShareableHandle",
                      "device %d does not accept descriptor %d as memory", device->ordinal, fd);
}

gpumem_status gm_vmm_import_fabric(gpumem_device *device, struct gm_meter *meter,
                                   const CUmemFabricHandle *fabric,
                                   CUmemGenericAllocationHandle *handle) {
    const gpumem_driver_api *cu = device->cu;
    CUmemGenericAllocationHandle made = 0;
    CUmemFabricHandle copy = *fabric; /* the driver's parameter is not const */
    CUresult result = cu->cuMemImportFromShareableHandle(&made, &copy, CU_MEM_HANDLE_TYPE_FABRIC);
    if (counted(device, meter, result, made, &(struct gm_held){.imported = 1}, handle))
        return GPUMEM_OK;
    return gm_cu_fail(cu, result, "cuMemImportFromShareableHandle",
                      "device %d does not accept the fabric handle as memory%s", device->ordinal,
                      fabric_hint(result));
}

gpumem_status gm_vmm_retain(gpumem_device *device, struct gm_meter *meter, CUdeviceptr address,
                            CUmemGenericAllocationHandle *handle) {
    const gpumem_driver_api *cu = device->cu;
    CUmemGenericAllocationHandle made = 0;
    CUresult result = cu->cuMemRetainAllocationHandle(&made, (void *)(uintptr_t)address);
    if (counted(device, meter, result, made, &(struct gm_held){.retained = 1}, handle))
        return GPUMEM_OK;
    return gm_cu_fail_as(
        result == CUDA_ERROR_INVALID_VALUE ? GPUMEM_ERROR_INVALID_ARGUMENT : gm_status_of(result),
        cu, result, "cuMemRetainAllocationHandle", "no memory of cuMemCreate is mapped at 0x%llx",
        (unsigned long long)address);
}

gpumem_status gm_vmm_properties(const gpumem_device *device, CUmemGenericAllocationHandle handle,
                                CUmemAllocationProp *prop) {
    CUmemAllocationProp found = {0};
    CUresult result = device->cu->cuMemGetAllocationPropertiesFromHandle(&found, handle);
    if (result != CUDA_SUCCESS)
        return gm_cu_fail(device->cu, result, "cuMemGetAllocationPropertiesFromHandle",
                          "cannot get the properties of the physical memory");
    *prop = found;
    return GPUMEM_OK;
}

gpumem_status gm_vmm_granularity(gpumem_device *device, const CUmemAllocationProp *prop,
                                 gpumem_granularity_kind kind, size_t *bytes) {
    size_t found = 0;
    CUresult result = device->cu->cuMemGetAllocationGranularity(
        &found, prop,
        kind == GPUMEM_GRANULARITY_MINIMUM ? CU_MEM_ALLOC_GRANULARITY_MINIMUM
                                           : CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
    if (result != CUDA_SUCCESS)
        return gm_cu_fail(device->cu, result, "cuMemGetAllocationGranularity",
                          "cannot get the granularity of such memory (device %d)", device->ordinal);
    if (found == 0 || (found & (found - 1)))
        return gm_fail(GPUMEM_ERROR_DRIVER, "the driver reports a granularity of %zu bytes", found);
    *bytes = found;
    return GPUMEM_OK;
}

CUmemAllocationHandleType gm_vmm_handle_type(gpumem_handle_type type) {
    switch (type) {
    case GPUMEM_HANDLE_POSIX_FD:
        return CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    case GPUMEM_HANDLE_FABRIC:
        return CU_MEM_HANDLE_TYPE_FABRIC;
    default:
        return CU_MEM_HANDLE_TYPE_NONE;
    }
}

CUmemAccess_flags gm_vmm_access_flags(gpumem_access access) {
    switch (access) {
    case GPUMEM_ACCESS_READ_WRITE:
        return CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    case GPUMEM_ACCESS_READ:
        return CU_MEM_ACCESS_FLAGS_PROT_READ;
    default:
        return CU_MEM_ACCESS_FLAGS_PROT_NONE;
    }
}

gpumem_access gm_vmm_access_of_flags(CUmemAccess_flags flags) {
    switch (flags) {
    case CU_MEM_ACCESS_FLAGS_PROT_READWRITE:
        return GPUMEM_ACCESS_READ_WRITE;
    case CU_MEM_ACCESS_FLAGS_PROT_READ:
        return GPUMEM_ACCESS_READ;
    default:
        return GPUMEM_ACCESS_NONE;
    }
}

gpumem_status gm_vmm_check_type(gpumem_allocation_type type, const char *what) {
    if (type == GPUMEM_ALLOCATION_MANAGED)
        return gm_fail(
            GPUMEM_ERROR_NOT_SUPPORTED,
            "%s: cuMemCreate cannot create managed memory; use gpumem_managed_resource_create",
            what);
    GM_REQUIRE(type == GPUMEM_ALLOCATION_PINNED, "%s: unknown allocation type %d", what, (int)type);
    return GPUMEM_OK;
}

gpumem_status gm_vmm_check_node(gpumem_location location, int numa_node, const char *what) {
    if (location == GPUMEM_LOCATION_HOST_NUMA)
        return gm_numa_check(numa_node, what);
    GM_REQUIRE(!numa_node, "%s: numa_node is %d, but the location is not HOST_NUMA", what,
               numa_node);
    return GPUMEM_OK;
}

CUmemAllocationProp gm_vmm_prop(const gpumem_device *device, gpumem_location location,
                                int numa_node, gpumem_handle_type handle_type, int gpu_direct_rdma,
                                int compression) {
    static const CUmemLocationType types[] = {
        [GPUMEM_LOCATION_DEVICE] = CU_MEM_LOCATION_TYPE_DEVICE,
        [GPUMEM_LOCATION_HOST] = CU_MEM_LOCATION_TYPE_HOST,
        [GPUMEM_LOCATION_HOST_NUMA] = CU_MEM_LOCATION_TYPE_HOST_NUMA,
        [GPUMEM_LOCATION_HOST_NUMA_CURRENT] = CU_MEM_LOCATION_TYPE_HOST_NUMA,
    };
    CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = gm_vmm_handle_type(handle_type),
        .location = {.type = types[location], .id = 0},
    };
    if (location == GPUMEM_LOCATION_DEVICE)
        prop.location.id = device->handle;
    else if (location == GPUMEM_LOCATION_HOST_NUMA)
        prop.location.id = numa_node;
    else if (location == GPUMEM_LOCATION_HOST_NUMA_CURRENT)
        prop.location.id = gm_numa_current();
    prop.allocFlags.gpuDirectRDMACapable = gpu_direct_rdma != 0;
    prop.allocFlags.compressionType = compression ? CU_MEM_ALLOCATION_COMP_GENERIC : 0;
    return prop;
}
