/* Virtual memory management: reservations, handles, and mappings of handles in reservations. */
#ifndef SG_MEMORY_VMM_H
#define SG_MEMORY_VMM_H

#include "softgpu/address/memory.h"
#include "softgpu/address/range.h"

struct sg_reservation {
    struct sg_tree_node node; /* key: address */
    size_t size;
    struct sg_origin origin;
};

/* A CUmemGenericAllocationHandle. It lives while the application holds references or a mapping uses
 * it, because cuMemRetainAllocationHandle returns the very handle that was mapped. */
struct sg_memory {
    uint64_t handle;
    unsigned refs;     /* the application's: 0 after the last cuMemRelease */
    unsigned mappings; /* ranges that this owns */
    unsigned number;   /* in the dump being written */
    bool imported;     /* even if from this process: the phys is shared with the exporter */
    struct sg_phys *phys;
};

/* For ranges made by cuMemMap, one per mapping of a handle. */
extern const struct sg_range_ops sg_mapping_ops;

/* NULL if there is no such handle. A released handle that is still mapped counts, as on H200. */
struct sg_memory *sg_memory_from_handle(CUmemGenericAllocationHandle handle);
/* A handle with one reference, taking over the caller's reference to `phys` (also on failure). */
CUresult sg_memory_new(struct sg_phys *phys, CUmemGenericAllocationHandle *handle);
/* Frees the handle when neither references nor mappings are left. */
void sg_memory_settle(struct sg_memory *memory);

/* The reservation that contains an address, or NULL. */
struct sg_reservation *sg_reservation_at(CUdeviceptr address);
/* Whether all of [address, address + size) is reserved, by one or more adjacent reservations. */
bool sg_reserved(CUdeviceptr address, size_t size);
/* Iterates in order of address; NULL starts. */
struct sg_reservation *sg_reservation_next(struct sg_reservation *reservation);

/* Whether all of them are multiples of SG_PAGE and size is not 0. */
bool sg_page_aligned(CUdeviceptr address, size_t size);

/* The first range (in a reservation: mapping) that shares a byte with [address, address + size), or
 * NULL. */
struct sg_range *sg_mapping_first(CUdeviceptr address, size_t size);
/* The next mapping, if it begins before `end`. */
struct sg_range *sg_mapping_next(struct sg_range *range, CUdeviceptr end);

/* Gives the CPU `rights` (not 0) to a mapping of host memory. False when out of memory; nothing has
 * changed then. */
bool sg_mapping_cpu_give(struct sg_range *range, unsigned rights);
/* Removes the CPU's mapping, after sg_mappings_leave_cpu. */
void sg_mapping_cpu_take(struct sg_range *range);
/* Makes running work stop using the CPU's mappings in [address, address + size). True when it had
 * to wait with the lock released: what the caller knew may have changed, and it must start over. */
bool sg_mappings_leave_cpu(CUdeviceptr address, size_t size);

#endif
