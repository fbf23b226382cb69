/*
 * Virtual memory: buffers that grow and shrink at one address. The single steps behind it, for
 * those who map by hand, are in gpumem/vmm.h.
 */
#ifndef GPUMEM_VIRTUAL_H
#define GPUMEM_VIRTUAL_H

#include <gpumem/resource.h>
#include <gpumem/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Options of gpumem_virtual_resource_create. */
typedef struct gpumem_virtual_options {
    size_t size;
    gpumem_allocation_type allocation_type;
    gpumem_location location; /* HOST_NUMA_CURRENT: the node of the thread that creates it */
    int numa_node;            /* for HOST_NUMA: a node that exists and has memory; else 0 */
    /* The strongest way of sharing that is wanted. Where the platform refuses it, the next of
     * FABRIC, POSIX_FD, NONE is used, and the properties report which and why; with `handle_strict`
     * the resource is refused instead. */
    gpumem_handle_type handle_type;
    bool handle_strict;
    bool gpu_direct_rdma; /* RDMA-capable if possible; the properties' note says if not */
    bool compression;     /* compressible if possible, likewise */
    gpumem_granularity_kind granularity;
    /* Preferred address of reservations, a multiple of the granularity and of address_alignment. 0:
     * the driver decides. */
    CUdeviceptr address_hint;
    size_t address_alignment; /* of reservations, bytes, a power of two; 0: the granularity */
    const int *peers;         /* ordinals of further devices that get access; copied */
    size_t peer_count;
    gpumem_access self_access; /* of the owning device */
    gpumem_access peer_access; /* of the peers */
    /* Address space, in bytes, reserved for each buffer that does not set its own capacity. 0:
     * exactly the buffer's size, rounded up. It costs no memory. */
    size_t capacity;
    /* Sizes of physical handles. Large handles are far cheaper: granting access costs 26 us per
     * handle, whatever its size. But exporting a handle of 1 GiB took 165 ms, one of 512 MiB under
     * 1 ms; hence the default maximum. An allocation is divided into handles of the maximum size
     * and a remainder. */
    size_t minimum_chunk_bytes; /* bytes; 0: the granularity */
    size_t
        maximum_chunk_bytes; /* bytes; 0: 512 MiB; with handle type NONE as give_back_bytes says */
    /* A small growth step takes a handle of up to this share of the buffer's memory, so that many
     * small steps do not make many small handles. Percent; 0: 50. */
    unsigned growth_percent;
    bool exact_growth; /* never more than requested, rounded up to minimum_chunk_bytes */
    /* The unit in which memory can be given back: no handle is larger, so that shrink and decommit
     * find handles wholly inside the range. A multiple of the granularity, at least
     * minimum_chunk_bytes; 0: no such limit. Memory of handle type NONE then takes one handle per
     * growth step, whatever its size, which is fastest; a shrink into the middle of that step gives
     * none of it back. */
    size_t give_back_bytes;
    /* Bytes of freed memory to cache: whole ranges, still mapped, and single handles from shrinks.
     * An allocation with the size, capacity and alignment of a freed one then makes no expensive
     * driver call. 0: nothing is cached. With a cache, memory that only devices can access becomes
     * stream-ordered, and the properties say so: it can be used at once on the stream of the
     * allocation, elsewhere once ordered after it. Cached memory is counted in
     * gpumem_stats.cached_bytes, and given back by trim and when memory runs out. Exported memory
     * is never cached: others may still map it. */
    uint64_t cache_bytes;
} gpumem_virtual_options;
#define GPUMEM_VIRTUAL_OPTIONS(...) GPUMEM_OPTIONS(gpumem_virtual_options, __VA_ARGS__)

/*
 * Buffers whose address does not change as they grow: address space is reserved for the capacity,
 * and memory is mapped into it. INVALID_ARGUMENT: chunk sizes, address_hint or address_alignment
 * that are not valid multiples or that no address satisfies, unknown peers, nodes that do not
 * exist. NOT_SUPPORTED: no virtual memory on this device, or no `handle_type` that was required
 * strictly. Driver: cuMemAddressReserve, cuMemCreate, cuMemMap, cuMemSetAccess and their
 * counterparts, cuMemGetAllocationGranularity.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_virtual_resource_create(
    gpumem_device *device, const gpumem_virtual_options *options, gpumem_resource **resource);

#ifdef __cplusplus
}
#endif

#endif
