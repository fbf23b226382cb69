/*
 * Virtual memory calls of the driver, each of which has no effect on failure. The driver may report
 * an earlier asynchronous failure through a call that did its work; such work is undone here.
 * Releasing does not fail: what the driver refuses to take back is counted in `meter`.
 */
#ifndef GM_MEMORY_VMM_CALLS_H
#define GM_MEMORY_VMM_CALLS_H

#include "memory/core/objects.h"

/* `bytes` and `alignment` fit the granularity. */
gpumem_status gm_vmm_reserve(gpumem_device *device, size_t bytes, size_t alignment,
                             CUdeviceptr hint, CUdeviceptr *address);
void gm_vmm_unreserve(gpumem_device *device, struct gm_meter *meter, CUdeviceptr address,
                      size_t bytes);

/* A chunk is also counted in `meter`. */
gpumem_status gm_vmm_create(gpumem_device *device, struct gm_meter *meter, size_t bytes,
                            const CUmemAllocationProp *prop, CUmemGenericAllocationHandle *handle);
/* Returns whether the driver took it back. */
int gm_vmm_release(gpumem_device *device, struct gm_meter *meter,
                   CUmemGenericAllocationHandle handle, size_t bytes);

/* [address, address + bytes) is reserved and nothing is mapped there. */
gpumem_status gm_vmm_map(gpumem_device *device, struct gm_meter *meter, CUdeviceptr address,
                         size_t bytes, CUmemGenericAllocationHandle handle);
/* One whole mapping. On failure it is still there. */
gpumem_status gm_vmm_unmap(gpumem_device *device, struct gm_meter *meter, CUdeviceptr address,
                           size_t bytes);
/* `count` whole mappings, with or without holes between them, in one call: on an H200 that unmaps
 * all of them or, when it is refused, none. */
gpumem_status gm_vmm_unmap_all(gpumem_device *device, struct gm_meter *meter, CUdeviceptr address,
                               size_t bytes, size_t count);

gpumem_status gm_vmm_access(gpumem_device *device, CUdeviceptr address, size_t bytes,
                            const CUmemAccessDesc *access, size_t count);

/* A new close-on-exec descriptor; the caller closes it. */
gpumem_status gm_vmm_export_fd(gpumem_device *device, CUmemGenericAllocationHandle handle, int *fd);
gpumem_status gm_vmm_export_fabric(gpumem_device *device, CUmemGenericAllocationHandle handle,
                                   CUmemFabricHandle *fabric);
/* A new handle, counted as a chunk; the descriptor stays the caller's. */
gpumem_status gm_vmm_import_fd(gpumem_device *device, struct gm_meter *meter, int fd,
                               CUmemGenericAllocationHandle *handle);
gpumem_status gm_vmm_import_fabric(gpumem_device *device, struct gm_meter *meter,
                                   const CUmemFabricHandle *fabric,
                                   CUmemGenericAllocationHandle *handle);
/* One more reference to the handle that is mapped at an address, counted as a chunk.
 * INVALID_ARGUMENT when there is none. */
gpumem_status gm_vmm_retain(gpumem_device *device, struct gm_meter *meter, CUdeviceptr address,
                            CUmemGenericAllocationHandle *handle);

gpumem_status gm_vmm_properties(const gpumem_device *device, CUmemGenericAllocationHandle handle,
                                CUmemAllocationProp *prop);
gpumem_status gm_vmm_granularity(gpumem_device *device, const CUmemAllocationProp *prop,
                                 gpumem_granularity_kind kind, size_t *bytes);

/* INVALID_ARGUMENT: a node that does not exist, or one with a location that has none; `what` begins
 * the message. */
gpumem_status gm_vmm_check_node(gpumem_location location, int numa_node, const char *what);

/* NOT_SUPPORTED: a type that is not made of physical handles. INVALID_ARGUMENT: an unknown type. */
gpumem_status gm_vmm_check_type(gpumem_allocation_type type, const char *what);

/* The options in the driver's terms. HOST_NUMA_CURRENT, which cuMemCreate refuses, becomes the node
 * that the calling thread runs on now. */
CUmemAllocationProp gm_vmm_prop(const gpumem_device *device, gpumem_location location,
                                int numa_node, gpumem_handle_type handle_type, int gpu_direct_rdma,
                                int compression);
CUmemAllocationHandleType gm_vmm_handle_type(gpumem_handle_type type);
CUmemAccess_flags gm_vmm_access_flags(gpumem_access access);
gpumem_access gm_vmm_access_of_flags(CUmemAccess_flags flags);

/* NOT_SUPPORTED, with the reason, if the device has no virtual memory. */
gpumem_status gm_vmm_supported(const gpumem_device *device);

#endif
