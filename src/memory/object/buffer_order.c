/* A stream that is ordered after all others that use a buffer. */
#include "base/cancel.h"
#include "memory/core/capture.h"
#include "memory/core/current_context.h"
#include "memory/core/driver_error.h"
#include "memory/core/stream_waits.h"
#include "memory/object/buffer.h"

#include <stdlib.h>
#include <string.h>

static const char call[] = "gpumem_buffer_order";

/* The target must not be capturing: a capture may wait only for what it has captured. */
static gpumem_status check_target(gpumem_device *device, CUstream stream) {
    GM_REQUIRE(stream != GPUMEM_STREAM_NONE, "%s: GPUMEM_STREAM_NONE is no stream", call);
    switch (gm_capture_state(device->cu, stream, NULL)) {
    case GM_CAPTURE_NONE:
        return GPUMEM_OK;
    case GM_CAPTURE_LOST:
        return gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT, "%s: stream %p does not exist", call,
                       (void *)stream);
    default:
        return gm_fail(GPUMEM_ERROR_BUSY,
                       "%s: stream %p is capturing, or would be drawn into a capture", call,
                       (void *)stream);
    }
}

static gpumem_status wait_for(gpumem_device *device, struct gm_wait *wait, CUstream stream) {
    const gpumem_driver_api *cu = device->cu;
    if (gm_wait_mark(device, wait))
        return GPUMEM_OK;
    if (wait->state != GM_WAIT_EVENT)
        return gm_fail(GPUMEM_ERROR_BUSY,
                       "%s: a stream that uses the buffer cannot be waited for: "
                       "%s",
                       call, gm_wait_reason(wait));
    CUresult result = cu->cuStreamWaitEvent(stream, wait->event, 0);
    if (result == CUDA_SUCCESS)
        return GPUMEM_OK;
    return gm_cu_fail(cu, result, "cuStreamWaitEvent", "%s: stream %p cannot wait", call,
                      (void *)stream);
}

static gpumem_status order(gpumem_device *device, struct gm_wait *waits, size_t count,
                           CUstream stream) {
    const struct gm_wait target = gm_wait_for(device, stream, 0);
    gpumem_status status = check_target(device, stream);
    for (size_t i = 0; i < count && status == GPUMEM_OK; i++) {
        if (gm_wait_same(&waits[i], &target))
            continue;
        status = wait_for(device, &waits[i], stream);
        struct gm_error_record saved;
        gm_error_save(&saved);
        gm_wait_drop(device, &waits[i]); /* the wait is queued: the event may be reused */
        gm_error_restore(&saved);
    }
    return status;
}

/* Copies: the buffer's own marks belong to its free. */
static gpumem_status copy_waits(gpumem_buffer *root, struct gm_wait **waits, size_t *count) {
    pthread_mutex_lock(&root->lock);
    *count = root->wait_count;
    *waits = calloc(*count + 1, sizeof **waits);
    for (size_t i = 0; *waits && i < *count; i++) {
        const struct gm_wait *named = &root->waits[i];
        (*waits)[i] = (struct gm_wait){
            .stream = named->stream, .id = named->id, .namer = named->namer, .task = named->task};
    }
    pthread_mutex_unlock(&root->lock);
    if (*waits)
        return GPUMEM_OK;
    return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to order %zu streams", *count);
}

gpumem_status gpumem_buffer_order(gpumem_buffer *buffer, CUstream stream) {
    GM_UNCANCELLED;
    GM_CHECK(buffer, call);
    gpumem_buffer *root = buffer->root ? buffer->root : buffer;
    gpumem_device *device = root->resource->device;
    struct gm_wait *waits = NULL;
    size_t count = 0;
    struct gm_current current;
    gpumem_status status = copy_waits(root, &waits, &count);
    if (status == GPUMEM_OK)
        status = gm_current_enter(&current, device);
    if (status == GPUMEM_OK) {
        status = order(device, waits, count, stream);
        gm_current_leave(&current);
    }
    free(waits);
    return status == GPUMEM_OK ? gpumem_buffer_use(buffer, stream) : status;
}
