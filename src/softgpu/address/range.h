/*
 * What the chapter that makes a range does for the others: a table of operations, one for each kind
 * of range. Everything wants the lock.
 */
#ifndef SG_ADDRESS_RANGE_H
#define SG_ADDRESS_RANGE_H

#include "softgpu/address/memory.h"

struct sg_pages;
struct sg_stream;
struct sg_text;

/* What the application can ask of a range. sg_range_describe fills in what is true of most; a
 * range's own operation changes the rest. */
struct sg_range_facts {
    CUdeviceptr start; /* of a mapping its reservation's, as are the bytes */
    size_t size;
    bool has_address_range; /* for cuMemGetAddressRange, which answers this base: */
    CUdeviceptr base;
    CUdeviceptr mapping_base; /* of the run of pages that it lies in */
    size_t mapping_size;
    uint64_t handle_types; /* bits of CUmemAllocationHandleType */
    uint64_t pool;         /* its pool's handle; 0 */
    unsigned rights;       /* SG_READ and SG_WRITE, of the device that is asked about */
    int host_flags;        /* CU_MEMHOSTALLOC_* of host memory; -1: of none */
    bool host_pointer;     /* the CPU has the memory, at the same address */
    bool managed;
    bool sync_memops; /* until the application says something about it */
    bool rdma, legacy_ipc, decompress;
};

/* Whether stream memory operations are taken there. */
enum sg_memops {
    SG_MEMOPS_TAKEN,
    SG_MEMOPS_IN_GRAPHS, /* and refused when they are queued */
    SG_MEMOPS_REFUSED,
};

struct sg_range_ops {
    const char *name; /* in the state dump; NULL when its chapter has lines of its own there */
    /* More lines there, indented; may be NULL. */
    void (*dump)(struct sg_text *text, const struct sg_range *range);

    /* cuMemFree and cuMemFreeAsync of the address where it starts. Without `free` it is no address
     * for either; with `free` alone, memory that is not freed in stream order. */
    CUresult (*free)(struct sg_range *range);
    CUresult (*free_async)(struct sg_range *range, struct sg_stream *stream);
    /* Frees it without a wait for work, with its context or its module. NULL for ranges that belong
     * to neither. */
    void (*end)(struct sg_range *range);

    /* Does the device of `context` see it at all? NULL: every device does. */
    bool (*seen)(const struct sg_context *context, const struct sg_range *range);
    /* Was it opened to this device? NULL: access is not given to devices one by one, as to pools.
     */
    bool (*accessible)(const struct sg_range *range, int device);
    /* May the device of the current context, or the one that has the bytes, do that at [address,
     * address + size), which begins in the range? NULL: it may. */
    bool (*allows)(const struct sg_range *range, CUdeviceptr address, size_t size, unsigned rights);
    /* Did cuMemSetAccess let this device do that there? NULL: it is not asked for such memory. */
    bool (*mapped)(int device, CUdeviceptr address, size_t size, unsigned rights);
    /* Can work of `context` use it at its address? NULL: where it is seen. */
    bool (*reachable)(const struct sg_context *context, const struct sg_range *range,
                      CUdeviceptr address, size_t size, unsigned rights);

    /* Changes what is different from most ranges. May be NULL. */
    void (*describe)(const struct sg_range *range, struct sg_range_facts *facts);
    /* What is known of its pages, when it is managed memory; else NULL, as the pointer may be. */
    struct sg_pages *(*pages)(const struct sg_range *range);

    bool joins;    /* ranges that touch count as one for copies and sets: mappings */
    bool pinned;   /* page-locked memory of the CPU's, which may always read it */
    bool bindable; /* to multicast objects, by address */
    bool foreign;  /* memory that others have made: not exported again */
    enum sg_memops memops;
};

/* For a range that is looked at from `device`. */
void sg_range_describe(const struct sg_range *range, int device, struct sg_range_facts *facts);
/* The range of that kind that starts at `address`, or NULL. */
struct sg_range *sg_range_at(CUdeviceptr address, const struct sg_range_ops *ops);

#endif
