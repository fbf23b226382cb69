/* cuStreamBeginCapture and related calls. */
#include "softgpu/core/calls.h"
#include "softgpu/graph/edges.h"
#include "softgpu/graph/node_type.h"
#include "softgpu/stream/capture.h"

#include <stdlib.h>

/* Gets the stream of a capture query. The legacy stream cannot capture, but it can be queried:
 * STREAM_CAPTURE_IMPLICIT while a blocking stream captures, without affecting the capture. */
static CUresult find(CUstream handle, struct sg_stream **stream) {
    CUresult result = sg_stream_find(handle, stream);
    if (result != CUDA_SUCCESS || *stream != (*stream)->context->legacy)
        return result;
    return (*stream)->capturing_blocking > 0 ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_SUCCESS;
}

static bool known_mode(CUstreamCaptureMode mode) {
    return mode == CU_STREAM_CAPTURE_MODE_GLOBAL || mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL ||
           mode == CU_STREAM_CAPTURE_MODE_RELAXED;
}

/* ---- Beginning ------------------------------------------------------------------------------ */

static CUresult may_begin(CUstream handle, CUstreamCaptureMode mode, struct sg_stream **stream) {
    if (!known_mode(mode))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sg_stream_from_handle(handle, stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (*stream == (*stream)->context->legacy)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return (*stream)->capture ? CUDA_ERROR_ILLEGAL_STATE : CUDA_SUCCESS;
}

static CUresult begin(struct sg_stream *stream, struct sg_graph *graph, CUstreamCaptureMode mode) {
    CUresult result = sg_capture_begin(stream, graph->handle, mode);
    if (result == CUDA_SUCCESS)
        graph->captures++;
    return result;
}

CUresult sg_cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode) {
    struct sg_stream *stream;
    CUresult result = may_begin(hStream, mode, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    struct sg_graph *graph = sg_graph_new();
    if (!graph)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = begin(stream, graph, mode);
    if (result != CUDA_SUCCESS)
        sg_graph_free(graph);
    return result;
}

CUresult sg_cuStreamBeginCapture(CUstream hStream) {
    return sg_cuStreamBeginCapture_v2(hStream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

/* The nodes must belong to the graph; the type of the node that will follow is not known yet. */
static CUresult read_dependencies(struct sg_dependencies *set, uint64_t graph,
                                  const CUgraphNode *nodes, const CUgraphEdgeData *data,
                                  size_t count) {
    if (count > 0 && !nodes)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        const struct sg_node *node = sg_node_get(nodes[i]);
        if (!node || node->graph->handle != graph)
            return CUDA_ERROR_INVALID_VALUE;
        CUresult result =
            data ? sg_edge_data_check(&data[i], sg_type_of(&node->params), &sg_node_kernel)
                 : CUDA_SUCCESS;
        if (result != CUDA_SUCCESS)
            return result;
        if (!sg_dependencies_add(set, nodes[i], data ? &data[i] : NULL))
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return CUDA_SUCCESS;
}

CUresult sg_cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph,
                                        const CUgraphNode *dependencies,
                                        const CUgraphEdgeData *dependencyData,
                                        size_t numDependencies, CUstreamCaptureMode mode) {
    struct sg_graph *graph = sg_graph_get(hGraph);
    if (!graph)
        return CUDA_ERROR_INVALID_VALUE;
    struct sg_stream *stream;
    struct sg_dependencies set = {0};
    CUresult result = may_begin(hStream, mode, &stream);
    if (result == CUDA_SUCCESS && graph->captures > 0)
        result = CUDA_ERROR_ILLEGAL_STATE;
    if (result == CUDA_SUCCESS)
        result =
            read_dependencies(&set, graph->handle, dependencies, dependencyData, numDependencies);
    if (result == CUDA_SUCCESS)
        result = begin(stream, graph, mode);
    if (result == CUDA_SUCCESS)
        stream->dependencies = set;
    else
        sg_dependencies_clear(&set);
    return result;
}

/* ---- Ending --------------------------------------------------------------------------------- */

/* What is wrong with a capture that is about to end. */
static CUresult verdict(const struct sg_capture *capture) {
    if (capture->invalid || !sg_graph_get(SG_HANDLE_POINTER(CUgraph, capture->graph)))
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    bool bound = capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    if (bound && capture->thread != sg_capture_thread())
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    return sg_capture_joined(capture) ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
}

/* Without a place to store the graph, it is freed here. */
static CUresult end(struct sg_capture *capture, CUgraph *graph) {
    CUresult result = verdict(capture);
    if (result == CUDA_SUCCESS && graph) {
        *graph = SG_HANDLE_POINTER(CUgraph, capture->graph);
        sg_graph_get(*graph)->captures--;
        capture->graph = 0;
    }
    sg_capture_end(capture);
    return result;
}

CUresult sg_cuStreamEndCapture(CUstream hStream, CUgraph *phGraph) {
    struct sg_stream *stream;
    if (phGraph)
        *phGraph = NULL;
    CUresult result = sg_stream_from_handle(hStream, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    struct sg_capture *capture = stream->capture;
    if (!capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (capture->origin != stream) {
        sg_capture_invalidate(capture);
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    }
    return end(capture, phGraph);
}

/* ---- Queries -------------------------------------------------------------------------------- */

static CUstreamCaptureStatus status_of(const struct sg_stream *stream) {
    if (!stream->capture)
        return CU_STREAM_CAPTURE_STATUS_NONE;
    return stream->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                    : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

CUresult sg_cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus) {
    if (!captureStatus)
        return CUDA_ERROR_INVALID_VALUE;
    struct sg_stream *stream;
    CUresult result = find(hStream, &stream);
    if (result == CUDA_SUCCESS)
        *captureStatus = status_of(stream);
    return result;
}

/* What a call requests besides the status; any may be NULL. */
struct wanted {
    cuuint64_t *id;
    CUgraph *graph;
    const CUgraphNode **nodes;
    const CUgraphEdgeData **data;
    size_t *count;
};

static bool loses_data(const struct sg_dependencies *set) {
    for (size_t i = 0; i < set->count; i++)
        if (!sg_edge_data_plain(&set->data[i]))
            return true;
    return false;
}

static CUresult info(CUstream handle, CUstreamCaptureStatus *status, struct wanted wanted) {
    if (!status)
        return CUDA_ERROR_INVALID_VALUE;
    struct sg_stream *stream;
    CUresult result = find(handle, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    *status = status_of(stream);
    if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return CUDA_SUCCESS;
    if (wanted.data && !wanted.nodes)
        return CUDA_ERROR_INVALID_VALUE;
    const struct sg_dependencies *set = &stream->dependencies;
    if (wanted.nodes && !wanted.data && loses_data(set))
        return CUDA_ERROR_LOSSY_QUERY;
    if (wanted.id)
        *wanted.id = stream->capture->id;
    if (wanted.graph)
        *wanted.graph = SG_HANDLE_POINTER(CUgraph, stream->capture->graph);
    if (wanted.nodes)
        *wanted.nodes = set->count > 0 ? set->nodes : NULL;
    if (wanted.data)
        *wanted.data = set->count > 0 ? set->data : NULL;
    if (wanted.count)
        *wanted.count = set->count;
    return CUDA_SUCCESS;
}

CUresult sg_cuStreamGetCaptureInfo(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
                                   cuuint64_t *id_out) {
    return info(hStream, captureStatus_out, (struct wanted){.id = id_out});
}

CUresult sg_cuStreamGetCaptureInfo_v2(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
                                      cuuint64_t *id_out, CUgraph *graph_out,
                                      const CUgraphNode **dependencies_out,
                                      size_t *numDependencies_out) {
    struct wanted wanted = {
        .id = id_out, .graph = graph_out, .nodes = dependencies_out, .count = numDependencies_out};
    return info(hStream, captureStatus_out, wanted);
}

CUresult sg_cuStreamGetCaptureInfo_v3(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
                                      cuuint64_t *id_out, CUgraph *graph_out,
                                      const CUgraphNode **dependencies_out,
                                      const CUgraphEdgeData **edgeData_out,
                                      size_t *numDependencies_out) {
    struct wanted wanted = {.id = id_out,
                            .graph = graph_out,
                            .nodes = dependencies_out,
                            .data = edgeData_out,
                            .count = numDependencies_out};
    return info(hStream, captureStatus_out, wanted);
}

/* ---- Changing the dependencies -------------------------------------------------------------- */

/* Dependencies that were removed on purpose need not be joined. */
static void replace(struct sg_stream *stream, struct sg_dependencies *set) {
    for (size_t i = 0; i < stream->dependencies.count; i++)
        if (!sg_dependencies_hold(set, stream->dependencies.nodes[i]))
            sg_dependencies_remove(&stream->capture->tips, stream->dependencies.nodes[i]);
    sg_dependencies_clear(&stream->dependencies);
    stream->dependencies = *set;
}

CUresult sg_cuStreamUpdateCaptureDependencies_v2(CUstream hStream, CUgraphNode *dependencies,
                                                 const CUgraphEdgeData *dependencyData,
                                                 size_t numDependencies, unsigned int flags) {
    struct sg_stream *stream;
    CUresult result = sg_stream_from_handle(hStream, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (!stream->capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES)
        return CUDA_ERROR_INVALID_VALUE;
    result = sg_capture_valid(stream);
    struct sg_dependencies set = {0};
    if (result == CUDA_SUCCESS && flags == CU_STREAM_ADD_CAPTURE_DEPENDENCIES &&
        !sg_dependencies_copy(&set, &stream->dependencies))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS)
        result = read_dependencies(&set, stream->capture->graph, dependencies, dependencyData,
                                   numDependencies);
    if (result != CUDA_SUCCESS) {
        sg_dependencies_clear(&set);
        return result;
    }
    if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) {
        replace(stream, &set);
    } else {
        sg_dependencies_clear(&stream->dependencies);
        stream->dependencies = set;
    }
    return CUDA_SUCCESS;
}

CUresult sg_cuStreamUpdateCaptureDependencies(CUstream hStream, CUgraphNode *dependencies,
                                              size_t numDependencies, unsigned int flags) {
    return sg_cuStreamUpdateCaptureDependencies_v2(hStream, dependencies, NULL, numDependencies,
                                                   flags);
}

/* ---- A thread's mode ------------------------------------------------------------------------ */

CUresult sg_cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
    if (!mode) /* an H200's driver crashes; it accepts any value for the mode */
        return CUDA_ERROR_INVALID_VALUE;
    CUstreamCaptureMode *current = sg_capture_thread_mode(), previous = *current;
    *current = *mode;
    *mode = previous;
    return CUDA_SUCCESS;
}
