/* Stream objects: creation, lookup and end. */
#include "softgpu/stream/stream.h"
#include "base/cancel.h"
#include "softgpu/stream/capture.h"
#include "softgpu/stream/schedule.h"

#include <stdlib.h>

static uint64_t last_id;
static pthread_key_t thread_end;
/* The calling thread's default streams, one per context in which it used them; referenced. */
static _Thread_local struct sg_stream *own_streams;

struct sg_stream *sg_stream_new(struct sg_context *context, unsigned flags, int priority) {
    struct sg_stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return NULL;
    stream->id = ++last_id;
    stream->refs = 1;
    stream->context = context;
    stream->flags = flags;
    stream->priority = priority;
    sg_stream_attributes_begin(&stream->attributes);
    sg_context_ref(context);
    return stream;
}

void sg_stream_ref(struct sg_stream *stream) {
    stream->refs++;
}

/* Not inlined: gcc 12 mistakes the release of the list's reference for that of the last one. */
__attribute__((noinline)) void sg_stream_unref(struct sg_stream *stream) {
    if (--stream->refs > 0)
        return;
    struct sg_context *context = stream->context;
    free(stream->followed);
    free(stream);
    sg_context_unref(context);
}

/* ---- The context's lists -------------------------------------------------------------------- */

static struct sg_stream **list_of(struct sg_stream *stream) {
    return stream->thread ? &stream->context->per_thread : &stream->context->streams;
}

void sg_stream_list(struct sg_stream *stream) {
    struct sg_stream **list = list_of(stream);
    stream->next = *list;
    stream->listed = true;
    *list = stream;
}

void sg_stream_unlist(struct sg_stream *stream) {
    if (!stream->listed)
        return;
    struct sg_stream **link = list_of(stream);
    while (*link != stream)
        link = &(*link)->next;
    *link = stream->next;
    stream->next = NULL;
    stream->listed = false;
    sg_stream_unref(stream);
}

void sg_stream_destroy(struct sg_stream *stream) {
    sg_handle_drop(SG_KIND_STREAM, stream->handle);
    stream->destroyed = true;
    sg_capture_stream_gone(stream);
    /* Queued work keeps its place in the default-stream order, so the stream stays listed until
     * drained. */
    if (!stream->head)
        sg_stream_unlist(stream);
}

CUresult sg_stream_heed_barrier(struct sg_stream *stream) {
    struct sg_stream *barriers = stream->context->legacy->barriers;
    if (!barriers || barriers->completed == barriers->submitted)
        return CUDA_SUCCESS;
    struct sg_op *op = sg_op_new(NULL);
    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!sg_op_wait_for(op, (struct sg_token){barriers, barriers->submitted})) {
        sg_op_free(op);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return sg_stream_submit(stream, op);
}

void sg_stream_heed_barrier_later(struct sg_stream *stream) {
    const struct sg_stream *barriers = stream->context->legacy->barriers;
    if (barriers && barriers->completed != barriers->submitted)
        stream->first_after = barriers->submitted;
}

bool sg_stream_idle(struct sg_stream *stream) {
    bool others = stream == stream->context->legacy && stream->busy_blocking > 0;
    return stream->completed == stream->submitted && !others;
}

/* ---- Per-thread default streams ------------------------------------------------------------- */

/* When a thread ends, so do its default streams: their work still runs. */
static void end_thread(void *unused) {
    (void)unused;
    if (atomic_load(&sg_forked) || atomic_load(&sg_exiting))
        return;
    GM_UNCANCELLED;
    sg_lock();
    while (own_streams) {
        struct sg_stream *stream = own_streams;
        own_streams = stream->thread_next;
        if (!stream->destroyed)
            sg_stream_destroy(stream);
        sg_stream_unref(stream);
    }
    sg_unlock();
}

/* Streams whose context has ended need not be kept. */
static void forget_ended(void) {
    struct sg_stream **link = &own_streams;
    while (*link) {
        struct sg_stream *stream = *link;
        if (!stream->destroyed) {
            link = &stream->thread_next;
            continue;
        }
        *link = stream->thread_next;
        sg_stream_unref(stream);
    }
}

static CUresult per_thread(struct sg_context *context, struct sg_stream **found) {
    for (struct sg_stream *s = own_streams; s; s = s->thread_next) {
        if (s->context == context && !s->destroyed) {
            *found = s;
            return CUDA_SUCCESS;
        }
    }
    forget_ended();
    struct sg_stream *stream = sg_stream_new(context, CU_STREAM_DEFAULT, SG_PRIORITY_LEAST);
    if (!stream)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sg_stream_heed_barrier_later(stream);
    if (pthread_setspecific(thread_end, &own_streams) != 0) {
        sg_stream_unref(stream);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    stream->thread = &own_streams;
    sg_stream_list(stream);
    sg_stream_ref(stream);
    stream->thread_next = own_streams;
    own_streams = stream;
    *found = stream;
    return CUDA_SUCCESS;
}

/* ---- From a handle -------------------------------------------------------------------------- */

static CUresult default_stream(bool of_thread, struct sg_stream **stream) {
    struct sg_context *context;
    CUresult result = sg_context_current_part(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (of_thread)
        return per_thread(context, stream);
    *stream = context->legacy;
    return CUDA_SUCCESS;
}

/* H200 returns CONTEXT_IS_DESTROYED for a green context's stream while that context, which has
 * ended, is current. */
CUresult sg_stream_lost(CUstream handle) {
    const struct sg_context *top = sg_context_peek_part();
    bool green = handle && top && top->owner && !top->alive;
    return green ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sg_stream_find(CUstream handle, struct sg_stream **stream) {
    if (!handle)
        return default_stream(sg_thread()->per_thread_stream, stream);
    if (handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD)
        return default_stream(handle == CU_STREAM_PER_THREAD, stream);
    struct sg_stream *found = sg_handle_get(SG_KIND_STREAM, SG_HANDLE_VALUE(handle));
    if (!found)
        return sg_stream_lost(handle);
    if (sg_context_poisoned(found->context))
        return found->context->sticky;
    *stream = found;
    return CUDA_SUCCESS;
}

CUresult sg_stream_from_handle(CUstream handle, struct sg_stream **stream) {
    CUresult result = sg_stream_find(handle, stream);
    if (result == CUDA_SUCCESS && (*stream)->capturing_blocking > 0)
        result = sg_capture_implicit((*stream)->context);
    return result;
}

CUresult sg_stream_find_valid(CUstream handle, struct sg_stream **stream) {
    CUresult result = sg_stream_from_handle(handle, stream);
    return result == CUDA_SUCCESS && (*stream)->capture ? sg_capture_valid(*stream) : result;
}

/* ---- With the context ----------------------------------------------------------------------- */

CUresult sg_streams_init(void) {
    sg_schedule_set(sg_config()->schedule, sg_config()->seed);
    return pthread_key_create(&thread_end, end_thread) == 0 ? CUDA_SUCCESS
                                                            : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sg_streams_context_begin(struct sg_context *context) {
    context->legacy = sg_stream_new(context, CU_STREAM_DEFAULT, SG_PRIORITY_LEAST);
    return context->legacy ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Includes hidden streams: those of graphs are in no list. */
static struct sg_stream *busy_stream(const struct sg_context *context) {
    struct sg_stream *stream = sg_working;
    while (stream && stream->context != context)
        stream = stream->work_next;
    return stream;
}

/* A list holds a reference to each of its streams and drops it when it lets go: the stream that the
 * analyzer believes freed here is not. */
static void end_list(struct sg_stream **list) {
    while (*list) {
        struct sg_stream *stream = *list;
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): see above */
        sg_handle_drop(SG_KIND_STREAM, stream->handle);
        stream->destroyed = true;
        sg_capture_stream_gone(stream);
        sg_stream_unlist(stream);
    }
}

static void drain(struct sg_context *context) {
    struct sg_stream *busy;
    while ((busy = busy_stream(context)) && !atomic_load(&sg_exiting)) {
        sg_stream_ref(busy);
        sg_stream_wait_number(busy, busy->submitted);
        sg_stream_unref(busy);
    }
}

void sg_streams_context_end(struct sg_context *context) {
    struct sg_stream *legacy = context->legacy;
    if (!legacy)
        return;
    drain(context);
    sg_events_context_end(context);
    end_list(&context->streams);
    end_list(&context->per_thread);
    if (legacy->gather)
        sg_stream_unref(legacy->gather);
    if (legacy->barriers)
        sg_stream_unref(legacy->barriers);
    context->legacy = NULL;
    legacy->destroyed = true;
    sg_stream_unref(legacy);
}

/* ---- Joining all streams of a context ------------------------------------------------------- */

struct sg_stream *sg_stream_hidden(struct sg_context *context, struct sg_stream **slot) {
    if (!*slot)
        *slot = sg_stream_new(context, CU_STREAM_NON_BLOCKING, SG_PRIORITY_LEAST);
    return *slot;
}

static bool wait_for_list(struct sg_op *op, struct sg_stream *list) {
    for (struct sg_stream *s = list; s; s = s->next)
        if (!sg_op_wait_for(op, (struct sg_token){s, s->submitted}))
            return false;
    return true;
}

static bool wait_for_part(struct sg_op *op, struct sg_context *context) {
    return wait_for_list(op, context->streams) && wait_for_list(op, context->per_thread) &&
           wait_for_list(op, context->legacy);
}

bool sg_op_wait_for_all(struct sg_op *op, struct sg_context *context) {
    bool done = wait_for_part(op, context);
    for (struct sg_context *part = context->parts; part && done; part = part->next_part)
        done = wait_for_part(op, part);
    return done;
}
