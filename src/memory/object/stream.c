/* Streams and events, as far as copies need them. */
#include "base/cancel.h"
#include "base/fork.h"
#include "base/options.h"
#include "memory/core/capture.h"
#include "memory/core/current_context.h"
#include "memory/core/driver_error.h"
#include "memory/object/deferred_frees.h"
#include "memory/object/queued_frees.h"
#include "memory/object/resource.h"

static gpumem_status make_stream(gpumem_device *device, const gpumem_stream_options *options,
                                 CUstream *stream) {
    const gpumem_driver_api *cu = device->cu;
    CUstream made = NULL;
    unsigned flags = options->blocking ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING;
    CUresult result = cu->cuStreamCreateWithPriority(&made, flags, options->priority);
    if (result == CUDA_SUCCESS) {
        gm_queued_stream_made(device, made);
        *stream = made;
        return GPUMEM_OK;
    }
    gpumem_status status = gm_cu_fail(cu, result, "cuStreamCreateWithPriority",
                                      "cannot create a stream on device %d", device->ordinal);
    if (made && cu->cuStreamDestroy_v2(made) != CUDA_SUCCESS)
        gm_meter_quarantine(&device->meter, 0);
    return status;
}

gpumem_status gpumem_stream_create(gpumem_device *device, const gpumem_stream_options *given,
                                   CUstream *stream) {
    GM_UNCANCELLED;
    gpumem_stream_options options;
    GM_CHECK(device, "gpumem_stream_create");
    GM_REQUIRE(stream, "gpumem_stream_create: stream is NULL");
    gpumem_status status = GM_OPTIONS_READ(gpumem_stream_options, given, &options);
    struct gm_current current;
    if (status == GPUMEM_OK)
        status = gm_current_enter(&current, device);
    if (status != GPUMEM_OK)
        return status;
    status = make_stream(device, &options, stream);
    gm_current_leave(&current);
    return status;
}

/* Begins a call that has been checked; the caller leaves the context when this says OK. */
static gpumem_status enter(struct gm_current *current, gpumem_device *device, const char *call) {
    GM_CHECK(device, call);
    return gm_current_enter(current, device);
}

static gpumem_status finish(struct gm_current *current, CUresult result, const char *call,
                            const char *what) {
    gpumem_status status = GPUMEM_OK;
    if (result != CUDA_SUCCESS)
        status = gm_cu_fail(current->device->cu, result, call, "%s (device %d)", what,
                            current->device->ordinal);
    gm_current_leave(current);
    return status;
}

static void forget(gpumem_resource *resource, void *stream) {
    if (resource->fast)
        resource->fast->forget(resource, stream);
}

void gm_stream_ends(gpumem_device *device, CUstream stream) {
    gm_resources_visit(device, forget, stream);
    gm_queued_stream_ends(device, stream);
    gm_work_off(device); /* frees that waited for a capture of it can be marked only now */
}

gpumem_status gpumem_stream_destroy(gpumem_device *device, CUstream stream) {
    GM_UNCANCELLED;
    struct gm_current current;
    GM_REQUIRE(stream, "gpumem_stream_destroy: the default stream cannot be destroyed");
    gpumem_status status = enter(&current, device, "gpumem_stream_destroy");
    if (status != GPUMEM_OK)
        return status;
    gm_stream_ends(device, stream);
    return finish(&current, device->cu->cuStreamDestroy_v2(stream), "cuStreamDestroy",
                  "cannot destroy a stream");
}

gpumem_status gpumem_stream_synchronize(gpumem_device *device, CUstream stream) {
    GM_UNCANCELLED;
    struct gm_current current;
    gpumem_status status = enter(&current, device, "gpumem_stream_synchronize");
    if (status != GPUMEM_OK)
        return status;
    /* The driver would refuse, and invalidate the capture. */
    enum gm_capture_state state = gm_capture_state(device->cu, stream, NULL);
    if (state == GM_CAPTURE_UNDER_WAY || state == GM_CAPTURE_IMPLICIT) {
        gm_current_leave(&current);
        return gm_fail(GPUMEM_ERROR_BUSY,
                       "gpumem_stream_synchronize: a capture is in progress; end it first");
    }
    return finish(&current, device->cu->cuStreamSynchronize(stream), "cuStreamSynchronize",
                  "work on a stream failed");
}

gpumem_status gpumem_stream_query(gpumem_device *device, CUstream stream, bool *done) {
    GM_UNCANCELLED;
    struct gm_current current;
    GM_REQUIRE(done, "gpumem_stream_query: done is NULL");
    gpumem_status status = enter(&current, device, "gpumem_stream_query");
    if (status != GPUMEM_OK)
        return status;
    CUresult result = device->cu->cuStreamQuery(stream);
    int busy = result == CUDA_ERROR_NOT_READY;
    status =
        finish(&current, busy ? CUDA_SUCCESS : result, "cuStreamQuery", "work on a stream failed");
    if (status == GPUMEM_OK)
        *done = !busy;
    return status;
}

gpumem_status gpumem_stream_wait_event(gpumem_device *device, CUstream stream, CUevent event) {
    GM_UNCANCELLED;
    struct gm_current current;
    GM_REQUIRE(event, "gpumem_stream_wait_event: event is NULL");
    gpumem_status status = enter(&current, device, "gpumem_stream_wait_event");
    if (status != GPUMEM_OK)
        return status;
    return finish(&current, device->cu->cuStreamWaitEvent(stream, event, 0), "cuStreamWaitEvent",
                  "a stream cannot wait for an event");
}

static gpumem_status make_event(gpumem_device *device, const gpumem_event_options *options,
                                CUevent *event) {
    const gpumem_driver_api *cu = device->cu;
    unsigned flags = (options->timing ? 0u : CU_EVENT_DISABLE_TIMING) |
                     (options->blocking_wait ? CU_EVENT_BLOCKING_SYNC : 0u) |
                     (options->interprocess ? CU_EVENT_INTERPROCESS : 0u);
    CUevent made = NULL;
    CUresult result = cu->cuEventCreate(&made, flags);
    if (result == CUDA_SUCCESS) {
        *event = made;
        return GPUMEM_OK;
    }
    gpumem_status status = gm_cu_fail(cu, result, "cuEventCreate",
                                      "cannot create an event on device %d", device->ordinal);
    if (made && cu->cuEventDestroy_v2(made) != CUDA_SUCCESS)
        gm_meter_quarantine(&device->meter, 0);
    return status;
}

gpumem_status gpumem_event_create(gpumem_device *device, const gpumem_event_options *given,
                                  CUevent *event) {
    GM_UNCANCELLED;
    gpumem_event_options options;
    GM_CHECK(device, "gpumem_event_create");
    GM_REQUIRE(event, "gpumem_event_create: event is NULL");
    gpumem_status status = GM_OPTIONS_READ(gpumem_event_options, given, &options);
    if (status == GPUMEM_OK && options.interprocess && options.timing)
        status = gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT,
                         "gpumem_event_create: an interprocess event cannot have timing");
    struct gm_current current;
    if (status == GPUMEM_OK)
        status = gm_current_enter(&current, device);
    if (status != GPUMEM_OK)
        return status;
    status = make_event(device, &options, event);
    gm_current_leave(&current);
    return status;
}

gpumem_status gpumem_event_destroy(gpumem_device *device, CUevent event) {
    GM_UNCANCELLED;
    struct gm_current current;
    GM_REQUIRE(event, "gpumem_event_destroy: event is NULL");
    gpumem_status status = enter(&current, device, "gpumem_event_destroy");
    if (status != GPUMEM_OK)
        return status;
    return finish(&current, device->cu->cuEventDestroy_v2(event), "cuEventDestroy",
                  "cannot destroy an event");
}

gpumem_status gpumem_event_record(gpumem_device *device, CUevent event, CUstream stream) {
    GM_UNCANCELLED;
    struct gm_current current;
    GM_REQUIRE(event, "gpumem_event_record: event is NULL");
    gpumem_status status = enter(&current, device, "gpumem_event_record");
    if (status != GPUMEM_OK)
        return status;
    return finish(&current, device->cu->cuEventRecord(event, stream), "cuEventRecord",
                  "cannot record an event");
}

gpumem_status gpumem_event_query(gpumem_device *device, CUevent event, bool *done) {
    GM_UNCANCELLED;
    struct gm_current current;
    GM_REQUIRE(event && done, "gpumem_event_query: event or done is NULL");
    gpumem_status status = enter(&current, device, "gpumem_event_query");
    if (status != GPUMEM_OK)
        return status;
    CUresult result = device->cu->cuEventQuery(event);
    int busy = result == CUDA_ERROR_NOT_READY;
    status = finish(&current, busy ? CUDA_SUCCESS : result, "cuEventQuery",
                    "work before an event failed");
    if (status == GPUMEM_OK)
        *done = !busy;
    return status;
}

gpumem_status gpumem_event_synchronize(gpumem_device *device, CUevent event) {
    GM_UNCANCELLED;
    struct gm_current current;
    GM_REQUIRE(event, "gpumem_event_synchronize: event is NULL");
    gpumem_status status = enter(&current, device, "gpumem_event_synchronize");
    if (status != GPUMEM_OK)
        return status;
    return finish(&current, device->cu->cuEventSynchronize(event), "cuEventSynchronize",
                  "work before an event failed");
}

gpumem_status gpumem_event_elapsed(gpumem_device *device, CUevent start, CUevent end,
                                   float *milliseconds) {
    GM_UNCANCELLED;
    struct gm_current current;
    GM_REQUIRE(start && end && milliseconds, "gpumem_event_elapsed: an argument is NULL");
    gpumem_status status = enter(&current, device, "gpumem_event_elapsed");
    if (status != GPUMEM_OK)
        return status;
    float elapsed = 0;
    status = finish(&current, device->cu->cuEventElapsedTime(&elapsed, start, end),
                    "cuEventElapsedTime", "cannot get the time between two events");
    if (status == GPUMEM_OK)
        *milliseconds = elapsed;
    return status;
}
