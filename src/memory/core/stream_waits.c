#include "memory/core/stream_waits.h"

#include "base/growing_array.h"
#include "base/log.h"
#include "memory/core/capture.h"
#include "memory/core/driver_error.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- Events and the helper stream, kept for reuse -------------------------------------------- */

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
    int kept = GM_RESERVE(device->events, device->event_room, device->event_count + 1);
    if (kept)
        device->events[device->event_count++] = event;
    pthread_mutex_unlock(&device->lock);
    if (!kept && device->cu->cuEventDestroy_v2(event) != CUDA_SUCCESS)
        gm_meter_quarantine(&device->meter, 0);
}

static void end_stream(gpumem_device *device, CUstream stream) {
    if (stream && device->cu->cuStreamDestroy_v2(stream) != CUDA_SUCCESS)
        gm_meter_quarantine(&device->meter, 0);
}

static CUresult take_helper(gpumem_device *device, CUstream *helper) {
    pthread_mutex_lock(&device->lock);
    *helper = device->helper;
    device->helper = NULL;
    pthread_mutex_unlock(&device->lock);
    if (*helper)
        return CUDA_SUCCESS;
    CUresult result = device->cu->cuStreamCreate(helper, CU_STREAM_DEFAULT);
    if (result != CUDA_SUCCESS) {
        end_stream(device, *helper);
        *helper = NULL;
    }
    return result;
}

static _Thread_local CUstream helping;

CUstream gm_take_helper(gpumem_device *device) {
    CUstream helper;
    helping = take_helper(device, &helper) == CUDA_SUCCESS ? helper : NULL;
    return helping;
}

int gm_is_helper(CUstream stream) {
    return stream && stream == helping;
}

void gm_give_helper(gpumem_device *device, CUstream helper) {
    helping = NULL;
    pthread_mutex_lock(&device->lock);
    CUstream spare = device->helper;
    device->helper = helper;
    pthread_mutex_unlock(&device->lock);
    end_stream(device, spare);
}

void gm_drop_events(gpumem_device *device) {
    pthread_mutex_lock(&device->lock);
    CUevent *events = device->events;
    size_t count = device->event_count;
    CUstream helper = device->helper;
    device->events = NULL;
    device->event_count = device->event_room = 0;
    device->helper = NULL;
    pthread_mutex_unlock(&device->lock);
    for (size_t i = 0; i < count; i++)
        if (device->cu->cuEventDestroy_v2(events[i]) != CUDA_SUCCESS)
            gm_meter_quarantine(&device->meter, 0);
    free(events);
    end_stream(device, helper);
}

/* ---- Who a stream is ------------------------------------------------------------------------- */

static _Thread_local struct {
    uint64_t number;
    int task;
} self;

/* Never 0 and never another thread's, unlike an address or a Linux thread id. */
static uint64_t this_thread(void) {
    static _Atomic uint64_t last;
    if (!self.number) {
        self.number = atomic_fetch_add(&last, 1) + 1;
        self.task = (int)syscall(SYS_gettid);
    }
    return self.number;
}

static int thread_has_ended(int task) {
    return syscall(SYS_tgkill, getpid(), task, 0) != 0 && errno == ESRCH;
}

/* Not for a capturing stream: the query would invalidate the capture. */
static unsigned long long number_of(const gpumem_driver_api *cu, CUstream stream) {
    unsigned long long id = 0;
    return cu->cuStreamGetId(stream, &id) == CUDA_SUCCESS ? id : 0;
}

struct gm_wait gm_wait_for(gpumem_device *device, CUstream stream, int identify) {
    struct gm_wait wait = {.stream = stream, .namer = this_thread(), .task = self.task};
    if (identify && !gm_is_legacy(stream) && stream != CU_STREAM_PER_THREAD &&
        gm_capture_state(device->cu, stream, NULL) == GM_CAPTURE_NONE)
        wait.id = number_of(device->cu, stream);
    return wait;
}

void gm_wait_is_shared(struct gm_wait *wait) {
    if (wait->stream != CU_STREAM_PER_THREAD)
        wait->namer = 0;
}

int gm_wait_same(const struct gm_wait *wait, const struct gm_wait *other) {
    if (gm_is_legacy(wait->stream) && gm_is_legacy(other->stream))
        return 1;
    return wait->stream == other->stream &&
           (wait->stream != CU_STREAM_PER_THREAD || wait->namer == other->namer);
}

/* ---- Marking --------------------------------------------------------------------------------- */

/* If no event is available, the stream stays named and is marked later. */
static void record(gpumem_device *device, struct gm_wait *wait, CUstream stream) {
    const gpumem_driver_api *cu = device->cu;
    CUevent event = take_event(device);
    CUresult result = event ? cu->cuEventRecord(event, stream) : CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS) {
        wait->event = event;
        wait->state = GM_WAIT_EVENT;
        return;
    }
    if (event)
        give_event(device, event);
    wait->state = gm_code_is_sticky(result) ? GM_WAIT_PASSED : GM_WAIT_NAMED;
}

void gm_wait_drop(gpumem_device *device, struct gm_wait *wait) {
    if (wait->event)
        give_event(device, wait->event);
    wait->event = NULL;
}

int gm_wait_is_over(gpumem_device *device, const struct gm_wait *wait) {
    return wait->event && device->cu->cuEventQuery(wait->event) == CUDA_SUCCESS;
}

static void ask_event(gpumem_device *device, struct gm_wait *wait, int block) {
    const gpumem_driver_api *cu = device->cu;
    CUresult result = block ? cu->cuEventSynchronize(wait->event) : cu->cuEventQuery(wait->event);
    int passed = result == CUDA_SUCCESS || gm_code_is_sticky(result);
    /* A capture began before the record and has since ended: the record marks nothing. */
    int captured = result == CUDA_ERROR_INVALID_VALUE;
    if (!passed && !captured)
        return;
    gm_wait_drop(device, wait);
    wait->state = passed ? GM_WAIT_PASSED : GM_WAIT_NAMED;
}

/* The legacy stream itself cannot be touched while a blocking stream captures, and another thread
 * can begin that at any time. A blocking stream of our own can: its work is ordered after the
 * earlier work of the legacy stream. */
static void mark_legacy(gpumem_device *device, struct gm_wait *wait) {
    CUstream helper;
    CUresult result = take_helper(device, &helper);
    if (result != CUDA_SUCCESS) {
        wait->state = gm_code_is_sticky(result) ? GM_WAIT_PASSED : GM_WAIT_NAMED;
        return;
    }
    record(device, wait, helper);
    gm_give_helper(device, helper);
    if (wait->state == GM_WAIT_EVENT)
        ask_event(device, wait, 0);
}

static int is_another_now(const gpumem_driver_api *cu, const struct gm_wait *wait) {
    unsigned long long now = wait->id ? number_of(cu, wait->stream) : 0;
    return now && now != wait->id;
}

static void lose(struct gm_wait *wait) {
    wait->state = GM_WAIT_LOST;
    gm_log(GPUMEM_LOG_WARNING,
           "a stream was destroyed before a buffer that it uses was freed: the memory is kept "
           "until the whole context is waited for (gpumem_device_trim)");
}

/* Decides by the state of a stream; 0 if it may be queried further. */
static int settled_by(struct gm_wait *wait, enum gm_capture_state state) {
    if (state == GM_CAPTURE_UNDER_WAY)
        wait->state = GM_WAIT_CAPTURING;
    else if (state == GM_CAPTURE_LOST)
        lose(wait);
    else if (state == GM_CAPTURE_FAULT)
        wait->state = GM_WAIT_PASSED;
    return state != GM_CAPTURE_NONE;
}

/* In the naming thread: no other thread begins a capture on the stream meanwhile. */
static void mark_own(gpumem_device *device, struct gm_wait *wait) {
    const gpumem_driver_api *cu = device->cu;
    if (settled_by(wait, gm_capture_state(cu, wait->stream, NULL)))
        return;
    if (is_another_now(cu, wait)) {
        lose(wait);
        return;
    }
    CUresult result = cu->cuStreamQuery(wait->stream);
    if (result == CUDA_SUCCESS || gm_code_is_sticky(result))
        wait->state = GM_WAIT_PASSED;
    else
        record(device, wait, wait->stream);
}

/* In another thread, while the stream's own may begin a capture at any time. A record does not harm
 * it; whether it fell into a capture is known afterwards, and then the event must not be queried.
 * NVIDIA's driver 580 does not survive that race in any call on the stream (seen on an H200), so
 * the program must avoid it there: docs/contexts.md. */
static void mark_foreign(gpumem_device *device, struct gm_wait *wait) {
    record(device, wait, wait->stream);
    if (wait->state == GM_WAIT_PASSED)
        return;
    enum gm_wait_state recorded = wait->state;
    if (settled_by(wait, gm_capture_state(device->cu, wait->stream, NULL)))
        gm_wait_drop(device, wait);
    else if (recorded == GM_WAIT_EVENT)
        ask_event(device, wait, 0);
}

static void mark(gpumem_device *device, struct gm_wait *wait) {
    int own = wait->namer == this_thread();
    if (gm_is_legacy(wait->stream))
        mark_legacy(device, wait);
    else if (own)
        mark_own(device, wait);
    else if (wait->stream == CU_STREAM_PER_THREAD)
        wait->state = GM_WAIT_ELSEWHERE;
    else
        mark_foreign(device, wait);
}

int gm_wait_mark(gpumem_device *device, struct gm_wait *wait) {
    gm_wait_drop(device, wait);
    wait->state = GM_WAIT_NAMED;
    mark(device, wait);
    return wait->state == GM_WAIT_PASSED;
}

void gm_wait_end(gpumem_device *device, struct gm_wait *wait) {
    if (!gm_wait_mark(device, wait) && wait->state != GM_WAIT_EVENT)
        wait->state = GM_WAIT_LOST;
}

int gm_waits_mark(gpumem_buffer *buffer) {
    int all = 1;
    for (size_t i = 0; i < buffer->wait_count; i++) {
        all &= gm_wait_mark(buffer->resource->device, &buffer->waits[i]);
    }
    return all;
}

/* ---- Joining --------------------------------------------------------------------------------- */

/* Whether work may be queued on the home stream from here: not on another thread's per-thread
 * stream, nor waits if that thread may be beginning a capture. Pools check the legacy stream
 * themselves. */
static int home_is_usable(const gpumem_buffer *buffer, const struct gm_wait *home) {
    const gpumem_resource *resource = buffer->resource;
    if (gm_is_legacy(home->stream))
        return !resource->users ||
               gm_capture_state(resource->device->cu, home->stream, NULL) != GM_CAPTURE_IMPLICIT;
    return home->namer == this_thread() ||
           (home->stream != CU_STREAM_PER_THREAD && buffer->wait_count == 1);
}

/* Both streams are part of one capture: an event recorded there stands for its nodes. */
static int join_in_capture(gpumem_device *device, const struct gm_wait *home,
                           struct gm_wait *wait) {
    const gpumem_driver_api *cu = device->cu;
    cuuint64_t capture = 0, other = 0;
    gm_capture_state(cu, home->stream, &capture);
    gm_capture_state(cu, wait->stream, &other);
    CUevent event = capture && capture == other ? take_event(device) : NULL;
    if (!event)
        return -1;
    int joined = cu->cuEventRecord(event, wait->stream) == CUDA_SUCCESS &&
                 cu->cuStreamWaitEvent(home->stream, event, 0) == CUDA_SUCCESS;
    give_event(device, event); /* must be recorded again before it is queried */
    return joined ? 0 : -1;
}

static int join(gpumem_device *device, const struct gm_wait *home, struct gm_wait *wait) {
    gm_wait_mark(device, wait);
    if (wait->state == GM_WAIT_PASSED)
        return 0;
    if (wait->state == GM_WAIT_CAPTURING)
        return join_in_capture(device, home, wait);
    /* Making a capturing stream wait for an outside event invalidates the capture. */
    if (wait->state != GM_WAIT_EVENT ||
        gm_capture_state(device->cu, home->stream, NULL) != GM_CAPTURE_NONE ||
        device->cu->cuStreamWaitEvent(home->stream, wait->event, 0) != CUDA_SUCCESS)
        return -1;
    /* The wait uses the present record, so the event can be recorded again. */
    gm_wait_drop(device, wait);
    wait->state = GM_WAIT_PASSED;
    return 0;
}

int gm_waits_join(gpumem_buffer *buffer) {
    gpumem_device *device = buffer->resource->device;
    struct gm_wait *home = &buffer->waits[buffer->home];
    int joined = home_is_usable(buffer, home);
    for (size_t i = 0; joined && i < buffer->wait_count; i++)
        if (i != buffer->home)
            joined = join(device, home, &buffer->waits[i]) == 0;
    if (joined)
        return 0;
    gm_waits_mark(buffer);
    return -1;
}

/* ---- Asking ---------------------------------------------------------------------------------- */

/* The stream's owner has ended, so it can no longer be marked. */
static void look_for_thread(struct gm_wait *wait) {
    if (wait->state == GM_WAIT_ELSEWHERE && thread_has_ended(wait->task))
        wait->state = GM_WAIT_LOST;
}

/* Waits for all work of the context. cuCtxSynchronize would invalidate its captures; freeing plain
 * memory waits for as much (seen on an H200) without harming them. */
static int wait_for_context(const gpumem_driver_api *cu) {
    CUdeviceptr some = 0;
    CUresult result = cu->cuMemAlloc_v2(&some, 1);
    if (result == CUDA_SUCCESS)
        result = cu->cuMemFree_v2(some);
    return result == CUDA_SUCCESS || gm_code_is_sticky(result);
}

static void ask(gpumem_device *device, struct gm_wait *wait, int block) {
    if (wait->state == GM_WAIT_NAMED || wait->state == GM_WAIT_CAPTURING ||
        wait->state == GM_WAIT_ELSEWHERE)
        mark(device, wait);
    look_for_thread(wait);
    if (wait->state == GM_WAIT_EVENT)
        ask_event(device, wait, block);
    if (wait->state == GM_WAIT_LOST && block && wait_for_context(device->cu))
        wait->state = GM_WAIT_PASSED;
}

int gm_wait_passed(gpumem_device *device, struct gm_wait *wait, int block) {
    if (wait->state != GM_WAIT_PASSED)
        ask(device, wait, block);
    return wait->state == GM_WAIT_PASSED;
}

int gm_waits_passed(gpumem_buffer *buffer, int block) {
    int all = 1;
    for (size_t i = 0; i < buffer->wait_count; i++)
        all &= gm_wait_passed(buffer->resource->device, &buffer->waits[i], block);
    return all;
}

int gm_waits_are_events(const gpumem_buffer *buffer) {
    for (size_t i = 0; i < buffer->wait_count; i++)
        if (buffer->waits[i].state != GM_WAIT_PASSED && buffer->waits[i].state != GM_WAIT_EVENT)
            return 0;
    return 1;
}

/* NULL if the stream can be waited for. */
static const char *reason_of(const struct gm_wait *wait) {
    switch (wait->state) {
    case GM_WAIT_CAPTURING:
        return "a stream that uses it is capturing; end the capture first";
    case GM_WAIT_ELSEWHERE:
        return "only the thread that named its per-thread default stream can check it; call "
               "gpumem_device_trim there";
    default:
        return NULL;
    }
}

static const char no_answer[] = "the driver does not report whether queued work is done; try again";

const char *gm_wait_reason(const struct gm_wait *wait) {
    const char *reason = reason_of(wait);
    return reason ? reason : no_answer;
}

const char *gm_waits_reason(const gpumem_buffer *buffer) {
    for (size_t i = 0; i < buffer->wait_count; i++) {
        const char *reason = reason_of(&buffer->waits[i]);
        if (reason)
            return reason;
    }
    return no_answer;
}
