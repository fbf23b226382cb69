#include "softgpu/device/notification.h"

#include "base/thread.h"
#include "softgpu/core/calls.h"
#include "softgpu/core/chapter.h"
#include "softgpu/core/config.h"
#include "softgpu/core/handle.h"
#include "softgpu/core/state.h"
#include "softgpu/core/text.h"
#include "softgpu/device/device.h"

#include <stdlib.h>
#include <string.h>

/* All guarded by the big lock. */
struct listener {
    uint64_t handle;
    int device;
    CUasyncCallback function;
    void *data;
    uint64_t missing; /* to be reported, 0 for nothing; the newest replaces older ones */
    bool running;
    struct listener *next;
};
static struct listener *first; /* in order of registration */
static pthread_cond_t wanted = PTHREAD_COND_INITIALIZER;
static pthread_cond_t finished = PTHREAD_COND_INITIALIZER;
static bool started;
static _Thread_local bool in_callback;

static struct listener *next_to_tell(void) {
    struct listener *listener = first;
    while (listener && listener->missing == 0)
        listener = listener->next;
    return listener;
}

struct notice {
    struct listener *listener;
    CUasyncNotificationInfo info;
};

static void call_back(void *user) {
    struct notice *notice = user;
    notice->listener->function(&notice->info, notice->listener->data,
                               SG_HANDLE_POINTER(CUasyncCallbackHandle, notice->listener->handle));
}

static void tell(struct listener *listener) {
    struct notice notice = {.listener = listener};
    memset(&notice.info, 0, sizeof notice.info);
    notice.info.type = CU_ASYNC_NOTIFICATION_TYPE_OVER_BUDGET;
    notice.info.info.overBudget.bytesOverBudget = listener->missing;
    listener->missing = 0;
    listener->running = true;
    sg_call_out(false, call_back, &notice);
    listener->running = false;
    pthread_cond_broadcast(&finished);
}

static void *work(void *unused) {
    (void)unused;
    in_callback = true;
    sg_lock();
    for (;;) {
        struct listener *listener = next_to_tell();
        if (listener)
            tell(listener);
        else
            sg_wait(&wanted, 0);
    }
    return NULL;
}

/* The thread runs until the process ends, like the workers of streams. */
static bool start(void) {
    if (started)
        return true;
    started = gm_thread_start(NULL, 0, work, NULL) == 0;
    if (!started)
        sg_log(SG_LOG_WARNING, "no thread for notifications");
    return started;
}

void sg_notify_over_budget(int device, uint64_t missing) {
    bool any = false;
    for (struct listener *at = first; at; at = at->next)
        if (at->device == device) {
            at->missing = missing;
            any = true;
        }
    if (any)
        pthread_cond_signal(&wanted);
}

CUresult sg_cuDeviceRegisterAsyncNotification(CUdevice device, CUasyncCallback callbackFunc,
                                              void *userData, CUasyncCallbackHandle *callback) {
    if (in_callback)
        return CUDA_ERROR_NOT_PERMITTED;
    if (!callbackFunc || !callback)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sg_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    struct listener *listener = calloc(1, sizeof *listener);
    if (!listener || !start()) {
        free(listener);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *listener = (struct listener){.device = device, .function = callbackFunc, .data = userData};
    listener->handle = sg_handle_new(SG_KIND_NOTIFICATION, listener);
    if (!listener->handle) {
        free(listener);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    struct listener **at = &first;
    while (*at)
        at = &(*at)->next;
    *at = listener;
    *callback = SG_HANDLE_POINTER(CUasyncCallbackHandle, listener->handle);
    return CUDA_SUCCESS;
}

static void unlink_listener(const struct listener *listener) {
    struct listener **at = &first;
    while (*at != listener)
        at = &(*at)->next;
    *at = listener->next;
}

CUresult sg_cuDeviceUnregisterAsyncNotification(CUdevice device, CUasyncCallbackHandle callback) {
    if (in_callback)
        return CUDA_ERROR_NOT_PERMITTED;
    if (!callback)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sg_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    struct listener *listener = sg_handle_get(SG_KIND_NOTIFICATION, SG_HANDLE_VALUE(callback));
    if (!listener || listener->device != device)
        return CUDA_ERROR_INVALID_VALUE;
    sg_handle_drop(SG_KIND_NOTIFICATION, listener->handle);
    unlink_listener(listener);
    while (listener->running)
        sg_wait(&finished, 0);
    free(listener);
    return CUDA_SUCCESS;
}

static void dump(struct sg_text *text) {
    for (const struct listener *at = first; at; at = at->next)
        sg_text_line(text, "notification device %d", at->device);
}

static void leaks(struct sg_text *text) {
    for (const struct listener *at = first; at; at = at->next) {
        sg_text_handle(text, at->handle, NULL);
        sg_text_line(text, "notification callback of device %d, not unregistered", at->device);
    }
}

const struct sg_chapter sg_device_chapter = {.dump = dump, .leaks = leaks};
