/* Events of other processes, by the driver's 64-byte handle. */
#include "base/cancel.h"
#include "memory/core/current_context.h"
#include "memory/core/driver_error.h"
#include "share/protocol.h"

#include <stdlib.h>
#include <string.h>

static gpumem_status open_event(gpumem_device *device, const unsigned char bytes[64],
                                CUevent *event) {
    const gpumem_driver_api *cu = device->cu;
    CUipcEventHandle handle;
    CUevent made = NULL;
    struct gm_current current;
    memcpy(&handle, bytes, sizeof handle);
    gpumem_status status = gm_current_enter(&current, device);
    if (status != GPUMEM_OK)
        return status;
    CUresult result = cu->cuIpcOpenEventHandle(&made, handle);
    if (result == CUDA_SUCCESS) {
        *event = made;
    } else {
        status = gm_cu_fail_as(result == CUDA_ERROR_MAP_FAILED || result == CUDA_ERROR_INVALID_VALUE
                                   ? GPUMEM_ERROR_DATA
                                   : gm_status_of(result),
                               cu, result, "cuIpcOpenEventHandle",
                               "the received data is not an event that can be opened here");
        /* It may have been opened nevertheless: the driver reports earlier failures in this way. */
        if (made && cu->cuEventDestroy_v2(made) != CUDA_SUCCESS)
            gm_meter_quarantine(&device->meter, 0);
    }
    gm_current_leave(&current);
    return status;
}

static gpumem_status import_event(gpumem_device *device, const void *description, size_t bytes,
                                  CUevent *event) {
    struct gm_event_description read;
    enum gm_kind kind = gm_kind_of(description, bytes);
    if (kind == GM_KIND_CHUNKS || kind == GM_KIND_POOL)
        return gm_fail(GPUMEM_ERROR_DATA,
                       "%s was sent where an event was expected; receive it with "
                       "gpumem_import_receive",
                       gm_kind_name(kind));
    gpumem_status status = gm_event_description_read(description, bytes, &read);
    if (status == GPUMEM_OK)
        status = gm_share_check_device(device, read.device);
    return status == GPUMEM_OK ? open_event(device, read.handle, event) : status;
}

gpumem_status gpumem_import_create_event(gpumem_device *device, const void *description,
                                         size_t description_bytes, CUevent *event) {
    GM_UNCANCELLED;
    GM_CHECK(device, "gpumem_import_create_event");
    GM_REQUIRE(description && event, "gpumem_import_create_event: an argument is NULL");
    return import_event(device, description, description_bytes, event);
}

/* The answer is "send" as for memory, although nothing more is sent. */
static gpumem_status receive(gpumem_device *device, int socket, const struct gm_deadline *deadline,
                             CUevent *event) {
    void *description = NULL;
    size_t bytes = 0;
    CUevent made = NULL;
    gpumem_status status = gm_read_offer(socket, deadline, &description, &bytes);
    if (status == GPUMEM_OK)
        status = import_event(device, description, bytes, &made);
    free(description);
    if (status != GPUMEM_OK)
        return status;
    status = gm_send_answer(socket, deadline, GM_VERDICT_SEND);
    if (status == GPUMEM_OK)
        *event = made;
    else
        (void)gpumem_event_destroy(device, made);
    return status;
}

gpumem_status gpumem_import_receive_event(gpumem_device *device, int socket,
                                          const gpumem_share_options *given, CUevent *event) {
    GM_UNCANCELLED;
    GM_REQUIRE(socket >= 0, "gpumem_import_receive_event: socket is %d", socket);
    gpumem_share_options options;
    GM_CHECK(device, "gpumem_import_receive_event");
    GM_REQUIRE(event, "gpumem_import_receive_event: event is NULL");
    gpumem_status status = gm_share_options(NULL, given, &options);
    if (status != GPUMEM_OK)
        return status;
    const struct gm_deadline deadline = gm_deadline_start(options.timeout_ms);
    status = receive(device, socket, &deadline, event);
    gm_tell_outcome(socket, &deadline, status);
    return status;
}
