/*
 * Resources: where buffers come from. Device pool, pinned host memory, virtual memory, wrappers
 * around any of them, and your own.
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
    int stream_ordered;    /* memory is given and taken in the order of a stream */
    int can_resize;        /* buffers can grow and shrink where they are */
    int exportable;        /* gpumem_export_create works */
    gpumem_location location;
    gpumem_handle_type handle_type; /* what it settled on */
    size_t granularity;             /* allocations are rounded up to this, bytes; 1 if to nothing */
    size_t chunk_maximum;           /* largest physical handle or slab, bytes; 0 if meaningless */
    char note[192]; /* what was wanted and not given, and why; "" if all was given */
} gpumem_resource_properties;

/* Thread-safe, no driver call. `properties->size` is to be set. */
GPUMEM_API gpumem_status gpumem_resource_get_properties(gpumem_resource *resource,
                                                        gpumem_resource_properties *properties);

/*
 * Destroys; NULL is allowed. BUSY while buffers are live, a wrapper holds it, or a stream capture
 * holds a free back: the message says what, and nothing is changed. Waits, by events, for its own
 * frees that queued work holds back, and for nobody else's.
 * Cannot fail otherwise: what the driver refuses to take back is counted
 * (gpumem_stats.quarantined).
 */
GPUMEM_API gpumem_status gpumem_resource_destroy(gpumem_resource *resource);

/* Gives cached memory back until at most `keep_bytes` of it are left. May block in the driver. */
GPUMEM_API gpumem_status gpumem_resource_trim(gpumem_resource *resource, size_t keep_bytes);

/* The device. Cannot fail. */
GPUMEM_API gpumem_device *gpumem_resource_device(const gpumem_resource *resource);

/* ---- Device pool ----------------------------------------------------------------------------- */

typedef enum gpumem_pool_choice {
    GPUMEM_POOL_CURRENT = 0, /* the device's current pool, as cuDeviceSetMemPool left it */
    GPUMEM_POOL_DEFAULT = 1, /* the driver's default pool of the device */
    GPUMEM_POOL_OWN = 2,     /* a new one, destroyed with the resource */
} gpumem_pool_choice;

typedef struct gpumem_device_pool_options {
    size_t size;
    /* Any member below other than zero makes an own pool out of GPUMEM_POOL_CURRENT, so that pools
     * of others are never changed; GPUMEM_POOL_DEFAULT with such a member is refused. */
    gpumem_pool_choice pool;
    /* Bytes that the pool keeps when nothing uses them. 0: the driver's default for a pool of
     * others, everything for an own one (a warm pool allocates in 0.3 us, a cold one in 30). */
    uint64_t release_threshold;
    uint64_t maximum_bytes;         /* OUT_OF_CAPACITY above; 0: no limit but the device's */
    int ipc;                        /* 1: made exportable with `handle_type` (gpumem/pool.h) */
    gpumem_handle_type handle_type; /* used when ipc is set */
} gpumem_device_pool_options;
#define GPUMEM_DEVICE_POOL_OPTIONS(...) GPUMEM_OPTIONS(gpumem_device_pool_options, __VA_ARGS__)

/*
 * Memory in stream order from a pool of the driver. NOT_SUPPORTED where the device has no pools.
 * The stream may be one that is being captured: the allocation becomes a node of the graph, as far
 * as the driver takes it (device memory; host memory it refuses, NOT_SUPPORTED). Buffers that name
 * GPUMEM_STREAM_NONE are allocated on a stream of the pool's own: their memory is there when the
 * call returns, for any stream and the CPU, and goes back when the streams that were named for it
 * have passed; the call waits for the driver to have it, captures or not.
 * Sharing with other processes, attributes: gpumem/pool.h. Thread-safe. Threads count by
 * themselves: high-water marks are exact to 64 MiB a thread, and with one thread exact.
 * Driver: cuThreadExchangeStreamCaptureMode, cuDeviceGetMemPool, cuDeviceGetDefaultMemPool,
 * cuMemPoolCreate, cuMemPoolSetAttribute, cuMemAllocFromPoolAsync, cuMemFreeAsync, cuMemPoolTrimTo,
 * cuMemPoolDestroy; for NONE cuStreamCreate, cuStreamSynchronize.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_device_pool_resource_create(
    gpumem_device *device, const gpumem_device_pool_options *options, gpumem_resource **resource);

/* ---- Pinned host memory ---------------------------------------------------------------------- */

typedef enum gpumem_pinned_method {
    /* Registered, if the platform registers memory, else allocated. */
    GPUMEM_PINNED_AUTO = 0,
    /* mmap, huge pages where the system gives them, touched by several threads, then
     * cuMemHostRegister: 4 GiB in 0.21 s where cuMemHostAlloc takes 1.7 s. */
    GPUMEM_PINNED_REGISTERED = 1,
    /* cuMemHostAlloc. */
    GPUMEM_PINNED_ALLOCATED = 2,
    /* A host pool of the driver, in stream order: see `pool`. Where the driver has none, slabs as
     * with AUTO take its place, which are not in stream order, and properties' note begins with
     * "slabs in place of the driver's host pool" and says why; with `ipc`, NOT_SUPPORTED instead.
     * More about it in gpumem/pool.h. */
    GPUMEM_PINNED_POOL = 3,
} gpumem_pinned_method;

/* Which pages registered memory lies in: huge ones are touched and pinned several times faster. */
typedef enum gpumem_huge_pages {
    /* Transparent ones, as far as the system gives them to who asks. */
    GPUMEM_HUGE_PAGES_TRANSPARENT = 0,
    /* Those of 2 MiB that the system has set aside (MAP_HUGETLB, vm.nr_hugepages), for systems
     * where transparent ones are off. A slab that finds too few of them gets transparent ones;
     * gpumem_pinned_get_info tells how much that is, and why. They do not count against the memory
     * control group of the process, but against one for huge pages. */
    GPUMEM_HUGE_PAGES_RESERVED = 1,
} gpumem_huge_pages;

#define GPUMEM_PINNED_PORTABLE       0x1u /* cuMemHostAlloc's flags, same values */
#define GPUMEM_PINNED_WRITE_COMBINED 0x4u /* ALLOCATED only */

typedef struct gpumem_pinned_options {
    size_t size;
    gpumem_pinned_method method;
    unsigned flags; /* GPUMEM_PINNED_*; 0: none */
    int numa_bind;  /* 1: memory from node `numa_node` only (not with ALLOCATED) */
    int numa_node;  /* a node that exists and has memory; 0 without numa_bind */
    /* 0: as many as the thread may use CPUs, at most 16; or fewer, where a slab of 4 GiB or more
     * has shown that fewer are faster, in this process or another one (gpumem_pinned_info). */
    unsigned touch_threads;
    /* Unit of pinning; 0: 64 MiB. Larger requests get a slab of their own, and slabs are smaller
     * where the maximum leaves no more. */
    size_t slab_bytes;
    uint64_t maximum_bytes; /* of all slabs, a page at least, or of the pool; 0: no limit */
    /* Unused slabs kept for the next request, or the release threshold of an own pool, in bytes; 0:
     * all. */
    uint64_t keep_bytes;
    int keep_nothing; /* 1: every slab is given back when it is empty */
    /* 1: a pool that can be exported, POSIX_FD (POOL only). It needs a node: without numa_bind the
     * one that the device calls nearest (its context is there: gpumem_device_open made it), or the
     * machine's only one; NOT_SUPPORTED where there is neither. */
    int ipc;
    /* POOL only: the driver's current pool of host memory (cuMemGetMemPool, else the default one),
     * the default one, or an own one, which numa_bind, maximum_bytes, keep_bytes, keep_nothing and
     * ipc make too. One of others stays when the resource ends, and is changed in one respect: the
     * device gets access to it, and keeps it. A driver that names none (before 13.0) gets an own
     * one; properties' note says so. */
    gpumem_pool_choice pool;
    gpumem_huge_pages huge_pages; /* not with ALLOCATED and POOL */
} gpumem_pinned_options;
#define GPUMEM_PINNED_OPTIONS(...) GPUMEM_OPTIONS(gpumem_pinned_options, __VA_ARGS__)

/*
 * Page-locked host memory that the device reaches at full speed, cut from slabs: pinning costs
 * 800 us even for 4 KiB, a piece of a slab well under one. OUT_OF_HOST_MEMORY when the machine or a
 * memory control group (cgroup) of this process gives no more: asked before anything is pinned,
 * because the kernel kills instead of refusing. Two threads that pin what only one can have wait
 * for one another. OUT_OF_CAPACITY over `maximum_bytes`; NOT_SUPPORTED and NOT_PERMITTED when a
 * chosen method is refused; INVALID_ARGUMENT for options that contradict each other and nodes that
 * do not exist.
 * Of a pool the CPU may use a buffer once its stream has passed the allocation.
 * Driver: cuMemHostRegister, cuMemHostUnregister, cuMemHostAlloc, cuMemFreeHost; for a pool
 * cuMemGetMemPool, cuMemGetDefaultMemPool, cuMemPoolGetAccess, cuMemPoolSetAccess, and those of the
 * device pool.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_pinned_resource_create(
    gpumem_device *device, const gpumem_pinned_options *options, gpumem_resource **resource);

/*
 * Has a thread of the library pin slabs until `bytes` more are ready for allocations, and returns
 * at once; what is allocated meanwhile does not wait for it longer than for a slab of its own. Ends
 * early, with a warning in the log, where memory or maximum_bytes end; gpumem_resource_destroy
 * waits for the slab in the making. NOT_SUPPORTED: a pool. INVALID_ARGUMENT: no pinned resource
 * itself, or one with keep_nothing or keep_bytes, which gives slabs back. Thread-safe. Driver: as
 * the resource, in that thread.
 */
GPUMEM_API gpumem_status gpumem_pinned_warm_up(gpumem_resource *resource, size_t bytes);

/* Where a number of threads, or a plan of copies (gpumem/mapped.h), comes from. */
typedef enum gpumem_measured {
    GPUMEM_MEASURED_NEVER = 0,  /* the option's, or the default */
    GPUMEM_MEASURED_HERE = 1,   /* in this process */
    GPUMEM_MEASURED_BEFORE = 2, /* in another process: from the calibration file */
} gpumem_measured;

typedef struct gpumem_pinned_info {
    size_t size;
    gpumem_pinned_method method; /* that it settled on: REGISTERED or ALLOCATED */
    unsigned touch_threads;      /* for the next slab; 0 with ALLOCATED */
    gpumem_measured touch_measured;
    size_t slabs;
    uint64_t pinned_bytes;      /* of all slabs */
    uint64_t huge_bytes;        /* of those in reserved huge pages */
    int transparent_huge_pages; /* 1: the system gives them to memory that asks, as slabs do */
    /* "" or why the latest slab that asked for reserved huge pages has none. */
    char reserved_reason[160];
    char transparent_reason[96]; /* "" or why not */
} gpumem_pinned_info;

/*
 * What a pinned resource has settled on, and how its memory came. `info->size` is to be set.
 * NOT_SUPPORTED: a pool (gpumem_pool_get_info); INVALID_ARGUMENT: no pinned resource itself, or a
 * wrapper around one. Thread-safe; reads small files. Driver: cuDeviceGetName.
 *
 * The calibration file: on the first slab of 4 GiB or more of a resource that left touch_threads to
 * the library, parts of it are touched by different numbers of threads. Where fewer than the most
 * are faster by more than 5 %, they are used from then on. The number is kept: by CPU, driver and
 * GPU in $XDG_CACHE_HOME/gpumem, or
 * ~/.cache/gpumem, for later processes. Where that cannot be written, or holds what the library did
 * not write, it is as if there were none. Set-uid programs do without. To measure anew, delete it.
 */
GPUMEM_API gpumem_status gpumem_pinned_get_info(gpumem_resource *resource,
                                                gpumem_pinned_info *info);

/* ---- Managed memory -------------------------------------------------------------------------- */

/* Where the driver is told to keep the pages if it can (CU_MEM_ADVISE_SET_PREFERRED_LOCATION). */
typedef enum gpumem_managed_place {
    GPUMEM_MANAGED_ANYWHERE = 0, /* where they were used last */
    GPUMEM_MANAGED_ON_DEVICE = 1,
    GPUMEM_MANAGED_ON_HOST = 2,
} gpumem_managed_place;

typedef enum gpumem_managed_method {
    GPUMEM_MANAGED_ALLOCATED = 0, /* cuMemAllocManaged, for each buffer */
    /* A pool of managed memory (drivers from 13.0 on), in stream order: see `pool`. Where the
     * driver has none, ALLOCATED takes its place, which is not in stream order; properties' note
     * then begins with "allocations in place of a pool of managed memory" and says why. More about
     * it in gpumem/pool.h. */
    GPUMEM_MANAGED_POOL = 1,
} gpumem_managed_method;

typedef struct gpumem_managed_options {
    size_t size;
    gpumem_managed_place preferred;
    /* 1: pages may have copies where they are read (ALLOCATED only: the driver takes no advice
     * about memory of a pool). */
    int read_mostly;
    gpumem_managed_method method;
    /* POOL only: the driver's current or default pool of managed memory at the preferred place, or
     * an own one. */
    gpumem_pool_choice pool;
} gpumem_managed_options;
#define GPUMEM_MANAGED_OPTIONS(...) GPUMEM_OPTIONS(gpumem_managed_options, __VA_ARGS__)

/*
 * Memory at one address for the CPU and the devices, whose pages the driver moves to who uses them;
 * more of it than the device has can be used. ALLOCATED: each buffer is an allocation of the
 * driver's, and giving one back waits for the work of the context. POOL: the CPU may use a buffer
 * once its stream has passed the allocation; a stream that is being captured is refused
 * (NOT_SUPPORTED), since memory of a graph is the device's alone. NOT_SUPPORTED where the device
 * has no managed memory, or keeps the CPU from it while the device works. Advice, prefetch, discard
 * and questions about ranges are in gpumem/managed.h. Driver: cuMemAllocManaged, cuMemAdvise,
 * cuMemFree; for a pool cuMemGetMemPool, cuMemGetDefaultMemPool, and those of the device pool.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_managed_resource_create(
    gpumem_device *device, const gpumem_managed_options *options, gpumem_resource **resource);

/* ---- Virtual memory -------------------------------------------------------------------------- */

typedef enum gpumem_allocation_type {
    GPUMEM_ALLOCATION_PINNED = 0, /* memory that stays where it is */
    /* The driver knows the type, and cuMemCreate makes none: NOT_SUPPORTED wherever it is asked
     * for. gpumem_managed_resource_create gives managed memory. */
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
     * FABRIC, POSIX_FD, NONE is taken, and properties tell which and why; with `handle_strict` the
     * resource is refused instead. */
    gpumem_handle_type handle_type;
    int handle_strict;
    int gpu_direct_rdma; /* 1: RDMA-capable if the platform can; properties' note says if not */
    int compression;     /* 1: compressible, likewise a wish */
    gpumem_granularity_kind granularity;
    /* Where to reserve, if free: a multiple of the granularity and of addr_align. 0: the driver
     * decides. */
    CUdeviceptr addr_hint;
    size_t addr_align; /* of reservations, bytes, a power of two; 0: the granularity */
    const int *peers;  /* ordinals of further devices that get access; copied */
    size_t peer_count;
    gpumem_access self_access; /* of the owning device */
    gpumem_access peer_access; /* of the peers */
    /* Address space reserved ahead for each buffer that does not ask for its own capacity, bytes.
     * 0: exactly the buffer's size, rounded up. It costs no memory. */
    size_t capacity;
    /* Physical handles. Large ones are far cheaper: giving access costs 26 us a handle, whatever
     * its size. Exporting one of 1 GiB took 165 ms where 512 MiB took under 1 ms, hence the
     * default maximum. An allocation is cut into handles of the maximum and a rest. */
    size_t chunk_minimum; /* bytes; 0: the granularity */
    size_t chunk_maximum; /* bytes; 0: 512 MiB; with handle type NONE as give_back_bytes says */
    /* Growth by little takes a handle of up to this share of the buffer's memory instead, so that
     * many small steps do not make many small handles. Percent; 0: 50. */
    unsigned growth_percent;
    int exact_growth; /* 1: never more than was asked for, rounded up to chunk_minimum */
    /* In which units memory can be given back: no handle is larger, so that shrink and decommit
     * find handles that lie wholly behind or inside. A multiple of the granularity, no less than
     * chunk_minimum; 0: no bound of its own. Memory of handle type NONE then comes in one handle a
     * step of growth, whatever its size, which is the fastest, and a shrink into that step gives
     * nothing of it back. */
    size_t give_back_bytes;
    /* Bytes of freed memory that are kept: whole ranges, mapped as they were, and single handles
     * from shrinks. An allocation of a size, capacity and alignment that were freed then makes no
     * call of the driver that costs. 0: nothing is kept. With a cache memory that only devices
     * reach is stream-ordered, and properties say so: usable on the stream of allocation at once,
     * elsewhere after what orders it. Counted in gpumem_stats.cached_bytes, given back by trim and
     * when memory runs out. Memory that was exported is never kept: others may still map it. */
    uint64_t cache_bytes;
} gpumem_virtual_options;
#define GPUMEM_VIRTUAL_OPTIONS(...) GPUMEM_OPTIONS(gpumem_virtual_options, __VA_ARGS__)

/*
 * Buffers whose address does not move as they grow: address space is reserved for the capacity, and
 * memory is mapped into it. INVALID_ARGUMENT: chunk sizes, addr_hint or addr_align that
 * are no multiples or that no address meets, unknown peers, nodes that do not exist.
 * NOT_SUPPORTED: no virtual memory here, or what was asked for strictly.
 * Driver: cuMemAddressReserve, cuMemCreate, cuMemMap, cuMemSetAccess and their opposites,
 * cuMemGetAllocationGranularity.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_virtual_resource_create(
    gpumem_device *device, const gpumem_virtual_options *options, gpumem_resource **resource);

/*
 * Sets what the device with this ordinal (the owning one or another) may do with all present and
 * future buffers of a virtual resource, whatever single buffers were given before. Whole or
 * nothing; only what a driver that refuses everything will not undo is undone by the next change
 * or trim. Access that is taken away is missed by work as a mapping would be: so this waits, by
 * events, for the streams of every buffer that loses some, and no buffer of the resource is
 * allocated, grown or freed while it is taken. Give such buffers no new work meanwhile.
 * BUSY: such a buffer has a hold or an export, one of its streams captures or is another thread's
 * per-thread stream, or another resource (a caching one) gives out memory of this one. The
 * library's wrappers of a virtual resource are taken for it. NOT_SUPPORTED: no virtual resource, or
 * a device that cannot reach this one's memory. Thread-safe. gpumem_resource_properties tells what
 * the resource was made with. Driver: cuMemSetAccess, 26 us a handle.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status
gpumem_virtual_resource_set_access(gpumem_resource *resource, int device, gpumem_access access);

/* The same for all other devices at once: those in `peers` get `access`, and the rest none. The
 * owning device may be named and keeps what it has. `count` 0: no peers. */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_virtual_resource_set_peers(
    gpumem_resource *resource, const int *peers, size_t count, gpumem_access access);

/* ---- Wrappers -------------------------------------------------------------------------------- */

/*
 * Refuses what would bring the bytes in its live buffers over `maximum_bytes`: OUT_OF_CAPACITY.
 * The wrapped resource must outlive it and may still be used directly.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_limit_resource_create(gpumem_resource *upstream,
                                                                        uint64_t maximum_bytes,
                                                                        gpumem_resource **resource);

/* One line for each allocation, resize and free, failed ones with their reason. */
typedef struct gpumem_logging_options {
    size_t size;
    gpumem_log_level level; /* 0 is GPUMEM_LOG_ERROR: set it; only used when fn is NULL */
    const char *name;       /* starts each line; NULL: the wrapped resource's kind. Copied */
    gpumem_log_fn fn;       /* NULL: the library's log */
    void *user;
} gpumem_logging_options;
#define GPUMEM_LOGGING_OPTIONS(...) GPUMEM_OPTIONS(gpumem_logging_options, __VA_ARGS__)

/* Logs, and counts (gpumem_resource_get_stats) what goes through it alone. */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_logging_resource_create(
    gpumem_resource *upstream, const gpumem_logging_options *options, gpumem_resource **resource);

/* ---- Your own -------------------------------------------------------------------------------- */

/* What a buffer asks of its resource. Values are validated before. */
typedef struct gpumem_request {
    size_t size;
    size_t bytes;     /* more than 0 */
    size_t alignment; /* a power of two, 1 at least */
    size_t capacity;  /* 0, or the bytes that it may grow to, no less than `bytes` */
    CUstream stream;
} gpumem_request;

/* What it got. The resource fills it; the library keeps it and hands it back. */
typedef struct gpumem_allocation {
    size_t size;
    CUdeviceptr pointer;
    void *host_pointer;     /* NULL if the CPU has no access */
    size_t bytes;           /* usable: the requested, not the rounded size */
    size_t committed_bytes; /* memory behind it */
    size_t capacity;        /* reachable by resize; `bytes` if it cannot grow */
    void *cookie;           /* the resource's */
    /* Of a resource with `upstream`: the upstream's buffer, when this is the whole of it and begins
     * where it does. Exports pass through to it. NULL: none, or a part of one. */
    gpumem_buffer *buffer;
} gpumem_allocation;

typedef struct gpumem_resource_ops {
    size_t size;
    /* The kind that properties and messages give, copied, at most 47 bytes; NULL: "user". It wins:
     * what the properties function writes there is not used. */
    const char *kind;
    /* Fills *allocation, or fails and leaves nothing behind. The device's context is current. A
     * message can be set with gpumem_resource_fail. Must be thread-safe, like all of these. */
    gpumem_status (*allocate)(void *user, const gpumem_request *request,
                              gpumem_allocation *allocation);
    /* Takes back; cannot fail. Without `stream_ordered` it is called when no stream that the
     * library was told of uses the memory any more, and `stream` is that of the allocation. With
     * it, it is called at once, and the memory must stay whole until `stream` has got here; where
     * that cannot be (captures, another thread's stream) it is called later with an idle stream of
     * the library's. It may free buffers of other resources, but not allocate. */
    void (*deallocate)(void *user, const gpumem_allocation *allocation, CUstream stream);
    /* NULL if it cannot. Changes *allocation's bytes, committed_bytes, never pointer or capacity;
     * whole or nothing. `bytes` is more than 0 and at most the capacity. Shrinking is called when
     * no stream uses the memory. `stream` is the caller's, NULL included. */
    gpumem_status (*resize)(void *user, gpumem_allocation *allocation, size_t bytes,
                            CUstream stream);
    /* Fills what it knows; everything is zero before, granularity 1. Called once, at creation. What
     * is not so is not believed: exportable is 0 unless the upstream is. `kind` is not asked for:
     * see there. */
    void (*properties)(void *user, gpumem_resource_properties *properties);
    /* NULL, or adds members that the library cannot know: cached, committed. Called any time. */
    void (*stats)(void *user, gpumem_stats *stats);
    /* NULL, or gives caches back down to keep_bytes. Called from any thread, also from inside an
     * allocation of this or another resource when memory runs out: a resource that allocates from
     * another one must not hold a lock over that which trim takes. Buffers may be freed here. */
    void (*trim)(void *user, size_t keep_bytes);
    /* NULL, or called at the end, when no allocation is left. */
    void (*destroy)(void *user);
    /*
     * NULL, or the resource whose buffers this one hands on, of the same device: a wrapper. The
     * upstream cannot be destroyed before it. The device counts bytes and allocations where the
     * upstream does, once; the wrapper's own statistics tell what goes through it, and of its
     * `stats` the device takes cached_bytes alone. Exports pass through to gpumem_allocation.buffer
     * when the upstream's buffers can be exported; properties.exportable says so.
     */
    gpumem_resource *upstream;
} gpumem_resource_ops;

/*
 * A resource of your own functions, which are copied. `allocate`, `deallocate` and `properties`
 * are needed. On failure `destroy` is not called.
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
