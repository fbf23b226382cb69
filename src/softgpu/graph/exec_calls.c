/* cuGraphInstantiate and related calls, upload, launch, destroy. */
#include "softgpu/core/calls.h"
#include "softgpu/graph/exec.h"
#include "softgpu/stream/capture.h"
#include "softgpu/stream/schedule.h"

#define KNOWN_FLAGS                                                                                \
    ((cuuint64_t)(CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |                                \
                  CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD | CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | \
                  CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY))

#define EXCLUSIVE                                                                                  \
    ((cuuint64_t)(CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |                                \
                  CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH))

static bool possible(cuuint64_t flags) {
    return !(flags & ~KNOWN_FLAGS) && (flags & EXCLUSIVE) != EXCLUSIVE;
}

static CUresult instantiate(CUgraphExec *handle, CUgraph graph_handle, cuuint64_t flags,
                            struct sg_exec **exec, struct sg_exec_error *error) {
    struct sg_graph *graph = sg_graph_get(graph_handle);
    *error = (struct sg_exec_error){CUDA_GRAPH_INSTANTIATE_ERROR, NULL};
    if (!handle || !graph || !possible(flags))
        return CUDA_ERROR_INVALID_VALUE;
    return sg_exec_new(graph, flags, exec, error);
}

/* As on H200, all but cuGraphInstantiateWithParams check for a current context first. */
static CUresult instantiate_here(CUgraphExec *handle, CUgraph graph, cuuint64_t flags,
                                 struct sg_exec **exec) {
    struct sg_exec_error error;
    struct sg_context *context;
    CUresult result = sg_context_current(&context);
    return result == CUDA_SUCCESS ? instantiate(handle, graph, flags, exec, &error) : result;
}

CUresult sg_cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph hGraph,
                                        unsigned long long flags) {
    struct sg_exec *exec;
    if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) /* there is no stream to upload in */
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = instantiate_here(phGraphExec, hGraph, flags, &exec);
    if (result == CUDA_SUCCESS)
        *phGraphExec = SG_HANDLE_POINTER(CUgraphExec, exec->handle);
    return result;
}

/* As on H200, the log is empty, the node NULL: only cuGraphInstantiateWithParams reports them. */
CUresult sg_cuGraphInstantiate_v2(CUgraphExec *phGraphExec, CUgraph hGraph,
                                  CUgraphNode *phErrorNode, char *logBuffer, size_t bufferSize) {
    struct sg_exec *exec;
    CUresult result = instantiate_here(phGraphExec, hGraph, 0, &exec);
    if (result == CUDA_SUCCESS)
        *phGraphExec = SG_HANDLE_POINTER(CUgraphExec, exec->handle);
    if (phErrorNode)
        *phErrorNode = NULL;
    if (logBuffer && bufferSize > 0)
        *logBuffer = '\0';
    return result;
}

CUresult sg_cuGraphInstantiate(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode,
                               char *logBuffer, size_t bufferSize) {
    return sg_cuGraphInstantiate_v2(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
}

static CUresult with_params(CUgraphExec *handle, CUgraph graph,
                            const CUDA_GRAPH_INSTANTIATE_PARAMS *params,
                            struct sg_exec_error *error) {
    bool upload = params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
    struct sg_stream *stream = NULL;
    struct sg_exec *exec;
    CUresult result = CUDA_SUCCESS;
    *error = (struct sg_exec_error){CUDA_GRAPH_INSTANTIATE_ERROR, NULL};
    if (upload)
        result = sg_stream_from_handle(params->hUploadStream, &stream);
    if (result == CUDA_SUCCESS)
        result = instantiate(handle, graph, params->flags, &exec, error);
    if (result == CUDA_SUCCESS && upload) {
        result = sg_exec_upload(exec, stream);
        if (result != CUDA_SUCCESS)
            sg_exec_destroy(exec);
    }
    if (result != CUDA_SUCCESS)
        return result;
    *handle = SG_HANDLE_POINTER(CUgraphExec, exec->handle);
    *error = (struct sg_exec_error){CUDA_GRAPH_INSTANTIATE_SUCCESS, NULL};
    return CUDA_SUCCESS;
}

CUresult sg_cuGraphInstantiateWithParams(CUgraphExec *phGraphExec, CUgraph hGraph,
                                         CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams) {
    struct sg_exec_error error;
    if (!instantiateParams)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sg_context_admits();
    if (result != CUDA_SUCCESS)
        return result;
    result = with_params(phGraphExec, hGraph, instantiateParams, &error);
    instantiateParams->result_out = error.result;
    instantiateParams->hErrNode_out = error.node;
    return result;
}

CUresult sg_cuGraphExecGetFlags(CUgraphExec hGraphExec, cuuint64_t *flags) {
    const struct sg_exec *exec = sg_exec_get(hGraphExec);
    if (!exec || !flags)
        return CUDA_ERROR_INVALID_VALUE;
    /* The upload is over, and an H200 does not report the priority flag either. */
    *flags = exec->flags & ~(cuuint64_t)(CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
                                         CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY);
    return CUDA_SUCCESS;
}

CUresult sg_cuGraphExecDestroy(CUgraphExec hGraphExec) {
    struct sg_exec *exec = sg_exec_get(hGraphExec);
    if (!exec)
        return CUDA_ERROR_INVALID_VALUE;
    sg_exec_destroy(exec);
    return CUDA_SUCCESS;
}

static CUresult begin(CUgraphExec handle, CUstream stream_handle, struct sg_exec **exec,
                      struct sg_stream **stream) {
    CUresult result = sg_stream_from_handle(stream_handle, stream);
    if (result == CUDA_SUCCESS && (*stream)->capture)
        result = sg_capture_refuse(*stream); /* as recorded, before the handle is looked at */
    if (result != CUDA_SUCCESS)
        return result;
    *exec = sg_exec_get(handle);
    return *exec ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Without a current context a launch uses the default stream of the exec's context, as on H200. */
static CUresult begin_launch(CUgraphExec handle, CUstream stream_handle, struct sg_exec **exec,
                             struct sg_stream **stream) {
    *exec = sg_exec_get(handle);
    bool own = *exec && !stream_handle && !sg_context_peek() && (*exec)->context->alive;
    if (!own)
        return begin(handle, stream_handle, exec, stream);
    *stream = (*exec)->context->legacy;
    return (*exec)->context->sticky;
}

CUresult sg_cuGraphUpload(CUgraphExec hGraph, CUstream hStream) {
    struct sg_exec *exec;
    struct sg_stream *stream;
    CUresult result = begin(hGraph, hStream, &exec, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    result = sg_exec_upload(exec, stream);
    sg_schedule_chance();
    return result;
}

CUresult sg_cuGraphLaunch(CUgraphExec hGraph, CUstream hStream) {
    struct sg_exec *exec;
    struct sg_stream *stream;
    CUresult result = begin_launch(hGraph, hStream, &exec, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    result = sg_exec_launch(exec, stream);
    sg_schedule_chance();
    return result;
}
