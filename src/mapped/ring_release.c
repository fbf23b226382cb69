/* Releasing chunks after the work of several streams. */
#include "base/cancel.h"
#include "mapped/ring.h"
#include "memory/core/capture.h"
#include "memory/core/current_context.h"
#include "memory/core/driver_error.h"

#include <stdlib.h>

/* ---- Marks ----------------------------------------------------------------------------------- */

/* Marks the stream's current end, or reports why it cannot be marked. */
static gpumem_status mark(gpumem_ring *ring, CUstream stream, struct gm_wait *wait) {
    static const char call[] = "gpumem_ring_release";
    bool named = !gm_is_legacy(stream) && stream != CU_STREAM_PER_THREAD;
    GM_REQUIRE(stream != GPUMEM_STREAM_NONE, "%s: GPUMEM_STREAM_NONE is no stream", call);
    GM_REQUIRE(!named || gm_capture_state(ring->device->cu, stream, NULL) != GM_CAPTURE_LOST,
               "%s: stream %p does not exist", call, (void *)stream);
    *wait = gm_wait_for(ring->device, stream, 0);
    (void)gm_wait_mark(ring->device, wait);
    if (wait->state == GM_WAIT_PASSED || wait->state == GM_WAIT_EVENT)
        return GPUMEM_OK;
    if (wait->state == GM_WAIT_CAPTURING)
        return gm_fail(GPUMEM_ERROR_BUSY,
                       "%s: stream %p captures, so its work does not run; release on the stream "
                       "that the graph is launched on",
                       call, (void *)stream);
    return gm_fail(GPUMEM_ERROR_DRIVER, "%s: the driver records no event on stream %p", call,
                   (void *)stream);
}

/* The ring's own stream, made when it is first needed. */
static gpumem_status own_stream(gpumem_ring *ring, CUstream *stream) {
    gpumem_status status = GPUMEM_OK;
    const gpumem_driver_api *cu = ring->device->cu;
    pthread_mutex_lock(&ring->lock);
    if (!ring->stream) {
        CUstream made = NULL;
        CUresult result = cu->cuStreamCreate(&made, CU_STREAM_NON_BLOCKING);
        if (result == CUDA_SUCCESS) {
            ring->stream = made;
        } else {
            status = gm_cu_fail(cu, result, "cuStreamCreate", "no stream to wait for events");
            if (made && cu->cuStreamDestroy_v2(made) != CUDA_SUCCESS)
                gm_meter_quarantine(&ring->device->meter, 0);
        }
    }
    *stream = ring->stream;
    pthread_mutex_unlock(&ring->lock);
    return status;
}

/* A capture recorded the event, or there is no such event. */
static bool is_the_events_fault(CUresult result) {
    return result == CUDA_ERROR_CAPTURED_EVENT || result == CUDA_ERROR_INVALID_HANDLE ||
           result == CUDA_ERROR_INVALID_VALUE;
}

static gpumem_status mark_event(gpumem_ring *ring, CUevent event, struct gm_wait *wait) {
    static const char call[] = "gpumem_ring_release";
    const gpumem_driver_api *cu = ring->device->cu;
    CUstream stream = NULL;
    GM_REQUIRE(event, "%s: an event is NULL", call);
    CUresult result = cu->cuEventQuery(event);
    if (result == CUDA_SUCCESS || gm_code_is_sticky(result)) {
        *wait = (struct gm_wait){.state = GM_WAIT_PASSED};
        return GPUMEM_OK;
    }
    if (result != CUDA_ERROR_NOT_READY)
        return gm_cu_fail_as(
            is_the_events_fault(result) ? GPUMEM_ERROR_INVALID_ARGUMENT : gm_status_of(result), cu,
            result, "cuEventQuery", "%s: event %p cannot be waited for", call, (void *)event);
    gpumem_status status = own_stream(ring, &stream);
    if (status != GPUMEM_OK)
        return status;
    result = cu->cuStreamWaitEvent(stream, event, 0);
    if (result != CUDA_SUCCESS)
        return gm_cu_fail(cu, result, "cuStreamWaitEvent", "%s: event %p cannot be waited for",
                          call, (void *)event);
    return mark(ring, stream, wait);
}

/* ---- Release --------------------------------------------------------------------------------- */

/* What a release waits for. */
struct after {
    const CUstream *streams;
    size_t stream_count;
    const CUevent *events;
    size_t event_count;
};

static void drop(gpumem_ring *ring, struct gm_wait *waits, size_t count) {
    while (count--)
        gm_wait_drop(ring->device, &waits[count]);
}

/* All or nothing; those that have already passed are left out. */
static gpumem_status mark_all(gpumem_ring *ring, const struct after *after, struct gm_wait *waits,
                              size_t *count) {
    size_t kept = 0;
    for (size_t i = 0; i < after->stream_count + after->event_count; i++) {
        struct gm_wait wait = {0};
        gpumem_status status =
            i < after->stream_count
                ? mark(ring, after->streams[i], &wait)
                : mark_event(ring, after->events[i - after->stream_count], &wait);
        if (status != GPUMEM_OK) {
            struct gm_error_record saved;
            gm_error_save(&saved);
            gm_wait_drop(ring->device, &wait);
            drop(ring, waits, kept);
            gm_error_restore(&saved);
            return status;
        }
        if (wait.state != GM_WAIT_PASSED)
            waits[kept++] = wait;
    }
    *count = kept;
    return GPUMEM_OK;
}

static gpumem_status mark_in_context(gpumem_ring *ring, const struct after *after,
                                     struct gm_wait **waits, size_t *count) {
    struct gm_current current;
    size_t all = after->stream_count + after->event_count;
    struct gm_wait *made = calloc(all, sizeof *made);
    if (!made)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to note %zu events", all);
    gpumem_status status = gm_current_enter(&current, ring->device);
    if (status == GPUMEM_OK) {
        status = mark_all(ring, after, made, count);
        gm_current_leave(&current);
    }
    if (status == GPUMEM_OK)
        *waits = made;
    else
        free(made);
    return status;
}

/* Marks are made without the lock: recording an event blocks on a stream that is full of work. */
static gpumem_status release(gpumem_ring *ring, uint64_t sequence, const struct after *after,
                             const char *call) {
    struct gm_ring_slot *slot = NULL;
    struct gm_wait *waits = NULL;
    size_t count = 0;
    pthread_mutex_lock(&ring->lock);
    gpumem_status status = gm_ring_find(ring, sequence, GM_RING_CONSUMED, call, &slot);
    if (status == GPUMEM_OK)
        slot->state = GM_RING_RELEASING;
    pthread_mutex_unlock(&ring->lock);
    if (status != GPUMEM_OK)
        return status;
    if (after->stream_count + after->event_count)
        status = mark_in_context(ring, after, &waits, &count);
    pthread_mutex_lock(&ring->lock);
    slot->state = status == GPUMEM_OK ? GM_RING_RELEASED : GM_RING_CONSUMED;
    if (status == GPUMEM_OK) {
        slot->waits = waits;
        slot->wait_count = count;
        ring->released++;
        pthread_cond_broadcast(&ring->space);
    }
    pthread_mutex_unlock(&ring->lock);
    return status;
}

gpumem_status gpumem_ring_release(gpumem_ring *ring, uint64_t sequence, const CUstream *streams,
                                  size_t stream_count, const CUevent *events, size_t event_count) {
    GM_UNCANCELLED;
    static const char call[] = "gpumem_ring_release";
    GM_CHECK(ring, call);
    GM_REQUIRE(streams || !stream_count, "%s: streams is NULL", call);
    GM_REQUIRE(events || !event_count, "%s: events is NULL", call);
    const struct after after = {streams, stream_count, events, event_count};
    return release(ring, sequence, &after, call);
}
