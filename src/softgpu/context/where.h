/* What kind of memory is at an address, and who may use it there. Everything needs the lock. */
#ifndef SG_CONTEXT_WHERE_H
#define SG_CONTEXT_WHERE_H

#include "softgpu/address/memory.h"
#include "softgpu/context/context.h"

/* What [address, address + size) is, for the arguments of copies and sets. */
enum sg_where {
    SG_WHERE_INVALID,  /* a device address that is not (wholly) allocated, or leaves its allocation
                        */
    SG_WHERE_PAGEABLE, /* plain host memory, unknown to the driver */
    SG_WHERE_HOST,     /* pinned, registered or host-located */
    SG_WHERE_DEVICE,
};
/* What is at [address, address + size): looked up once per call, and valid until the lock is
 * released. */
struct sg_place {
    CUdeviceptr address;
    size_t size;
    struct sg_range *range; /* that contains the first byte, or NULL */
    bool whole;             /* the range has all of it; adjacent VMM mappings count as one */
    enum sg_where where;
    int device; /* for SG_WHERE_DEVICE: the ordinal of the first byte; else -1 */
};
struct sg_place sg_place_at(CUdeviceptr address, size_t size);

/* Whether all of it is one allocation from a pool of host memory, whoever may access it. */
bool sg_place_in_host_pool(const struct sg_place *place);
/* Whether the device of the current context, or the device that has the bytes, may do this there.
 * Restricts only VMM mappings, by cuMemSetAccess, and memory registered read-only; also for the
 * arguments of copies and sets. */
bool sg_place_allows(const struct sg_place *place, unsigned rights);
/* Whether cuMemSetAccess allows this device to do that to VMM memory. True of all other memory. */
bool sg_place_mapped(const struct sg_place *place, int device, unsigned rights);
/* Whether `device` may use memory of a pool. True of all other memory and of managed pools; host
 * pools are not covered here (see sg_place_at). On H200, memory of another device's pool without
 * access is not valid as an argument even for copies; plain memory of another device is. */
bool sg_place_pool_open(const struct sg_place *place, int device);
/* Whether work of `context` can use the memory at its address, as sets and memory operations do;
 * copies between devices need not. On H200, memory of another device needs peer access or the
 * pool's, VMM mappings need the device's rights, and buffers of external memory need their own
 * context. */
bool sg_place_reachable(const struct sg_place *place, const struct sg_context *context,
                        unsigned rights);

/* Whether the device of `context` sees the range at all: it has rights to a mapping or a pool, it
 * owns plain memory, or it is a peer with access. On H200, queries about other addresses find
 * nothing. */
bool sg_range_seen(const struct sg_context *context, const struct sg_range *range);
/* `seen` for ranges that the devices of the owner and of its peers see. */
bool sg_range_seen_by_peers(const struct sg_context *context, const struct sg_range *range);

#endif
