/* Virtual memory management: reservations, handles, and mappings of one in the other. */
#ifndef SG_MEMORY_VMM_H
#define SG_MEMORY_VMM_H

#include "softgpu/address/memory.h"
#include "softgpu/address/range.h"

struct sg_reservation {
    struct sg_tree_node node; /* key: address */
    size_t size;
    uint32_t site; /* who made it: core/site.h */
};

/* A CUmemGenericAllocationHandle. It lives while the application holds references or a mapping uses
 * it, because cuMemRetainAllocationHandle answers the very handle that was mapped. */
struct sg_memory {
    uint64_t handle;
    unsigned refs;     /* the application's: 0 after the last cuMemRelease */
    unsigned mappings; /* ranges whose owner this is */
    unsigned number;   /* in the dump that is being written */
    bool imported; /* also when it came from this process: the phys is shared with the exporter */
    struct sg_phys *phys;
};

/* Of what cuMemMap makes: a range for each mapping of a handle. */
extern const struct sg_range_ops sg_mapping_ops;

/* NULL when there is no such handle. One that is released but mapped still counts, as on H200. */
struct sg_memory *sg_memory_from_handle(CUmemGenericAllocationHandle handle);
/* A new handle with one reference, taking over the caller's reference to `phys` (also on failure).
 */
CUresult sg_memory_new(struct sg_phys *phys, CUmemGenericAllocationHandle *handle);
/* Ends the handle when neither references nor mappings are left. */
void sg_memory_settle(struct sg_memory *memory);

/* The reservation that holds an address, or NULL. */
struct sg_reservation *sg_reservation_at(CUdeviceptr address);
/* Is all of [address, address + size) reserved? Reservations may follow one another. */
bool sg_reserved(CUdeviceptr address, size_t size);
/* For walking in order of address; NULL starts. */
struct sg_reservation *sg_reservation_next(struct sg_reservation *reservation);

/* Are all of them multiples of SG_PAGE, and is size not 0? */
bool sg_page_aligned(CUdeviceptr address, size_t size);

/* The first range (in a reservation: mapping) that shares a byte with [address, address + size), or
 * NULL. */
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

#endif
