/* The callbacks that receive each line of the error log. */
#include "softgpu/core/calls.h"
#include "softgpu/core/handle.h"
#include "softgpu/core/state.h"
#include "softgpu/core/text.h"
#include "softgpu/report/error_log.h"
#include "softgpu/report/report.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Guarded by the log's lock; in order of registration. */
struct listener {
    CUlogsCallback function;
    void *data;
    struct listener *next;
    uint64_t number;  /* of its registration */
    unsigned running; /* threads running it: it remains in the list until there are none */
    bool gone;
    bool awaited; /* the unregistering thread waits, and then frees it */
};
static struct listener *first;
static uint64_t registrations;
static pthread_cond_t finished = PTHREAD_COND_INITIALIZER;
static atomic_uint listeners; /* not gone */
static _Thread_local bool in_callback;

bool sg_error_log_listened(void) {
    return atomic_load_explicit(&listeners, memory_order_acquire) > 0;
}

/* Removes those that are gone and are not running. */
static void sweep(void) {
    for (struct listener **at = &first; *at;) {
        struct listener *listener = *at;
        if (listener->gone && listener->running == 0 && !listener->awaited) {
            *at = listener->next;
            free(listener);
        } else
            at = &listener->next;
    }
}

void sg_error_log_call(CUlogLevel level, const char *message) {
    char copy[SG_LOG_ROOM]; /* the parameter is not const: each callback gets its own copy */
    if (in_callback)
        return;
    in_callback = true;
    sg_error_log_lock();
    const uint64_t most = registrations; /* one registered by a callback waits for the next line */
    for (struct listener *at = first; at; at = at->next) {
        if (at->gone || at->number > most)
            continue;
        at->running++;
        sg_error_log_unlock();
        size_t length = strnlen(message, sizeof copy - 1);
        memcpy(copy, message, length);
        copy[length] = '\0';
        at->function(at->data, level, copy, length);
        sg_error_log_lock();
        at->running--;
        if (at->gone)
            pthread_cond_broadcast(&finished);
    }
    sweep();
    sg_error_log_unlock();
    in_callback = false;
}

static void append(struct listener *listener) {
    sg_error_log_lock();
    struct listener **at = &first;
    while (*at)
        at = &(*at)->next;
    *at = listener;
    listener->number = ++registrations;
    atomic_fetch_add(&listeners, 1);
    sg_error_log_unlock();
}

/* Without an output it can never be unregistered, which an H200 allows. */
CUresult sg_cuLogsRegisterCallback(CUlogsCallback callbackFunc, void *userData,
                                   CUlogsCallbackHandle *callback_out) {
    if (!callbackFunc)
        return CUDA_ERROR_INVALID_VALUE;
    if (atomic_load(&sg_forked))
        return CUDA_ERROR_NOT_INITIALIZED;
    struct listener *listener = calloc(1, sizeof *listener);
    if (!listener)
        return CUDA_ERROR_OUT_OF_MEMORY;
    listener->function = callbackFunc;
    listener->data = userData;
    if (callback_out) {
        sg_lock();
        uint64_t handle = sg_handle_new(SG_KIND_LOG_CALLBACK, listener);
        sg_unlock();
        if (!handle) {
            free(listener);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        *callback_out = SG_HANDLE_POINTER(CUlogsCallbackHandle, handle);
    }
    append(listener);
    return CUDA_SUCCESS;
}

/* Two callbacks that unregister each other would deadlock, so neither waits. */
static void end_listener(struct listener *listener) {
    sg_error_log_lock();
    listener->gone = true;
    atomic_fetch_sub(&listeners, 1);
    listener->awaited = !in_callback;
    while (listener->awaited && listener->running > 0)
        sg_error_log_wait(&finished);
    listener->awaited = false;
    sweep();
    sg_error_log_unlock();
}

CUresult sg_cuLogsUnregisterCallback(CUlogsCallbackHandle callback) {
    if (!callback)
        return CUDA_ERROR_INVALID_VALUE;
    if (atomic_load(&sg_forked))
        return CUDA_ERROR_NOT_INITIALIZED;
    sg_lock();
    struct listener *listener = sg_handle_get(SG_KIND_LOG_CALLBACK, SG_HANDLE_VALUE(callback));
    sg_handle_drop(SG_KIND_LOG_CALLBACK, SG_HANDLE_VALUE(callback));
    sg_unlock();
    if (!listener)
        return CUDA_ERROR_INVALID_VALUE;
    end_listener(listener);
    return CUDA_SUCCESS;
}

void sg_dump_error_log(struct sg_text *text) {
    unsigned live = atomic_load(&listeners);
    if (live > 0)
        sg_text_line(text, "log-callbacks %u", live);
}

static void leak(uint64_t handle, void *object, void *user) {
    (void)object;
    sg_text_handle(user, handle, NULL);
    sg_text_line(user, "log callback, not unregistered");
}

/* Those without a handle cannot be unregistered: they are not leaks of the application. */
void sg_leaks_error_log(struct sg_text *text) {
    sg_handle_each(SG_KIND_LOG_CALLBACK, leak, text);
}
