/*
 * Stream capture, as the functions that queue work see it. Everything here wants the lock.
 *
 * A function that queues work in a stream looks up the stream (sg_stream_from_handle), checks its
 * arguments as hardware does, and then:
 *
 *     if (stream->capture)
 *         return sg_capture_node(stream, &params);
 *
 * A function that cannot be captured does, after its own checks of the stream:
 *
 *     if (stream->capture)
 *         return sg_capture_refuse(stream);
 *
 * A call that is unsafe while any stream captures (it may wait for work, or frees memory) asks
 * sg_capture_unsafe, or has SG_CAPTURE_UNSAFE in entry/rules.def, and then the prologue asks.
 */
#ifndef SG_GRAPH_CAPTURE_H
#define SG_GRAPH_CAPTURE_H

#include "softgpu/graph/graph.h"
#include "softgpu/stream/stream.h"

struct sg_capture; /* one capture: its graph, the streams that take part, its mode and its state */

/* Adds a node that depends on the stream's current dependencies and becomes their successor. An
 * error that invalidates the capture on hardware invalidates it here. */
CUresult sg_capture_node(struct sg_stream *stream, CUgraphNodeParams *params);
/* The same, and tells which node it was. */
CUresult sg_capture_node_at(struct sg_stream *stream, CUgraphNodeParams *params,
                            struct sg_node **node);
/* Invalidates the capture; STREAM_CAPTURE_UNSUPPORTED. */
CUresult sg_capture_refuse(struct sg_stream *stream);
/* SUCCESS when this thread's capture mode and the captures under way allow a call that is unsafe
 * during capture; else invalidates what hardware invalidates and answers its error. */
CUresult sg_capture_unsafe(void);

#endif
