/* Virtual memory management: reservations, handles, and mappings of one in the other. */
#ifndef SG_MEMORY_VMM_H
#define SG_MEMORY_VMM_H

#include "softgpu/memory/memory.h"

struct sg_reservation {
    struct sg_tree_node node; /* key: address */
    size_t size;
};

/* A CUmemGenericAllocationHandle. It lives while the application holds references or a mapping uses
 * it, because cuMemRetainAllocationHandle answers the very handle that was mapped. */
struct sg_memory {
    uint64_t handle;
    unsigned refs;     /* the application's: 0 after the last cuMemRelease */
    unsigned mappings; /* ranges whose owner this is */
    unsigned number;   /* in the dump that is being written */
    struct sg_phys *phys;
};

/* A live handle with references, or NULL. */
struct sg_memory *sg_memory_from_handle(CUmemGenericAllocationHandle handle);
/* A new handle with one reference, taking over the caller's reference to `phys` (also on failure).
 */
CUresult sg_memory_new(struct sg_phys *phys, CUmemGenericAllocationHandle *handle);
/* Ends the handle when neither references nor mappings are left. */
void sg_memory_settle(struct sg_memory *memory);

/* The reservation that holds [address, address + size), or NULL. */
struct sg_reservation *sg_reservation_around(CUdeviceptr address, size_t size);
/* For walking in order of address; NULL starts. */
struct sg_reservation *sg_reservation_next(struct sg_reservation *reservation);

/* Are all of them multiples of SG_PAGE, and is size not 0? */
bool sg_page_aligned(CUdeviceptr address, size_t size);

/* The first mapping that shares a byte with [address, address + size), or NULL. */
struct sg_range *sg_mapping_first(CUdeviceptr address, size_t size);
/* The next mapping, if it begins before `end`. */
struct sg_range *sg_mapping_next(struct sg_range *range, CUdeviceptr end);

/* Gives the CPU `rights` (not 0) to a mapping of host memory. False when out of memory: nothing has
 * changed. */
bool sg_mapping_cpu_give(struct sg_range *range, unsigned rights);
/* Takes the CPU's mapping away, once sg_mappings_leave_cpu has been through. */
void sg_mapping_cpu_take(struct sg_range *range);
/* Makes running work let go of the CPU's mappings in [address, address + size). True when that took
 * waiting with the lock released: what the caller knew may have changed, and it begins anew. */
bool sg_mappings_leave_cpu(CUdeviceptr address, size_t size);

/* Validates what cuMemCreate and cuMemGetAllocationGranularity are asked for. */
CUresult sg_vmm_check_prop(const CUmemAllocationProp *prop);
/* Is there a NUMA node with this number? */
bool sg_numa_node_exists(int node);

#endif
