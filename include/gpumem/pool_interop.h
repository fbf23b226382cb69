/*
 * Pools of other processes in pieces, for programs whose peers do not use gpumem/pool.h's pair
 * gpumem_pool_send and gpumem_pool_receive: cuda.core and hand-written code exchange a pool's
 * handle by means of their own, and then a few bytes for each buffer.
 *
 * The calls take the resource itself, not a wrapper around it. INVALID_ARGUMENT: any other
 * resource. All are thread-safe.
 */
#ifndef GPUMEM_POOL_INTEROP_H
#define GPUMEM_POOL_INTEROP_H

#include <gpumem/buffer.h>
#include <gpumem/pool.h>
#include <gpumem/types.h>

#ifdef __cplusplus
extern "C" {
#endif

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
