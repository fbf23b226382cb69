/* Event objects, and the operations that record and await them. */
#include "softgpu/stream/event.h"
#include "softgpu/core/calls.h"
#include "softgpu/core/chapter.h"
#include "softgpu/stream/capture.h"
#include "softgpu/stream/event_share.h"
#include "softgpu/stream/schedule.h"

#include <stdlib.h>

struct sg_event *sg_event_new(struct sg_context *context, unsigned flags) {
    struct sg_event *event = calloc(1, sizeof *event);
    if (!event)
        return NULL;
    event->refs = 1;
    event->flags = flags;
    event->context = context;
    sg_context_ref(context);
    return event;
}

void sg_event_ref(struct sg_event *event) {
    event->refs++;
}

void sg_event_unref(struct sg_event *event) {
    if (--event->refs > 0)
        return;
    struct sg_context *context = event->context;
    sg_token_release(&event->token);
    sg_capture_forget_event(event);
    sg_event_share_end(event);
    free(event);
    sg_context_unref(context);
}

CUresult sg_event_publish(struct sg_event *event, CUevent *handle) {
    event->handle = sg_handle_new(SG_KIND_EVENT, event);
    if (!event->handle) {
        sg_event_unref(event);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *handle = SG_HANDLE_POINTER(CUevent, event->handle);
    return CUDA_SUCCESS;
}

struct sg_event *sg_event_get(CUevent handle) {
    return sg_handle_get(SG_KIND_EVENT, SG_HANDLE_VALUE(handle));
}

/* H200 looks for a context in the memory that it takes for an event, and finds none in other
 * memory. NULL, or a handle that used to be an event, is simply wrong. */
static CUresult not_an_event(CUevent handle) {
    uint64_t value = SG_HANDLE_VALUE(handle);
    bool ours = value >> 48 == SG_KIND_EVENT;
    return ours || value == 0 ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_CONTEXT;
}

static void end_event(uint64_t handle, void *object, void *context) {
    struct sg_event *event = object;
    if (event->context != context)
        return;
    sg_handle_drop(SG_KIND_EVENT, handle);
    sg_event_unref(event);
}

void sg_events_context_end(struct sg_context *context) {
    sg_handle_each(SG_KIND_EVENT, end_event, context);
}

CUresult sg_cuEventCreate(CUevent *phEvent, unsigned int Flags) {
    const unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    bool timed_between_processes =
        (Flags & CU_EVENT_INTERPROCESS) && !(Flags & CU_EVENT_DISABLE_TIMING);
    struct sg_context *context;
    CUresult result = sg_context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!phEvent || (Flags & ~known) || timed_between_processes)
        return CUDA_ERROR_INVALID_VALUE;
    struct sg_event *event = sg_event_new(context, Flags);
    if (!event)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (Flags & CU_EVENT_INTERPROCESS)
        result = sg_event_share_create(event);
    if (result != CUDA_SUCCESS) {
        sg_event_unref(event);
        return result;
    }
    return sg_event_publish(event, phEvent);
}

CUresult sg_cuEventDestroy_v2(CUevent hEvent) {
    struct sg_event *event = sg_event_get(hEvent);
    if (!event)
        return not_an_event(hEvent);
    sg_handle_drop(SG_KIND_EVENT, event->handle);
    sg_event_unref(event);
    return CUDA_SUCCESS;
}

CUresult sg_cuEventDestroy(CUevent hEvent) {
    return sg_cuEventDestroy_v2(hEvent);
}

/* ---- Recording ------------------------------------------------------------------------------ */

/* The recording operation: data.words are the event and the number of the record. */
static void finish_record(struct sg_op *op) {
    struct sg_event *event = (struct sg_event *)(uintptr_t)op->data.words[0];
    uint64_t number = op->data.words[1];
    if (number == event->record) {
        event->done = number;
        event->time = sg_now();
    }
    if (event->share)
        sg_event_share_complete(event, op->data.words[2]);
    sg_event_unref(event);
}

void sg_event_record_begin(struct sg_event *event, struct sg_op *op) {
    event->record++;
    op->finish = finish_record;
    op->data.words[0] = (uintptr_t)event;
    op->data.words[1] = event->record;
    op->data.words[2] = event->share ? sg_event_share_record(event) : 0;
    sg_event_ref(event);
}

void sg_event_record_queued(struct sg_event *event, struct sg_stream *stream, uint64_t number) {
    sg_token_release(&event->token);
    sg_capture_forget_event(event);
    sg_stream_ref(stream);
    event->token = (struct sg_token){stream, number};
}

static CUresult submit_record(struct sg_event *event, struct sg_stream *stream, struct sg_op *op) {
    uint64_t before = event->record, done = event->done;
    sg_event_record_begin(event, op);
    uint64_t shared = op->data.words[2];
    CUresult result = sg_stream_submit(stream, op);
    if (result != CUDA_SUCCESS) {
        event->record = before;
        event->done = done;
        if (event->share)
            sg_event_share_complete(event, shared);
        sg_event_unref(event);
        return result;
    }
    sg_event_record_queued(event, stream, stream->submitted);
    return CUDA_SUCCESS;
}

/* In a capture a record is not work: the event represents what the stream's next node would depend
 * on. Only an external record is a node. */
static CUresult capture_record(struct sg_event *event, struct sg_stream *stream, unsigned flags) {
    if (event->share)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (flags != CU_EVENT_RECORD_EXTERNAL)
        return sg_capture_record(event, stream);
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD};
    params.eventRecord.event = SG_HANDLE_POINTER(CUevent, event->handle);
    return sg_capture_node(stream, &params);
}

CUresult sg_cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags) {
    struct sg_stream *stream;
    CUresult result = sg_stream_from_handle(hStream, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    struct sg_event *event = sg_event_get(hEvent);
    if (!event)
        return not_an_event(hEvent);
    result = stream->capture ? sg_capture_valid(stream) : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS)
        return result;
    if (flags > CU_EVENT_RECORD_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    if (event->context != sg_context_owner(stream->context))
        return CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture)
        return capture_record(event, stream, flags);
    if (flags == CU_EVENT_RECORD_EXTERNAL)
        return CUDA_ERROR_ILLEGAL_STATE; /* for capturing streams only */
    struct sg_op *op = sg_op_new(NULL);
    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = submit_record(event, stream, op);
    sg_schedule_chance();
    return result;
}

CUresult sg_cuEventRecord(CUevent hEvent, CUstream hStream) {
    return sg_cuEventRecordWithFlags(hEvent, hStream, CU_EVENT_RECORD_DEFAULT);
}

/* Here NULL does not mean the current context. */
static CUresult named_context(CUcontext handle, struct sg_context **context) {
    CUresult result = handle ? sg_context_from_handle(handle, context) : CUDA_ERROR_INVALID_CONTEXT;
    return result == CUDA_SUCCESS ? (*context)->sticky : result;
}

CUresult sg_cuCtxRecordEvent(CUcontext hCtx, CUevent hEvent) {
    struct sg_context *context;
    CUresult result = named_context(hCtx, &context);
    if (result != CUDA_SUCCESS)
        return result;
    struct sg_event *event = sg_event_get(hEvent);
    if (!event || event->context != sg_context_owner(context))
        return CUDA_ERROR_INVALID_HANDLE;
    result = sg_capture_context(context);
    if (result != CUDA_SUCCESS)
        return result;
    struct sg_stream *gather = sg_stream_hidden(context, &context->legacy->gather);
    struct sg_op *op = sg_op_new(NULL);
    if (!gather || !op || !sg_op_wait_for_all(op, context)) {
        if (op)
            sg_op_free(op);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    result = submit_record(event, gather, op);
    sg_schedule_chance();
    return result;
}

/* ---- Awaiting in a stream ------------------------------------------------------------------- */

static bool shared_ready(struct sg_op *op) {
    struct sg_event *event = (struct sg_event *)(uintptr_t)op->data.words[0];
    return sg_event_share_reached(event, op->data.words[1]);
}

static void finish_shared(struct sg_op *op) {
    sg_event_unref((struct sg_event *)(uintptr_t)op->data.words[0]);
}

static bool complete(const struct sg_event *event) {
    if (event->share)
        return sg_event_share_reached(event, sg_event_share_mark(event));
    return sg_token_complete(event->token);
}

/* Complete, and nobody wants to know of it. */
static bool is_past(const struct sg_event *event) {
    return complete(event) && (event->share || !sg_stream_watch);
}

void sg_event_wait_begin(struct sg_event *event, struct sg_op *op) {
    if (is_past(event))
        return;
    /* The token lets a waiter help; records of other processes are found by looking. */
    sg_op_wait_for(op, event->token);
    if (event->share) {
        op->ready = shared_ready;
        op->finish = finish_shared;
        op->data.words[0] = (uintptr_t)event;
        op->data.words[1] = sg_event_share_mark(event);
        sg_event_ref(event);
    }
}

/* Queues a wait for the event's last record. */
static CUresult submit_wait(struct sg_event *event, struct sg_stream *stream) {
    if (is_past(event))
        return CUDA_SUCCESS;
    struct sg_op *op = sg_op_new(NULL);
    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!sg_op_reserve_waits(op, 1)) {
        sg_op_free(op);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    sg_event_wait_begin(event, op);
    CUresult result = sg_stream_submit(stream, op);
    if (result != CUDA_SUCCESS && event->share)
        sg_event_unref(event);
    return result;
}

static CUresult capture_wait(struct sg_event *event, struct sg_stream *stream, unsigned flags) {
    if (event->share)
        return sg_capture_refuse(stream);
    if (flags != CU_EVENT_WAIT_EXTERNAL)
        return sg_capture_wait(stream, event);
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT};
    params.eventWait.event = SG_HANDLE_POINTER(CUevent, event->handle);
    return sg_capture_node(stream, &params);
}

CUresult sg_cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags) {
    if (Flags > CU_EVENT_WAIT_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    struct sg_stream *stream;
    CUresult result = sg_stream_from_handle(hStream, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    struct sg_event *event = sg_event_get(hEvent);
    if (!event) {
        if (stream->capture)
            sg_capture_invalidate(stream->capture);
        return not_an_event(hEvent);
    }
    if (stream->capture)
        return capture_wait(event, stream, Flags);
    if (Flags == CU_EVENT_WAIT_EXTERNAL)
        return CUDA_ERROR_ILLEGAL_STATE; /* for capturing streams only */
    if (event->capture)
        return sg_capture_wait(stream, event);
    result = submit_wait(event, stream);
    /* Records of other processes say nothing about streams of this one. */
    if (result == CUDA_SUCCESS && !event->share)
        sg_stream_follow(stream, event->token);
    sg_schedule_chance();
    return result;
}

static CUresult heed_all(struct sg_stream *list) {
    CUresult result = CUDA_SUCCESS;
    for (struct sg_stream *s = list; s && result == CUDA_SUCCESS; s = s->next)
        result = sg_stream_heed_barrier(s);
    return result;
}

/* All streams of a context, and those that are made later, wait for what its barriers have. */
static CUresult heed_in_part(struct sg_context *context) {
    CUresult result = heed_all(context->streams);
    if (result == CUDA_SUCCESS)
        result = heed_all(context->per_thread);
    if (result == CUDA_SUCCESS)
        result = sg_stream_heed_barrier(context->legacy);
    return result;
}

static CUresult wait_in_part(struct sg_context *context, struct sg_event *event) {
    struct sg_stream *barriers = sg_stream_hidden(context, &context->legacy->barriers);
    if (!barriers)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = submit_wait(event, barriers);
    return result == CUDA_SUCCESS ? heed_in_part(context) : result;
}

CUresult sg_context_wait_for(struct sg_context *context, struct sg_token token) {
    struct sg_stream *barriers = sg_stream_hidden(context, &context->legacy->barriers);
    struct sg_op *op = sg_op_new(NULL);
    if (!barriers || !op || !sg_op_wait_for(op, token)) {
        if (op)
            sg_op_free(op);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult result = sg_stream_submit(barriers, op);
    return result == CUDA_SUCCESS ? heed_in_part(context) : result;
}

/* For a primary context, its parts wait too. */
CUresult sg_cuCtxWaitEvent(CUcontext hCtx, CUevent hEvent) {
    struct sg_context *context;
    CUresult result = named_context(hCtx, &context);
    if (result != CUDA_SUCCESS)
        return result;
    struct sg_event *event = sg_event_get(hEvent);
    if (!event)
        return not_an_event(hEvent);
    bool captured = event->capture && sg_capture_event(event) != CUDA_SUCCESS;
    bool over = captured && event->capture->ended;
    result = sg_capture_context(context);
    if (over && result == CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    if (captured || result != CUDA_SUCCESS)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    result = wait_in_part(context, event);
    for (struct sg_context *part = context->parts; part && result == CUDA_SUCCESS;
         part = part->next_part)
        result = wait_in_part(part, event);
    sg_schedule_chance();
    return result;
}

/* ---- Asking and awaiting on the host -------------------------------------------------------- */

static CUresult get(CUevent handle, struct sg_event **event) {
    *event = sg_event_get(handle);
    if (!*event)
        return not_an_event(handle);
    CUresult sticky = (*event)->context->sticky;
    if (sticky != CUDA_SUCCESS)
        return sticky;
    CUresult result = sg_capture_event(*event);
    return result == CUDA_SUCCESS ? sg_capture_unsafe() : result;
}

static CUresult query(struct sg_event *event) {
    if (!sg_token_complete(event->token))
        sg_stream_settle(event->token.stream);
    if (complete(event)) {
        sg_token_reached(event->token);
        return CUDA_SUCCESS;
    }
    sg_event_ref(event);
    struct sg_stream *stream = event->token.stream;
    if (stream) {
        sg_stream_ref(stream);
        sg_stream_queried(stream);
        sg_stream_settle(stream);
        sg_stream_unref(stream);
    }
    CUresult result = event->context->sticky;
    if (result == CUDA_SUCCESS && !complete(event))
        result = CUDA_ERROR_NOT_READY;
    else
        sg_token_reached(event->token);
    sg_event_unref(event);
    return result;
}

CUresult sg_cuEventQuery(CUevent hEvent) {
    struct sg_event *event;
    CUresult result = get(hEvent, &event);
    return result == CUDA_SUCCESS ? query(event) : result;
}

CUresult sg_cuEventSynchronize(CUevent hEvent) {
    struct sg_event *event;
    CUresult result = get(hEvent, &event);
    if (result != CUDA_SUCCESS)
        return result;
    sg_event_ref(event);
    uint64_t mark = event->share ? sg_event_share_mark(event) : 0;
    struct sg_token token = event->token;
    if (token.stream)
        sg_stream_ref(token.stream);
    result = sg_token_wait(token);
    uint64_t since = sg_now();
    while (result == CUDA_SUCCESS && event->share && !sg_event_share_reached(event, mark)) {
        sg_progress_wait(sg_poll_interval(since));
        if (atomic_load(&sg_exiting))
            result = CUDA_ERROR_DEINITIALIZED;
    }
    sg_token_release(&token);
    if (result == CUDA_SUCCESS)
        sg_chapters_synchronized(event->context, NULL);
    sg_event_unref(event);
    return result;
}

CUresult sg_cuEventElapsedTime(float *pMilliseconds, CUevent hStart, CUevent hEnd) {
    struct sg_event *start = sg_event_get(hStart), *end = sg_event_get(hEnd);
    if (!start || !end || start->context != end->context)
        return CUDA_ERROR_INVALID_HANDLE;
    if (start->capture || end->capture)
        return sg_capture_lives(start->capture ? start->capture : end->capture)
                   ? CUDA_ERROR_CAPTURED_EVENT
                   : CUDA_ERROR_INVALID_VALUE;
    bool untimed = (start->flags | end->flags) & CU_EVENT_DISABLE_TIMING;
    if (untimed || start->record == 0 || end->record == 0)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!pMilliseconds)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = start->context->sticky;
    sg_event_ref(start);
    sg_event_ref(end);
    if (result == CUDA_SUCCESS)
        result = query(start);
    if (result == CUDA_SUCCESS)
        result = query(end);
    /* Both are held here. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
    uint64_t between = end->time - start->time;
    if (result == CUDA_SUCCESS)
        *pMilliseconds = (float)((double)(int64_t)between * 1e-6);
    sg_event_unref(start);
    sg_event_unref(end);
    return result;
}

CUresult sg_cuEventElapsedTime_v2(float *pMilliseconds, CUevent hStart, CUevent hEnd) {
    return sg_cuEventElapsedTime(pMilliseconds, hStart, hEnd);
}
