/*
 * The driver's memory pools: what the device pool and pinned host memory of the method
 * GPUMEM_PINNED_POOL are made of (gpumem/resource.h). What a pool is, its attributes, and sharing
 * it and its buffers with other processes.
 *
 * The owner makes a pool with `ipc`, hands its allocation handle to another process once, and then
 * a few bytes for each buffer. The other process makes a resource of the handle, a mapped pool,
 * from which nothing is allocated, and imports the buffers into it.
 *
 * The calls take the resource itself, not a wrapper around it; any other resource is
 * INVALID_ARGUMENT, the slabs that stand in for a missing host pool NOT_SUPPORTED. They are
 * thread-safe.
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

/* ---- What a pool is -------------------------------------------------------------------------- */

typedef struct gpumem_pool_info {
    size_t size;
    CUmemoryPool handle;    /* the driver's: borrowed, valid while the resource is */
    int owned;              /* 1: destroyed with the resource; 0: the current or default pool, which
                               stays. A mapped pool is owned, the memory behind it is not */
    int ipc_enabled;        /* it can be exported, or was imported */
    int mapped;             /* the pool of another process: nothing can be allocated */
    int device_accessible;  /* as in the resource's properties */
    int host_accessible;    /* likewise */
    int device_id;          /* ordinal of the device whose memory it is; -1: host memory, or
                               managed memory that prefers no device */
    int numa_node;          /* of host memory; -1: placed by the system */
    int has_uuid;           /* 1: `uuid` is set. Of pools with ipc, and of mapped ones that were
                               told: by their allocation handle or by gpumem_pool_register */
    unsigned char uuid[16]; /* random, made by the owner; equal in all processes that share it */
} gpumem_pool_info;

/* `info->size` is to be set. No driver call, does not block. */
GPUMEM_API gpumem_status gpumem_pool_get_info(gpumem_resource *resource, gpumem_pool_info *info);

/* The driver's handle alone: borrowed, to be asked and used, not to be destroyed. No driver call,
 * does not block. */
GPUMEM_API gpumem_status gpumem_pool_get_handle(gpumem_resource *resource, CUmemoryPool *handle);

/* The driver's numbers (CUmemPool_attribute). */
typedef enum gpumem_pool_attribute {
    /* Whether memory may be reused on another stream: when an event orders the two streams, ... */
    GPUMEM_POOL_REUSE_FOLLOW_EVENT_DEPENDENCIES = 1, /* 1 or 0; writable */
    /* ... when the work before the free happens to be done, ... */
    GPUMEM_POOL_REUSE_ALLOW_OPPORTUNISTIC = 2, /* 1 or 0; writable */
    /* ... or by a dependency that the driver inserts. */
    GPUMEM_POOL_REUSE_ALLOW_INTERNAL_DEPENDENCIES = 3, /* 1 or 0; writable */
    GPUMEM_POOL_RELEASE_THRESHOLD = 4, /* bytes kept although nothing uses them; writable */
    GPUMEM_POOL_RESERVED_CURRENT = 5,  /* bytes that the pool holds */
    GPUMEM_POOL_RESERVED_HIGH = 6,     /* their highest number; writing 0 starts it anew */
    GPUMEM_POOL_USED_CURRENT = 7,      /* bytes in allocations */
    GPUMEM_POOL_USED_HIGH = 8,         /* their highest number; writing 0 starts it anew */
} gpumem_pool_attribute;

/*
 * Reads or writes one. INVALID_ARGUMENT: no such attribute, one that is only read, a flag that is
 * neither 0 nor 1, a high-water mark set to anything but 0. NOT_SUPPORTED: a mapped pool, of which
 * the driver tells nothing. Writing the attributes of a pool that is not owned changes it for all
 * who use it. Does not block. Driver: cuMemPoolGetAttribute, cuMemPoolSetAttribute.
 */
GPUMEM_API gpumem_status gpumem_pool_get_attribute(gpumem_resource *resource,
                                                   gpumem_pool_attribute attribute,
                                                   uint64_t *value);
GPUMEM_API gpumem_status gpumem_pool_set_attribute(gpumem_resource *resource,
                                                   gpumem_pool_attribute attribute, uint64_t value);

/*
 * Gives memory that nothing uses back to the system, until the pool holds at most `keep_bytes`,
 * what is in use counted among them: also of a pool that is not owned, which gpumem_resource_trim
 * leaves alone. NOT_SUPPORTED: a mapped pool. May block in the driver. Driver: cuMemPoolTrimTo.
 */
GPUMEM_API gpumem_status gpumem_pool_trim(gpumem_resource *resource, uint64_t keep_bytes);

/* ---- Who may use its memory ------------------------------------------------------------------ */

/*
 * What another device (ordinal) may do with all memory of the pool, what is allocated already
 * included: READ_WRITE or NONE, since the driver's pools know nothing in between (READ is
 * NOT_SUPPORTED). The resource's own device keeps its access: READ_WRITE changes nothing, NONE is
 * INVALID_ARGUMENT. Whole or nothing. A pool that is not owned is changed for all who use it. Work
 * that the other device has queued misses access that is taken away, and faults: it is for the
 * caller to wait for it. NOT_SUPPORTED: a device that cannot reach the pool's. Of a pool of managed
 * memory, which everybody reaches, access is advice that is told of its pages (ACCESSED_BY).
 * Does not block. Driver: cuMemPoolSetAccess, cuMemPoolGetAccess.
 */
GPUMEM_API gpumem_status gpumem_pool_set_access(gpumem_resource *resource, int device,
                                                gpumem_access access);

/* What the driver says a device may do, the resource's own included. Driver: cuMemPoolGetAccess. */
GPUMEM_API gpumem_status gpumem_pool_get_access(gpumem_resource *resource, int device,
                                                gpumem_access *access);

/* All other devices at once: those in `peers` (ordinals; the own one may be named and keeps what it
 * has) can read and write, the rest nothing. `count` 0: no peers. Whole or nothing; as above. */
GPUMEM_API gpumem_status gpumem_pool_set_peers(gpumem_resource *resource, const int *peers,
                                               size_t count);

/* The peers, as the driver has them now: their number, and the first `room` ordinals, rising.
 * `peers` may be NULL with a `room` of 0. */
GPUMEM_API gpumem_status gpumem_pool_get_peers(gpumem_resource *resource, int *peers, size_t room,
                                               size_t *count);

/* ---- Sharing a pool -------------------------------------------------------------------------- */

/*
 * What another process needs to map a pool. A POSIX_FD is sent over a Unix socket (SCM_RIGHTS, or
 * gpumem_pool_send) and has another number there. For a descriptor that came without the rest set
 * `size`, `descriptor` and `location`, and `numa_node` to -1.
 */
typedef struct gpumem_pool_share_handle {
    size_t size;
    gpumem_handle_type type;  /* POSIX_FD or FABRIC */
    int descriptor;           /* for POSIX_FD */
    unsigned char fabric[64]; /* for FABRIC */
    gpumem_location location; /* DEVICE, else host memory */
    int numa_node;            /* of host memory; -1: placed by the system, or not known */
    unsigned char uuid[16];   /* of the pool; all zero: not known */
} gpumem_pool_share_handle;

/*
 * Exports the pool, at the first call; later ones give the same. `handle->size` is to be set. The
 * descriptor is close-on-exec, stays the resource's and is closed with it: the caller must not
 * close it. NOT_SUPPORTED: made without `ipc`, or mapped. NOT_PERMITTED: a FABRIC handle without
 * IMEX. Does not block for long. Driver: cuMemPoolExportToShareableHandle.
 */
GPUMEM_API gpumem_status gpumem_pool_get_share_handle(gpumem_resource *resource,
                                                      gpumem_pool_share_handle *handle);

/*
 * A resource for another process's pool: mapped, owned, nothing can be allocated from it
 * (NOT_SUPPORTED). The caller destroys it, after its buffers; the descriptor stays the caller's and
 * is not consumed. Each call makes a resource of its own, also for a pool that is known. Device
 * memory must be of `device`. DRIVER: the driver does not take the handle for a pool. Where the
 * device gets no access to host memory, only the CPU can use its buffers, and the properties' note
 * says so. Driver: cuMemPoolImportFromShareableHandle, cuMemPoolGetAccess, cuMemPoolSetAccess.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_pool_from_share_handle(
    gpumem_device *device, const gpumem_pool_share_handle *handle, gpumem_resource **resource);

/*
 * The handle over a connected Unix socket (stream or seqpacket): send waits for the other side's
 * word that it has mapped the pool, receive makes the resource. Of the options timeout_ms alone is
 * used. Errors and blocking as gpumem_export_send and gpumem_import_receive; send also as
 * gpumem_pool_get_share_handle. NOT_SUPPORTED: a FABRIC handle, which is sent as the bytes that it
 * is. One send at a time per socket.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_pool_send(gpumem_resource *resource, int socket,
                                                            const gpumem_share_options *options);
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_pool_receive(gpumem_device *device, int socket,
                                                               const gpumem_share_options *options,
                                                               gpumem_resource **resource);

/*
 * Mapped pools by name, so that whoever is sent a buffer finds its pool. register enters a mapped
 * resource under `uuid`, and *registered (NULL: not wanted) is the one under that name: this one,
 * or the one that was registered before, which stays; then `resource` is still the caller's to
 * destroy. from_registry finds it in the same opened library; INVALID_ARGUMENT where there is none.
 * The registry owns nothing: a resource leaves it when it is destroyed, and who destroys it sees to
 * it that nobody has just found it. INVALID_ARGUMENT: not a mapped pool, a `uuid` of zeros or other
 * than the resource's own. No driver call, do not block.
 */
GPUMEM_API gpumem_status gpumem_pool_register(gpumem_resource *resource,
                                              const unsigned char uuid[16],
                                              gpumem_resource **registered);
GPUMEM_API gpumem_status gpumem_pool_from_registry(gpumem_library *library,
                                                   const unsigned char uuid[16],
                                                   gpumem_resource **resource);

/* ---- Sharing a buffer of a pool -------------------------------------------------------------- */

/* What another process needs besides the pool: to be sent as it is, by any way. */
typedef struct gpumem_pool_share_buffer {
    size_t size;
    unsigned char pool[16]; /* the pool's UUID, for gpumem_pool_from_registry */
    uint64_t bytes;         /* of the buffer */
    uint64_t offset;        /* of the buffer in what the driver exports: its alignment */
    unsigned char data[64]; /* the driver's (CUmemPoolPtrExportData) */
} gpumem_pool_share_buffer;

/*
 * Exports a buffer of a pool with `ipc`; also one of the library's own wrappers around it. Exports
 * the pool first where that was not done. `shared->size` is to be set. Nothing is held: the buffer
 * must stay allocated until every importer has freed its own, as the driver demands; keep it, or
 * hold it (gpumem_buffer_hold). NOT_SUPPORTED: a pool without `ipc`, an imported buffer, or one of
 * another resource. Does not block for long. Driver: cuMemPoolExportPointer.
 */
GPUMEM_API gpumem_status gpumem_pool_export_buffer(gpumem_buffer *buffer,
                                                   gpumem_pool_share_buffer *shared);

/*
 * Maps an exported buffer, as one of the mapped `resource`. It can be used at once on any stream,
 * as far as the other process has finished with it; it cannot grow; free gives it back when the
 * streams that were named for it have passed, and gpumem_device_trim waits for that. The same
 * buffer imported again is at the same address, and mapped until the last is freed. DATA: no
 * exported buffer of this pool, or not as large as it says. INVALID_ARGUMENT: `resource` is no
 * mapped pool. Driver: cuMemPoolImportPointer, cuPointerGetAttribute, cuMemFreeAsync,
 * cuStreamSynchronize, cuStreamCreate.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_pool_import_buffer(
    gpumem_resource *resource, const gpumem_pool_share_buffer *shared, gpumem_buffer **buffer);

#ifdef __cplusplus
}
#endif

#endif
