#include "softgpu/launch/device_output.h"

#include "softgpu/core/watch.h"
#include "softgpu/launch/device_state.h"
#include "softgpu/launch/launch.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- the fifo -------------------------------------------------------------------------------- */

struct sg_device_state *sg_device_state(struct sg_context *context) {
    if (!context->device_state)
        context->device_state = calloc(1, sizeof *context->device_state);
    return context->device_state;
}

static struct sg_print *flushed, **flushed_end = &flushed; /* guarded by the lock */
static unsigned filled;                                    /* fifos that are not empty */

static void say(void) {
    sg_watch(SG_WATCH_OUTPUT, filled > 0 || flushed != NULL);
}

static void drop_oldest(struct sg_device_state *state) {
    struct sg_print *oldest = state->first;
    state->first = *sg_print_next(oldest);
    if (!state->first) {
        state->last = NULL;
        filled--;
    }
    state->used -= sg_print_size(oldest);
    sg_print_free(oldest);
}

bool sg_output_add(struct sg_context *context, struct sg_print *print) {
    struct sg_device_state *state = sg_device_state(context);
    size_t room = context->limits[CU_LIMIT_PRINTF_FIFO_SIZE], size = sg_print_size(print);
    if (!state || size > room) {
        sg_print_free(print);
        return false;
    }
    while (state->used + size > room)
        drop_oldest(state);
    *sg_print_next(print) = NULL;
    if (state->last)
        *sg_print_next(state->last) = print;
    else
        state->first = print;
    filled += state->last == NULL;
    state->last = print;
    state->used += size;
    say();
    return true;
}

void sg_output_flush(struct sg_context *context) {
    struct sg_device_state *state = context->device_state;
    if (!state || !state->first)
        return;
    *flushed_end = state->first;
    flushed_end = sg_print_next(state->last);
    state->first = state->last = NULL;
    state->used = 0;
    filled--;
    say();
}

void sg_output_free(struct sg_context *context) {
    sg_output_flush(context);
    free(context->device_state);
    context->device_state = NULL;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Held while text is written, so that it stays in order. Taken before the lock. */
static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;

static struct sg_print *take(void) {
    sg_lock();
    struct sg_print *first = flushed;
    flushed = NULL;
    flushed_end = &flushed;
    say();
    sg_unlock();
    return first;
}

void sg_output_write(void) {
    pthread_mutex_lock(&writing);
    struct sg_print *print = take();
    bool any = print != NULL;
    while (print) {
        struct sg_print *next = *sg_print_next(print);
        sg_print_write(print, stdout);
        sg_print_free(print);
        print = next;
    }
    if (any)
        fflush(stdout);
    pthread_mutex_unlock(&writing);
}

/* ---- which calls write ----------------------------------------------------------------------- */

enum moment { NEVER, LAUNCH, AFTER };

static bool begins(const char *name, const char *with) {
    return strncmp(name, with, strlen(with)) == 0;
}

/*
 * As on an H200: calls that wait for the device write, and so do blocking copies, freeing memory,
 * and loading and unloading modules. The programming guide lists launches too, but there they write
 * only if they wait (CUDA_LAUNCH_BLOCKING).
 */
static enum moment moment_of(const char *name) {
    static const char *const after[] = {"cuCtxSynchronize", "cuStreamSynchronize",
                                        "cuEventSynchronize", "cuModuleUnload", "cuLibraryUnload"};
    if (strcmp(name, "cuMemFree") == 0 || strcmp(name, "cuMemFree_v2") == 0)
        return AFTER;
    if (begins(name, "cuLaunchKernel") || begins(name, "cuLaunchCooperative") ||
        begins(name, "cuLaunchGrid") || strcmp(name, "cuLaunch") == 0 ||
        begins(name, "cuGraphLaunch"))
        return LAUNCH;
    if (begins(name, "cuModuleLoad") || begins(name, "cuLibraryLoad"))
        return AFTER;
    if (begins(name, "cuMemcpy"))
        return strstr(name, "Async") ? NEVER : AFTER;
    for (size_t i = 0; i < sizeof after / sizeof after[0]; i++)
        if (strcmp(name, after[i]) == 0)
            return AFTER;
    return NEVER;
}

static void flush_current(void) {
    sg_lock();
    struct sg_context *context = sg_context_peek();
    if (context)
        sg_output_flush(context);
    sg_unlock();
}

void sg_output_leave(gpumem_driver_fn fn) {
    if (sg_thread()->in_call)
        return;
    enum moment moment = moment_of(sg_rows[fn].name);
    if (moment == AFTER || (moment == LAUNCH && sg_launches_block()))
        flush_current();
    sg_output_write();
}
