/*
 * A ring of chunks in memory that the CPU writes and the device reads: filled by several threads,
 * consumed in order, used again when the device has passed them. Nothing is copied.
 *
 *     acquire ── fill ── commit ────── consume ── queue work ── release ─┐
 *        └───────── the chunk's place, when the streams have passed ◄────┘
 *
 * Threads acquire chunks, which are numbered from 0 in the order of acquisition, fill them through
 * the host pointer in any order, and commit them in any order. Consumers receive them in the order
 * of acquisition, so a stream of packets stays one. A chunk's place is used again in the same
 * order: when the chunk was released and all streams that were named then have passed that point.
 * Until then acquire waits: the ring holds producers back when the device is slower. No call waits
 * for the device as a whole.
 *
 * A chunk whose producer cannot finish it is abandoned; consumers do not see it. Until then it
 * holds back those behind it.
 *
 * Every call is thread-safe. Chunks are named by their number, and any thread may commit, abandon
 * or release one that another has acquired or consumed.
 */
#ifndef GPUMEM_RING_H
#define GPUMEM_RING_H

#include <gpumem/resource.h>
#include <gpumem/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpumem_ring gpumem_ring;

typedef struct gpumem_ring_options {
    size_t size;
    size_t chunk_bytes; /* of a chunk, where acquire names no size; more than 0 */
    size_t chunk_count; /* chunks that may be out at a time, 2 at least */
    size_t alignment;   /* of each chunk: a power of two; 0: 256. Widened to the memory's atom */
    /* 1: the memory is mapped twice in a row, for the CPU and for the device, so that a chunk that
     * crosses the end goes on after it without a seam. Chunks may then have any size up to that of
     * the ring. Needs memory that is mapped in chunks: a mapped resource of another method than
     * vulkan-export, or a virtual resource of host memory. */
    int mirrored;
} gpumem_ring_options;
#define GPUMEM_RING_OPTIONS(...) GPUMEM_OPTIONS(gpumem_ring_options, __VA_ARGS__)

/*
 * A ring of chunk_count x chunk_bytes, each chunk widened to the alignment; mirrored, the whole is
 * widened to the resource's granularity. The memory is one buffer of `resource`, which the CPU must
 * reach (gpumem_mapped_resource_create, pinned memory, wrappers of those). The caller destroys the
 * ring, before the resource. INVALID_ARGUMENT: sizes; NOT_SUPPORTED: the CPU does not reach this
 * memory, or it cannot be mapped twice. Whole or nothing. Driver: as gpumem_buffer_allocate;
 * mirrored also cuMemRetainAllocationHandle, cuMemMap, cuMemSetAccess, and what the mapping for the
 * CPU takes.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_ring_create(gpumem_resource *resource,
                                                              const gpumem_ring_options *options,
                                                              gpumem_ring **ring);

/*
 * Gives the memory back; NULL is allowed. BUSY while a chunk is being filled or is consumed and not
 * released, and while a thread waits in the ring: the message says which; gpumem_ring_close ends
 * waits. What was committed and not consumed is dropped. Blocks until streams have passed what was
 * released, by events. Driver: cuEventSynchronize, cuStreamDestroy, as gpumem_buffer_free.
 */
GPUMEM_API gpumem_status gpumem_ring_destroy(gpumem_ring *ring);

/* A chunk that is out. */
typedef struct gpumem_ring_chunk {
    size_t size;
    uint64_t sequence;  /* its number: from 0, one more for each acquisition */
    void *host;         /* contiguous, also across the end of a mirrored ring */
    CUdeviceptr device; /* the same bytes; contiguous likewise */
    size_t bytes;       /* as asked for; of a consumed one: as committed */
    size_t offset;      /* of its first byte in the ring */
} gpumem_ring_chunk;

/* ---- Producers ------------------------------------------------------------------------------- */

/*
 * Takes the next chunk, of `bytes`, 0: chunk_bytes. Waits up to `timeout_ms` until the place after
 * the last one is free; 0: does not wait; negative: as long as it takes. `chunk->size` is to be
 * set. TIMED_OUT: the message says who has the chunks. CANCELLED: the ring is closed.
 * INVALID_ARGUMENT: more bytes than a chunk can have. No driver call while there is room; else
 * Driver: cuEventQuery, again and again until the oldest chunk is passed, at most every 20 us.
 */
GPUMEM_API gpumem_status gpumem_ring_acquire(gpumem_ring *ring, size_t bytes, int timeout_ms,
                                             gpumem_ring_chunk *chunk);

/*
 * Copies into an acquired chunk, and flushes. Stores through the host pointer do as well; but
 * write-combined stores lie in the buffers of the core that made them, so a thread that fills a
 * part of a chunk and leaves the commit to another one flushes its part first, and then tells that
 * thread. INVALID_ARGUMENT: not in the chunk, or no chunk that is being filled. No driver call.
 */
GPUMEM_API gpumem_status gpumem_ring_write(gpumem_ring *ring, uint64_t sequence, size_t offset,
                                           const void *data, size_t bytes);
GPUMEM_API gpumem_status gpumem_ring_flush(gpumem_ring *ring, uint64_t sequence, size_t offset,
                                           size_t bytes);

/*
 * The chunk is filled, its first `bytes` bytes: they are flushed and fenced as the memory needs it
 * (gpumem_mapped_flush), and work that is submitted after its consumption sees them.
 * INVALID_ARGUMENT: no chunk that is being filled, or more bytes than were acquired. A failed flush
 * leaves the chunk being filled. No driver call.
 */
GPUMEM_API gpumem_status gpumem_ring_commit(gpumem_ring *ring, uint64_t sequence, size_t bytes);

/* The chunk that is being filled will not be: consumers pass over it, and its place is free. Nobody
 * may write there any more. INVALID_ARGUMENT: no such chunk. No driver call. */
GPUMEM_API gpumem_status gpumem_ring_abandon(gpumem_ring *ring, uint64_t sequence);

/* ---- Consumers ------------------------------------------------------------------------------- */

/*
 * Receives the next chunk in the order of acquisition, one consumer each. Waits up to `timeout_ms`,
 * as acquire, until it is committed. TIMED_OUT: the message names the chunk that is being waited
 * for. CANCELLED: the ring is closed, and all that was acquired has been consumed or abandoned. No
 * driver call.
 */
GPUMEM_API gpumem_status gpumem_ring_consume(gpumem_ring *ring, int timeout_ms,
                                             gpumem_ring_chunk *chunk);

/*
 * Gives a consumed chunk back: its place is free after the work that has been queued on `count`
 * streams so far. Events are recorded there; any number of chunks may wait for theirs. NULL among
 * them is the legacy default stream; a count of 0 says that no work uses the chunk. The streams may
 * be destroyed afterwards. Whole or nothing: the chunk stays consumed on failure. BUSY: a stream
 * captures, so that what it was given does not run; release on the stream that the graph is
 * launched on. INVALID_ARGUMENT: no consumed chunk, GPUMEM_STREAM_NONE, or a stream that is gone.
 * Driver, for each: cuStreamGetCaptureInfo, cuStreamQuery, cuEventRecord.
 */
GPUMEM_API gpumem_status gpumem_ring_release(gpumem_ring *ring, uint64_t sequence,
                                             const CUstream *streams, size_t count);

/*
 * The same, after events that the program has recorded. They may be recorded anew or destroyed
 * afterwards: where they are not passed yet, a stream of the ring's own waits for them, and marks
 * of several releases pass in the order of the releases. INVALID_ARGUMENT: also an event that a
 * capture recorded. Driver, for each: cuEventQuery, cuStreamWaitEvent, cuEventRecord.
 */
GPUMEM_API gpumem_status gpumem_ring_release_events(gpumem_ring *ring, uint64_t sequence,
                                                    const CUevent *events, size_t count);

/* ---- The whole ------------------------------------------------------------------------------- */

/* No more chunks: who waits to acquire one is woken with CANCELLED. Chunks that are out go their
 * way, and consumers get what is committed. Closing twice is the same as once. No driver call. */
GPUMEM_API gpumem_status gpumem_ring_close(gpumem_ring *ring);

typedef struct gpumem_ring_info {
    size_t size;
    size_t bytes;       /* of memory; mirrored, it has addresses for twice as much */
    size_t chunk_bytes; /* from one chunk to the next, where acquire names no size */
    size_t chunk_count;
    int mirrored, closed;
    void *host; /* of the first byte */
    CUdeviceptr device;
    /* Chunks at this moment. A released one is pending until its streams have passed, and an
     * acquisition that needs the room has looked. */
    size_t filling, committed, consumed, pending;
    /* So far. */
    uint64_t acquired, abandoned, released;
    uint64_t waits;     /* calls of acquire and consume that had to wait */
    uint64_t time_outs; /* and those that ended with TIMED_OUT, without waiting included */
} gpumem_ring_info;

/* `info->size` is to be set. No driver call. */
GPUMEM_API gpumem_status gpumem_ring_get_info(gpumem_ring *ring, gpumem_ring_info *info);

#ifdef __cplusplus
}
#endif

#endif
