/*
 * Copies and fills, and as much of streams and events as they need. Streams and events are CUDA's
 * own: any other library's can be used here and these can be used there.
 *
 * Every function is thread-safe. Work is queued on a stream, where NULL is GPUMEM_STREAM_LEGACY,
 * and errors of the work itself show in later calls (DEVICE_FAULT). The context of the calling
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
 * Host memory to a buffer and back, between buffers, and a byte value into a buffer. Offsets and
 * sizes are bytes, checked against the buffers: INVALID_ARGUMENT. None of them is synchronous: on
 * return the work is queued and perhaps done. Host memory must stay as it is until the stream has
 * passed the copy, and what is read is there only then; with memory that is not pinned the call may
 * block for that, which no program may count on. A synchronous write is gpumem_buffer_write and
 * then gpumem_stream_synchronize on the same stream (NULL for both will do). A size of 0 does
 * nothing. The stream is added to the buffers' used ones (gpumem_buffer_use).
 * Driver: cuMemcpyAsync, cuMemsetD8Async.
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
 * The same between any two addresses, device or host (unified addressing), of which the library
 * knows nothing: not checked, not waited for at a free. Driver: cuMemcpyAsync, cuMemsetD8Async.
 */
GPUMEM_API gpumem_status gpumem_copy(gpumem_device *device, CUdeviceptr to, CUdeviceptr from,
                                     size_t bytes, CUstream stream);
GPUMEM_API gpumem_status gpumem_fill(gpumem_device *device, CUdeviceptr to, size_t bytes,
                                     unsigned char value, CUstream stream);

typedef struct gpumem_stream_options {
    size_t size;
    int blocking; /* 1: ordered with the default stream; 0: not (CU_STREAM_NON_BLOCKING) */
    int priority; /* lower is more urgent; 0: the default; clamped to the device's range */
} gpumem_stream_options;
#define GPUMEM_STREAM_OPTIONS(...) GPUMEM_OPTIONS(gpumem_stream_options, __VA_ARGS__)

/* The caller destroys the stream. Driver: cuStreamCreateWithPriority. */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status
gpumem_stream_create(gpumem_device *device, const gpumem_stream_options *options, CUstream *stream);
/* Returns at once; queued work still runs. Free the buffers that use it first: frees that waited
 * for a capture of it are worked off here. */
GPUMEM_API gpumem_status gpumem_stream_destroy(gpumem_device *device, CUstream stream);
/* Blocks until all queued work is done. Driver: cuStreamSynchronize. */
GPUMEM_API gpumem_status gpumem_stream_synchronize(gpumem_device *device, CUstream stream);
/* 1 in *done when all queued work is done, else 0. Does not block. Driver: cuStreamQuery. */
GPUMEM_API gpumem_status gpumem_stream_query(gpumem_device *device, CUstream stream, int *done);
/* Work queued on `stream` from now on waits for `event`. Does not block. */
GPUMEM_API gpumem_status gpumem_stream_wait_event(gpumem_device *device, CUstream stream,
                                                  CUevent event);

typedef struct gpumem_event_options {
    size_t size;
    int timing;        /* 1: for gpumem_event_elapsed; slower */
    int blocking_wait; /* 1: gpumem_event_synchronize sleeps instead of spinning */
} gpumem_event_options;
#define GPUMEM_EVENT_OPTIONS(...) GPUMEM_OPTIONS(gpumem_event_options, __VA_ARGS__)

/* The caller destroys the event. Driver: cuEventCreate. */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_event_create(gpumem_device *device,
                                                               const gpumem_event_options *options,
                                                               CUevent *event);
GPUMEM_API gpumem_status gpumem_event_destroy(gpumem_device *device, CUevent event);
/* Marks this point of the stream. */
GPUMEM_API gpumem_status gpumem_event_record(gpumem_device *device, CUevent event, CUstream stream);
/* 1 in *done when the stream has passed the mark (or there is none yet), else 0. */
GPUMEM_API gpumem_status gpumem_event_query(gpumem_device *device, CUevent event, int *done);
/* Blocks until the stream has passed the mark. */
GPUMEM_API gpumem_status gpumem_event_synchronize(gpumem_device *device, CUevent event);
/* Milliseconds from `start` to `end`, both made with timing and passed; else DRIVER. */
GPUMEM_API gpumem_status gpumem_event_elapsed(gpumem_device *device, CUevent start, CUevent end,
                                              float *milliseconds);

#ifdef __cplusplus
}
#endif

#endif
