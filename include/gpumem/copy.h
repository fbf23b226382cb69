/*
 * Copies and fills, and the streams and events that they need. Streams and events are CUDA's own:
 * those of any other library can be used here, and these elsewhere. Memory that the library did not
 * allocate is copied as a buffer, too (gpumem_buffer_from_pointer, gpumem/foreign.h).
 *
 * Every function is thread-safe. Work is queued on a stream, where NULL is GPUMEM_STREAM_LEGACY.
 * Errors of the work itself are reported by later calls (DEVICE_FAULT). The context of the calling
 * thread is not changed.
 */
#ifndef GPUMEM_COPY_H
#define GPUMEM_COPY_H

#include <gpumem/buffer.h>
#include <gpumem/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Copy from host memory to a buffer and back, copy between buffers, and fill a buffer with a byte
 * value. Offsets and sizes are in bytes, checked against the buffers: INVALID_ARGUMENT. None is
 * synchronous: on return the work is queued and perhaps done. Host memory that is written from must
 * not change, and host memory that is read into is not valid, until the stream has passed the copy.
 * If host memory is not pinned, the call may block until then, but programs must not rely on that:
 * gpumem_stream_synchronize waits. A size of 0 does nothing. NOT_PERMITTED: writing to a read-only
 * buffer (gpumem_buffer_attributes), or what the buffer's device has no access for
 * (gpumem_buffer_set_access); nothing is queued. The stream is recorded as using the buffers
 * (gpumem_buffer_use). Copies between buffers of two devices need no access; the stream may belong
 * to either.
 * Driver: cuMemcpyAsync, cuMemsetD8Async; cuMemcpyPeerAsync between two devices.
 */
GPUMEM_API gpumem_status gpumem_buffer_write(gpumem_buffer *buffer, size_t offset, const void *host,
                                             size_t bytes, CUstream stream);
GPUMEM_API gpumem_status gpumem_buffer_read(gpumem_buffer *buffer, size_t offset, void *host,
                                            size_t bytes, CUstream stream);
GPUMEM_API gpumem_status gpumem_buffer_copy(gpumem_buffer *to, size_t to_offset,
                                            gpumem_buffer *from, size_t from_offset, size_t bytes,
                                            CUstream stream);
GPUMEM_API gpumem_status gpumem_buffer_fill(gpumem_buffer *buffer, size_t offset, size_t bytes,
                                            unsigned char value, CUstream stream);

/*
 * Fill `bytes` bytes with the pattern of 1, 2 or 4 bytes at `pattern`. The address and `bytes` must
 * be multiples of `pattern_bytes`. The pattern is read before the return. Otherwise as fill.
 * Driver: cuMemsetD8Async, cuMemsetD16Async, cuMemsetD32Async.
 */
GPUMEM_API gpumem_status gpumem_buffer_fill_pattern(gpumem_buffer *buffer, size_t offset,
                                                    size_t bytes, const void *pattern,
                                                    size_t pattern_bytes, CUstream stream);

/* Rows of bytes, a pitch apart on either side. Host memory, too, is the "to" or the "from" side. */
typedef struct gpumem_rows {
    size_t width;      /* bytes per row */
    size_t count;      /* rows; 0 here or in width: does nothing */
    size_t to_pitch;   /* bytes from row to row, at least the width; 0: the width */
    size_t from_pitch; /* likewise */
} gpumem_rows;

/*
 * The copies above, for rows. Bytes between rows are not changed. Checked against the buffers from
 * the first byte of the first row to the last byte of the last row. Driver: cuMemcpy2DAsync, which
 * takes pitches below 2 GiB; cuMemcpyAsync if neither side has gaps; cuMemcpy3DPeerAsync between
 * two devices.
 */
GPUMEM_API gpumem_status gpumem_buffer_write_2d(gpumem_buffer *buffer, size_t offset,
                                                const void *host, const gpumem_rows *rows,
                                                CUstream stream);
GPUMEM_API gpumem_status gpumem_buffer_read_2d(gpumem_buffer *buffer, size_t offset, void *host,
                                               const gpumem_rows *rows, CUstream stream);
GPUMEM_API gpumem_status gpumem_buffer_copy_2d(gpumem_buffer *to, size_t to_offset,
                                               gpumem_buffer *from, size_t from_offset,
                                               const gpumem_rows *rows, CUstream stream);

/* One copy of a batch. Copies of a batch may run in any order and concurrently: none may write what
 * another reads or writes. */
typedef struct gpumem_buffer_copy_item {
    gpumem_buffer *to;
    size_t to_offset;
    gpumem_buffer *from;
    size_t from_offset;
    size_t bytes; /* 0: does nothing */
} gpumem_buffer_copy_item;

/* How a batch was queued. */
typedef struct gpumem_batch_report {
    size_t size;
    size_t copies;  /* of more than 0 bytes */
    bool batched;   /* true: by one driver call; false: one after the other */
    char note[112]; /* why not by one call; "" if it was, or nothing was to be done */
} gpumem_batch_report;

/*
 * Queues `count` copies by one driver call, if the driver has it and the stream allows it (the
 * legacy default stream and captures do not), else one after the other; `report`, NULL or with
 * `size` set, says which. Everything is checked before anything is queued. If the driver refuses a
 * batch, nothing is queued; if copies are queued one after the other, those before the refused one
 * are. Buffers of several devices may be mixed; the first item's device is used. Does not block,
 * like single copies. OUT_OF_HOST_MEMORY: no memory for the list. Driver: cuMemcpyBatchAsync, or
 * cuMemcpyAsync for each; cuStreamGetCaptureInfo.
 */
GPUMEM_API gpumem_status gpumem_buffer_copy_batch(const gpumem_buffer_copy_item *items,
                                                  size_t count, CUstream stream,
                                                  gpumem_batch_report *report);

/* Options of gpumem_stream_create. */
typedef struct gpumem_stream_options {
    size_t size;
    bool blocking; /* synchronises with the legacy stream (else CU_STREAM_NON_BLOCKING) */
    int priority;  /* lower is more urgent; 0: the default; clamped to the device's range */
} gpumem_stream_options;
#define GPUMEM_STREAM_OPTIONS(...) GPUMEM_OPTIONS(gpumem_stream_options, __VA_ARGS__)

/* The caller destroys the stream, by gpumem_stream_destroy: until then the library may ask it for
 * what was freed on it. Driver: cuStreamCreateWithPriority. */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status
gpumem_stream_create(gpumem_device *device, const gpumem_stream_options *options, CUstream *stream);
/* Returns at once; queued work still runs. Free the buffers that use the stream first: frees that
 * waited for a capture on it are carried out here. */
GPUMEM_API gpumem_status gpumem_stream_destroy(gpumem_device *device, CUstream stream);
/* Blocks until all queued work is done. BUSY while the stream is capturing (or, for the legacy
 * stream, while a stream that it would disturb is capturing), which goes on. DEVICE_FAULT and
 * DRIVER are also returned for work of the stream that failed. Driver: cuStreamGetCaptureInfo,
 * cuStreamSynchronize. */
GPUMEM_API gpumem_status gpumem_stream_synchronize(gpumem_device *device, CUstream stream);
/* Sets *done to whether all queued work is done. Does not block. Driver: cuStreamQuery. */
GPUMEM_API gpumem_status gpumem_stream_query(gpumem_device *device, CUstream stream, bool *done);
/* Work queued on `stream` from now on waits for `event`. Does not block. */
GPUMEM_API gpumem_status gpumem_stream_wait_event(gpumem_device *device, CUstream stream,
                                                  CUevent event);

/* Options of gpumem_event_create. */
typedef struct gpumem_event_options {
    size_t size;
    bool timing;        /* needed by gpumem_event_elapsed; slower */
    bool blocking_wait; /* gpumem_event_synchronize sleeps instead of spinning */
    bool interprocess;  /* can be exported (gpumem/share.h); not together with timing */
} gpumem_event_options;
#define GPUMEM_EVENT_OPTIONS(...) GPUMEM_OPTIONS(gpumem_event_options, __VA_ARGS__)

/* The caller destroys the event. Driver: cuEventCreate. */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_event_create(gpumem_device *device,
                                                               const gpumem_event_options *options,
                                                               CUevent *event);
GPUMEM_API gpumem_status gpumem_event_destroy(gpumem_device *device, CUevent event);
/* Marks this point of the stream. */
GPUMEM_API gpumem_status gpumem_event_record(gpumem_device *device, CUevent event, CUstream stream);
/* Sets *done to whether the stream has passed the mark or there is none yet. */
GPUMEM_API gpumem_status gpumem_event_query(gpumem_device *device, CUevent event, bool *done);
/* Blocks until the stream has passed the mark. */
GPUMEM_API gpumem_status gpumem_event_synchronize(gpumem_device *device, CUevent event);
/* Milliseconds from `start` to `end`, both made with timing and already passed; else DRIVER. */
GPUMEM_API gpumem_status gpumem_event_elapsed(gpumem_device *device, CUevent start, CUevent end,
                                              float *milliseconds);

#ifdef __cplusplus
}
#endif

#endif
