/*
 * Stream capture, as the functions that queue work see it. Everything here needs the lock.
 *
 * A function that queues work in a stream looks up the stream (sg_stream_from_handle), checks its
 * arguments as hardware does, and then:
 *
 *     if (stream->capture)
 *         return sg_capture_node(stream, &params);
 *
 * A function that cannot be captured does this after its own checks of the stream:
 *
 *     if (stream->capture)
 *         return sg_capture_refuse(stream);
 *
 * A call that is unsafe while any stream captures (because it may wait for work or frees memory)
 * calls sg_capture_unsafe, or has SG_CAPTURE_UNSAFE in entry/rules.def, so that the prologue does.
 */
#ifndef SG_STREAM_CAPTURE_H
#define SG_STREAM_CAPTURE_H

#include "softgpu/stream/event.h"
#include "softgpu/stream/stream.h"

/* What captures do to graphs and their nodes, which they know by handle. */
struct sg_capture_graphs {
    /* Adds a node after those of the dependencies that still exist. It runs in `context` if its
     * type runs in one and the parameters name none. */
    CUresult (*add)(CUgraph graph, const struct sg_dependencies *dependencies, CUcontext context,
                    CUgraphNodeParams *params, CUgraphNode *node);
    bool (*exists)(CUgraph graph);
    /* The capture into the graph has ended; the graph ends with it unless it was embedded
     * meanwhile. */
    void (*release)(CUgraph graph);
    bool (*node_exists)(CUgraphNode node);
    bool (*node_is_kernel)(CUgraphNode node);
    /* An attribute of the launch that a kernel node represents; attributes that nodes do not have
     * are ignored. False when out of memory. */
    bool (*set_attribute)(CUgraphNode node, CUlaunchAttributeID id, CUlaunchAttributeValue *value);
};
/* Set by graph/ before the driver's first call. */
extern const struct sg_capture_graphs *sg_capture_graphs;

/* One capture. Participating streams and events recorded in them hold references. */
struct sg_capture {
    uint64_t id; /* cuStreamGetCaptureInfo: unique in the process, never 0 */
    unsigned refs;
    uint64_t graph; /* handle; 0 once ended */
    bool invalid;   /* ends with STREAM_CAPTURE_INVALIDATED */
    bool ended;
    CUstreamCaptureMode mode;
    uint64_t thread;           /* that began it: sg_capture_thread */
    struct sg_stream *origin;  /* the stream in which it began; NULL once ended */
    struct sg_stream *streams; /* all participants, referenced, linked by capture_next */
    /* Captured nodes that no captured node depends on: at the end the origin must depend on all of
     * them. Deliberately removing a node from a stream's dependencies removes it from here. */
    struct sg_dependencies tips;
    struct sg_capture *next, *previous; /* among captures that have not ended */
};

/* Adds a node that depends on the stream's current dependencies and replaces them. An error that
 * invalidates the capture on hardware invalidates it here. Parameters that run in a context and
 * name none get the stream's. */
CUresult sg_capture_node(struct sg_stream *stream, CUgraphNodeParams *params);
/* The same, storing the node in *node. */
CUresult sg_capture_node_at(struct sg_stream *stream, CUgraphNodeParams *params, CUgraphNode *node);
/* Invalidates the capture. Returns STREAM_CAPTURE_UNSUPPORTED, or STREAM_CAPTURE_INVALIDATED when
 * it already was invalid. */
CUresult sg_capture_refuse(struct sg_stream *stream);
/* SUCCESS when this thread's capture mode and the active captures allow a call that is unsafe
 * during capture; otherwise invalidates what hardware invalidates and returns its error. */
CUresult sg_capture_unsafe(void);
/* STREAM_CAPTURE_INVALIDATED when it is invalid, for calls that capture otherwise allows. */
CUresult sg_capture_valid(const struct sg_stream *stream);

/* How many captures have not ended, read without the lock: the prologue's shortcut. */
extern atomic_uint sg_captures_under_way;

/* ---- Shared by the capture files and stream/ ------------------------------------------------- */

/* A number for the calling thread, never 0 and never reused for another thread. */
uint64_t sg_capture_thread(void);
CUstreamCaptureMode *sg_capture_thread_mode(void);

/* Begins a capture into `graph` in a stream that is not capturing. */
CUresult sg_capture_begin(struct sg_stream *stream, uint64_t graph, CUstreamCaptureMode mode);
/* Ends it: all streams leave it. The graph is destroyed with it, even one that the application
 * supplied, unless it was taken (capture->graph set to 0). */
void sg_capture_end(struct sg_capture *capture);
void sg_capture_invalidate(struct sg_capture *capture);
/* For a captured kernel launch. The first: kernels that it depends on need not have ended
 * (CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION). The second: whatever waits for the event
 * depends on that node through this edge. False when out of memory. */
void sg_capture_serialize_programmatically(struct sg_stream *stream);
bool sg_capture_record_node(struct sg_event *event, struct sg_stream *stream, CUgraphNode node,
                            const CUgraphEdgeData *data);
/* Whether the origin's dependencies cover everything captured. */
bool sg_capture_joined(const struct sg_capture *capture);

/* Whether the data of an edge says no more than that the edge exists. */
bool sg_edge_data_plain(const CUgraphEdgeData *data);

/* Dependency sets: nodes by handle, each at most once, with the data of its edge. */
bool sg_dependencies_add(struct sg_dependencies *set, CUgraphNode node,
                         const CUgraphEdgeData *data);
bool sg_dependencies_hold(const struct sg_dependencies *set, CUgraphNode node);
void sg_dependencies_remove(struct sg_dependencies *set, CUgraphNode node);
void sg_dependencies_clear(struct sg_dependencies *set);
bool sg_dependencies_copy(struct sg_dependencies *to, const struct sg_dependencies *from);

/* cuEventRecord and cuStreamWaitEvent where a capture is involved. */
CUresult sg_capture_record(struct sg_event *event, struct sg_stream *stream);
CUresult sg_capture_wait(struct sg_stream *stream, struct sg_event *event);
/* The event is recorded outside of captures, or is destroyed. */
void sg_capture_forget_event(struct sg_event *event);
/* Whether it can still end successfully. */
bool sg_capture_lives(const struct sg_capture *capture);
/* For host calls that query an event recorded in a capture: CAPTURED_EVENT, and the capture is
 * invalidated; INVALID_VALUE when it has ended or is invalid. SUCCESS for other events. */
CUresult sg_capture_event(struct sg_event *event);

/* The legacy stream is used: captures of the context's blocking streams are invalidated, and the
 * result is STREAM_CAPTURE_IMPLICIT. SUCCESS when there are none. */
CUresult sg_capture_implicit(struct sg_context *context);
/* For calls that wait for the whole context: if one of its streams is capturing, that capture is
 * invalidated and the result is STREAM_CAPTURE_UNSUPPORTED. */
CUresult sg_capture_context(struct sg_context *context);
/* A capturing stream is destroyed. */
void sg_capture_stream_gone(struct sg_stream *stream);

#endif
