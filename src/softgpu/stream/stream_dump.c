/* Streams and events in the state dump and the leak report. */
#include "softgpu/core/chapter.h"
#include "softgpu/core/text.h"
#include "softgpu/stream/capture.h"
#include "softgpu/stream/event.h"
#include "softgpu/stream/schedule.h"

#include <string.h>

struct lines {
    struct sg_text *text;
    unsigned number;
};

static uint64_t pending(const struct sg_stream *stream) {
    return stream->submitted - stream->completed;
}

static bool same_window(const CUaccessPolicyWindow *a, const CUaccessPolicyWindow *b) {
    return a->base_ptr == b->base_ptr && a->num_bytes == b->num_bytes &&
           a->hitRatio == b->hitRatio && a->hitProp == b->hitProp && a->missProp == b->missProp;
}

static bool same_attributes(const struct sg_stream_attributes *a,
                            const struct sg_stream_attributes *b) {
    return same_window(&a->window, &b->window) && a->policy == b->policy &&
           a->domain == b->domain && a->domain_map.default_ == b->domain_map.default_ &&
           a->domain_map.remote == b->domain_map.remote;
}

/* The settings that distinguish a stream from others. */
static void attribute_line(const struct lines *lines, const struct sg_stream *stream) {
    struct sg_stream_attributes fresh;
    sg_stream_attributes_begin(&fresh);
    const struct sg_stream_attributes *own = &stream->attributes;
    if (same_attributes(own, &fresh))
        return;
    sg_text_line(lines->text,
                 "stream %u: policy %d, domain %d of %u and %u, window of %zu bytes at %p, "
                 "hit ratio %g, on a hit %d, on a miss %d",
                 lines->number, (int)own->policy, (int)own->domain, own->domain_map.default_,
                 own->domain_map.remote, own->window.num_bytes, own->window.base_ptr,
                 (double)own->window.hitRatio, (int)own->window.hitProp, (int)own->window.missProp);
}

static void stream_line(uint64_t handle, void *object, void *user) {
    const struct sg_stream *stream = object;
    struct lines *lines = user;
    sg_text_handle(lines->text, handle, stream->context);
    sg_text_line(lines->text, "stream %u: device %d flags %u priority %d pending %llu%s",
                 ++lines->number, stream->context->device, stream->flags, stream->priority,
                 (unsigned long long)pending(stream), stream->capture ? " capturing" : "");
    attribute_line(lines, stream);
}

static void event_line(uint64_t handle, void *object, void *user) {
    const struct sg_event *event = object;
    struct lines *lines = user;
    sg_text_handle(lines->text, handle, event->context);
    const char *state = event->record == 0                ? "never recorded"
                        : sg_token_complete(event->token) ? "complete"
                                                          : "pending";
    sg_text_line(lines->text, "event %u: device %d flags %u %s", ++lines->number,
                 event->context->device, event->flags, state);
}

/* A total, because work in default streams has no handle to list it under. */
static void queued_line(struct sg_text *text) {
    uint64_t operations = 0;
    for (const struct sg_stream *s = sg_working; s; s = s->work_next)
        operations += pending(s);
    sg_text_line(text, "queued operations: %llu", (unsigned long long)operations);
}

static void dump(struct sg_text *text) {
    struct lines events = {text, 0}, streams = {text, 0};
    sg_handle_each(SG_KIND_EVENT, event_line, &events);
    queued_line(text);
    if (*sg_capture_thread_mode() != CU_STREAM_CAPTURE_MODE_GLOBAL)
        sg_text_line(text, "this thread's capture mode: %d", (int)*sg_capture_thread_mode());
    sg_handle_each(SG_KIND_STREAM, stream_line, &streams);
}

static void leaks(struct sg_text *text) {
    struct lines events = {text, 0}, streams = {text, 0};
    sg_handle_each(SG_KIND_EVENT, event_line, &events);
    sg_handle_each(SG_KIND_STREAM, stream_line, &streams);
}

const struct sg_chapter sg_stream_chapter = {
    .dump = dump,
    .leaks = leaks,
    .leak_kind = SG_LEAK_STREAMS,
    .context_begin = sg_streams_context_begin,
    .context_end = {[SG_END_STREAMS] = sg_streams_context_end},
};
