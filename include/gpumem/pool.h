/*
 * The driver's memory pools, on which the device pool and pinned host memory of the method
 * GPUMEM_PINNED_POOL are built (gpumem/resource.h): information, attributes, and sharing a pool and
 * its buffers with other processes.
 *
 * The owner creates a pool with `ipc`, sends its share handle to another process once, and then a
 * few bytes for each buffer. The other process creates a resource from the handle, a mapped pool,
 * which cannot allocate, and imports the buffers into it.
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

/* ---- Information ----------------------------------------------------------------------------- */

typedef struct gpumem_pool_info {
    size_t size;
    CUmemoryPool handle;    /* the driver's: borrowed, valid while the resource is */
    int owned;              /* 1: destroyed with the resource; 0: the current or default pool, which
                               remains. A mapped pool is owned; its memory is not */
    int ipc_enabled;        /* 1: can be exported, or was imported */
    int mapped;             /* 1: the pool of another process; cannot allocate */
    int device_accessible;  /* as in the resource's properties */
    int host_accessible;    /* likewise */
    int device_id;          /* ordinal of the device whose memory it is; -1: host memory, or
                               managed memory that prefers no device */
    int numa_node;          /* of host memory; -1: placed by the system */
    int has_uuid;           /* 1: `uuid` is set: in pools with ipc, and in mapped ones that got it
                               from their share handle or gpumem_pool_register */
    unsigned char uuid[16]; /* random, chosen by the owner; the same in all processes */
} gpumem_pool_info;

/* Set `info->size` before the call. No driver call, does not block. */
GPUMEM_API gpumem_status gpumem_pool_get_info(gpumem_resource *resource, gpumem_pool_info *info);

/* The driver's handle: borrowed, and not to be destroyed. No driver call, does not block. */
GPUMEM_API gpumem_status gpumem_pool_get_handle(gpumem_resource *resource, CUmemoryPool *handle);

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

/*
 * Gives unused memory back to the system until the pool holds at most `keep_bytes`, including
 * memory in use. This also trims a pool that is not owned, which gpumem_resource_trim leaves alone.
 * NOT_SUPPORTED: a mapped pool. May block in the driver. Driver: cuMemPoolTrimTo.
 */
GPUMEM_API gpumem_status gpumem_pool_trim(gpumem_resource *resource, uint64_t keep_bytes);

/* ---- Access ---------------------------------------------------------------------------------- */

/*
 * Sets what another device (ordinal) may do with all memory of the pool, including memory already
 * allocated: READ_WRITE or NONE, since the driver's pools support nothing in between (READ is
 * NOT_SUPPORTED). The resource's own device keeps its access: READ_WRITE changes nothing, NONE is
 * INVALID_ARGUMENT. All or nothing. A pool that is not owned is changed for all its users. Queued
 * work of the other device faults once its access is taken away; the caller must wait for it first.
 * NOT_SUPPORTED: a device that cannot reach the pool's. In a pool of managed memory, which every
 * device can reach, access is advice about its pages (ACCESSED_BY).
 * Does not block. Driver: cuMemPoolSetAccess, cuMemPoolGetAccess.
 */
GPUMEM_API gpumem_status gpumem_pool_set_access(gpumem_resource *resource, int device,
                                                gpumem_access access);

/* What a device may do according to the driver; the resource's own device too. Driver:
 * cuMemPoolGetAccess. */
GPUMEM_API gpumem_status gpumem_pool_get_access(gpumem_resource *resource, int device,
                                                gpumem_access *access);

/* Sets all other devices at once: those in `peers` (ordinals; the pool's own device may be named
 * and keeps its access) can read and write, the rest have no access. `count` 0: no peers. All or
 * nothing; as above. */
GPUMEM_API gpumem_status gpumem_pool_set_peers(gpumem_resource *resource, const int *peers,
                                               size_t count);

/* The present peers according to the driver: their number, and the first `room` ordinals,
 * ascending. `peers` may be NULL if `room` is 0. */
GPUMEM_API gpumem_status gpumem_pool_get_peers(gpumem_resource *resource, int *peers, size_t room,
                                               size_t *count);

/* ---- Sharing a pool -------------------------------------------------------------------------- */

/*
 * What another process needs to map a pool. A POSIX_FD is sent over a Unix socket (SCM_RIGHTS, or
 * gpumem_pool_send) and has a different number there. For a descriptor that arrived without the
 * rest, set `size`, `descriptor` and `location`, and `numa_node` to -1.
 */
typedef struct gpumem_pool_share_handle {
    size_t size;
    gpumem_handle_type type;  /* POSIX_FD or FABRIC */
    int descriptor;           /* for POSIX_FD */
    unsigned char fabric[64]; /* for FABRIC */
    gpumem_location location; /* DEVICE, else host memory */
    int numa_node;            /* of host memory; -1: placed by the system, or unknown */
    unsigned char uuid[16];   /* of the pool; all zero: unknown */
} gpumem_pool_share_handle;

/*
 * Exports the pool at the first call; later calls return the same handle. Set `handle->size` before
 * the call. The descriptor is close-on-exec, belongs to the resource and is closed with it: the
 * caller must not close it. NOT_SUPPORTED: made without `ipc`, or mapped. NOT_PERMITTED: a FABRIC
 * handle without IMEX. Does not block for long. Driver: cuMemPoolExportToShareableHandle.
 */
GPUMEM_API gpumem_status gpumem_pool_get_share_handle(gpumem_resource *resource,
                                                      gpumem_pool_share_handle *handle);

/*
 * Creates a resource for another process's pool: mapped and owned; allocating from it is
 * NOT_SUPPORTED. The caller destroys it, after its buffers; the descriptor remains the caller's and
 * is not consumed. Each call creates a new resource, even for a pool that is already mapped. Device
 * memory must belong to `device`. DRIVER: the driver does not accept the handle as a pool. If the
 * device gets no access to host memory, only the CPU can use the buffers, and the properties' note
 * says so. Driver: cuMemPoolImportFromShareableHandle, cuMemPoolGetAccess, cuMemPoolSetAccess.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_pool_from_share_handle(
    gpumem_device *device, const gpumem_pool_share_handle *handle, gpumem_resource **resource);

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

/*
 * A registry of mapped pools, in which the receiver of a buffer finds its pool. register enters a
 * mapped resource under `uuid`. *registered, if `registered` is not NULL, is then the resource
 * under that UUID: this one, or one registered earlier, which stays registered; `resource` then
 * still has to be destroyed by the caller. from_registry finds it in the same opened library;
 * INVALID_ARGUMENT if there is none. The registry owns nothing: a resource leaves it when it is
 * destroyed, and the caller who destroys it must make sure that nobody has just found it.
 * INVALID_ARGUMENT: not a mapped pool, or a `uuid` that is all zero or not the resource's own. No
 * driver call, do not block.
 */
GPUMEM_API gpumem_status gpumem_pool_register(gpumem_resource *resource,
                                              const unsigned char uuid[16],
                                              gpumem_resource **registered);
GPUMEM_API gpumem_status gpumem_pool_from_registry(gpumem_library *library,
                                                   const unsigned char uuid[16],
                                                   gpumem_resource **resource);

/* ---- Sharing a buffer of a pool -------------------------------------------------------------- */

/* What another process needs in addition to the pool: sent unchanged, by any means. */
typedef struct gpumem_pool_share_buffer {
    size_t size;
    unsigned char pool[16]; /* the pool's UUID, for gpumem_pool_from_registry */
    uint64_t bytes;         /* of the buffer */
    uint64_t offset;        /* of the buffer in the exported allocation: due to alignment */
    unsigned char data[64]; /* the driver's (CUmemPoolPtrExportData) */
} gpumem_pool_share_buffer;

/*
 * Exports a buffer of a pool with `ipc`, or of one of the library's own wrappers around it. Exports
 * the pool first if that has not been done. Set `shared->size` before the call. Nothing is held:
 * the driver requires that the buffer stay allocated until every importer has freed its own; keep
 * it, or hold it (gpumem_buffer_hold). NOT_SUPPORTED: a pool without `ipc`, an imported buffer, or
 * a buffer of another resource. Does not block for long. Driver: cuMemPoolExportPointer.
 */
GPUMEM_API gpumem_status gpumem_pool_export_buffer(gpumem_buffer *buffer,
                                                   gpumem_pool_share_buffer *shared);

/*
 * Maps an exported buffer as a buffer of the mapped `resource`. It can be used on any stream at
 * once, provided that the other process has finished with it. It cannot grow. A free gives it back
 * when the streams that were named for it have passed, and gpumem_device_trim waits for that. The
 * same buffer imported again has the same address, and stays mapped until the last import is freed.
 * DATA: not an exported buffer of this pool, or smaller than `bytes`. INVALID_ARGUMENT: `resource`
 * is not a mapped pool. Driver: cuMemPoolImportPointer, cuPointerGetAttribute, cuMemFreeAsync,
 * cuStreamSynchronize, cuStreamCreate.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_pool_import_buffer(
    gpumem_resource *resource, const gpumem_pool_share_buffer *shared, gpumem_buffer **buffer);

#ifdef __cplusplus
}
#endif

#endif
