/*
 * The driver's memory pools: the device pool, and what can be asked of any pool, also of those that
 * pinned host memory of the method GPUMEM_PINNED_POOL and managed memory of the method
 * GPUMEM_MANAGED_POOL have.
 *
 * To share a pool, the owner creates it with `ipc` and sends it to another process once; that
 * creates a resource from it, a mapped pool, which cannot allocate. The buffers then follow by
 * gpumem/share.h, or in pieces by gpumem/pool_interop.h.
 *
 * The calls take the resource itself, not a wrapper around it. INVALID_ARGUMENT: any other
 * resource. NOT_SUPPORTED: the slabs that replace a missing host pool. All are thread-safe.
 */
#ifndef GPUMEM_POOL_H
#define GPUMEM_POOL_H

#include <gpumem/buffer.h>
#include <gpumem/resource.h>
#include <gpumem/share.h>
#include <gpumem/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Device pool ----------------------------------------------------------------------------- */

/* Options of gpumem_device_pool_resource_create. */
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
    bool ipc;                       /* exportable by `handle_type` (gpumem/pool.h) */
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

/* ---- Information ----------------------------------------------------------------------------- */

/* What gpumem_pool_get_info fills in. */
typedef struct gpumem_pool_info {
    size_t size;
    CUmemoryPool handle; /* the driver's: borrowed, valid while the resource is */
    bool owned; /* true: destroyed with the resource; false: the current or default pool, which
                               remains. A mapped pool is owned; its memory is not */
    bool ipc_enabled;       /* can be exported, or was imported */
    bool mapped;            /* the pool of another process; cannot allocate */
    bool device_accessible; /* as in the resource's properties */
    bool host_accessible;   /* likewise */
    int ordinal;            /* ordinal of the device whose memory it is; -1: host memory, or
                               managed memory that prefers no device */
    int numa_node;          /* of host memory; -1: placed by the system */
    bool has_uuid;          /* `uuid` is set: in pools with ipc, and in mapped ones that got it
                               from their share handle or gpumem_pool_register */
    unsigned char uuid[16]; /* random, chosen by the owner; the same in all processes */
} gpumem_pool_info;

/* Set `info->size` before the call. No driver call, does not block. */
GPUMEM_API gpumem_status gpumem_pool_get_info(gpumem_resource *resource, gpumem_pool_info *info);

/* The driver's numbers (CUmemPool_attribute). */
typedef enum gpumem_pool_attribute {
    /* Whether memory may be reused on another stream: when an event orders the two streams, ... */
    GPUMEM_POOL_REUSE_FOLLOW_EVENT_DEPENDENCIES = 1, /* 1 or 0; writable */
    /* ... when the work before the free happens to be done, ... */
    GPUMEM_POOL_REUSE_ALLOW_OPPORTUNISTIC = 2, /* 1 or 0; writable */
    /* ... or by a dependency that the driver inserts. */
    GPUMEM_POOL_REUSE_ALLOW_INTERNAL_DEPENDENCIES = 3, /* 1 or 0; writable */
    GPUMEM_POOL_RELEASE_THRESHOLD = 4,                 /* unused bytes to keep; writable */
    GPUMEM_POOL_RESERVED_CURRENT = 5,                  /* bytes held by the pool */
    GPUMEM_POOL_RESERVED_HIGH = 6,                     /* its highest value; writing 0 resets it */
    GPUMEM_POOL_USED_CURRENT = 7,                      /* bytes in allocations */
    GPUMEM_POOL_USED_HIGH = 8,                         /* its highest value; writing 0 resets it */
} gpumem_pool_attribute;

/*
 * Reads or writes an attribute. INVALID_ARGUMENT: no such attribute, a read-only one, a flag that
 * is neither 0 nor 1, a high-water mark set to anything but 0. NOT_SUPPORTED: a mapped pool, for
 * which the driver reports nothing. Writing an attribute of a pool that is not owned changes it for
 * all its users. Does not block. Driver: cuMemPoolGetAttribute, cuMemPoolSetAttribute.
 */
GPUMEM_API gpumem_status gpumem_pool_get_attribute(gpumem_resource *resource,
                                                   gpumem_pool_attribute attribute,
                                                   uint64_t *value);
GPUMEM_API gpumem_status gpumem_pool_set_attribute(gpumem_resource *resource,
                                                   gpumem_pool_attribute attribute, uint64_t value);

/* ---- Sharing a pool -------------------------------------------------------------------------- */

/*
 * Transfer the handle over a connected Unix socket (stream or seqpacket): send waits until the
 * other side confirms that it has mapped the pool; receive creates the resource. Of the options
 * only timeout_ms is used. Errors and blocking as gpumem_export_send and gpumem_import_receive;
 * send also as gpumem_pool_get_share_handle. NOT_SUPPORTED: a FABRIC handle, whose bytes can be
 * sent by any means. One send at a time per socket.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_pool_send(gpumem_resource *resource, int socket,
                                                            const gpumem_share_options *options);
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_pool_receive(gpumem_device *device, int socket,
                                                               const gpumem_share_options *options,
                                                               gpumem_resource **resource);

#ifdef __cplusplus
}
#endif

#endif
