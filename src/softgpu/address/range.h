/*
 * What the chapter that creates a range does for the others: a table of operations for each kind of
 * range. Everything here requires the lock.
 */
#ifndef SG_ADDRESS_RANGE_H
#define SG_ADDRESS_RANGE_H

#include "softgpu/address/memory.h"

struct sg_pages;
struct sg_stream;
struct sg_text;

/* What the application can query about a range. sg_range_describe fills in what holds for most
 * ranges; a range's own operation changes the rest. */
struct sg_range_facts {
    CUdeviceptr start; /* for a mapping, its reservation's; so is the size */
    size_t size;
    bool has_address_range; /* for cuMemGetAddressRange, which returns this base: */
    CUdeviceptr base;
    CUdeviceptr mapping_base; /* of the run of pages that contains it */
    size_t mapping_size;
    uint64_t handle_types; /* bits of CUmemAllocationHandleType */
    uint64_t pool;         /* its pool's handle, or 0 */
    unsigned rights;       /* SG_READ and SG_WRITE, of the device in question */
    int host_flags;        /* CU_MEMHOSTALLOC_* of host memory; -1 for other memory */
    bool host_pointer;     /* the CPU can use it, at the same address */
    bool managed;
    bool sync_memops; /* until the application sets it */
    bool rdma, legacy_ipc, decompress;
};

/* Whether stream memory operations are accepted there. */
enum sg_memops {
    SG_MEMOPS_TAKEN,
    SG_MEMOPS_IN_GRAPHS, /* but refused when queued to a stream */
    SG_MEMOPS_REFUSED,
};

struct sg_range_ops {
    const char *name; /* in the state dump; NULL if its chapter writes lines of its own */
    /* Writes further lines there, indented; may be NULL. */
    void (*dump)(struct sg_text *text, const struct sg_range *range);

    /* cuMemFree and cuMemFreeAsync of its start address. Without `free`, neither accepts the
     * address; with `free` alone, the memory cannot be freed in stream order. */
    CUresult (*free)(struct sg_range *range);
    CUresult (*free_async)(struct sg_range *range, struct sg_stream *stream);
    /* Frees it with its context or module, without waiting for work. NULL for ranges that belong to
     * neither. */
    void (*end)(struct sg_range *range);

    /* Can the device of `context` see it at all? NULL: every device does. */
    bool (*seen)(const struct sg_context *context, const struct sg_range *range);
    /* Has this device been given access? NULL: access is not per device, as it is for pools. */
    bool (*accessible)(const struct sg_range *range, int device);
    /* Does the device of the current context, or the one that has the bytes, have these rights to
     * [address, address + size), which begins in the range? NULL: it does. */
    bool (*allows)(const struct sg_range *range, CUdeviceptr address, size_t size, unsigned rights);
    /* Did cuMemSetAccess give this device these rights? NULL: not used for such memory. */
    bool (*mapped)(int device, CUdeviceptr address, size_t size, unsigned rights);
    /* Can work of `context` use it at its address? NULL: if the device sees it. */
    bool (*reachable)(const struct sg_context *context, const struct sg_range *range,
                      CUdeviceptr address, size_t size, unsigned rights);

    /* Changes the facts that differ from those of most ranges. May be NULL. */
    void (*describe)(const struct sg_range *range, struct sg_range_facts *facts);
    /* The memory at an address of it, and where in that. NULL: all of the range is in one. */
    struct sg_phys *(*phys_at)(const struct sg_range *range, CUdeviceptr address, size_t *offset);
    /* The state of its pages if it is managed memory, else NULL. May itself be NULL. */
    struct sg_pages *(*pages)(const struct sg_range *range);

    bool joins;    /* ranges that touch count as one for copies and sets: mappings */
    bool pinned;   /* page-locked CPU memory, which the CPU may always read */
    bool bindable; /* to multicast objects, by address */
    bool foreign;  /* created by others: not exported again */
    enum sg_memops memops;
};

/* Told of ranges behind their insertion and before their removal; NULL: nobody. */
struct sg_range_watch {
    void (*inserted)(const struct sg_range *range);
    void (*removed)(const struct sg_range *range);
    /* A stream memory operation has stored there; without the lock. */
    void (*stored)(CUdeviceptr address, size_t size);
    /* From now on others may write there without a call here: it is exported, or bound. */
    void (*exposed)(CUdeviceptr address, size_t size);
    /* The bytes of an array, which are no range's. Lost: they end with their context. */
    void (*array_begins)(CUdeviceptr address, size_t size);
    void (*array_ends)(CUdeviceptr address, bool lost);
    /* The same of blocks of the kernels' heap. */
    void (*block_begins)(CUdeviceptr address, size_t size);
    void (*block_ends)(CUdeviceptr address, bool lost);
};
extern const struct sg_range_watch *sg_range_watch;

/* Tells `exposed`. */
static inline void sg_range_expose(CUdeviceptr address, size_t size) {
    if (sg_range_watch)
        sg_range_watch->exposed(address, size);
}

/* Describes a range as seen from `device`. */
void sg_range_describe(const struct sg_range *range, int device, struct sg_range_facts *facts);
/* The physical memory at an address of a range that has some, and where in it: more bytes may
 * follow there than the range has, or fewer. */
struct sg_phys *sg_range_phys_at(const struct sg_range *range, CUdeviceptr address, size_t *offset);
/* The range of that kind that starts at `address`, or NULL. */
struct sg_range *sg_range_at(CUdeviceptr address, const struct sg_range_ops *ops);

#endif
