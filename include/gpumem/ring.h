/*
 * A ring of chunks in memory that the CPU writes and the device reads: filled by several threads,
 * consumed in order, and reused when the device has passed them. Nothing is copied.
 *
 *     acquire ── fill ── commit ────── consume ── queue work ── release ─┐
 *        └───────── the chunk's place, when the streams have passed ◄────┘
 *
 * Threads acquire chunks, which are numbered from 0 in the order of acquisition, fill them through
 * the host pointer in any order, and commit them in any order. Consumers receive them in the order
 * of acquisition, so a stream of packets stays in order. A chunk's place is reused in the same
 * order: when the chunk has been released and all streams named then have passed that point. Until
 * then acquire waits, so the ring slows producers down when the device is slower. No call waits for
 * the whole device.
 *
 * A producer that cannot finish a chunk abandons it, and consumers do not see it. Until then it
 * holds back the chunks after it.
 *
 * Every call is thread-safe. Chunks are named by their number, and any thread may commit, abandon
 * or release a chunk that another thread has acquired or consumed.
 */
#ifndef GPUMEM_RING_H
#define GPUMEM_RING_H

#include <gpumem/resource.h>
#include <gpumem/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A ring of chunks in mapped memory, filled by the CPU and consumed by streams. */
typedef struct gpumem_ring gpumem_ring;

/* Options of gpumem_ring_create. */
typedef struct gpumem_ring_options {
    size_t size;
    size_t chunk_bytes; /* per chunk, if acquire names no size; more than 0 */
    size_t chunk_count; /* chunks that may be in use at a time, at least 2 */
    size_t alignment;   /* of each chunk, a power of two; 0: 256. Raised to the memory's atom */
    /* The memory is mapped twice in a row, for the CPU and for the device, so that a chunk that
     * crosses the end is still contiguous. Chunks may then have any size up to that of the ring.
     * Needs memory that is mapped in chunks: a mapped resource of a method other than
     * vulkan-export, or a virtual resource of host memory. */
    bool mirrored;
} gpumem_ring_options;
#define GPUMEM_RING_OPTIONS(...) GPUMEM_OPTIONS(gpumem_ring_options, __VA_ARGS__)

/*
 * Creates a ring of chunk_count x chunk_bytes, each chunk rounded up to the alignment; if mirrored,
 * the whole is rounded up to the resource's granularity. The memory is one buffer of `resource`,
 * which the CPU must be able to access (gpumem_mapped_resource_create, pinned memory, wrappers of
 * those). The caller destroys the ring, before the resource. INVALID_ARGUMENT: invalid sizes.
 * NOT_SUPPORTED: the CPU cannot access this memory, or it cannot be mapped twice. All or nothing.
 * Driver: as gpumem_buffer_allocate; mirrored also cuMemRetainAllocationHandle, cuMemMap,
 * cuMemSetAccess, and the calls of the mapping for the CPU.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_ring_create(gpumem_resource *resource,
                                                              const gpumem_ring_options *options,
                                                              gpumem_ring **ring);

/*
 * Gives the memory back; NULL is allowed. BUSY while a chunk is being filled or is consumed and not
 * released, and while a thread waits in the ring: the message says which; gpumem_ring_close ends
 * waits. Chunks committed and not consumed are dropped. Blocks, by events, until streams have
 * passed the released chunks. Driver: cuEventSynchronize, cuStreamDestroy, as gpumem_buffer_free.
 */
GPUMEM_API gpumem_status gpumem_ring_destroy(gpumem_ring *ring);

/* A chunk in use. */
typedef struct gpumem_ring_chunk {
    size_t size;
    uint64_t sequence;  /* its number: 0 for the first acquisition, then 1, 2, ... */
    void *host;         /* contiguous, even across the end of a mirrored ring */
    CUdeviceptr device; /* the same bytes; contiguous likewise */
    size_t bytes;       /* as requested; for a consumed chunk as committed */
    size_t offset;      /* of its first byte in the ring */
} gpumem_ring_chunk;

/* ---- Producers ------------------------------------------------------------------------------- */

/*
 * Takes the next chunk, of `bytes` bytes; 0: the chunk_bytes of the options, not rounded up. Waits
 * up to `timeout_ms` until the place after the last one is free; 0: does not wait; negative: no
 * limit. Set `chunk->size` before the call. TIMED_OUT: the message counts the chunks in each state.
 * CANCELLED: the ring is closed. INVALID_ARGUMENT: more bytes than a chunk can have. No driver call
 * while there is room; else Driver: cuEventQuery, repeated at most every 20 us until the oldest
 * chunk has been passed.
 */
GPUMEM_API gpumem_status gpumem_ring_acquire(gpumem_ring *ring, size_t bytes, int timeout_ms,
                                             gpumem_ring_chunk *chunk);

/*
 * Copies into an acquired chunk, and flushes. Stores through the host pointer work too; but
 * write-combined stores stay in the buffers of the core that made them, so a thread that fills part
 * of a chunk and leaves the commit to another must flush its part before it notifies that thread.
 * INVALID_ARGUMENT: outside the chunk, or not a chunk that is being filled. No driver call.
 */
GPUMEM_API gpumem_status gpumem_ring_write(gpumem_ring *ring, uint64_t sequence, size_t offset,
                                           const void *data, size_t bytes);
GPUMEM_API gpumem_status gpumem_ring_flush(gpumem_ring *ring, uint64_t sequence, size_t offset,
                                           size_t bytes);

/*
 * Declares the first `bytes` bytes of the chunk filled: they are flushed and fenced as the memory
 * requires (gpumem_mapped_flush), and work submitted after the chunk's consumption sees them.
 * INVALID_ARGUMENT: not a chunk that is being filled, or more bytes than were acquired. After a
 * failed flush the chunk is still being filled. No driver call.
 */
GPUMEM_API gpumem_status gpumem_ring_commit(gpumem_ring *ring, uint64_t sequence, size_t bytes);

/* Gives up a chunk that is being filled: consumers skip it, and its place is free. Nobody may write
 * to it any more. INVALID_ARGUMENT: no such chunk. No driver call. */
GPUMEM_API gpumem_status gpumem_ring_abandon(gpumem_ring *ring, uint64_t sequence);

/* ---- Consumers ------------------------------------------------------------------------------- */

/*
 * Receives the next chunk in the order of acquisition; each chunk goes to one consumer. Waits up to
 * `timeout_ms`, as acquire, until it is committed. TIMED_OUT: the message names the awaited chunk.
 * CANCELLED: the ring is closed, and all acquired chunks have been consumed or abandoned. No driver
 * call.
 */
GPUMEM_API gpumem_status gpumem_ring_consume(gpumem_ring *ring, int timeout_ms,
                                             gpumem_ring_chunk *chunk);

/*
 * Gives a consumed chunk back: its place is free after the work queued so far on the streams, and
 * after the events, which the program has recorded. Events are recorded on the streams; any number
 * of chunks may be waiting for theirs. NULL among the streams is the legacy default stream; without
 * streams and events no work uses the chunk. The streams may be destroyed afterwards, and the
 * events recorded again or destroyed: a stream of the ring's own waits for those that have not
 * passed yet, so several releases after events complete in the order of the releases. All or
 * nothing: on failure the chunk stays consumed. BUSY: a stream is capturing, so its work does not
 * run; release on the stream on which the graph is launched. INVALID_ARGUMENT: not a consumed
 * chunk, GPUMEM_STREAM_NONE, a stream that does not exist, or an event recorded by a capture.
 * Driver, for each stream: cuStreamGetCaptureInfo, cuStreamQuery, cuEventRecord; for each event
 * cuEventQuery, cuStreamWaitEvent, cuEventRecord.
 */
GPUMEM_API gpumem_status gpumem_ring_release(gpumem_ring *ring, uint64_t sequence,
                                             const CUstream *streams, size_t stream_count,
                                             const CUevent *events, size_t event_count);

/* ---- The ring -------------------------------------------------------------------------------- */

/* Ends acquisition: threads waiting to acquire return CANCELLED. Chunks in use continue as usual,
 * and consumers still get what is committed. Closing twice is the same as once. No driver call. */
GPUMEM_API gpumem_status gpumem_ring_close(gpumem_ring *ring);

/* What gpumem_ring_get_info fills in. */
typedef struct gpumem_ring_info {
    size_t size;
    size_t bytes;       /* of memory; a mirrored ring has twice as many addresses */
    size_t chunk_bytes; /* from one chunk to the next, if acquire names no size */
    size_t chunk_count;
    bool mirrored, closed;
    void *host; /* of the first byte */
    CUdeviceptr device;
    /* Current numbers of chunks. A released chunk is pending until its streams have passed and an
     * acquisition that needs the room has checked. */
    size_t filling, committed, consumed, pending;
    /* Totals. */
    uint64_t acquired, abandoned, released;
    uint64_t waits;     /* calls to acquire and consume that had to wait */
    uint64_t time_outs; /* calls that returned TIMED_OUT, with or without waiting */
} gpumem_ring_info;

/* Set `info->size` before the call. No driver call. */
GPUMEM_API gpumem_status gpumem_ring_get_info(gpumem_ring *ring, gpumem_ring_info *info);

#ifdef __cplusplus
}
#endif

#endif
