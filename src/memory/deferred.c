#include "memory/deferred.h"

#include "memory/buffer.h"
#include "memory/current.h"
#include "memory/driver_error.h"

#include <stdlib.h>

static CUevent take_event(gpumem_device *device) {
    CUevent event = NULL;
    pthread_mutex_lock(&device->lock);
    if (device->event_count)
        event = device->events[--device->event_count];
    pthread_mutex_unlock(&device->lock);
    if (event)
        return event;
    CUresult result = device->cu->cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    if (result == CUDA_SUCCESS)
        return event;
    if (event && device->cu->cuEventDestroy_v2(event) != CUDA_SUCCESS)
        gm_meter_quarantine(&device->meter, 0);
    return NULL;
}

static void give_event(gpumem_device *device, CUevent event) {
    pthread_mutex_lock(&device->lock);
    if (device->event_count == device->event_room) {
        size_t room = device->event_room ? 2 * device->event_room : 16;
        CUevent *grown = realloc(device->events, room * sizeof(CUevent));
        if (grown) {
            device->events = grown;
            device->event_room = room;
        }
    }
    int kept = device->event_count < device->event_room;
    if (kept)
        device->events[device->event_count++] = event;
    pthread_mutex_unlock(&device->lock);
    if (!kept && device->cu->cuEventDestroy_v2(event) != CUDA_SUCCESS)
        gm_meter_quarantine(&device->meter, 0);
}

void gm_drop_events(gpumem_device *device) {
    pthread_mutex_lock(&device->lock);
    CUevent *events = device->events;
    size_t count = device->event_count;
    device->events = NULL;
    device->event_count = device->event_room = 0;
    pthread_mutex_unlock(&device->lock);
    for (size_t i = 0; i < count; i++)
        if (device->cu->cuEventDestroy_v2(events[i]) != CUDA_SUCCESS)
            gm_meter_quarantine(&device->meter, 0);
    free(events);
}

void gm_wait_mark(gpumem_device *device, struct gm_wait *wait) {
    const gpumem_driver_api *cu = device->cu;
    if (wait->event) /* of an earlier mark that could not be waited for */
        give_event(device, wait->event);
    wait->event = NULL;
    CUresult result = cu->cuStreamQuery(wait->stream);
    wait->passed = result == CUDA_SUCCESS || gm_code_is_sticky(result);
    if (wait->passed)
        return;
    CUevent event = take_event(device);
    if (event && cu->cuEventRecord(event, wait->stream) != CUDA_SUCCESS) {
        give_event(device, event);
        event = NULL;
    }
    wait->event = event;
}

int gm_waits_mark(gpumem_buffer *buffer) {
    int all = 1;
    for (size_t i = 0; i < buffer->wait_count; i++) {
        gm_wait_mark(buffer->resource->device, &buffer->waits[i]);
        all &= buffer->waits[i].passed;
    }
    return all;
}

int gm_waits_mark_others(gpumem_buffer *buffer, CUstream stream) {
    int all = 1;
    for (size_t i = 0; i < buffer->wait_count; i++) {
        if (buffer->waits[i].stream == stream) {
            buffer->waits[i].passed = 1;
            continue;
        }
        gm_wait_mark(buffer->resource->device, &buffer->waits[i]);
        all &= buffer->waits[i].passed;
    }
    return all;
}

static int passed(gpumem_device *device, struct gm_wait *wait, int block) {
    const gpumem_driver_api *cu = device->cu;
    CUresult result;
    if (wait->event)
        result = block ? cu->cuEventSynchronize(wait->event) : cu->cuEventQuery(wait->event);
    else
        result = block ? cu->cuStreamSynchronize(wait->stream) : cu->cuStreamQuery(wait->stream);
    if (result == CUDA_SUCCESS || gm_code_is_sticky(result))
        return 1;
    /* A stream that its owner destroyed too early cannot be asked any more: its work was submitted
     * before, and waiting for ever would keep the memory for ever. */
    return !wait->event && result == CUDA_ERROR_INVALID_HANDLE;
}

void gm_wait_drop(gpumem_device *device, struct gm_wait *wait) {
    if (wait->event)
        give_event(device, wait->event);
    wait->event = NULL;
}

int gm_wait_passed(gpumem_device *device, struct gm_wait *wait, int block) {
    if (!wait->passed)
        wait->passed = passed(device, wait, block);
    if (wait->passed)
        gm_wait_drop(device, wait);
    return wait->passed;
}

int gm_waits_passed(gpumem_buffer *buffer, int block) {
    gpumem_device *device = buffer->resource->device;
    int all = 1;
    for (size_t i = 0; i < buffer->wait_count; i++) {
        all &= gm_wait_passed(device, &buffer->waits[i], block);
    }
    return all;
}

int gm_waits_join(gpumem_buffer *buffer, CUstream stream) {
    gpumem_device *device = buffer->resource->device;
    for (size_t i = 0; i < buffer->wait_count; i++) {
        struct gm_wait *wait = &buffer->waits[i];
        if (wait->passed)
            wait->passed = 1;
        else if (wait->event &&
                 device->cu->cuStreamWaitEvent(stream, wait->event, 0) == CUDA_SUCCESS)
            wait->passed = 1;
        else
            return -1;
        if (wait->event) {
            /* The wait took the record of now, so that the event can be recorded anew. */
            give_event(device, wait->event);
            wait->event = NULL;
        }
    }
    return 0;
}

void gm_defer(gpumem_buffer *buffer) {
    gpumem_resource *resource = buffer->resource;
    gpumem_device *device = resource->device;
    gm_meter_add(&resource->meter, GM_DEFERRED, 1);
    gm_meter_add(&resource->meter, GM_DEFERRED_BYTES, buffer->allocation.committed_bytes);
    buffer->next = NULL;
    pthread_mutex_lock(&device->lock);
    *device->deferred_end = buffer;
    device->deferred_end = &buffer->next;
    pthread_mutex_unlock(&device->lock);
}

static gpumem_buffer *detach_all(gpumem_device *device) {
    pthread_mutex_lock(&device->lock);
    gpumem_buffer *list = device->deferred;
    device->deferred = NULL;
    device->deferred_end = &device->deferred;
    pthread_mutex_unlock(&device->lock);
    return list;
}

static void attach(gpumem_device *device, gpumem_buffer *first, gpumem_buffer **end) {
    if (!first)
        return;
    pthread_mutex_lock(&device->lock);
    *end = device->deferred;
    if (!device->deferred)
        device->deferred_end = end;
    device->deferred = first;
    pthread_mutex_unlock(&device->lock);
}

static void take_back(gpumem_buffer *buffer) {
    gpumem_resource *resource = buffer->resource;
    gm_meter_subtract(&resource->meter, GM_DEFERRED, 1);
    gm_meter_subtract(&resource->meter, GM_DEFERRED_BYTES, buffer->allocation.committed_bytes);
    gm_buffer_finish(buffer, buffer->free_stream);
}

static size_t work_off(gpumem_device *device, const gpumem_resource *only, int wait) {
    size_t count = 0;
    gpumem_buffer *kept = NULL, **kept_end = &kept, *next;
    for (gpumem_buffer *buffer = detach_all(device); buffer; buffer = next) {
        next = buffer->next;
        int block = wait && (!only || buffer->resource == only);
        if (gm_waits_passed(buffer, block)) {
            take_back(buffer);
            count++;
        } else {
            buffer->next = NULL;
            *kept_end = buffer;
            kept_end = &buffer->next;
        }
    }
    attach(device, kept, kept_end);
    return count;
}

size_t gm_drain(gpumem_device *device, const gpumem_resource *only, int wait) {
    pthread_mutex_lock(&device->lock);
    int empty = !device->deferred;
    pthread_mutex_unlock(&device->lock);
    if (empty && !wait)
        return 0;
    if (wait)
        pthread_mutex_lock(&device->drain);
    else if (pthread_mutex_trylock(&device->drain) != 0)
        return 0;
    size_t count = 0;
    struct gm_error_record saved;
    gm_error_save(&saved);
    struct gm_current current;
    if (gm_current_enter(&current, device) == GPUMEM_OK) {
        count = work_off(device, only, wait);
        gm_current_leave(&current);
    }
    gm_error_restore(&saved);
    pthread_mutex_unlock(&device->drain);
    return count;
}
