/*
 * The caching resource: small allocations in tens of nanoseconds, over any other resource.
 *
 * It takes memory from the wrapped resource in segments, divides them into blocks, and keeps freed
 * blocks: those of up to 1 MiB in per-thread caches, larger ones in the segments, where free
 * neighbours are merged. It makes no driver call while it has memory, not even to see which context
 * is current; what it asks about streams is said below. Its buffers cannot grow and cannot be
 * exported.
 *
 * Device memory is handed out in stream order: memory freed on a stream can be reused on the same
 * stream at once, and on another when the first has passed. Memory that the CPU writes is reused
 * only when all streams that used it have passed, because the CPU does not wait for them, and that
 * takes an event for each 32 blocks of up to maximum_small_bytes, and for each larger one; allocate
 * it with GPUMEM_STREAM_NONE if no stream will use it at all.
 *
 * Memory that moves. Over a virtual resource of device memory, made with its default chunk sizes,
 * and with nothing between the two, segments are addresses to which memory is mapped in pages of 2
 * to 64 MiB. When a request would take more from the device than committed_ratio allows, pages
 * that are wholly free, of any stream, are unmapped where they lie and mapped where they are
 * missing. Bytes and addresses of buffers never change. A page moves when the work that used it
 * last has passed; only what cannot be had otherwise is waited for. Memory of a capture pool does
 * not move, nor any of which gpumem_physical_from_address or gpumem_buffer_mark_shared says that
 * others have a handle. A graph that was captured without a pool may fault when it uses a buffer
 * that has been freed, where it read old bytes before. Watches are told of pages before they are
 * unmapped (WATCH_FREE). segment_bytes and idle_bytes mean nothing there. Moving a page takes 56
 * us on an H200, whatever its size.
 *
 * A freed buffer must not be used again, least of all freed: its object serves the next allocation,
 * so that a stale free may free the buffer of another owner. Where a program does that is found by
 * a build of the library for debugging (CMAKE_BUILD_TYPE Debug): there each allocation has an
 * object of its own, and a stale one is refused with INVALID_ARGUMENT, as those of other resources
 * are.
 *
 * Streams are known by their handles, which the driver reuses. gpumem_stream_destroy notifies the
 * caches of its device; before destroying a stream in any other way, call
 * gpumem_caching_forget_stream.
 */
#ifndef GPUMEM_CACHING_H
#define GPUMEM_CACHING_H

#include <gpumem/resource.h>
#include <gpumem/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Options of gpumem_caching_resource_create. */
typedef struct gpumem_caching_options {
    size_t size;
    size_t segment_bytes;       /* most taken at once for small blocks; 0: 64 MiB; at least 2 MiB */
    size_t maximum_small_bytes; /* largest allocation cached per thread; 0: 1 MiB, the maximum */
    size_t thread_bytes;        /* most that one thread keeps; 0: 32 MiB */
    uint64_t maximum_bytes;     /* of all segments; OUT_OF_CAPACITY above; 0: no limit */
    /* Bytes of wholly free segments to keep when another segment is needed; the rest are given back
     * first, so that slowly increasing sizes do not each leave a segment unused. 0: a quarter of
     * the bytes in use, at least segment_bytes; SIZE_MAX: all are kept until memory runs out or is
     * trimmed. */
    size_t idle_bytes;
    /* Where memory can move (above), the most that is taken from the device, as a multiple of the
     * most that was ever in use: free pages move, from a quarter of the allowance on, before more
     * is taken. What cannot move may exceed it. At least 1; 0: 1.05. More is faster and takes more
     * memory; INFINITY: memory stays in place. */
    double committed_ratio;
    /* Where memory can move: taken from the device now, for blocks of any size and stream; given
     * back by a trim. NOT_SUPPORTED elsewhere. 0: nothing. */
    uint64_t reserve_bytes;
    bool never_waits; /* takes more memory rather than wait for queued work; false: it waits */
} gpumem_caching_options;
#define GPUMEM_CACHING_OPTIONS(...) GPUMEM_OPTIONS(gpumem_caching_options, __VA_ARGS__)

/*
 * A cache over `upstream`, which must outlive it and may still be used directly. Allocations return
 * the errors of `upstream`, and OUT_OF_CAPACITY past maximum_bytes. The per-thread default stream
 * is refused for device memory. Statistics: high-water marks of in_use are accurate to 1 MiB per
 * thread. Thread-safe; takes a lock only when a thread's cache is empty or full. A thread that ends
 * gives up its cache. Driver: as `upstream`; cuStreamCreate, cuStreamSynchronize of a stream of its
 * own if `upstream` is stream-ordered; cuEventRecord, cuEventQuery when memory changes streams, or
 * was used by streams besides its own.
 *
 * gpumem_resource_destroy returns BUSY, with the reason, while it has a buffer or a capture pool,
 * and while a capture in progress uses its memory. Threads that used it may end before or after it.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_caching_resource_create(
    gpumem_resource *upstream, const gpumem_caching_options *options, gpumem_resource **resource);

/* Current bytes and counts. */
typedef struct gpumem_caching_info {
    size_t size;
    size_t segments;      /* taken from the wrapped resource; of addresses, those with memory */
    size_t segment_bytes; /* their memory, and what is reserved */
    size_t free_bytes;    /* in segments and in no block */
    size_t
        largest_free_bytes; /* the largest piece that a block above 1 MiB can have, on a stream */
    size_t parcel_bytes;    /* free blocks of a stream that are in no thread's cache */
    size_t thread_bytes;    /* free blocks in the caches of threads */
    /* Freed, but still in use by queued work, or by a graph until its capture pool is destroyed:
     * what gpumem_stats counts as deferred. Trimming gives nothing of it back. */
    size_t pending_bytes;
    size_t threads;    /* that have a cache */
    size_t streams;    /* that own memory; at most 1 where the CPU writes it */
    size_t used_bytes; /* in buffers, rounded as blocks are */
    /* The largest block that can be had without more memory when pages move, on some stream and
     * perhaps after a wait; largest_free_bytes is that which needs neither. */
    size_t largest_movable_bytes;
    uint64_t pages_moved; /* ever, or given back so that a larger one could be created */
    uint64_t waits;       /* for queued work, before pages that it used could move */
} gpumem_caching_info;

/* `info->size` is to be set. Of a mapped resource, its slabs. INVALID_ARGUMENT: not a caching
 * resource, and without slabs. Thread-safe; no driver call. */
GPUMEM_API gpumem_status gpumem_caching_get_info(gpumem_resource *resource,
                                                 gpumem_caching_info *info);

/*
 * To be called before a stream is destroyed, after the buffers allocated on it were freed: what is
 * kept for it becomes free for others once its queued work is done; where the driver gives no event
 * for that, once the whole context is waited for (gpumem_device_trim). Harmless for a stream that
 * the cache does not know. Of a mapped resource, for its slabs. Thread-safe, but not beside
 * allocations on that stream; does not block. Driver: cuEventRecord.
 */
GPUMEM_API gpumem_status gpumem_caching_forget_stream(gpumem_resource *resource, CUstream stream);

/* ---- Captures -------------------------------------------------------------------------------- */

/*
 * Memory for work captured into a graph. A graph runs with the addresses of its capture, so these
 * must not be handed to others between its launches. Allocations on a stream between begin and end
 * come from the pool. Device memory freed there is reused by the same stream of the same capture,
 * and by later captures of the pool. Memory that the CPU writes, or that several streams used, is
 * not reused, because each launch uses it again. All of it belongs to the pool until the pool is
 * destroyed.
 */
typedef struct gpumem_capture_pool gpumem_capture_pool;

/* The caller destroys the pool, before the resource. One pool may serve several captures in turn,
 * provided that their graphs never run at the same time. Thread-safe. */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_capture_pool_create(gpumem_resource *resource,
                                                                      gpumem_capture_pool **pool);

/*
 * After begin, and until end, allocations on `stream` come from the pool. Call begin before the
 * capture begins and end after it has ended, for each stream of the capture that allocates.
 * INVALID_ARGUMENT: the stream already has a pool, or was not begun, or is a default stream.
 * Thread-safe, except with concurrent allocations on that stream.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_capture_pool_begin(gpumem_capture_pool *pool,
                                                                     CUstream stream);
GPUMEM_API gpumem_status gpumem_capture_pool_end(gpumem_capture_pool *pool, CUstream stream);

/*
 * Ends the use of the graphs: their memory becomes available to others once `last`, the stream of
 * the last launch, has passed this point (GPUMEM_STREAM_NONE: it already has). Buffers that were
 * not freed remain valid. BUSY while begun on a stream; NULL is allowed. Driver: cuEventRecord.
 */
GPUMEM_API gpumem_status gpumem_capture_pool_destroy(gpumem_capture_pool *pool, CUstream last);

#ifdef __cplusplus
}
#endif

#endif
