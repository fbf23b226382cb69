/*
 * Resources, from which buffers are allocated: device pools, pinned host memory, managed and
 * virtual memory, wrappers around any of them, and your own.
 *
 * A resource belongs to a device and may be used from any thread. Destroy it after its buffers.
 */
#ifndef GPUMEM_RESOURCE_H
#define GPUMEM_RESOURCE_H

#include <gpumem/library.h>
#include <gpumem/stats.h>
#include <gpumem/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpumem_resource_properties {
    size_t size;
    const char *kind; /* "device_pool", "pinned", "virtual", ..., or gpumem_resource_ops.kind */
    int device_accessible; /* 1 or 0 */
    int host_accessible;   /* the CPU may dereference gpumem_buffer_host_pointer */
    int stream_ordered;    /* memory is allocated and freed in stream order */
    int can_resize;        /* buffers can grow and shrink in place */
    int exportable;        /* gpumem_export_create works */
    gpumem_location location;
    gpumem_handle_type handle_type; /* the one in effect */
    size_t granularity;             /* allocations are rounded up to this, bytes; 1: not rounded */
    size_t chunk_maximum;           /* largest physical handle or slab, bytes; 0 if meaningless */
    char note[192];                 /* what was requested and not granted, and why; else "" */
} gpumem_resource_properties;

/* Set `properties->size` before the call. Thread-safe, no driver call. */
GPUMEM_API gpumem_status gpumem_resource_get_properties(gpumem_resource *resource,
                                                        gpumem_resource_properties *properties);

/*
 * Destroys the resource; NULL is allowed. BUSY while buffers are live, a wrapper uses it, or a
 * stream capture holds a free back: the message says which, and nothing is changed. Waits, by
 * events, for its own frees that queued work holds back, and for no others. Cannot fail otherwise:
 * memory that the driver refuses to take back is counted (gpumem_stats.quarantined).
 */
GPUMEM_API gpumem_status gpumem_resource_destroy(gpumem_resource *resource);

/* Gives cached memory back until at most `keep_bytes` are left. May block in the driver. */
GPUMEM_API gpumem_status gpumem_resource_trim(gpumem_resource *resource, size_t keep_bytes);

/* The device. Cannot fail. */
GPUMEM_API gpumem_device *gpumem_resource_device(const gpumem_resource *resource);

/* ---- Device pool ----------------------------------------------------------------------------- */

typedef enum gpumem_pool_choice {
    GPUMEM_POOL_CURRENT = 0, /* the device's current pool (cuDeviceSetMemPool) */
    GPUMEM_POOL_DEFAULT = 1, /* the driver's default pool of the device */
    GPUMEM_POOL_OWN = 2,     /* a new one, destroyed with the resource */
} gpumem_pool_choice;

typedef struct gpumem_device_pool_options {
    size_t size;
    /* With GPUMEM_POOL_CURRENT, setting any member below creates a new pool, so that pools of
     * others are never changed; GPUMEM_POOL_DEFAULT with such a member is refused. */
    gpumem_pool_choice pool;
    /* Bytes that the pool keeps when nothing uses them. 0: everything for a new pool, otherwise the
     * driver's default (a warm pool allocates in 0.3 us, a cold one in 30). */
    uint64_t release_threshold;
    /* Most bytes of all buffers together: OUT_OF_CAPACITY above this, and where the driver may not
     * take more from the device for it and has no piece of that size (it rounds the maximum up; an
     * H200: to 32 MiB). Freed bytes no longer count, even if queued work holds them back. 0: only
     * the device's limit. */
    uint64_t maximum_bytes;
    int ipc;                        /* 1: exportable by `handle_type` (gpumem/pool.h) */
    gpumem_handle_type handle_type; /* used when ipc is set */
} gpumem_device_pool_options;
#define GPUMEM_DEVICE_POOL_OPTIONS(...) GPUMEM_OPTIONS(gpumem_device_pool_options, __VA_ARGS__)

/*
 * Stream-ordered memory from a pool of the driver. NOT_SUPPORTED if the device has no pools. The
 * stream may be capturing: the allocation becomes a node of the graph, where the driver allows it
 * (for device memory; it refuses host memory, NOT_SUPPORTED). Buffers allocated with
 * GPUMEM_STREAM_NONE use a stream of the pool's own: any stream and the CPU can use their memory
 * when the call returns, and it goes back when the streams that were named for it have passed. That
 * call waits until the driver has provided the memory, even during a capture. For sharing with
 * other processes and attributes see gpumem/pool.h. Thread-safe. Each thread keeps its own counts:
 * high-water marks are accurate to 64 MiB per thread, and exact with a single thread.
 * Driver: cuThreadExchangeStreamCaptureMode, cuDeviceGetMemPool, cuDeviceGetDefaultMemPool,
 * cuMemPoolCreate, cuMemPoolSetAttribute, cuMemAllocFromPoolAsync, cuMemFreeAsync, cuMemPoolTrimTo,
 * cuMemPoolDestroy; for NONE cuStreamCreate, cuStreamSynchronize.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_device_pool_resource_create(
    gpumem_device *device, const gpumem_device_pool_options *options, gpumem_resource **resource);

/* ---- Pinned host memory ---------------------------------------------------------------------- */

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

typedef struct gpumem_pinned_options {
    size_t size;
    gpumem_pinned_method method;
    unsigned flags; /* GPUMEM_PINNED_*; 0: none */
    int numa_bind;  /* 1: memory only from node `numa_node` (not with ALLOCATED) */
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
    int keep_nothing; /* 1: each slab is given back once it is empty */
    /* 1: a pool that can be exported, POSIX_FD (POOL only). It needs a NUMA node: without
     * numa_bind, the one that the device reports as nearest (its context exists: gpumem_device_open
     * created it), or the machine's only node; NOT_SUPPORTED if there is neither. */
    int ipc;
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

/* Where a number of threads, or a plan of copies (gpumem/mapped.h), comes from. */
typedef enum gpumem_measured {
    GPUMEM_MEASURED_NEVER = 0,  /* from the option, or the default */
    GPUMEM_MEASURED_HERE = 1,   /* in this process */
    GPUMEM_MEASURED_BEFORE = 2, /* by another process: from the calibration file */
} gpumem_measured;

typedef struct gpumem_pinned_info {
    size_t size;
    gpumem_pinned_method method; /* in use: REGISTERED or ALLOCATED */
    unsigned touch_threads;      /* for the next slab; 0 with ALLOCATED */
    gpumem_measured touch_measured;
    size_t slabs;
    uint64_t pinned_bytes;      /* of all slabs */
    uint64_t huge_bytes;        /* of these, in reserved huge pages */
    int transparent_huge_pages; /* 1: the system gives them on request, as slabs request them */
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

/* ---- Managed memory -------------------------------------------------------------------------- */

/* Where the driver should keep the pages if it can (CU_MEM_ADVISE_SET_PREFERRED_LOCATION). */
typedef enum gpumem_managed_place {
    GPUMEM_MANAGED_ANYWHERE = 0, /* where they were used last */
    GPUMEM_MANAGED_ON_DEVICE = 1,
    GPUMEM_MANAGED_ON_HOST = 2,
} gpumem_managed_place;

typedef enum gpumem_managed_method {
    GPUMEM_MANAGED_ALLOCATED = 0, /* cuMemAllocManaged, for each buffer */
    /* A pool of managed memory (drivers from 13.0 on), stream-ordered: see `pool`. Where the driver
     * has none, ALLOCATED replaces it, which is not stream-ordered; the properties' note then
     * begins with "allocations in place of a pool of managed memory" and says why. See
     * gpumem/pool.h. */
    GPUMEM_MANAGED_POOL = 1,
} gpumem_managed_method;

typedef struct gpumem_managed_options {
    size_t size;
    gpumem_managed_place preferred;
    /* 1: pages may be copied to where they are read (ALLOCATED only: the driver takes no advice
     * about pool memory). */
    int read_mostly;
    gpumem_managed_method method;
    /* POOL only: the driver's current or default pool of managed memory at the preferred place, or
     * a new one. */
    gpumem_pool_choice pool;
} gpumem_managed_options;
#define GPUMEM_MANAGED_OPTIONS(...) GPUMEM_OPTIONS(gpumem_managed_options, __VA_ARGS__)

/*
 * Memory at one address for the CPU and the devices; the driver moves its pages to the processor
 * that uses them, and its total may exceed the device's memory. ALLOCATED: each buffer is a driver
 * allocation of its own, and freeing it waits for the work of the context. POOL: the CPU may use a
 * buffer once its stream has passed the allocation; a capturing stream is refused (NOT_SUPPORTED),
 * because graph memory belongs to the device alone. NOT_SUPPORTED if the device has no managed
 * memory, or if the CPU must not touch it while the device works. Advice, prefetch, discard and
 * range queries are in gpumem/managed.h. Driver: cuMemAllocManaged, cuMemAdvise, cuMemFree; for a
 * pool cuMemGetMemPool, cuMemGetDefaultMemPool, and those of the device pool.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_managed_resource_create(
    gpumem_device *device, const gpumem_managed_options *options, gpumem_resource **resource);

/* ---- Virtual memory -------------------------------------------------------------------------- */

typedef enum gpumem_allocation_type {
    GPUMEM_ALLOCATION_PINNED = 0, /* memory that never migrates */
    /* The driver defines the type, but cuMemCreate creates none: always NOT_SUPPORTED. For managed
     * memory use gpumem_managed_resource_create. */
    GPUMEM_ALLOCATION_MANAGED = 1,
} gpumem_allocation_type;

typedef enum gpumem_granularity_kind {
    GPUMEM_GRANULARITY_RECOMMENDED = 0,
    GPUMEM_GRANULARITY_MINIMUM = 1,
} gpumem_granularity_kind;

typedef struct gpumem_virtual_options {
    size_t size;
    gpumem_allocation_type allocation_type;
    gpumem_location location; /* HOST_NUMA_CURRENT: the node of the thread that creates it */
    int numa_node;            /* for HOST_NUMA: a node that exists and has memory; else 0 */
    /* The strongest way of sharing that is wanted. Where the platform refuses it, the next of
     * FABRIC, POSIX_FD, NONE is used, and the properties report which and why; with `handle_strict`
     * the resource is refused instead. */
    gpumem_handle_type handle_type;
    int handle_strict;
    int gpu_direct_rdma; /* 1: RDMA-capable if possible; the properties' note says if not */
    int compression;     /* 1: compressible if possible, likewise */
    gpumem_granularity_kind granularity;
    /* Preferred address of reservations, a multiple of the granularity and of addr_align. 0: the
     * driver decides. */
    CUdeviceptr addr_hint;
    size_t addr_align; /* of reservations, bytes, a power of two; 0: the granularity */
    const int *peers;  /* ordinals of further devices that get access; copied */
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
    size_t chunk_minimum; /* bytes; 0: the granularity */
    size_t chunk_maximum; /* bytes; 0: 512 MiB; with handle type NONE as give_back_bytes says */
    /* A small growth step takes a handle of up to this share of the buffer's memory, so that many
     * small steps do not make many small handles. Percent; 0: 50. */
    unsigned growth_percent;
    int exact_growth; /* 1: never more than requested, rounded up to chunk_minimum */
    /* The unit in which memory can be given back: no handle is larger, so that shrink and decommit
     * find handles wholly inside the range. A multiple of the granularity, at least chunk_minimum;
     * 0: no such limit. Memory of handle type NONE then takes one handle per growth step, whatever
     * its size, which is fastest; a shrink into the middle of that step gives none of it back. */
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
 * and memory is mapped into it. INVALID_ARGUMENT: chunk sizes, addr_hint or addr_align that are not
 * valid multiples or that no address satisfies, unknown peers, nodes that do not exist.
 * NOT_SUPPORTED: no virtual memory on this device, or no `handle_type` that was required strictly.
 * Driver: cuMemAddressReserve, cuMemCreate, cuMemMap, cuMemSetAccess and their counterparts,
 * cuMemGetAllocationGranularity.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_virtual_resource_create(
    gpumem_device *device, const gpumem_virtual_options *options, gpumem_resource **resource);

/*
 * Sets what the device with this ordinal (the owning one or another) may do with all present and
 * future buffers of a virtual resource, overriding what was set for single buffers. All or nothing;
 * only if a failing driver refuses to undo a step is that step undone by the next change or trim.
 * Work faults without access just as without a mapping. Taking access away therefore waits, by
 * events, for the streams of each buffer that loses some, and blocks allocation, growth and free of
 * the resource's buffers meanwhile. Give such buffers no new work during the call. BUSY: such a
 * buffer has a hold or an export, one of its streams is capturing or is another thread's per-thread
 * stream, or another resource (a caching one) hands out memory of this one. The library's wrappers
 * of a virtual resource stand for it. NOT_SUPPORTED: not a virtual resource, or a device that
 * cannot reach this one's memory. Thread-safe. gpumem_resource_properties still reports the access
 * that the resource was created with. Driver: cuMemSetAccess, 26 us per handle.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status
gpumem_virtual_resource_set_access(gpumem_resource *resource, int device, gpumem_access access);

/* The same for all other devices at once: those in `peers` get `access`, the rest none. The owning
 * device may be in the list and keeps its access. `count` 0: no peers. */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_virtual_resource_set_peers(
    gpumem_resource *resource, const int *peers, size_t count, gpumem_access access);

/* ---- Wrappers -------------------------------------------------------------------------------- */

/*
 * Refuses allocations that would bring the bytes in its live buffers above `maximum_bytes`:
 * OUT_OF_CAPACITY. The wrapped resource must outlive it and may still be used directly.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_limit_resource_create(gpumem_resource *upstream,
                                                                        uint64_t maximum_bytes,
                                                                        gpumem_resource **resource);

/* One line for each allocation, resize and free, with the reason if it failed. */
typedef struct gpumem_logging_options {
    size_t size;
    gpumem_log_level level; /* used only when fn is NULL; 0 is GPUMEM_LOG_ERROR, so set it */
    const char *name;       /* starts each line; NULL: the wrapped resource's kind. Copied */
    gpumem_log_fn fn;       /* NULL: the library's log */
    void *user;
} gpumem_logging_options;
#define GPUMEM_LOGGING_OPTIONS(...) GPUMEM_OPTIONS(gpumem_logging_options, __VA_ARGS__)

/* Logs and counts (gpumem_resource_get_stats) only what goes through it. */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_logging_resource_create(
    gpumem_resource *upstream, const gpumem_logging_options *options, gpumem_resource **resource);

/* ---- Your own -------------------------------------------------------------------------------- */

/* What a buffer requests of its resource. The values are already validated. */
typedef struct gpumem_request {
    size_t size;
    size_t bytes;     /* more than 0 */
    size_t alignment; /* a power of two, 1 at least */
    size_t capacity;  /* 0, or the bytes it may grow to, at least `bytes` */
    CUstream stream;
} gpumem_request;

/* What the buffer got. The resource fills it in; the library keeps it and passes it back. */
typedef struct gpumem_allocation {
    size_t size;
    CUdeviceptr pointer;
    void *host_pointer;     /* NULL if the CPU has no access */
    size_t bytes;           /* usable: the requested size, not the rounded one */
    size_t committed_bytes; /* memory backing it */
    size_t capacity;        /* largest size for resize; `bytes` if it cannot grow */
    void *cookie;           /* the resource's */
    /* For a resource with `upstream`: the upstream's buffer, if this allocation is all of it.
     * Exports pass through to it. NULL: none, or a part of one. */
    gpumem_buffer *buffer;
} gpumem_allocation;

typedef struct gpumem_resource_ops {
    size_t size;
    /* The kind shown in properties and messages, copied, at most 47 bytes; NULL: "user". It
     * overrides what the properties function writes there. */
    const char *kind;
    /* Fills *allocation, or fails without effect. The device's context is current. A message can be
     * set with gpumem_resource_fail. Must be thread-safe, like all of these functions. */
    gpumem_status (*allocate)(void *user, const gpumem_request *request,
                              gpumem_allocation *allocation);
    /* Takes memory back; cannot fail. Without `stream_ordered` it is called when no stream that the
     * library knows of uses the memory any more, and `stream` is that of the allocation. With
     * `stream_ordered` it is called at once, and the memory must stay intact until `stream` has
     * reached this point; where that is impossible (captures, another thread's stream) it is called
     * later with an idle stream of the library's. It may free buffers of other resources, but not
     * allocate. */
    void (*deallocate)(void *user, const gpumem_allocation *allocation, CUstream stream);
    /* NULL if buffers cannot be resized. Changes the bytes and committed_bytes of *allocation,
     * never its pointer or capacity; all or nothing. `bytes` is more than 0 and at most the
     * capacity. A shrink is called when no stream uses the memory. `stream` is the caller's, and
     * may be NULL. */
    gpumem_status (*resize)(void *user, gpumem_allocation *allocation, size_t bytes,
                            CUstream stream);
    /* Fills in what it knows; all members start as zero, granularity as 1. Called once, at
     * creation. `exportable` is reset to 0 unless the upstream is exportable; `kind` is ignored,
     * see there. */
    void (*properties)(void *user, gpumem_resource_properties *properties);
    /* NULL, or adds members that the library cannot know: cached, committed. May be called at any
     * time. */
    void (*stats)(void *user, gpumem_stats *stats);
    /* NULL, or gives cached memory back down to keep_bytes. Called from any thread, also during an
     * allocation from this or another resource when memory runs out: a resource must not, while it
     * allocates from another one, hold a lock that its trim takes. Buffers may be freed here. */
    void (*trim)(void *user, size_t keep_bytes);
    /* NULL, or called when the resource is destroyed, with no allocation left. */
    void (*destroy)(void *user);
    /*
     * NULL, or, for a wrapper, the resource of the same device whose buffers this one hands out.
     * The upstream cannot be destroyed before the wrapper. The device counts bytes and allocations
     * once, at the upstream; the wrapper's own statistics show what goes through it, and of its
     * `stats` the device uses only cached_bytes. Exports pass through to gpumem_allocation.buffer
     * if the upstream's buffers can be exported, as properties.exportable says.
     */
    gpumem_resource *upstream;
} gpumem_resource_ops;

/*
 * A resource made of your own functions; the table is copied. `allocate`, `deallocate` and
 * `properties` are required. On failure `destroy` is not called.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_resource_create(gpumem_device *device,
                                                                  const gpumem_resource_ops *ops,
                                                                  void *user,
                                                                  gpumem_resource **resource);

/* Records a message for gpumem_last_error and returns `status`: for the functions above. */
GPUMEM_API gpumem_status gpumem_resource_fail(gpumem_status status, const char *message);

#ifdef __cplusplus
}
#endif

#endif
