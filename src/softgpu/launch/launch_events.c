#include "softgpu/launch/launch_events.h"

#include "softgpu/stream/event.h"
#include "softgpu/stream/schedule.h"

#include <stdlib.h>

struct sg_launch_progress {
    unsigned refs;
    bool begun, triggered;
};

/* The word in which a record keeps it: sg_event_record_begin uses the first three. */
#define PROGRESS 4
#define AT_START 5

void sg_launch_progress_set(struct sg_launch_progress *progress, bool begun, bool triggered) {
    progress->begun = begun;
    progress->triggered = triggered;
}

void sg_launch_progress_unref(struct sg_launch_progress *progress) {
    if (progress && --progress->refs == 0)
        free(progress);
}

static struct sg_launch_progress *progress_of(const struct sg_op *op) {
    return (struct sg_launch_progress *)(uintptr_t)op->data.words[PROGRESS];
}

static bool has_come(struct sg_op *op) {
    const struct sg_launch_progress *progress = progress_of(op);
    return op->data.words[AT_START] ? progress->begun : progress->triggered;
}

/* The event that an attribute names, and whether it is recorded once all blocks have begun. */
static struct sg_event *event_of(const CUlaunchAttribute *attribute, bool *at_start) {
    const CUlaunchAttributeValue *value = &attribute->value;
    switch ((int)attribute->id) {
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        *at_start = true;
        return sg_event_get(value->launchCompletionEvent.event);
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
        *at_start = value->programmaticEvent.triggerAtBlockStart != 0;
        return sg_event_get(value->programmaticEvent.event);
    default:
        return NULL;
    }
}

static bool add(struct sg_launch_events *events, struct sg_context *context, struct sg_event *event,
                bool at_start) {
    struct sg_launch_event *made = &events->list[events->count];
    made->event = event;
    made->stream = sg_stream_new(context, CU_STREAM_NON_BLOCKING, SG_PRIORITY_LEAST);
    made->op = made->stream ? sg_op_new(NULL) : NULL;
    if (!made->op) {
        if (made->stream)
            sg_stream_unref(made->stream);
        return false;
    }
    made->op->ready = has_come;
    made->op->data.words[PROGRESS] = (uintptr_t)events->progress;
    made->op->data.words[AT_START] = at_start;
    events->progress->refs++;
    events->count++;
    return true;
}

/* As documented: not an event of another context, nor one that processes share. */
static CUresult may_record(const struct sg_launch_events *events, struct sg_context *context,
                           const struct sg_event *event) {
    if (event->context != sg_context_owner(context))
        return CUDA_ERROR_INVALID_HANDLE;
    return event->share || events->count == SG_LAUNCH_EVENTS ? CUDA_ERROR_INVALID_VALUE
                                                             : CUDA_SUCCESS;
}

CUresult sg_launch_events_make(struct sg_context *context, const struct sg_launch *launch,
                               struct sg_launch_events *events) {
    *events = (struct sg_launch_events){.count = 0};
    for (unsigned i = 0; i < launch->attribute_count; i++) {
        bool at_start = false;
        struct sg_event *event = event_of(&launch->attributes[i], &at_start);
        if (!event)
            continue;
        if (!events->progress)
            events->progress = calloc(1, sizeof *events->progress);
        CUresult result = may_record(events, context, event);
        if (result == CUDA_SUCCESS && (!events->progress || !add(events, context, event, at_start)))
            result = CUDA_ERROR_OUT_OF_MEMORY;
        if (result != CUDA_SUCCESS) {
            sg_launch_events_discard(events);
            return result;
        }
    }
    return CUDA_SUCCESS;
}

struct sg_launch_progress *sg_launch_events_progress(const struct sg_launch_events *events) {
    if (events->progress)
        events->progress->refs++;
    return events->progress;
}

/* The record's own end function, called before the progress is released. */
static void (*end_of_record)(struct sg_op *op);

static void finish(struct sg_op *op) {
    end_of_record(op);
    sg_launch_progress_unref(progress_of(op));
}

void sg_launch_events_queue(struct sg_launch_events *events) {
    for (unsigned i = 0; i < events->count; i++) {
        struct sg_launch_event *made = &events->list[i];
        sg_event_record_begin(made->event, made->op);
        end_of_record = made->op->finish;
        made->op->finish = finish;
        sg_stream_enqueue(made->stream, made->op);
        sg_event_record_queued(made->event, made->stream, made->stream->submitted);
        sg_stream_unref(made->stream);
    }
    if (events->count)
        sg_workers_later();
}

void sg_launch_events_discard(struct sg_launch_events *events) {
    for (unsigned i = 0; i < events->count; i++) {
        sg_launch_progress_unref(events->progress);
        sg_op_free(events->list[i].op);
        sg_stream_unref(events->list[i].stream);
    }
    if (events->progress && events->count == 0)
        free(events->progress);
    *events = (struct sg_launch_events){.count = 0};
}
