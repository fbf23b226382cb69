/*
 * The caching resource: small allocations in tens of nanoseconds, over any other resource.
 *
 * It takes memory from the wrapped resource in segments, cuts them, and keeps what is freed: blocks
 * of up to 1 MiB in caches of the threads, larger ones in the segments, where neighbours join. No
 * driver call is made while there is memory at hand. Buffers of it cannot grow and cannot be
 * exported.
 *
 * Device memory is handed out in the order of streams: what was freed on a stream can be used again
 * on the same stream at once, and on another when the first has passed. Memory that the CPU writes
 * is handed out again when all streams that used it have passed, since the CPU does not wait for
 * them; name GPUMEM_STREAM_NONE at the allocation when no stream will use it at all.
 *
 * Streams are known by their handles, which are used again. gpumem_stream_destroy tells the caches
 * of its device; before a stream is destroyed in another way, gpumem_caching_forget_stream is to be
 * called.
 */
#ifndef GPUMEM_CACHING_H
#define GPUMEM_CACHING_H

#include <gpumem/resource.h>
#include <gpumem/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpumem_caching_options {
    size_t size;
    size_t segment_bytes;   /* most to take at once for small blocks; 0: 64 MiB; at least 2 MiB */
    size_t small_maximum;   /* largest allocation that threads keep; 0: 1 MiB, which is the most */
    size_t thread_bytes;    /* most that one thread keeps; 0: 32 MiB */
    uint64_t maximum_bytes; /* of all segments: more is OUT_OF_CAPACITY; 0: no limit */
    /* Bytes of wholly free segments that stay when more memory is taken; others go back first, so
     * that sizes which creep up do not leave a segment behind each. 0: a quarter of what is in use,
     * and segment_bytes at least; SIZE_MAX: all stay until memory runs out or a trim. */
    size_t idle_bytes;
} gpumem_caching_options;
#define GPUMEM_CACHING_OPTIONS(...) GPUMEM_OPTIONS(gpumem_caching_options, __VA_ARGS__)

/*
 * A cache over `upstream`, which must outlive it and may still be used directly. Allocations answer
 * what `upstream` does, and OUT_OF_CAPACITY past maximum_bytes. The per-thread default stream is
 * refused for device memory. Statistics: high-water marks of in_use are exact to 1 MiB a thread.
 * Thread-safe; takes a lock of its own only when a thread's cache is empty or full. A thread that
 * ends gives its cache up. Driver: as `upstream`; cuStreamCreate, cuStreamSynchronize of a stream
 * of its own for a stream-ordered one; cuEventRecord, cuEventQuery when memory changes streams.
 *
 * gpumem_resource_destroy answers BUSY, with the reason, while a buffer or a capture pool of it is
 * there, and while a capture that is under way uses its memory. Threads that used it may end before
 * or after it.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_caching_resource_create(
    gpumem_resource *upstream, const gpumem_caching_options *options, gpumem_resource **resource);

/* Bytes and counts of now. */
typedef struct gpumem_caching_info {
    size_t size;
    size_t segments;           /* taken from the wrapped resource */
    size_t segment_bytes;      /* theirs */
    size_t free_bytes;         /* in segments, in no block */
    size_t largest_free_bytes; /* the largest piece of these: far less means fragmented */
    size_t parcel_bytes;       /* free blocks that belong to a stream and to no thread */
    size_t thread_bytes;       /* free blocks in the caches of threads */
    size_t pending_bytes;      /* freed, and still in use by queued work */
    size_t threads;            /* with a cache */
    size_t streams;            /* with memory of their own; 1 at most where the CPU writes it */
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
 * Memory for what is captured into a graph: a graph runs with the addresses of its capture, so
 * these must not be handed to others between its launches. What is allocated on a stream between
 * begin and end comes from the pool. Device memory that is freed there is handed out again to the
 * same stream of the same capture, and to other captures of the pool, which follow it. What the CPU
 * writes, and what several streams used, rests: each launch uses it again. All of it stays the
 * pool's until that is destroyed.
 */
typedef struct gpumem_capture_pool gpumem_capture_pool;

/* The caller destroys the pool, before the resource. One pool may serve several captures in turn,
 * if their graphs never run at the same time. Thread-safe. */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_capture_pool_create(gpumem_resource *resource,
                                                                      gpumem_capture_pool **pool);

/*
 * From now on, or no longer, allocations on `stream` come from the pool. To be called before the
 * capture begins and after it ended; for each stream of a capture that allocates.
 * INVALID_ARGUMENT: the stream has a pool already, or was not begun, or is a default stream.
 * Thread-safe, but not beside allocations on that stream.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_capture_pool_begin(gpumem_capture_pool *pool,
                                                                     CUstream stream);
GPUMEM_API gpumem_status gpumem_capture_pool_end(gpumem_capture_pool *pool, CUstream stream);

/*
 * The graphs are done: their memory is free for others once `last`, the stream of the last launch,
 * has passed this point (GPUMEM_STREAM_NONE: it has). Buffers that were not freed stay valid. BUSY
 * while begun on a stream; NULL is allowed. Driver: cuEventRecord.
 */
GPUMEM_API gpumem_status gpumem_capture_pool_destroy(gpumem_capture_pool *pool, CUstream last);

#ifdef __cplusplus
}
#endif

#endif
