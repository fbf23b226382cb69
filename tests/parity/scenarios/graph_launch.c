/* Launching executable graphs: what each kind of node does, in which order, beside which streams.
 */
#include "graph_build.h"

static char host_order[64];

static void host_append(void *letter) {
    size_t used = strlen(host_order);
    host_order[used] = *(const char *)letter;
}

SCENARIO(sets, "graph_launch/sets", par_context) {
    static const unsigned elements[] = {1, 2, 4, 3, 8, 0};
    CUgraph graph;
    CUgraphNode node;
    CUgraphExec exec;
    CUDA_MEMSET_NODE_PARAMS params;
    CUdeviceptr p = par_alloc(4096);
    for (size_t i = 0; i < COUNT(elements); i++) {
        SETUP(cuMemsetD8_v2, (p, 0x11, 4096));
        graph = gb_graph();
        params = gb_set(p, 0x8192a3b4u, elements[i], 16);
        par_note("element=%u", elements[i]);
        CALLO(cuGraphAddMemsetNode, "element", (&node, graph, NULL, 0, &params, par.primary),
              OUT_C(node));
        if (par_last() != CUDA_SUCCESS)
            continue;
        exec = gb_instantiate(graph);
        par_note("element=%u", elements[i]);
        CALL(cuGraphLaunch, "element", (exec, NULL));
        SETUP(cuCtxSynchronize, ());
        gb_show("set", p);
        gb_show("end", p + 16 * elements[i] - 2);
    }
    SETUP(cuMemsetD8_v2, (p, 0x11, 4096));
    graph = gb_graph();
    params = gb_set(p, 0x77, 1, 3);
    params.pitch = 64;
    params.height = 3;
    CALLO(cuGraphAddMemsetNode, "rows", (&node, graph, NULL, 0, &params, par.primary), OUT_C(node));
    exec = gb_instantiate(graph);
    CALL(cuGraphLaunch, "rows", (exec, NULL));
    gb_show("row-0", p);
    gb_show("row-1", p + 64);
    gb_show("row-2", p + 128);
    gb_show("row-3", p + 192);
}

SCENARIO(copies, "graph_launch/copies", par_context) {
    unsigned char pageable[256];
    CUdeviceptr p = par_alloc(8192);
    unsigned char *pinned = par_pinned(4096);
    for (unsigned i = 0; i < sizeof(pageable); i++)
        pageable[i] = (unsigned char)i;
    CUgraph graph = gb_graph();
    CUDA_MEMCPY3D params = gb_copy(p, 0, 256);
    params.srcMemoryType = CU_MEMORYTYPE_HOST;
    params.srcHost = pageable;
    CUgraphNode node = gb_copy_node(graph, NULL, params);
    node = gb_copy_node(graph, node, gb_copy(p + 1024, p, 256));
    node = gb_copy_node(graph, node, gb_copy_to_host(pinned, p + 1024, 256));
    CUgraphExec exec = gb_instantiate(graph);
    CALL(cuGraphLaunch, "host-device-device-host", (exec, NULL));
    CALL(cuCtxSynchronize, "after", ());
    par_see("pinned", "%02x %02x %02x", pinned[0], pinned[1], pinned[255]);
    pageable[1] = 0xee; /* read at the launch, not before */
    CALL(cuGraphLaunch, "again", (exec, NULL));
    CALL(cuCtxSynchronize, "after", ());
    par_see("pinned", "%02x %02x %02x", pinned[0], pinned[1], pinned[255]);
    /* a box of 2 x 3 x 2 at (1, 1, 1) of 16 x 4 x n, into rows of 8 and layers of 5 */
    SETUP(cuMemsetD8_v2, (p + 4096, 0x11, 4096));
    graph = gb_graph();
    params = gb_copy(p + 4096, p, 2);
    params.srcXInBytes = params.srcY = params.srcZ = 1;
    params.srcPitch = 16;
    params.srcHeight = 4;
    params.dstXInBytes = 3;
    params.dstPitch = 8;
    params.dstHeight = 5;
    params.Height = 3;
    params.Depth = 2;
    gb_copy_node(graph, NULL, params);
    exec = gb_instantiate(graph);
    CALL(cuGraphLaunch, "box", (exec, NULL));
    CALL(cuCtxSynchronize, "after", ());
    gb_show("row-0", p + 4096 + 3);
    gb_show("row-2", p + 4096 + 3 + 16);
    gb_show("layer-1", p + 4096 + 3 + 40);
    graph = gb_graph();
    params = gb_copy(0, 0, 64);
    params.srcMemoryType = params.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    params.srcDevice = p;
    params.dstDevice = (CUdeviceptr)(uintptr_t)pinned;
    CALLO(cuGraphAddMemcpyNode, "unified", (&node, graph, NULL, 0, &params, par.primary),
          OUT_C(node));
    memset(pinned, 0, 256);
    exec = gb_instantiate(graph);
    CALL(cuGraphLaunch, "unified", (exec, NULL));
    CALL(cuCtxSynchronize, "after", ());
    par_see("pinned", "%02x %02x %02x", pinned[0], pinned[1], pinned[63]);
}

SCENARIO(order, "graph_launch/order", par_context) {
    static char letters[] = "abcdefgh";
    CUgraphNode a, b, c, d;
    CUgraphNode both[2];
    CUDA_HOST_NODE_PARAMS params = {.fn = host_append, .userData = &letters[3]};
    CUstream s = par_stream();
    CUgraph graph = gb_graph();
    a = gb_host_node(graph, NULL, host_append, &letters[0]);
    b = gb_host_node(graph, a, host_append, &letters[1]);
    c = gb_empty_node(graph, a);
    c = gb_empty_node(graph, c);
    both[0] = b;
    both[1] = c;
    SETUP(cuGraphAddHostNode, (&d, graph, both, 2, &params));
    CUgraphExec exec = gb_instantiate(graph);
    CALL(cuGraphLaunch, "host-nodes", (exec, s));
    CALL(cuGraphLaunch, "host-nodes", (exec, s));
    CALL(cuStreamSynchronize, "after", (s));
    par_see("order", "%s", host_order);
    memset(host_order, 0, sizeof(host_order));
    par_hold(s);
    CALL(cuGraphLaunch, "held", (exec, s));
    SETUP(cuLaunchHostFunc, (s, host_append, &letters[7]));
    CALL(cuStreamQuery, "held", (s));
    par_see("order", "%s", host_order);
    PAR_DRAIN("after", s);
    par_see("order", "%s", host_order);
}

/* Launches of one exec follow one another, whatever their streams; those of two do not. */
SCENARIO(two_streams, "graph_launch/two_streams", par_context) {
    CUdeviceptr p = par_alloc(4096);
    CUstream s = par_stream();
    CUstream t = par_stream();
    CUevent event = par_event(CU_EVENT_DISABLE_TIMING);
    CUgraph graph = gb_graph();
    gb_set_node(graph, NULL, p, 0x22, 64);
    CUgraphExec exec = gb_instantiate(graph);
    CUgraphExec other = gb_instantiate(graph);
    par_hold(s);
    CALL(cuGraphLaunch, "held", (exec, s));
    CALL(cuGraphLaunch, "same-exec-other-stream", (exec, t));
    SETUP(cuEventRecord, (event, t));
    CALL(cuStreamQuery, "behind-held-launch", (t));
    CALL(cuEventQuery, "behind-held-launch", (event));
    PAR_DRAIN("after", t);
    CALL(cuStreamSynchronize, "after", (s));
    par_hold(s);
    CALL(cuGraphLaunch, "held", (exec, s));
    CALL(cuGraphLaunch, "other-exec-other-stream", (other, t));
    CALL(cuStreamSynchronize, "not-behind-held-launch", (t));
    CALL(cuStreamQuery, "held", (s));
    CALL(cuGraphUpload, "behind-held-launch", (exec, t));
    CALL(cuStreamQuery, "upload-behind-held-launch", (t));
    PAR_DRAIN("after", s);
    CALL(cuStreamSynchronize, "after", (t));
}

SCENARIO(legacy_stream, "graph_launch/legacy_stream", par_context) {
    CUdeviceptr p = par_alloc(4096);
    CUstream blocking = par_blocking_stream();
    CUgraph graph = gb_graph();
    gb_set_node(graph, NULL, p, 0x22, 64);
    CUgraphExec exec = gb_instantiate(graph);
    CALL(cuGraphLaunch, "null-stream", (exec, NULL));
    CALL(cuGraphLaunch, "legacy", (exec, CU_STREAM_LEGACY));
    CALL(cuGraphLaunch, "per-thread", (exec, CU_STREAM_PER_THREAD));
    CALL(cuGraphLaunch_ptsz, "null-stream", (exec, NULL));
    CALL(cuCtxSynchronize, "after", ());
    CALL(cuGraphLaunch, "null-exec", (NULL, NULL));
    CALL(cuGraphLaunch_ptsz, "null-exec", (NULL, NULL));
    par_hold(blocking);
    CALL(cuGraphLaunch, "legacy-behind-blocking", (exec, NULL));
    CALL(cuStreamQuery, "legacy-behind-blocking", (NULL));
    par_release();
    CALL(cuStreamSynchronize, "after", (NULL));
    CALL(cuStreamQuery, "after", (NULL));
}

SCENARIO(events, "graph_launch/events", par_context) {
    float ms;
    CUdeviceptr p = par_alloc(4096);
    CUstream s = par_stream();
    CUstream t = par_stream();
    CUevent first = par_event(CU_EVENT_DEFAULT);
    CUevent last = par_event(CU_EVENT_DEFAULT);
    CUevent outside = par_event(CU_EVENT_DISABLE_TIMING);
    par_event(CU_EVENT_DEFAULT);
    CUgraph graph = gb_graph();
    CUgraphNode node = PAR_MADE(CUgraphNode, cuGraphAddEventRecordNode, graph, NULL, 0, first);
    node = gb_set_node(graph, node, p, 0x22, 4096);
    SETUP(cuGraphAddEventRecordNode, (&node, graph, &node, 1, last));
    CUgraphExec exec = gb_instantiate(graph);
    CALL(cuEventQuery, "instantiated", (last));
    CALL(cuGraphLaunch, "ok", (exec, s));
    CALL(cuEventSynchronize, "recorded-in-graph", (last));
    CALL(cuEventQuery, "recorded-in-graph", (first));
    CALLO(cuEventElapsedTime, "recorded-in-graph", (&ms, first, last), OUT_F(ms));
    par_hold(s);
    CALL(cuGraphLaunch, "held", (exec, s));
    CALL(cuEventQuery, "record-held", (last));
    CALL(cuEventQuery, "record-held", (first));
    CALL(cuStreamWaitEvent, "record-held", (t, last, 0));
    CALL(cuStreamQuery, "behind-record", (t));
    PAR_DRAIN("after", t);
    CALL(cuStreamSynchronize, "after", (s));
    graph = gb_graph();
    CUgraphNode wait = PAR_MADE(CUgraphNode, cuGraphAddEventWaitNode, graph, NULL, 0, outside);
    gb_set_node(graph, wait, p, 0x33, 4096);
    exec = gb_instantiate(graph);
    CALL(cuGraphLaunch, "wait-for-never-recorded", (exec, s));
    CALL(cuStreamSynchronize, "after", (s));
    par_hold(t);
    SETUP(cuEventRecord, (outside, t));
    CALL(cuGraphLaunch, "wait-for-held", (exec, s));
    CALL(cuStreamQuery, "wait-for-held", (s));
    PAR_DRAIN("after", s);
    gb_show("after-wait", p);
    /* Destroyed before, and after, the exec was made. */
    CALL(cuEventDestroy_v2, "in-exec", (outside));
    CALL(cuGraphLaunch, "event-destroyed", (exec, s));
    CALL(cuStreamSynchronize, "event-destroyed", (s));
}

SCENARIO(event_destroyed, "graph_launch/event_destroyed", par_context) {
    CUstream s = par_stream();
    CUevent event = par_event(CU_EVENT_DEFAULT);
    CUgraph graph = gb_graph();
    (void)PAR_MADE(CUgraphNode, cuGraphAddEventRecordNode, graph, NULL, 0, event);
    CUgraphExec exec = gb_instantiate(graph);
    SETUP(cuEventDestroy_v2, (event));
    CALL(cuGraphLaunch, "event-destroyed", (exec, s));
    CALL(cuStreamSynchronize, "event-destroyed", (s));
    CALLO(cuGraphInstantiateWithFlags, "event-destroyed", (&exec, graph, 0), OUT_H(exec));
}

SCENARIO(memory_operations, "graph_launch/memory_operations", par_context) {
    CUgraphNode node;
    CUstreamBatchMemOpParams ops[3];
    CUstream s = par_stream();
    CUdeviceptr p = par_alloc(4096);
    SETUP(cuMemsetD8_v2, (p, 0, 4096));
    memset(ops, 0, sizeof(ops));
    ops[0].operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    ops[0].waitValue.address = p;
    ops[0].waitValue.value = 5;
    ops[0].waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
    ops[1].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    ops[1].writeValue.address = p + 8;
    ops[1].writeValue.value = 0x07060504;
    ops[2].operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
    ops[2].writeValue.address = p + 16;
    ops[2].writeValue.value64 = 0x0f0e0d0c0b0a0908u;
    CUDA_BATCH_MEM_OP_NODE_PARAMS params = {.ctx = par.primary, .count = 3, .paramArray = ops};
    CUgraph graph = gb_graph();
    CALLO(cuGraphAddBatchMemOpNode, "ok", (&node, graph, NULL, 0, &params), OUT_C(node));
    CUgraphExec exec = gb_instantiate(graph);
    CALL(cuGraphLaunch, "waits", (exec, s));
    CALL(cuStreamQuery, "waits", (s));
    gb_show("before", p + 8);
    SETUP(cuMemsetD32_v2, (p, 5, 1));
    CALL(cuStreamSynchronize, "after", (s));
    gb_show("written-32", p + 8);
    gb_show("written-64", p + 20);
}

SCENARIO(children, "graph_launch/children", par_context) {
    CUdeviceptr p = par_alloc(4096);
    SETUP(cuMemsetD8_v2, (p, 0x11, 4096));
    CUgraph inner = gb_graph();
    CUgraphNode node = gb_set_node(inner, NULL, p, 0x22, 4);
    gb_copy_node(inner, node, gb_copy(p + 4, p, 4));
    CUgraph middle = gb_graph();
    node = gb_set_node(middle, NULL, p, 0x33, 8);
    SETUP(cuGraphAddChildGraphNode, (&node, middle, &node, 1, inner));
    gb_copy_node(middle, node, gb_copy(p + 8, p + 4, 4));
    CUgraph outer = gb_graph();
    SETUP(cuGraphAddChildGraphNode, (&node, outer, NULL, 0, middle));
    gb_copy_node(outer, node, gb_copy(p + 12, p + 8, 4));
    CALL(cuGraphDestroy, "embedded", (inner));
    CUgraphExec exec = gb_instantiate(outer);
    CALL(cuGraphLaunch, "nested", (exec, NULL));
    CALL(cuCtxSynchronize, "after", ());
    gb_show("inner", p + 4);
    gb_show("middle", p + 8);
    gb_show("outer", p + 12);
}

static CUgraph condition_graph(CUgraphConditionalNodeType type, unsigned size, unsigned value,
                               unsigned flags, CUdeviceptr p) {
    CUgraph graph = gb_graph();
    CUgraphConditionalHandle condition;
    CUgraphNodeParams params;
    CUgraphNode node, after;
    SETUP(cuGraphConditionalHandleCreate, (&condition, graph, par.primary, value, flags));
    memset(&params, 0, sizeof(params));
    params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    params.conditional.handle = condition;
    params.conditional.type = type;
    params.conditional.size = size;
    params.conditional.ctx = par.primary;
    SETUP(cuGraphAddNode_v2, (&node, graph, NULL, NULL, 0, &params));
    for (unsigned i = 0; i < size; i++) {
        after = gb_set_node(params.conditional.phGraph_out[i], NULL, p, 0x40 + i, 4);
        gb_copy_node(params.conditional.phGraph_out[i], after, gb_copy(p + 4, p, 4));
    }
    gb_set_node(graph, node, p + 8, 0x99, 4);
    return graph;
}

static void condition(const char *what, CUgraphConditionalNodeType type, unsigned size,
                      unsigned value, unsigned flags, CUdeviceptr p) {
    SETUP(cuMemsetD8_v2, (p, 0x11, 64));
    CUgraphExec exec = gb_instantiate(condition_graph(type, size, value, flags, p));
    for (int i = 0; i < 2; i++) {
        par_note("%s size=%u value=%u flags=%u", what, size, value, flags);
        CALL(cuGraphLaunch, "condition", (exec, NULL));
        SETUP(cuCtxSynchronize, ());
        gb_show("body", p + 4);
        gb_show("after", p + 8);
        SETUP(cuMemsetD8_v2, (p, 0x11, 64));
    }
    CALL(cuGraphUpload, "condition", (exec, NULL));
    CALL(cuGraphExecDestroy, "condition", (exec));
}

SCENARIO(conditions, "graph_launch/conditions", par_context) {
    CUdeviceptr p = par_alloc(4096);
    for (unsigned value = 0; value < 3; value++) {
        condition("if", CU_GRAPH_COND_TYPE_IF, 1, value, CU_GRAPH_COND_ASSIGN_DEFAULT, p);
        condition("if-else", CU_GRAPH_COND_TYPE_IF, 2, value, CU_GRAPH_COND_ASSIGN_DEFAULT, p);
    }
    condition("if-without-default", CU_GRAPH_COND_TYPE_IF, 2, 0, 0, p);
    condition("while", CU_GRAPH_COND_TYPE_WHILE, 1, 0, CU_GRAPH_COND_ASSIGN_DEFAULT, p);
    for (unsigned value = 0; value < 4; value++)
        condition("switch", CU_GRAPH_COND_TYPE_SWITCH, 3, value, CU_GRAPH_COND_ASSIGN_DEFAULT, p);
}

/* One more question: what is the value when no default is assigned and 1 was given? */
SCENARIO(condition_without_default, "graph_launch/condition_without_default", par_context) {
    CUdeviceptr p = par_alloc(4096);
    condition("if-without-default", CU_GRAPH_COND_TYPE_IF, 2, 1, 0, p);
}

SCENARIO(condition_nested, "graph_launch/condition_nested", par_context) {
    CUgraphConditionalHandle outer, inner;
    CUgraphNodeParams params;
    CUgraphExec exec;
    CUdeviceptr p = par_alloc(4096);
    SETUP(cuMemsetD8_v2, (p, 0x11, 64));
    CUgraph graph = gb_graph();
    CALLO(cuGraphConditionalHandleCreate, "outer",
          (&outer, graph, par.primary, 1, CU_GRAPH_COND_ASSIGN_DEFAULT), OUT_C(outer));
    memset(&params, 0, sizeof(params));
    params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    params.conditional.handle = outer;
    params.conditional.type = CU_GRAPH_COND_TYPE_IF;
    params.conditional.size = 1;
    params.conditional.ctx = par.primary;
    CUgraphNode node = PAR_MADE(CUgraphNode, cuGraphAddNode_v2, graph, NULL, NULL, 0, &params);
    CUgraph body = params.conditional.phGraph_out[0];
    CALLO(cuGraphConditionalHandleCreate, "for-body",
          (&inner, body, par.primary, 1, CU_GRAPH_COND_ASSIGN_DEFAULT), OUT_C(inner));
    if (par_last() != CUDA_SUCCESS)
        CALLO(cuGraphConditionalHandleCreate, "for-graph",
              (&inner, graph, par.primary, 1, CU_GRAPH_COND_ASSIGN_DEFAULT), OUT_C(inner));
    memset(&params, 0, sizeof(params));
    params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    params.conditional.handle = inner;
    params.conditional.type = CU_GRAPH_COND_TYPE_IF;
    params.conditional.size = 1;
    params.conditional.ctx = par.primary;
    CALLO(cuGraphAddNode_v2, "in-body", (&node, body, NULL, NULL, 0, &params), OUT_C(node));
    if (par_last() == CUDA_SUCCESS)
        gb_set_node(params.conditional.phGraph_out[0], NULL, p, 0x55, 4);
    CALLO(cuGraphInstantiateWithFlags, "nested", (&exec, graph, 0), OUT_C(exec));
    CALL(cuGraphLaunch, "nested", (exec, NULL));
    CALL(cuCtxSynchronize, "after", ());
    gb_show("inner", p);
}

/* A launch in a stream that captures becomes a node. */
SCENARIO(captured, "graph_launch/captured", par_context) {
    CUgraph graph, made;
    CUgraphNode node;
    CUgraphNodeType type;
    size_t count = 1;
    CUdeviceptr p = par_alloc(4096);
    SETUP(cuMemsetD8_v2, (p, 0x11, 64));
    CUstream s = par_stream();
    graph = gb_graph();
    gb_set_node(graph, NULL, p, 0x22, 4);
    CUgraphExec exec = gb_instantiate(graph);
    SETUP(cuStreamBeginCapture_v2, (s, CU_STREAM_CAPTURE_MODE_RELAXED));
    CALL(cuGraphUpload, "capturing", (exec, s));
    CALL(cuGraphLaunch, "capturing", (exec, s));
    CALLO(cuStreamEndCapture, "ok", (s, &made), OUT_C(made));
    if (par_last() != CUDA_SUCCESS) {
        SETUP(cuStreamBeginCapture_v2, (s, CU_STREAM_CAPTURE_MODE_RELAXED));
        CALL(cuGraphLaunch, "capturing-again", (exec, s));
        CALLO(cuStreamEndCapture, "again", (s, &made), OUT_C(made));
    }
    CALLO(cuGraphGetNodes, "ok", (made, &node, &count), OUT_C(node), IO_U(count));
    CALLO(cuGraphNodeGetType, "ok", (node, &type), OUT_U(type));
    SETUP(cuGraphExecDestroy, (exec));
    exec = gb_instantiate(made);
    CALL(cuGraphLaunch, "made-by-capture", (exec, s));
    CALL(cuStreamSynchronize, "after", (s));
    gb_show("set", p);
}

/* A node's memory goes away: at the launch, and while it is queued. */
SCENARIO(memory_gone, "graph_launch/memory_gone", par_context) {
    CUdeviceptr p = par_mapped(PAR_2M);
    CUgraph graph = gb_graph();
    gb_set_node(graph, NULL, p, 0x22, 64);
    CUgraphExec exec = gb_instantiate(graph);
    CALL(cuGraphLaunch, "ok", (exec, NULL));
    CALL(cuCtxSynchronize, "ok", ());
    SETUP(cuMemUnmap, (p, PAR_2M));
    CALLO(cuGraphInstantiateWithFlags, "unmapped", (&exec, graph, 0), OUT_C(exec));
}

SCENARIO(memory_gone_launch, "graph_launch/memory_gone_launch", par_context) {
    CUstream s = par_stream();
    CUdeviceptr p = par_mapped(PAR_2M);
    CUgraph graph = gb_graph();
    gb_set_node(graph, NULL, p, 0x22, 64);
    CUgraphExec exec = gb_instantiate(graph);
    SETUP(cuMemUnmap, (p, PAR_2M));
    CALL(cuGraphLaunch, "unmapped", (exec, s));
    CALL(cuStreamSynchronize, "unmapped", (s));
    CALL(cuGraphLaunch, "poisoned", (exec, s));
    CALL(cuGraphExecDestroy, "poisoned", (exec));
    CALLO(cuGraphInstantiateWithFlags, "poisoned", (&exec, graph, 0), OUT_C(exec));
    CALL(cuGraphDestroy, "poisoned", (graph));
}

SCENARIO(freed_launch, "graph_launch/freed_launch", par_context) {
    CUstream s = par_stream();
    CUdeviceptr p = par_alloc((size_t)64 << 20);
    CUgraph graph = gb_graph();
    gb_copy_node(graph, NULL, gb_copy(p, p + 4096, 4096));
    CUgraphExec exec = gb_instantiate(graph);
    SETUP(cuMemFree_v2, (p));
    CALL(cuGraphLaunch, "freed", (exec, s));
    CALL(cuStreamSynchronize, "freed", (s));
}

/* A host node may not call the driver. */
static CUresult from_host;

static void host_calls(void *unused) {
    size_t free_bytes, total;
    from_host = par.api->cuMemGetInfo_v2(&free_bytes, &total);
}

SCENARIO(host_node, "graph_launch/host_node", par_context) {
    CUgraph graph = gb_graph();
    gb_host_node(graph, NULL, host_calls, NULL);
    CUgraphExec exec = gb_instantiate(graph);
    CALL(cuGraphLaunch, "ok", (exec, NULL));
    CALL(cuCtxSynchronize, "ok", ());
    par_see("from-host-node", "%s", par_result_name(from_host));
}

static void user_freed(void *flag) {
    __atomic_store_n((int *)flag, 1, __ATOMIC_SEQ_CST);
}

/* An exec keeps the user objects of its graph. */
SCENARIO(user_objects, "graph_launch/user_objects", par_context) {
    static int freed;
    CUuserObject object;
    CUgraph graph = gb_graph();
    gb_empty_node(graph, NULL);
    CALLO(cuUserObjectCreate, "ok",
          (&object, &freed, user_freed, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC), OUT_C(object));
    CALL(cuGraphRetainUserObject, "move", (graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
    CUgraphExec exec = gb_instantiate(graph);
    CALL(cuGraphDestroy, "ok", (graph));
    CALL(cuGraphLaunch, "ok", (exec, NULL));
    CALL(cuCtxSynchronize, "ok", ());
    par_see("freed", "%d", __atomic_load_n(&freed, __ATOMIC_SEQ_CST));
    CALL(cuGraphExecDestroy, "ok", (exec));
    while (__atomic_load_n(&freed, __ATOMIC_SEQ_CST) == 0)
        usleep(100); /* destructors run on a thread of the driver's */
    par_see("freed", "%d", __atomic_load_n(&freed, __ATOMIC_SEQ_CST));
}
