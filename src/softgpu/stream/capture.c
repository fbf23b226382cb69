/* Captures as objects: the streams and events that take part in one, and the nodes that it adds. */
#include "softgpu/stream/capture.h"

#include "base/growing_array.h"

#include <stdlib.h>
#include <string.h>

atomic_uint sg_captures_under_way;
const struct sg_capture_graphs *sg_capture_graphs;

static struct sg_capture *captures; /* those that have not ended */
static uint64_t last_id;

uint64_t sg_capture_thread(void) {
    static uint64_t last_thread;
    static _Thread_local uint64_t thread;
    if (thread == 0)
        thread = ++last_thread;
    return thread;
}

CUstreamCaptureMode *sg_capture_thread_mode(void) {
    static _Thread_local CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    return &mode;
}

static void unref(struct sg_capture *capture) {
    if (--capture->refs > 0)
        return;
    sg_dependencies_clear(&capture->tips);
    free(capture);
}

/* ---- Dependency sets ------------------------------------------------------------------------ */

static bool reserve(struct sg_dependencies *set, size_t count) {
    size_t room = set->room; /* of both arrays: updated once both have grown */
    return GM_RESERVE(set->nodes, room, count) && GM_RESERVE(set->data, set->room, count);
}

bool sg_edge_data_plain(const CUgraphEdgeData *data) {
    static const CUgraphEdgeData plain;
    return memcmp(data, &plain, sizeof plain) == 0;
}

bool sg_dependencies_hold(const struct sg_dependencies *set, CUgraphNode node) {
    for (size_t i = 0; i < set->count; i++)
        if (set->nodes[i] == node)
            return true;
    return false;
}

bool sg_dependencies_add(struct sg_dependencies *set, CUgraphNode node,
                         const CUgraphEdgeData *data) {
    static const CUgraphEdgeData plain;
    if (sg_dependencies_hold(set, node))
        return true;
    if (!reserve(set, set->count + 1))
        return false;
    set->nodes[set->count] = node;
    set->data[set->count] = data ? *data : plain;
    set->count++;
    return true;
}

void sg_dependencies_remove(struct sg_dependencies *set, CUgraphNode node) {
    for (size_t i = 0; i < set->count; i++) {
        if (set->nodes[i] != node)
            continue;
        set->count--;
        memmove(&set->nodes[i], &set->nodes[i + 1], (set->count - i) * sizeof set->nodes[0]);
        memmove(&set->data[i], &set->data[i + 1], (set->count - i) * sizeof set->data[0]);
        return;
    }
}

void sg_dependencies_clear(struct sg_dependencies *set) {
    free(set->nodes);
    free(set->data);
    *set = (struct sg_dependencies){0};
}

bool sg_dependencies_copy(struct sg_dependencies *to, const struct sg_dependencies *from) {
    if (!reserve(to, from->count))
        return false;
    if (from->count > 0) {
        memcpy(to->nodes, from->nodes, from->count * sizeof to->nodes[0]);
        memcpy(to->data, from->data, from->count * sizeof to->data[0]);
    }
    to->count = from->count;
    return true;
}

/* ---- Streams of a capture ------------------------------------------------------------------- */

static bool orders_with_legacy(const struct sg_stream *stream) {
    return !(stream->flags & CU_STREAM_NON_BLOCKING) && stream->context->legacy != stream;
}

static void join(struct sg_capture *capture, struct sg_stream *stream) {
    capture->refs++;
    sg_stream_ref(stream);
    stream->capture = capture;
    stream->capture_next = capture->streams;
    capture->streams = stream;
    if (orders_with_legacy(stream))
        stream->context->legacy->capturing_blocking++;
}

static void leave(struct sg_stream *stream) {
    struct sg_capture *capture = stream->capture;
    struct sg_stream **link = &capture->streams;
    while (*link != stream)
        link = &(*link)->capture_next;
    *link = stream->capture_next;
    stream->capture_next = NULL;
    stream->capture = NULL;
    sg_dependencies_clear(&stream->dependencies);
    if (orders_with_legacy(stream))
        stream->context->legacy->capturing_blocking--;
    unref(capture);
    sg_stream_unref(stream);
}

CUresult sg_capture_begin(struct sg_stream *stream, uint64_t graph, CUstreamCaptureMode mode) {
    struct sg_capture *capture = calloc(1, sizeof *capture);
    if (!capture)
        return CUDA_ERROR_OUT_OF_MEMORY;
    capture->id = ++last_id;
    capture->graph = graph;
    capture->mode = mode;
    capture->thread = sg_capture_thread();
    capture->origin = stream;
    capture->next = captures;
    if (captures)
        captures->previous = capture;
    captures = capture;
    atomic_fetch_add_explicit(&sg_captures_under_way, 1, memory_order_relaxed);
    join(capture, stream);
    return CUDA_SUCCESS;
}

static CUgraph graph_of(const struct sg_capture *capture) {
    return SG_HANDLE_POINTER(CUgraph, capture->graph);
}

static void release_graph(struct sg_capture *capture) {
    CUgraph graph = graph_of(capture);
    capture->graph = 0;
    if (graph)
        sg_capture_graphs->release(graph);
}

void sg_capture_end(struct sg_capture *capture) {
    capture->refs++;
    capture->ended = true;
    capture->origin = NULL;
    if (capture->next)
        capture->next->previous = capture->previous;
    if (capture->previous)
        capture->previous->next = capture->next;
    else
        captures = capture->next;
    capture->next = capture->previous = NULL;
    atomic_fetch_sub_explicit(&sg_captures_under_way, 1, memory_order_relaxed);
    while (capture->streams)
        leave(capture->streams);
    release_graph(capture);
    unref(capture);
}

void sg_capture_invalidate(struct sg_capture *capture) {
    capture->invalid = true;
}

bool sg_capture_joined(const struct sg_capture *capture) {
    for (size_t i = 0; i < capture->tips.count; i++) {
        CUgraphNode tip = capture->tips.nodes[i];
        if (sg_capture_graphs->node_exists(tip) &&
            !sg_dependencies_hold(&capture->origin->dependencies, tip))
            return false;
    }
    return true;
}

void sg_capture_stream_gone(struct sg_stream *stream) {
    struct sg_capture *capture = stream->capture;
    if (!capture)
        return;
    if (capture->origin == stream)
        sg_capture_end(capture);
    else
        leave(stream);
}

/* ---- Nodes ---------------------------------------------------------------------------------- */

/* The node replaces what it depends on. Room is reserved before the node is made. */
static void advance(struct sg_stream *stream, CUgraphNode node) {
    struct sg_dependencies *set = &stream->dependencies, *tips = &stream->capture->tips;
    for (size_t i = 0; i < set->count; i++)
        sg_dependencies_remove(tips, set->nodes[i]);
    set->count = 0;
    sg_dependencies_add(set, node, NULL);
    sg_dependencies_add(tips, node, NULL);
}

CUresult sg_capture_node_at(struct sg_stream *stream, CUgraphNodeParams *params,
                            CUgraphNode *node) {
    struct sg_capture *capture = stream->capture;
    CUresult result = sg_capture_valid(stream);
    if (result != CUDA_SUCCESS)
        return result;
    CUgraph graph = graph_of(capture);
    if (!graph || !sg_capture_graphs->exists(graph)) {
        sg_capture_invalidate(capture);
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    if (!reserve(&stream->dependencies, 1) || !reserve(&capture->tips, capture->tips.count + 1))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUcontext context = SG_HANDLE_POINTER(CUcontext, stream->context->handle);
    result = sg_capture_graphs->add(graph, &stream->dependencies, context, params, node);
    if (result == CUDA_SUCCESS)
        advance(stream, *node);
    return result;
}

CUresult sg_capture_node(struct sg_stream *stream, CUgraphNodeParams *params) {
    CUgraphNode node;
    return sg_capture_node_at(stream, params, &node);
}

void sg_capture_serialize_programmatically(struct sg_stream *stream) {
    static const CUgraphEdgeData programmatic = {.from_port =
                                                     CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
                                                 .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC};
    struct sg_dependencies *set = &stream->dependencies;
    for (size_t i = 0; i < set->count; i++) {
        if (sg_capture_graphs->node_is_kernel(set->nodes[i]) && sg_edge_data_plain(&set->data[i]))
            set->data[i] = programmatic;
    }
}

/* ---- Refusals ------------------------------------------------------------------------------- */

CUresult sg_capture_valid(const struct sg_stream *stream) {
    return stream->capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
}

CUresult sg_capture_refuse(struct sg_stream *stream) {
    sg_capture_invalidate(stream->capture);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult sg_capture_unsafe(void) {
    CUstreamCaptureMode mode = *sg_capture_thread_mode();
    CUresult result = CUDA_SUCCESS;
    if (mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return result;
    for (struct sg_capture *capture = captures; capture; capture = capture->next) {
        bool own = capture->thread == sg_capture_thread();
        bool others =
            mode == CU_STREAM_CAPTURE_MODE_GLOBAL && capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
        if (capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED || (!own && !others))
            continue;
        sg_capture_invalidate(capture);
        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return result;
}

static bool has_stream_of(const struct sg_capture *capture, const struct sg_context *context,
                          bool blocking) {
    for (const struct sg_stream *s = capture->streams; s; s = s->capture_next)
        if (blocking ? s->context == context && orders_with_legacy(s)
                     : sg_context_includes(context, s->context))
            return true;
    return false;
}

static bool invalidate_in(const struct sg_context *context, bool blocking) {
    bool any = false;
    for (struct sg_capture *capture = captures; capture; capture = capture->next) {
        if (!has_stream_of(capture, context, blocking))
            continue;
        sg_capture_invalidate(capture);
        any = true;
    }
    return any;
}

CUresult sg_capture_implicit(struct sg_context *context) {
    if (context->legacy->capturing_blocking == 0)
        return CUDA_SUCCESS;
    invalidate_in(context, true);
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

CUresult sg_capture_context(struct sg_context *context) {
    return invalidate_in(context, false) ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

/* ---- Events --------------------------------------------------------------------------------- */

void sg_capture_forget_event(struct sg_event *event) {
    if (!event->capture)
        return;
    sg_dependencies_clear(&event->dependencies);
    unref(event->capture);
    event->capture = NULL;
}

static void stand_for(struct sg_event *event, struct sg_capture *capture,
                      struct sg_dependencies dependencies) {
    sg_capture_forget_event(event);
    event->capture = capture;
    event->capture->refs++;
    event->dependencies = dependencies;
}

CUresult sg_capture_record(struct sg_event *event, struct sg_stream *stream) {
    CUresult result = sg_capture_valid(stream);
    if (result != CUDA_SUCCESS)
        return result;
    struct sg_dependencies copy = {0};
    if (!sg_dependencies_copy(&copy, &stream->dependencies)) {
        sg_dependencies_clear(&copy);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    stand_for(event, stream->capture, copy);
    return CUDA_SUCCESS;
}

bool sg_capture_record_node(struct sg_event *event, struct sg_stream *stream, CUgraphNode node,
                            const CUgraphEdgeData *data) {
    struct sg_dependencies one = {0};
    if (!sg_dependencies_add(&one, node, data)) {
        sg_dependencies_clear(&one);
        return false;
    }
    stand_for(event, stream->capture, one);
    return true;
}

static bool add_all(struct sg_dependencies *set, const struct sg_dependencies *more) {
    if (!reserve(set, set->count + more->count))
        return false;
    for (size_t i = 0; i < more->count; i++)
        sg_dependencies_add(set, more->nodes[i], &more->data[i]);
    return true;
}

/* Any failure also invalidates the capture of the stream that was to wait. */
static CUresult spoil(struct sg_stream *stream, CUresult result) {
    if (stream->capture)
        sg_capture_invalidate(stream->capture);
    return result;
}

/* What a wait for the event means for the stream, determined before anything is changed. */
static CUresult may_wait(struct sg_stream *stream, const struct sg_event *event) {
    struct sg_capture *capture = event->capture;
    if (stream->capture && stream->capture->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (!capture)
        return spoil(stream, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    if (capture->ended || capture->invalid)
        return spoil(stream, CUDA_ERROR_INVALID_VALUE);
    if (!stream->capture || stream->capture == capture)
        return CUDA_SUCCESS;
    sg_capture_invalidate(capture);
    return spoil(stream, CUDA_ERROR_STREAM_CAPTURE_MERGE);
}

CUresult sg_capture_wait(struct sg_stream *stream, struct sg_event *event) {
    if (stream->capture && !event->capture && event->record == 0)
        return sg_capture_valid(stream);
    CUresult result = may_wait(stream, event);
    if (result != CUDA_SUCCESS)
        return result;
    if (!add_all(&stream->dependencies, &event->dependencies))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!stream->capture)
        join(event->capture, stream);
    return CUDA_SUCCESS;
}

bool sg_capture_lives(const struct sg_capture *capture) {
    return !capture->ended && !capture->invalid;
}

CUresult sg_capture_event(struct sg_event *event) {
    struct sg_capture *capture = event->capture;
    if (!capture)
        return CUDA_SUCCESS;
    if (!sg_capture_lives(capture))
        return CUDA_ERROR_INVALID_VALUE;
    sg_capture_invalidate(capture);
    return CUDA_ERROR_CAPTURED_EVENT;
}
