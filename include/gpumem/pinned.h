/*
 * Pinned host memory: page-locked memory of the CPU that devices access at full speed.
 */
#ifndef GPUMEM_PINNED_H
#define GPUMEM_PINNED_H

#include <gpumem/resource.h>
#include <gpumem/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How host memory is pinned. */
typedef enum gpumem_pinned_method {
    /* REGISTERED if the platform can register memory, else ALLOCATED. */
    GPUMEM_PINNED_AUTO = 0,
    /* mmap, with huge pages where the system provides them, touched by several threads, then
     * cuMemHostRegister: 4 GiB in 0.21 s where cuMemHostAlloc takes 1.7 s. */
    GPUMEM_PINNED_REGISTERED = 1,
    /* cuMemHostAlloc. */
    GPUMEM_PINNED_ALLOCATED = 2,
    /* A host pool of the driver, stream-ordered: see `pool`. Where the driver has none, slabs as
     * with AUTO replace it; these are not stream-ordered, and the properties' note begins with
     * "slabs in place of the driver's host pool" and says why. With `ipc`, NOT_SUPPORTED instead.
     * See gpumem/pool.h. */
    GPUMEM_PINNED_POOL = 3,
} gpumem_pinned_method;

/* The pages of registered memory: huge pages are touched and pinned several times faster. */
typedef enum gpumem_huge_pages {
    /* Transparent huge pages, if the system gives them on request. */
    GPUMEM_HUGE_PAGES_TRANSPARENT = 0,
    /* The 2 MiB pages that the system has reserved (MAP_HUGETLB, vm.nr_hugepages), for systems
     * where transparent huge pages are off. A slab for which too few are left gets transparent
     * ones; gpumem_pinned_get_info reports how much that is, and why. Reserved pages count not
     * against the process's memory control group but against one for huge pages. */
    GPUMEM_HUGE_PAGES_RESERVED = 1,
} gpumem_huge_pages;

#define GPUMEM_PINNED_PORTABLE       0x1u /* same values as cuMemHostAlloc's flags */
#define GPUMEM_PINNED_WRITE_COMBINED 0x4u /* ALLOCATED only */

/* Options of gpumem_pinned_resource_create. */
typedef struct gpumem_pinned_options {
    size_t size;
    gpumem_pinned_method method;
    unsigned flags; /* GPUMEM_PINNED_*; 0: none */
    bool numa_bind; /* memory only from node `numa_node` (not with ALLOCATED) */
    int numa_node;  /* a node that exists and has memory; 0 without numa_bind */
    /* 0: one for each CPU that the calling thread may use, at most 16; or fewer, if a slab of 4 GiB
     * or more has shown, in this process or another, that fewer are faster (gpumem_pinned_info). */
    unsigned touch_threads;
    /* Unit of pinning, bytes; 0: 64 MiB. Larger requests get a slab of their own, and slabs are
     * smaller where the maximum leaves less. */
    size_t slab_bytes;
    uint64_t maximum_bytes; /* of all slabs, at least a page, or of a pool's buffers; 0: no limit */
    /* Bytes of unused slabs kept for later requests, or the release threshold of a new pool; 0:
     * all. */
    uint64_t keep_bytes;
    bool keep_nothing; /* each slab is given back once it is empty */
    /* A pool that can be exported, POSIX_FD (POOL only). It needs a NUMA node: without
     * numa_bind, the one that the device reports as nearest (its context exists: gpumem_device_open
     * created it), or the machine's only node; NOT_SUPPORTED if there is neither. */
    bool ipc;
    /* POOL only: the driver's current pool of host memory (cuMemGetMemPool, else the default one),
     * the default one, or a new one, which numa_bind, maximum_bytes, keep_bytes, keep_nothing and
     * ipc also create. A pool of others outlives the resource, and is changed in one respect: the
     * device is given access, and keeps it. With a driver that offers no such pool (before 13.0) a
     * new one is created, and the properties' note says so. */
    gpumem_pool_choice pool;
    gpumem_huge_pages huge_pages; /* not with ALLOCATED and POOL */
} gpumem_pinned_options;
#define GPUMEM_PINNED_OPTIONS(...) GPUMEM_OPTIONS(gpumem_pinned_options, __VA_ARGS__)

/*
 * Page-locked host memory that the device accesses at full speed, cut from slabs: pinning costs 800
 * us even for 4 KiB, a piece of a slab well under one. OUT_OF_HOST_MEMORY: the machine or a memory
 * control group (cgroup) of this process has no more. This is checked before anything is pinned,
 * because the kernel kills instead of refusing; threads that compete for the same remaining memory
 * wait for one another. OUT_OF_CAPACITY: over `maximum_bytes`. NOT_SUPPORTED, NOT_PERMITTED: a
 * chosen method was refused. INVALID_ARGUMENT: contradictory options, or a node that does not
 * exist. With a pool, the CPU may use a buffer once its stream has passed the allocation.
 * Driver: cuMemHostRegister, cuMemHostUnregister, cuMemHostAlloc, cuMemFreeHost; for a pool
 * cuMemGetMemPool, cuMemGetDefaultMemPool, cuMemPoolGetAccess, cuMemPoolSetAccess, and those of the
 * device pool.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_pinned_resource_create(
    gpumem_device *device, const gpumem_pinned_options *options, gpumem_resource **resource);

/*
 * Starts pinning slabs in a thread of the library until `bytes` more are ready for allocations, and
 * returns at once. Allocations made meanwhile wait no longer than they would for a slab of their
 * own. Stops early, with a warning in the log, when memory or maximum_bytes is exhausted;
 * gpumem_resource_destroy waits for the slab being pinned. NOT_SUPPORTED: a pool. INVALID_ARGUMENT:
 * not itself a pinned resource, or one with keep_nothing or keep_bytes, which gives slabs back.
 * Thread-safe. Driver: as the resource, in that thread.
 */
GPUMEM_API gpumem_status gpumem_pinned_warm_up(gpumem_resource *resource, size_t bytes);

/* What gpumem_pinned_get_info fills in. */
typedef struct gpumem_pinned_info {
    size_t size;
    gpumem_pinned_method method; /* in use: REGISTERED or ALLOCATED */
    unsigned touch_threads;      /* for the next slab; 0 with ALLOCATED */
    gpumem_measured touch_measured;
    size_t slabs;
    uint64_t pinned_bytes;       /* of all slabs */
    uint64_t huge_bytes;         /* of these, in reserved huge pages */
    bool transparent_huge_pages; /* the system gives them on request, as slabs request them */
    /* "", or why the latest slab that requested reserved huge pages has none. */
    char reserved_reason[160];
    char transparent_reason[96]; /* "", or why not */
} gpumem_pinned_info;

/*
 * The settings that a pinned resource uses, and how its memory was obtained. Set `info->size`
 * before the call. NOT_SUPPORTED: a pool (gpumem_pool_get_info). INVALID_ARGUMENT: not itself a
 * pinned resource; a wrapper is not one. Thread-safe; reads small files. Driver: cuDeviceGetName.
 *
 * The calibration file: if touch_threads is left to the library, parts of the first slab of 4 GiB
 * or more are touched by different numbers of threads. If fewer than the maximum are faster by more
 * than 5 %, that number is used from then on. It is stored for later processes, by CPU, driver and
 * GPU, in $XDG_CACHE_HOME/gpumem or ~/.cache/gpumem. A file that cannot be written, or that the
 * library did not write, is ignored. Set-uid programs do not use it. To measure again, delete it.
 */
GPUMEM_API gpumem_status gpumem_pinned_get_info(gpumem_resource *resource,
                                                gpumem_pinned_info *info);

#ifdef __cplusplus
}
#endif

#endif
