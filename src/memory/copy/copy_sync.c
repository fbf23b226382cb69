/* Copies and fills that are done when they return. */
#include "base/cancel.h"
#include "memory/copy/copy.h"
#include "memory/core/capture.h"

/* Synchronizing would invalidate the capture, and the queued work would be part of a graph. */
static gpumem_status can_wait(gpumem_buffer *buffer, CUstream stream, const char *call) {
    GM_CHECK(buffer, call);
    gpumem_device *device = buffer->resource->device;
    struct gm_current current;
    gpumem_status status = gm_current_enter(&current, device);
    if (status != GPUMEM_OK)
        return status;
    enum gm_capture_state state = gm_capture_state(device->cu, stream, NULL);
    gm_current_leave(&current);
    if (state == GM_CAPTURE_UNDER_WAY || state == GM_CAPTURE_IMPLICIT)
        return gm_fail(GPUMEM_ERROR_BUSY, "%s: a capture is in progress; nothing was queued", call);
    return GPUMEM_OK;
}

static gpumem_status wait_if(gpumem_status status, gpumem_buffer *buffer, CUstream stream) {
    if (status != GPUMEM_OK)
        return status;
    return gpumem_stream_synchronize(buffer->resource->device, stream);
}

gpumem_status gpumem_buffer_write_sync(gpumem_buffer *buffer, size_t offset, const void *host,
                                       size_t bytes, CUstream stream) {
    GM_UNCANCELLED;
    gpumem_status status = can_wait(buffer, stream, "gpumem_buffer_write_sync");
    if (status == GPUMEM_OK)
        status = gpumem_buffer_write(buffer, offset, host, bytes, stream);
    return wait_if(status, buffer, stream);
}

gpumem_status gpumem_buffer_read_sync(gpumem_buffer *buffer, size_t offset, void *host,
                                      size_t bytes, CUstream stream) {
    GM_UNCANCELLED;
    gpumem_status status = can_wait(buffer, stream, "gpumem_buffer_read_sync");
    if (status == GPUMEM_OK)
        status = gpumem_buffer_read(buffer, offset, host, bytes, stream);
    return wait_if(status, buffer, stream);
}

gpumem_status gpumem_buffer_copy_sync(gpumem_buffer *to, size_t to_offset, gpumem_buffer *from,
                                      size_t from_offset, size_t bytes, CUstream stream) {
    GM_UNCANCELLED;
    gpumem_status status = can_wait(to, stream, "gpumem_buffer_copy_sync");
    if (status == GPUMEM_OK)
        status = gpumem_buffer_copy(to, to_offset, from, from_offset, bytes, stream);
    return wait_if(status, to, stream);
}

gpumem_status gpumem_buffer_fill_sync(gpumem_buffer *buffer, size_t offset, size_t bytes,
                                      unsigned char value, CUstream stream) {
    GM_UNCANCELLED;
    gpumem_status status = can_wait(buffer, stream, "gpumem_buffer_fill_sync");
    if (status == GPUMEM_OK)
        status = gpumem_buffer_fill(buffer, offset, bytes, value, stream);
    return wait_if(status, buffer, stream);
}
