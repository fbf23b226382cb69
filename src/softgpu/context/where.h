/* What memory an address is, and who may use it there. Everything wants the lock. */
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
/* What lies at [address, address + size): looked up once for all that a call asks about it, and
 * true until the lock is released. */
struct sg_place {
    CUdeviceptr address;
    size_t size;
    struct sg_range *range; /* that has the first byte; NULL */
    bool whole;             /* the range has all of it; mappings of VMM that touch count as one */
    enum sg_where where;
    int device; /* for SG_WHERE_DEVICE: the ordinal of the first byte; else -1 */
};
struct sg_place sg_place_at(CUdeviceptr address, size_t size);

/* Is all of it one allocation from a pool of host memory, whoever may access it? */
bool sg_place_in_host_pool(const struct sg_place *place);
/* May the device of the current context, or the one that has the bytes, do this there? Bounds only
 * VMM mappings, by cuMemSetAccess, and what was registered to be read only; for the arguments of
 * copies and sets too. */
bool sg_place_allows(const struct sg_place *place, unsigned rights);
/* Did cuMemSetAccess let this device do that, where it is VMM's? True of all other memory. */
bool sg_place_mapped(const struct sg_place *place, int device, unsigned rights);
/* May `device` use the memory, where it is a pool's? True of all other memory and of managed pools;
 * of host pools nothing is said here (sg_place_at). On H200 memory of another device's pool without
 * access is no argument for copies either, plain memory of another device is. */
bool sg_place_pool_open(const struct sg_place *place, int device);
/* Can work of `context` use the memory at its address, as sets and memory operations do? Copies
 * between devices need not. On H200 memory of another device needs peer access or a pool's, VMM
 * mappings the device's rights, and buffers of external memory their own context. */
bool sg_place_reachable(const struct sg_place *place, const struct sg_context *context,
                        unsigned rights);

/* Does the device of `context` see the range at all: has it rights to a mapping or a pool, is it
 * the owner of plain memory or a peer with access? On H200 questions about other addresses find
 * nothing. */
bool sg_range_seen(const struct sg_context *context, const struct sg_range *range);
/* `seen` of ranges that the devices of the owner and of its peers see. */
bool sg_range_seen_by_peers(const struct sg_context *context, const struct sg_range *range);

#endif
