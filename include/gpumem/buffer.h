/*
 * Buffers: memory from a resource, with one owner at a time.
 *
 * Memory is never taken from under work that the library knows of: on the stream of the allocation,
 * on streams named with gpumem_buffer_use, and on the stream given to the call. The library waits
 * for those streams by events, never for the whole device. They must exist until the buffer is
 * freed; a stream that is capturing at that time, until the capture has ended and the free has been
 * carried out. CU_STREAM_PER_THREAD means the stream of the thread that names it: if another thread
 * frees the buffer, the memory waits until the naming thread has made a call to this library
 * (docs/contexts.md, which also covers stream captures; no call here disturbs them).
 *
 * A buffer may be passed between threads, but used by only one at a time. Different threads may use
 * different buffers of one resource at once.
 */
#ifndef GPUMEM_BUFFER_H
#define GPUMEM_BUFFER_H

#include <gpumem/resource.h>
#include <gpumem/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Options of gpumem_buffer_allocate. */
typedef struct gpumem_buffer_options {
    size_t size;
    /* The stream of the allocation. NULL: the legacy default stream, as in CUDA.
     * GPUMEM_STREAM_NONE: none of the caller's streams; all streams can use the memory at once (a
     * pool uses a stream of its own), and it goes back when the streams named to gpumem_buffer_use
     * and free have passed. */
    CUstream stream;
    size_t alignment; /* bytes, a power of two; 0: the resource's, at least 256 */
    size_t capacity;  /* bytes it may grow to, address space only; 0: the resource's default */
} gpumem_buffer_options;
#define GPUMEM_BUFFER_OPTIONS(...) GPUMEM_OPTIONS(gpumem_buffer_options, __VA_ARGS__)

/*
 * Allocates `bytes`, more than 0. The caller frees the buffer. From a stream-ordered resource it
 * can be used on `stream` at once, and elsewhere once ordered after `stream`; from other resources,
 * anywhere at once. Its content is undefined.
 * OUT_OF_MEMORY, OUT_OF_HOST_MEMORY: even after waiting for deferred frees and trimming the
 * device's caches. OUT_OF_CAPACITY: a limit, even after waiting for the frees that count against
 * it, but not for other work. INVALID_ARGUMENT, NOT_SUPPORTED: capacity from a
 * resource that cannot grow. Blocks as the resource does; when memory runs out, blocks until the
 * work that holds back enough freed memory is done. Driver: as the resource, and
 * cuStreamGetCaptureInfo and cuStreamGetId of `stream` where the resource is not stream-ordered.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status
gpumem_buffer_allocate(gpumem_resource *resource, size_t bytes,
                       const gpumem_buffer_options *options, gpumem_buffer **buffer);

/*
 * Frees the buffer; NULL is allowed. The memory goes back when `stream`, the stream of the
 * allocation and the streams of gpumem_buffer_use have passed this point, and after the last export
 * and hold have ended. A NULL `stream` adds no stream to those already named; it does not mean the
 * default stream, which is GPUMEM_STREAM_LEGACY. Stream-ordered memory is freed on `stream`, or if
 * that is NULL on the stream of the allocation, ordered after the others. Never blocks for that:
 * later calls carry out frees that have to wait; only a virtual resource with a cache waits here if
 * there is no host memory to record that. Cannot fail except with FORKED: memory that the
 * driver refuses to take back is counted as quarantined. Driver: cuStreamGetCaptureInfo,
 * cuStreamGetId, cuStreamQuery, cuEventRecord, cuStreamWaitEvent, then as the resource.
 */
GPUMEM_API gpumem_status gpumem_buffer_free(gpumem_buffer *buffer, CUstream stream);

/*
 * Declares that work on `stream` uses the buffer, now or later: free and shrink will wait for it.
 * NULL is the legacy default stream, GPUMEM_STREAM_LEGACY. Naming a stream twice is the same as
 * naming it once.
 * Driver, the first time: cuStreamGetCaptureInfo, cuStreamGetId.
 */
GPUMEM_API gpumem_status gpumem_buffer_use(gpumem_buffer *buffer, CUstream stream);

/*
 * Makes `stream` wait for the work queued so far on all other streams that were named for the
 * buffer, and names it too, as gpumem_buffer_use: what is queued on it next may use the memory.
 * NULL is the legacy default stream. For handing a buffer on, as __dlpack__ does. BUSY: one of the
 * streams is capturing, or is another thread's per-thread stream; the message says which. Streams
 * that the driver knows no more are INVALID_ARGUMENT. On failure `stream` may wait for some of
 * them already, which is harmless. Does not block.
 * Driver: cuStreamGetCaptureInfo, cuStreamQuery, cuEventRecord, cuStreamWaitEvent.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_buffer_order(gpumem_buffer *buffer,
                                                               CUstream stream);

/*
 * Grows to `bytes`, within the capacity. Address and content are kept, and the new part can be used
 * on any stream at once. Does nothing if `bytes` is not above the present size. All or nothing: on
 * any failure mappings, access, handles and sizes are as before. `stream` is passed unchanged to
 * the resize function of a user-defined resource; the library's own resources queue nothing on it
 * and do not wait for it, and free and shrink do not wait for it later. It may be NULL.
 * OUT_OF_CAPACITY: past the capacity. NOT_SUPPORTED: the resource cannot grow. OUT_OF_MEMORY as
 * above.
 * Driver: cuMemCreate, cuMemMap, cuMemSetAccess.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_buffer_grow(gpumem_buffer *buffer, size_t bytes,
                                                              CUstream stream);

/*
 * Shrinks to `bytes`, more than 0, and gives back the handles that lie wholly beyond that. Does
 * nothing if `bytes` is not below the present size. Waits, by events, for the streams that free
 * waits for, including `stream` (NULL names none, as for free), which is remembered. BUSY while an
 * export or a hold exists, or one of the streams is capturing or is another thread's per-thread
 * stream. All or nothing; only if a failing driver refuses to map again what it has unmapped do
 * size and committed show what is left. Driver: cuMemUnmap, cuMemRelease.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_buffer_shrink(gpumem_buffer *buffer, size_t bytes,
                                                                CUstream stream);

/*
 * Moves a virtual buffer that has outgrown its capacity to a new address, returned in *address,
 * with `capacity` bytes of address space: more or less than before, but at least its size. Its
 * memory and content are kept and mapped at the new address as well: nothing is copied, and nothing
 * waits. The old address stays valid for work queued earlier on the streams that free waits for,
 * including `stream` (NULL names none), and is unmapped when they have passed this point; until
 * then both addresses show the same bytes. All or nothing. BUSY: a hold or an export, to which the
 * address was promised. INVALID_ARGUMENT: a capacity below the size. OUT_OF_CAPACITY,
 * OUT_OF_MEMORY: no such address range. NOT_SUPPORTED: not a buffer of a virtual resource, or one
 * for which a wrapper promises a larger alignment than the resource's, which the new address has.
 * Driver: cuMemAddressReserve, cuMemMap, cuMemSetAccess, later cuMemUnmap, cuMemAddressFree.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_buffer_move_to_capacity(gpumem_buffer *buffer,
                                                                          size_t capacity,
                                                                          CUstream stream,
                                                                          CUdeviceptr *address);

/*
 * Sets what a device may do with [offset, offset + bytes) of a virtual buffer. The range must be
 * whole chunks (gpumem_buffer_get_layout); an end at the buffer's size counts as the end of the
 * last chunk. Later growth has the access of the resource. All or nothing. Taking access away
 * waits, by events, for the streams that free waits for, including `stream` (NULL names none).
 * BUSY, when access is taken away: as gpumem_buffer_shrink. INVALID_ARGUMENT: not whole chunks, no
 * such device. NOT_SUPPORTED: not a buffer of a virtual resource or of a wrapper around one (a
 * cache's buffers are parts of its segments, whose access is that of the resource:
 * gpumem_resource_set_access), or a device that cannot reach the memory. Driver: cuMemSetAccess.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_buffer_set_access(gpumem_buffer *buffer,
                                                                    size_t offset, size_t bytes,
                                                                    int ordinal,
                                                                    gpumem_access access,
                                                                    CUstream stream);

/* What a device may do with the byte at `offset`: of a virtual buffer, as set by the library; of an
 * imported one, as it was received (gpumem_share_options.access); of one of a pool or a cache, as
 * gpumem_resource_get_access. NOT_SUPPORTED: another kind. Driver: cuDeviceGet, cuMemPoolGetAccess.
 */
GPUMEM_API gpumem_status gpumem_buffer_get_access(gpumem_buffer *buffer, size_t offset, int ordinal,
                                                  gpumem_access *access);

/*
 * A hold is an extra reference: while it lasts, the memory stays mapped at its address, shrinking
 * returns BUSY, and a free takes effect at the last release. For views, and for pointers passed to
 * other code. Thread-safe, unlike the rest; a hold during a shrink waits for the shrink.
 * INVALID_ARGUMENT: a release without a hold.
 */
GPUMEM_API gpumem_status gpumem_buffer_hold(gpumem_buffer *buffer);
GPUMEM_API gpumem_status gpumem_buffer_release(gpumem_buffer *buffer);

/*
 * Gives back the memory of the chunks that lie wholly inside [offset, offset + bytes) of a virtual
 * buffer; an end at the buffer's size counts as the end of the last chunk. Addresses, size and
 * capacity are kept; a range without memory must not be used until gpumem_buffer_recommit, and the
 * library's own copies refuse it. *released, if not NULL, receives the bytes that the driver took
 * back: 0 if no whole chunk lies inside, and for a buffer that was exported, whose memory is freed
 * when the last importer lets go. Waits, by events, for the streams that free waits for, including
 * `stream` (NULL names none). All or nothing, and BUSY, as gpumem_buffer_shrink. NOT_SUPPORTED: not
 * a buffer of a virtual resource. Driver: cuMemUnmap, cuMemRelease.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_buffer_decommit(gpumem_buffer *buffer,
                                                                  size_t offset, size_t bytes,
                                                                  CUstream stream,
                                                                  size_t *released);

/*
 * Maps new memory wherever it is missing in [offset, offset + bytes), in the same chunks and with
 * the same access as before. The content of those chunks is undefined; they can be used on any
 * stream at once. Does nothing where nothing is missing. All or nothing. OUT_OF_MEMORY as
 * gpumem_buffer_grow.
 * Driver: cuMemCreate, cuMemMap, cuMemSetAccess.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_buffer_recommit(gpumem_buffer *buffer,
                                                                  size_t offset, size_t bytes);

/*
 * Declares that others may map this virtual buffer's memory from now on without the library's
 * knowledge, because the program, or a library that was given the address, took handles to it from
 * the driver (cuMemRetainAllocationHandle, as registration for communication does, or a dma-buf).
 * Such memory is never cached for other buffers (gpumem_virtual_options.cache_bytes). Waits, by
 * events, for work of former users of the memory. Exports by this library and
 * gpumem_physical_from_address do not need this call. Of a buffer of a caching resource over a
 * virtual one, the pages of its stream and kind stay where they are. NOT_SUPPORTED: neither.
 */
GPUMEM_API gpumem_status gpumem_buffer_mark_shared(gpumem_buffer *buffer);

/*
 * Memory without a buffer object, for callers that keep addresses: memory of any resource by
 * pointer and size. allocate works as gpumem_buffer_allocate, deallocate as gpumem_buffer_free of
 * the buffer at `pointer`: a `stream` of NULL or GPUMEM_STREAM_NONE means that of the allocation; a
 * `pointer` of 0 is allowed. `bytes` is the size of the allocation, or 0 if the caller does not
 * know it, as where an interface frees by address alone. INVALID_ARGUMENT: `pointer` was not
 * allocated by this call from `resource`, or with a different number of bytes; nothing is freed.
 * Memory that is not freed keeps the resource from being destroyed. Thread-safe; takes an
 * additional lock per resource.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status
gpumem_resource_allocate(gpumem_resource *resource, size_t bytes,
                         const gpumem_buffer_options *options, CUdeviceptr *pointer);
GPUMEM_API gpumem_status gpumem_resource_deallocate(gpumem_resource *resource, CUdeviceptr pointer,
                                                    size_t bytes, CUstream stream);

/*
 * For such memory: find returns the buffer at `pointer`, the address that allocate gave, for the
 * other calls of this header; it is borrowed, freed by deallocate, and must not be passed to
 * gpumem_buffer_free. use is gpumem_buffer_use of it. INVALID_ARGUMENT: no such memory.
 * Thread-safe, but not beside a free of the same memory. Driver: none, or as gpumem_buffer_use.
 */
GPUMEM_API gpumem_status gpumem_resource_find(gpumem_resource *resource, CUdeviceptr pointer,
                                              gpumem_buffer **buffer);
GPUMEM_API gpumem_status gpumem_resource_use(gpumem_resource *resource, CUdeviceptr pointer,
                                             CUstream stream);

/* What gpumem_buffer_get_attributes fills in. */
typedef struct gpumem_buffer_attributes {
    size_t size;
    CUcontext context; /* of the driver's allocation; NULL: none (mapped memory) */
    gpumem_location location;
    int ordinal;            /* of the device whose memory it is; -1: host memory */
    int numa_node;          /* of HOST_NUMA; else -1 */
    bool device_accessible; /* the buffer's device can access it at present */
    bool host_accessible;   /* gpumem_buffer_host_pointer may be dereferenced */
    bool managed;           /* the driver moves its pages between host and devices */
    bool imported;          /* received from another process */
    bool foreign;           /* not allocated by the library: gpumem_buffer_from_pointer, DLPack */
    /* The library refuses to write there: foreign memory that was declared so, and imports that
     * were received with GPUMEM_ACCESS_READ. */
    bool read_only;
    bool exportable;                /* gpumem_export_create works */
    gpumem_handle_type handle_type; /* the strongest way of sharing it was created for */
    gpumem_buffer *viewed;          /* the buffer that this is a view of; NULL: it is none */
} gpumem_buffer_attributes;

/*
 * What the memory is according to the driver's answer for the buffer's first byte, not to whoever
 * sent or supplied it; so also for imported and foreign memory. Memory of a resource of your own
 * that the driver does not know, such as pageable memory, is as the resource's properties say.
 * Set `attributes->size` before the call. Thread-safe; does not block. Driver:
 * cuPointerGetAttributes; for host memory cuMemRetainAllocationHandle,
 * cuMemGetAllocationPropertiesFromHandle, cuMemGetAccess, cuMemRelease.
 */
GPUMEM_API gpumem_status gpumem_buffer_get_attributes(gpumem_buffer *buffer,
                                                      gpumem_buffer_attributes *attributes);

/* Plain getters; no driver call, cannot fail. */
GPUMEM_API CUdeviceptr gpumem_buffer_pointer(const gpumem_buffer *buffer);
GPUMEM_API void *gpumem_buffer_host_pointer(const gpumem_buffer *buffer); /* or NULL */
GPUMEM_API size_t gpumem_buffer_size(const gpumem_buffer *buffer);
GPUMEM_API size_t gpumem_buffer_capacity(const gpumem_buffer *buffer);
GPUMEM_API size_t gpumem_buffer_committed(const gpumem_buffer *buffer); /* mapped memory */
GPUMEM_API gpumem_device *gpumem_buffer_device(const gpumem_buffer *buffer);
GPUMEM_API gpumem_resource *
gpumem_buffer_resource(const gpumem_buffer *buffer); /* NULL: imported or foreign */

#ifdef __cplusplus
}
#endif

#endif
