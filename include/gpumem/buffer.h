/*
 * Buffers: memory from a resource, with one owner at a time.
 *
 * Memory is never taken away under work that the library was told of: the stream of allocation, the
 * streams named with gpumem_buffer_use, and the one given to the call. It waits for those by
 * events, never for the device. They must exist until the buffer is freed; one that captures then,
 * until the capture has ended and the free was worked off. CU_STREAM_PER_THREAD means the stream of
 * the thread that names it: freed by another thread, the memory waits until the naming one has made
 * a call of this library (docs/contexts.md, also on stream captures, which no call here disturbs).
 *
 * A buffer may be handed from thread to thread, and used by one at a time. Different buffers of one
 * resource may be used by different threads at once.
 */
#ifndef GPUMEM_BUFFER_H
#define GPUMEM_BUFFER_H

#include <gpumem/resource.h>
#include <gpumem/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpumem_buffer_options {
    size_t size;
    /* Of allocation. NULL: the legacy default stream, as in CUDA. GPUMEM_STREAM_NONE: none of the
     * caller's; the memory is there at once for all (a pool uses a stream of its own), and goes
     * back when the streams have passed that gpumem_buffer_use and free were told. */
    CUstream stream;
    size_t alignment; /* bytes, a power of two; 0: what the resource gives, 256 at least */
    size_t capacity;  /* bytes that it may grow to; 0: as the resource says. Address space only */
} gpumem_buffer_options;
#define GPUMEM_BUFFER_OPTIONS(...) GPUMEM_OPTIONS(gpumem_buffer_options, __VA_ARGS__)

/*
 * Allocates `bytes`, more than 0. The caller frees the buffer. From a stream-ordered resource it is
 * usable on `stream` at once and elsewhere after what orders that; from others at once anywhere.
 * Content is undefined.
 * OUT_OF_MEMORY, OUT_OF_HOST_MEMORY: also after deferred frees were waited for and the device's
 * caches trimmed. OUT_OF_CAPACITY: a limit, also after the frees that count against it were waited
 * for; others' work is not. INVALID_ARGUMENT, NOT_SUPPORTED: capacity from a
 * resource that cannot grow. Blocks as the resource does, and when memory runs out until work that
 * holds enough of freed memory is done. Driver: as the resource, and cuStreamGetCaptureInfo and
 * cuStreamGetId of `stream` where the resource is not stream-ordered.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status
gpumem_buffer_allocate(gpumem_resource *resource, size_t bytes,
                       const gpumem_buffer_options *options, gpumem_buffer **buffer);

/*
 * Gives the buffer up; NULL is allowed. The memory goes back when `stream`, the stream of
 * allocation and the streams of gpumem_buffer_use have passed this point, and after the last export
 * and hold. A `stream` of NULL names none beside those already named, and not the default stream:
 * that is GPUMEM_STREAM_LEGACY. Stream-ordered memory is freed on `stream`, or for NULL on the
 * stream of allocation, behind the others. Never blocks for that: what must wait is worked off by
 * later calls. Cannot fail but for FORKED: what the driver refuses to take back is counted as
 * quarantined. Driver: cuStreamGetCaptureInfo, cuStreamGetId, cuStreamQuery, cuEventRecord,
 * cuStreamWaitEvent, then as the resource.
 */
GPUMEM_API gpumem_status gpumem_buffer_free(gpumem_buffer *buffer, CUstream stream);

/*
 * Tells that work on `stream` uses the buffer, now or later: free and shrink wait for it. NULL is
 * the legacy default stream, GPUMEM_STREAM_LEGACY. Naming a stream twice is the same as once.
 * Driver, the first time: cuStreamGetCaptureInfo, cuStreamGetId.
 */
GPUMEM_API gpumem_status gpumem_buffer_use(gpumem_buffer *buffer, CUstream stream);

/*
 * Grows to `bytes`, inside the capacity: address and content stay, and the new part may be used on
 * any stream at once. `bytes` not above the present size: nothing happens. Whole or nothing: on any
 * failure mappings, access, handles and sizes are as before. `stream` is for resources of the
 * user's, whose resize gets it as it is; the library's own queue nothing on it and do not wait for
 * it, and it does not become one that free and shrink wait for. NULL will do.
 * OUT_OF_CAPACITY past the capacity, NOT_SUPPORTED by the resource, OUT_OF_MEMORY as above.
 * Driver: cuMemCreate, cuMemMap, cuMemSetAccess.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_buffer_grow(gpumem_buffer *buffer, size_t bytes,
                                                              CUstream stream);

/*
 * Shrinks to `bytes`, more than 0, and gives back the handles that lie wholly behind it. `bytes`
 * not below the present size: nothing happens. Waits, by events, for the streams that free waits
 * for, `stream` among them (NULL names none, as for free), which is remembered. BUSY while an
 * export or a hold exists, or one of the streams captures or is another thread's per-thread stream.
 * Whole or nothing; only where a driver that refuses everything will not map again what it
 * unmapped, size and committed tell what is left. Driver: cuMemUnmap, cuMemRelease.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_buffer_shrink(gpumem_buffer *buffer, size_t bytes,
                                                                CUstream stream);

/*
 * Moves a virtual buffer that outran its capacity to a new address, in *address, with `capacity`
 * bytes of address space, more or less than before but no less than its size. Its memory and its
 * content stay and are mapped there too: nothing is copied, and nothing waits. The old address is
 * valid for work that was queued before on the streams that free waits for, `stream` among them
 * (NULL names none), and ends when they have passed this point; both addresses show the same bytes
 * meanwhile. Whole or nothing. BUSY: a hold or an export, for which the address was promised.
 * INVALID_ARGUMENT: a capacity below the size. OUT_OF_CAPACITY, OUT_OF_MEMORY: no such addresses.
 * NOT_SUPPORTED: a buffer of no virtual resource. The alignment is the resource's.
 * Driver: cuMemAddressReserve, cuMemMap, cuMemSetAccess, later cuMemUnmap, cuMemAddressFree.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_buffer_move_to_capacity(gpumem_buffer *buffer,
                                                                          size_t capacity,
                                                                          CUstream stream,
                                                                          CUdeviceptr *address);

/*
 * Sets what a device may do with [offset, offset + bytes) of a virtual buffer: whole chunks
 * (gpumem_buffer_get_chunk), where an end at the buffer's size is the end of its last one. What the
 * buffer grows by later has the access of its resource. Whole or nothing. Taking away waits, by
 * events, for the streams that free waits for, `stream` among them (NULL names none).
 * BUSY, when access is taken away: as gpumem_buffer_shrink. INVALID_ARGUMENT: no whole chunks, no
 * such device. NOT_SUPPORTED: a buffer of no virtual resource, a device that cannot reach the
 * memory. Driver: cuMemSetAccess.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_buffer_set_access(gpumem_buffer *buffer,
                                                                    size_t offset, size_t bytes,
                                                                    int device,
                                                                    gpumem_access access,
                                                                    CUstream stream);

/* What a device may do with the byte at `offset`, as the library has set it. No driver call but
 * cuDeviceGet. */
GPUMEM_API gpumem_status gpumem_buffer_get_access(gpumem_buffer *buffer, size_t offset, int device,
                                                  gpumem_access *access);

/*
 * A hold is one more reference: while it lasts, memory stays mapped where it is, shrinking answers
 * BUSY, and a free takes effect at the last release. For views, and for pointers that others were
 * given. Thread-safe, unlike the rest; a hold that meets a shrink waits for it. INVALID_ARGUMENT: a
 * release without a hold.
 */
GPUMEM_API gpumem_status gpumem_buffer_hold(gpumem_buffer *buffer);
GPUMEM_API gpumem_status gpumem_buffer_release(gpumem_buffer *buffer);

/*
 * Gives back the memory of the chunks that lie wholly inside [offset, offset + bytes) of a virtual
 * buffer, where an end at the buffer's size is the end of its last chunk. Addresses, size and
 * capacity stay; what is without memory must not be used until gpumem_buffer_recommit, and the
 * library's own copies refuse it. *released, if not NULL, are the bytes that the driver took back:
 * 0 if no whole chunk lies inside, and for a buffer that was exported, whose memory ends when the
 * last importer lets go. Waits, by events, for the streams that free waits for, `stream` among them
 * (NULL names none). Whole or nothing, as gpumem_buffer_shrink. BUSY: likewise. NOT_SUPPORTED: a
 * buffer of no virtual resource. Driver: cuMemUnmap, cuMemRelease.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_buffer_decommit(gpumem_buffer *buffer,
                                                                  size_t offset, size_t bytes,
                                                                  CUstream stream,
                                                                  size_t *released);

/*
 * Puts memory again behind all bytes of [offset, offset + bytes), in the chunks that were there,
 * with the access that they had. Content of those is undefined; usable on any stream at once. Where
 * nothing is missing, nothing happens. Whole or nothing. OUT_OF_MEMORY as gpumem_buffer_grow.
 * Driver: cuMemCreate, cuMemMap, cuMemSetAccess.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_buffer_recommit(gpumem_buffer *buffer,
                                                                  size_t offset, size_t bytes);

/*
 * Says that others may map this virtual buffer's memory from now on, beyond what the library knows:
 * because the program, or a library that it handed the address to, took handles of it from the
 * driver (cuMemRetainAllocationHandle, as registration for communication does, or a dma-buf). Such
 * memory is never kept for other buffers (gpumem_virtual_options.cache_bytes). Waits, by events,
 * for work of former users of the memory. Exports by this library need no such call. NOT_SUPPORTED:
 * a buffer of no virtual resource.
 */
GPUMEM_API gpumem_status gpumem_buffer_mark_shared(gpumem_buffer *buffer);

/* Where the chunk of this number, below gpumem_buffer_chunks, lies in the buffer, in bytes. The
 * last may reach behind the size. Chunks change when the buffer grows or shrinks. No driver call.
 * INVALID_ARGUMENT: no such chunk. */
GPUMEM_API gpumem_status gpumem_buffer_get_chunk(gpumem_buffer *buffer, size_t index,
                                                 size_t *offset, size_t *bytes);

/*
 * The same without an object, for callers that keep addresses: memory of any resource by pointer
 * and size. allocate is gpumem_buffer_allocate, and deallocate gpumem_buffer_free of what `pointer`
 * is: `stream` NULL, or GPUMEM_STREAM_NONE, means that of the allocation; 0 for `pointer` is
 * allowed. INVALID_ARGUMENT: `pointer` was not allocated so from `resource`, or with another number
 * of bytes; then nothing is freed. What is not freed keeps the resource from being destroyed.
 * Thread-safe; one lock for each resource besides.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status
gpumem_resource_allocate(gpumem_resource *resource, size_t bytes,
                         const gpumem_buffer_options *options, CUdeviceptr *pointer);
GPUMEM_API gpumem_status gpumem_resource_deallocate(gpumem_resource *resource, CUdeviceptr pointer,
                                                    size_t bytes, CUstream stream);

typedef struct gpumem_buffer_attributes {
    size_t size;
    CUcontext context; /* of the driver's allocation; NULL: it belongs to none (mapped memory) */
    gpumem_location location;
    int device_ordinal;    /* of the device whose memory it is; -1: host memory */
    int numa_node;         /* of HOST_NUMA; else -1 */
    int device_accessible; /* 1: the buffer's device reaches it as things are now */
    int host_accessible;   /* 1: gpumem_buffer_host_pointer may be dereferenced */
    int managed;           /* 1: the driver moves its pages between host and devices */
    int imported;          /* 1: another process's, received */
    int foreign;           /* 1: the library did not take it: gpumem_buffer_from_pointer, DLPack */
    int view;              /* 1: a part of another buffer */
    int read_only;         /* 1: the library refuses to write there */
    int exportable;        /* 1: gpumem_export_create works */
    gpumem_handle_type handle_type; /* the strongest way of sharing that it was made for */
} gpumem_buffer_attributes;

/*
 * What the memory is, as the driver says of the buffer's first byte and not as whoever sent it or
 * gave it: also of imported and foreign memory. `attributes->size` is to be set. Thread-safe; does
 * not block. Driver: cuPointerGetAttributes; of host memory cuMemRetainAllocationHandle,
 * cuMemGetAllocationPropertiesFromHandle, cuMemGetAccess, cuMemRelease.
 */
GPUMEM_API gpumem_status gpumem_buffer_get_attributes(gpumem_buffer *buffer,
                                                      gpumem_buffer_attributes *attributes);

/* Plain getters; no driver call, cannot fail. */
GPUMEM_API CUdeviceptr gpumem_buffer_pointer(const gpumem_buffer *buffer);
GPUMEM_API void *gpumem_buffer_host_pointer(const gpumem_buffer *buffer); /* or NULL */
GPUMEM_API size_t gpumem_buffer_size(const gpumem_buffer *buffer);
GPUMEM_API size_t gpumem_buffer_capacity(const gpumem_buffer *buffer);
GPUMEM_API size_t gpumem_buffer_committed(const gpumem_buffer *buffer); /* memory behind it */
GPUMEM_API size_t gpumem_buffer_chunks(const gpumem_buffer *buffer); /* physical handles; else 1 */
GPUMEM_API gpumem_device *gpumem_buffer_device(const gpumem_buffer *buffer);
GPUMEM_API gpumem_resource *
gpumem_buffer_resource(const gpumem_buffer *buffer); /* NULL: imported or foreign */

#ifdef __cplusplus
}
#endif

#endif
