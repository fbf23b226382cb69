/* Executable graphs: making them of each kind of graph with each flag, asking, uploading, ending.
 */
#include "graph_build.h"

static void do_nothing(void *unused) {
}

SCENARIO(versions, "graph_exec/versions", par_context) {
    CUgraphExec exec;
    CUgraphNode error;
    char log[64];
    cuuint64_t flags;
    CUgraph graph = gb_graph();
    gb_empty_node(graph, NULL);
    CALLO(cuGraphInstantiate, "ok", (&exec, graph, &error, log, sizeof(log)), OUT_H(exec),
          OUT_H(error), OUT_S(log));
    CALL(cuGraphExecDestroy, "ok", (exec));
    CALLO(cuGraphInstantiate_v2, "ok", (&exec, graph, &error, log, sizeof(log)), OUT_H(exec),
          OUT_H(error), OUT_S(log));
    CALLO(cuGraphExecGetFlags, "ok", (exec, &flags), OUT_U(flags));
    CALL(cuGraphExecDestroy, "ok", (exec));
    CALLO(cuGraphInstantiate, "no-outs", (&exec, graph, NULL, NULL, 0), OUT_H(exec));
    CALLO(cuGraphInstantiate_v2, "no-outs", (&exec, graph, NULL, NULL, 0), OUT_H(exec));
    CALLO(cuGraphInstantiate_v2, "no-log", (&exec, graph, NULL, NULL, 100), OUT_H(exec));
    CALLO(cuGraphInstantiate_v2, "empty-log", (&exec, graph, NULL, log, 0), OUT_H(exec),
          OUT_S(log));
    CALL(cuGraphInstantiate, "null-out", (NULL, graph, NULL, NULL, 0));
    CALL(cuGraphInstantiate_v2, "null-out", (NULL, graph, NULL, NULL, 0));
    CALLO(cuGraphInstantiate_v2, "null-graph", (&exec, NULL, &error, log, sizeof(log)), OUT_H(exec),
          OUT_H(error), OUT_S(log));
    CALLO(cuGraphInstantiate, "null-graph", (&exec, NULL, &error, log, sizeof(log)), OUT_H(exec),
          OUT_H(error), OUT_S(log));
    CALL(cuGraphInstantiateWithFlags, "null-out", (NULL, graph, 0));
    CALLO(cuGraphInstantiateWithFlags, "null-graph", (&exec, NULL, 0), OUT_H(exec));
    CALLO(cuGraphInstantiateWithFlags, "bad-flags-null-graph", (&exec, NULL, 1ull << 40),
          OUT_H(exec));
    CALLO(cuGraphExecGetFlags, "null-exec", (NULL, &flags), OUT_U(flags));
    CALLO(cuGraphInstantiateWithFlags, "ok", (&exec, graph, 0), OUT_H(exec));
    CALL(cuGraphExecGetFlags, "null-out", (exec, NULL));
    CALL(cuGraphExecDestroy, "null", (NULL));
    CALL(cuGraphExecDestroy, "ok", (exec));
    graph = gb_graph();
    CALLO(cuGraphInstantiateWithFlags, "no-nodes", (&exec, graph, 0), OUT_H(exec));
    CALL(cuGraphLaunch, "no-nodes", (exec, NULL));
    CALL(cuGraphDestroy, "before-exec", (graph));
    CALL(cuGraphLaunch, "graph-destroyed", (exec, NULL));
    CALL(cuCtxSynchronize, "after", ());
    CALL(cuGraphExecDestroy, "ok", (exec));
}

SCENARIO(flags_each, "graph_exec/flags", par_context) {
    static const unsigned long long values[] = {0,  1,  2,  3,  4,          5,  6,  7,   8,  9,
                                                10, 12, 15, 16, 1ull << 32, 32, 64, 128, 256};
    CUdeviceptr p = par_alloc(4096);
    CUgraph graph = gb_graph();
    gb_set_node(graph, NULL, p, 1, 4096);
    for (size_t i = 0; i < COUNT(values); i++) {
        CUgraphExec exec = NULL;
        cuuint64_t flags;
        CUDA_GRAPH_INSTANTIATE_PARAMS params = {.flags = values[i]};
        par_note("flags=%llu", values[i]);
        CALLO(cuGraphInstantiateWithFlags, "flags", (&exec, graph, values[i]), OUT_C(exec));
        if (par_last() == CUDA_SUCCESS) {
            par_note("flags=%llu", values[i]);
            CALLO(cuGraphExecGetFlags, "flags", (exec, &flags), OUT_U(flags));
            par_note("flags=%llu", values[i]);
            CALL(cuGraphLaunch, "flags", (exec, NULL));
            SETUP(cuGraphExecDestroy, (exec));
        }
        par_note("flags=%llu", values[i]);
        CALLO(cuGraphInstantiateWithParams, "flags", (&exec, graph, &params), OUT_C(exec),
              IO_U(params.result_out), OUT_H(params.hErrNode_out));
        if (par_last() == CUDA_SUCCESS) {
            par_note("flags=%llu", values[i]);
            CALLO(cuGraphExecGetFlags, "flags", (exec, &flags), OUT_U(flags));
            SETUP(cuGraphExecDestroy, (exec));
        }
        SETUP(cuCtxSynchronize, ());
    }
}

SCENARIO(with_params, "graph_exec/with_params", par_context) {
    CUgraphExec exec;
    CUdeviceptr p = par_alloc(4096);
    CUstream s = par_stream();
    CUgraph graph = gb_graph();
    CUgraphNode node = gb_set_node(graph, NULL, p, 1, 4096);
    NAME(node);
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD,
                                            .hUploadStream = s};
    CALLO(cuGraphInstantiateWithParams, "upload", (&exec, graph, &params), OUT_H(exec),
          OUT_U(params.result_out), OUT_H(params.hErrNode_out));
    CALL(cuStreamSynchronize, "after", (s));
    CALL(cuGraphExecDestroy, "ok", (exec));
    params.hUploadStream = CU_STREAM_PER_THREAD;
    CALLO(cuGraphInstantiateWithParams, "upload-per-thread", (&exec, graph, &params), OUT_H(exec),
          OUT_U(params.result_out), OUT_H(params.hErrNode_out));
    params.hUploadStream = NULL;
    CALLO(cuGraphInstantiateWithParams_ptsz, "upload-null", (&exec, graph, &params), OUT_H(exec),
          OUT_U(params.result_out), OUT_H(params.hErrNode_out));
    params.flags = 0;
    params.hUploadStream = s;
    CALLO(cuGraphInstantiateWithParams, "stream-without-upload", (&exec, graph, &params),
          OUT_H(exec), OUT_U(params.result_out), OUT_H(params.hErrNode_out));
    params.flags = 1ull << 20;
    CALLO(cuGraphInstantiateWithParams, "bad-flags", (&exec, graph, &params), OUT_H(exec),
          OUT_U(params.result_out), OUT_H(params.hErrNode_out));
    params.flags = 0;
    CALLO(cuGraphInstantiateWithParams, "null-graph", (&exec, NULL, &params), OUT_H(exec),
          OUT_U(params.result_out), OUT_H(params.hErrNode_out));
    CALLO(cuGraphInstantiateWithParams, "null-out", (NULL, graph, &params),
          OUT_U(params.result_out), OUT_H(params.hErrNode_out));
    CALLO(cuGraphInstantiateWithParams, "null-params", (&exec, graph, NULL), OUT_H(exec));
    SETUP(cuCtxSetCurrent, (NULL));
    CALLO(cuGraphInstantiateWithParams, "no-context", (&exec, graph, &params), OUT_H(exec),
          OUT_U(params.result_out), OUT_H(params.hErrNode_out));
    CALLO(cuGraphInstantiateWithFlags, "no-context", (&exec, graph, 0), OUT_H(exec));
    CALLO(cuGraphInstantiate_v2, "no-context", (&exec, graph, NULL, NULL, 0), OUT_H(exec));
}

/* What may be launched from the device: one kind of node at a time. */
static void device_launch_try(const char *what, CUgraph graph) {
    CUgraphExec exec = NULL;
    cuuint64_t flags;
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {.flags = CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH};
    par_note("%s", what);
    CALLO(cuGraphInstantiateWithParams, "device-launch", (&exec, graph, &params), OUT_C(exec),
          OUT_U(params.result_out), OUT_H(params.hErrNode_out));
    if (par_last() == CUDA_SUCCESS) {
        par_note("%s", what);
        CALLO(cuGraphExecGetFlags, "device-launch", (exec, &flags), OUT_U(flags));
        par_note("%s", what);
        CALL(cuGraphUpload, "device-launch", (exec, NULL));
        par_note("%s", what);
        CALL(cuGraphLaunch, "device-launch", (exec, NULL));
        SETUP(cuCtxSynchronize, ());
        SETUP(cuGraphExecDestroy, (exec));
    }
}

SCENARIO(device_launch, "graph_exec/device_launch", par_context) {
    static unsigned char pageable[4096];
    CUdeviceptr p, q;
    p = par_alloc(4096);
    void *pinned = par_pinned(4096);
    CUevent event = par_event(CU_EVENT_DEFAULT);
    device_launch_try("no-nodes", gb_graph());
    CUgraph graph = gb_graph();
    CUgraphNode node = gb_empty_node(graph, NULL);
    NAME(node);
    device_launch_try("empty-node", graph);
    CUgraphNode second = gb_set_node(graph, node, p, 1, 64);
    NAME(second);
    device_launch_try("empty-node-and-memset", graph);
    graph = gb_graph();
    gb_set_node(graph, NULL, p, 1, 64);
    device_launch_try("memset", graph);
    graph = gb_graph();
    gb_copy_node(graph, NULL, gb_copy(p, p + 2048, 64));
    device_launch_try("memcpy-device", graph);
    graph = gb_graph();
    gb_copy_node(graph, NULL, gb_copy_to_host(pinned, p, 64));
    device_launch_try("memcpy-pinned", graph);
    graph = gb_graph();
    node = gb_copy_node(graph, NULL, gb_copy_to_host(pageable, p, 64));
    NAME(node);
    device_launch_try("memcpy-pageable", graph);
    graph = gb_graph();
    gb_set_node(graph, NULL, p, 1, 64);
    node = gb_host_node(graph, NULL, do_nothing, NULL);
    NAME(node);
    device_launch_try("host", graph);
    graph = gb_graph();
    SETUP(cuGraphAddEventRecordNode, (&node, graph, NULL, 0, event));
    NAME(node);
    device_launch_try("event-record", graph);
    graph = gb_graph();
    node = gb_alloc_node(graph, NULL, 4096, &q);
    NAME(node);
    device_launch_try("alloc", graph);
    CUgraph child = gb_graph();
    gb_set_node(child, NULL, p, 1, 64);
    graph = gb_graph();
    SETUP(cuGraphAddChildGraphNode, (&node, graph, NULL, 0, child));
    NAME(node);
    device_launch_try("child-with-memset", graph);
    child = gb_graph();
    graph = gb_graph();
    SETUP(cuGraphAddChildGraphNode, (&node, graph, NULL, 0, child));
    NAME(node);
    device_launch_try("child-without-nodes", graph);
}

SCENARIO(upload, "graph_exec/upload", par_context) {
    CUdeviceptr p = par_alloc(4096);
    CUstream s = par_stream();
    SETUP(cuMemsetD8_v2, (p, 0x11, 4096));
    CUgraph graph = gb_graph();
    gb_set_node(graph, NULL, p, 0x22, 4096);
    CUgraphExec exec = gb_instantiate(graph);
    CALL(cuGraphUpload, "ok", (exec, s));
    CALL(cuStreamSynchronize, "after", (s));
    gb_show("uploaded", p);
    CALL(cuGraphUpload, "null-stream", (exec, NULL));
    CALL(cuGraphUpload, "legacy", (exec, CU_STREAM_LEGACY));
    CALL(cuGraphUpload, "per-thread", (exec, CU_STREAM_PER_THREAD));
    CALL(cuGraphUpload_ptsz, "null-stream", (exec, NULL));
    CALL(cuGraphUpload, "null-exec", (NULL, s));
    par_hold(s);
    CALL(cuGraphUpload, "behind-held", (exec, s));
    CALL(cuStreamQuery, "behind-held", (s));
    PAR_DRAIN("after", s);
    CALL(cuGraphLaunch, "ok", (exec, s));
    CALL(cuStreamSynchronize, "after", (s));
    gb_show("launched", p);
    SETUP(cuCtxSetCurrent, (NULL));
    CALL(cuGraphUpload, "no-context-stream", (exec, s));
    CALL(cuGraphUpload, "no-context-null-stream", (exec, NULL));
    CALL(cuGraphExecDestroy, "no-context", (exec));
}

SCENARIO(cycles, "graph_exec/cycles", par_context) {
    CUgraphExec exec;
    CUgraphNode a, b, error;
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {0};
    char log[128];
    CUgraph graph = gb_graph();
    a = gb_empty_node(graph, NULL);
    b = gb_empty_node(graph, a);
    NAME(a);
    NAME(b);
    CALL(cuGraphAddDependencies, "back", (graph, &b, &a, 1));
    CALLO(cuGraphInstantiateWithFlags, "cycle", (&exec, graph, 0), OUT_H(exec));
    CALLO(cuGraphInstantiate_v2, "cycle", (&exec, graph, &error, log, sizeof(log)), OUT_H(exec),
          OUT_C(error));
    CALLO(cuGraphInstantiateWithParams, "cycle", (&exec, graph, &params), OUT_H(exec),
          OUT_U(params.result_out), OUT_C(params.hErrNode_out));
    CUgraph child = graph;
    graph = gb_graph();
    CALLO(cuGraphAddChildGraphNode, "cycle-in-child", (&a, graph, NULL, 0, child), OUT_H(a));
    CALLO(cuGraphInstantiateWithParams, "cycle-in-child", (&exec, graph, &params), OUT_H(exec),
          OUT_U(params.result_out), OUT_C(params.hErrNode_out));
}

SCENARIO(unused_condition, "graph_exec/unused_condition", par_context) {
    CUgraphExec exec;
    CUgraphConditionalHandle condition;
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {0};
    CUgraphNode error;
    CUgraph graph = gb_graph();
    gb_empty_node(graph, NULL);
    CALLO(cuGraphConditionalHandleCreate, "ok", (&condition, graph, par.primary, 1, 0),
          OUT_C(condition));
    CALLO(cuGraphInstantiateWithParams, "condition-unused", (&exec, graph, &params), OUT_H(exec),
          OUT_U(params.result_out), OUT_C(params.hErrNode_out));
    CALLO(cuGraphInstantiateWithFlags, "condition-unused", (&exec, graph, 0), OUT_H(exec));
    CALLO(cuGraphInstantiate_v2, "condition-unused", (&exec, graph, &error, NULL, 0), OUT_H(exec),
          OUT_H(error));
}

SCENARIO(in_flight, "graph_exec/in_flight", par_context) {
    CUdeviceptr p = par_alloc(4096);
    CUstream s = par_stream();
    SETUP(cuMemsetD8_v2, (p, 0x11, 4096));
    CUgraph graph = gb_graph();
    gb_set_node(graph, NULL, p, 0x22, 4096);
    CUgraphExec exec = gb_instantiate(graph);
    par_hold(s);
    CALL(cuGraphLaunch, "held", (exec, s));
    CALL(cuGraphExecDestroy, "in-flight", (exec));
    CALL(cuGraphDestroy, "in-flight", (graph));
    CALL(cuStreamQuery, "held", (s));
    PAR_DRAIN("after", s);
    gb_show("after-destroy", p);
}

SCENARIO(contexts, "graph_exec/contexts", par_context) {
    CUgraphExec exec, second;
    CUdeviceptr p = par_alloc(4096);
    CUstream s = par_stream();
    CUgraph graph = gb_graph();
    gb_set_node(graph, NULL, p, 0x22, 4096);
    exec = gb_instantiate(graph);
    (void)PAR_MADE(CUcontext, cuCtxCreate_v2, 0, par.dev);
    CUstream t = par_stream();
    CALL(cuGraphLaunch, "stream-of-other-context", (exec, t));
    CALL(cuStreamSynchronize, "after", (t));
    gb_show("launched", p);
    CALL(cuGraphLaunch, "null-stream-of-other-context", (exec, NULL));
    CALL(cuGraphUpload, "stream-of-other-context", (exec, t));
    CALL(cuCtxSynchronize, "after", ());
    CALL(cuGraphLaunch, "own-stream-in-other-context", (exec, s));
    CALLO(cuGraphInstantiateWithFlags, "in-other-context", (&second, graph, 0), OUT_H(second));
    CALL(cuGraphLaunch, "instantiated-in-other-context", (second, t));
    CALL(cuGraphLaunch, "instantiated-in-other-context", (second, s));
    CUdeviceptr q = par_alloc(4096);
    CALLO(cuGraphInstantiateWithFlags, "in-other-context", (&second, graph, 0), OUT_H(second));
    CALL(cuCtxSynchronize, "after", ());
    CALL(cuStreamSynchronize, "after", (s));
    CALL(cuMemsetD8_v2, "ok", (q, 1, 16));
    SETUP(cuCtxSetCurrent, (NULL));
    CALL(cuGraphLaunch, "no-context-stream", (exec, s));
    CALL(cuGraphLaunch, "no-context-null-stream", (exec, NULL));
    CALL(cuGraphExecDestroy, "no-context", (second));
    SETUP(cuCtxSetCurrent, (par.primary));
    CALL(cuStreamSynchronize, "after", (s));
}

/* The context of a graph's nodes ends before its exec. */
SCENARIO(context_gone, "graph_exec/context_gone", par_context) {
    CUgraphExec second;
    CUstream s = par_stream();
    CUcontext other = PAR_MADE(CUcontext, cuCtxCreate_v2, 0, par.dev);
    CUdeviceptr p = par_alloc(4096);
    CUgraph graph = gb_graph();
    CUDA_MEMSET_NODE_PARAMS params = gb_set(p, 1, 1, 16);
    (void)PAR_MADE(CUgraphNode, cuGraphAddMemsetNode, graph, NULL, 0, &params, other);
    CUgraphExec exec = gb_instantiate(graph);
    CALL(cuGraphLaunch, "ok", (exec, NULL));
    CALL(cuCtxSynchronize, "ok", ());
    SETUP(cuCtxDestroy_v2, (other));
    SETUP(cuCtxSetCurrent, (par.primary));
    CALLO(cuGraphInstantiateWithFlags, "context-destroyed", (&second, graph, 0), OUT_H(second));
    CALL(cuGraphLaunch, "context-destroyed", (exec, s));
    CALL(cuStreamSynchronize, "context-destroyed", (s));
    CALL(cuGraphExecDestroy, "context-destroyed", (exec));
}

SCENARIO(stale_destroy, "graph_exec/stale_destroy", par_context) {
    CUgraphExec exec = gb_instantiate(gb_graph());
    CALL(cuGraphExecDestroy, "ok", (exec));
    CALL(cuGraphExecDestroy, "stale", (exec));
}

SCENARIO(stale_launch, "graph_exec/stale_launch", par_context) {
    CUgraphExec exec = gb_instantiate(gb_graph());
    SETUP(cuGraphExecDestroy, (exec));
    CALL(cuGraphLaunch, "stale", (exec, NULL));
}

SCENARIO(stale_graph, "graph_exec/stale_graph", par_context) {
    CUgraphExec exec;
    CUgraph graph = gb_graph();
    SETUP(cuGraphDestroy, (graph));
    CALLO(cuGraphInstantiateWithFlags, "stale", (&exec, graph, 0), OUT_H(exec));
}

SCENARIO(stale_stream, "graph_exec/stale_stream", par_context) {
    CUgraphExec exec = gb_instantiate(gb_graph());
    CUstream s = par_stream();
    SETUP(cuStreamDestroy_v2, (s));
    CALL(cuGraphLaunch, "stale-stream", (exec, s));
}

SCENARIO(stale_upload_stream, "graph_exec/stale_upload_stream", par_context) {
    CUgraphExec exec;
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD};
    CUstream s = par_stream();
    SETUP(cuStreamDestroy_v2, (s));
    params.hUploadStream = s;
    CALLO(cuGraphInstantiateWithParams, "stale-stream", (&exec, gb_graph(), &params), OUT_H(exec),
          OUT_U(params.result_out), OUT_H(params.hErrNode_out));
}
