/* Changing executable graphs: node by node, as a whole from another graph, and switching nodes off.
 */
#include "graph_build.h"

static int host_first, host_second;

static void count_up(void *number) {
    ++*(int *)number;
}

SCENARIO(memset_nodes, "graph_update/memset_nodes", par_context) {
    CUDA_MEMSET_NODE_PARAMS params;
    CUcontext context;
    CUdeviceptr p = par_alloc(8192);
    CUdeviceptr q = par_alloc(8192);
    SETUP(cuMemsetD8_v2, (p, 0x11, 8192));
    SETUP(cuMemsetD8_v2, (q, 0x11, 8192));
    CUgraph graph = gb_graph();
    CUgraphNode node = gb_set_node(graph, NULL, p, 0x22, 64);
    CUgraphNode empty = gb_empty_node(graph, NULL);
    CUgraph other = gb_graph();
    CUgraphNode foreign = gb_set_node(other, NULL, p, 0x22, 64);
    CUgraphExec exec = gb_instantiate(graph);
#define SET(cls)                                                                                   \
    CALL(cuGraphExecMemsetNodeSetParams, cls, (exec, node, &params, par.primary));                 \
    CALL(cuGraphLaunch, cls, (exec, NULL));                                                        \
    SETUP(cuCtxSynchronize, ())
    params = gb_set(p, 0x33, 1, 64);
    SET("value");
    gb_show("value", p);
    params = gb_set(q, 0x44, 1, 64);
    SET("address");
    gb_show("address", q);
    params = gb_set(q, 0x55, 1, 32);
    SET("narrower");
    gb_show("narrower", q + 30);
    params = gb_set(q, 0x66, 1, 4096);
    SET("wider");
    gb_show("wider", q + 4092);
    params = gb_set(q, 0x77665544, 4, 16);
    SET("element");
    gb_show("element", q);
    params = gb_set(q, 0x12, 1, 8);
    params.height = 2;
    params.pitch = 16;
    SET("to-rows");
    gb_show("to-rows", q + 14);
    params = gb_set(q, 0x12, 1, 64);
    SET("back-to-one-row");
    params = gb_set(q + 1, 0x12, 4, 64);
    SET("misaligned");
    params = gb_set(0, 0x12, 1, 64);
    SET("null-address");
    params = gb_set(0x1000, 0x12, 1, 64);
    SET("random-address");
    params = gb_set(q, 0x12, 3, 64);
    SET("bad-element");
    params = gb_set(q, 0x12, 1, 0);
    SET("no-width");
    params = gb_set(q, 0x12, 1, 100000000);
    SET("outside");
    params = gb_set(q, 0x13, 1, 64);
    SET("still-works");
    gb_show("still-works", q);
#undef SET
    CALL(cuGraphExecMemsetNodeSetParams, "null-exec", (NULL, node, &params, par.primary));
    CALL(cuGraphExecMemsetNodeSetParams, "null-node", (exec, NULL, &params, par.primary));
    CALL(cuGraphExecMemsetNodeSetParams, "null-params", (exec, node, NULL, par.primary));
    CALL(cuGraphExecMemsetNodeSetParams, "null-context", (exec, node, &params, NULL));
    CALL(cuGraphExecMemsetNodeSetParams, "other-type", (exec, empty, &params, par.primary));
    CALL(cuGraphExecMemsetNodeSetParams, "of-other-graph", (exec, foreign, &params, par.primary));
    SETUP(cuCtxCreate_v2, (&context, 0, par.dev));
    CALL(cuGraphExecMemsetNodeSetParams, "other-context", (exec, node, &params, context));
    SETUP(cuCtxSetCurrent, (NULL));
    CALL(cuGraphExecMemsetNodeSetParams, "no-context", (exec, node, &params, par.primary));
}

SCENARIO(rows, "graph_update/rows", par_context) {
    CUgraphNode node;
    CUdeviceptr p = par_alloc(8192);
    CUDA_MEMSET_NODE_PARAMS params = gb_set(p, 0x22, 1, 16);
    params.pitch = 64;
    params.height = 4;
    CUgraph graph = gb_graph();
    SETUP(cuGraphAddMemsetNode, (&node, graph, NULL, 0, &params, par.primary));
    CUgraphExec exec = gb_instantiate(graph);
    params.value = 0x33;
    CALL(cuGraphExecMemsetNodeSetParams, "2d-value", (exec, node, &params, par.primary));
    params.dst = p + 4096;
    CALL(cuGraphExecMemsetNodeSetParams, "2d-address", (exec, node, &params, par.primary));
    params.width = 8;
    CALL(cuGraphExecMemsetNodeSetParams, "2d-width", (exec, node, &params, par.primary));
    params.width = 16;
    params.height = 3;
    CALL(cuGraphExecMemsetNodeSetParams, "2d-height", (exec, node, &params, par.primary));
    params.height = 4;
    params.pitch = 128;
    CALL(cuGraphExecMemsetNodeSetParams, "2d-pitch", (exec, node, &params, par.primary));
    params.pitch = 64;
    params.elementSize = 2;
    params.width = 8;
    CALL(cuGraphExecMemsetNodeSetParams, "2d-element", (exec, node, &params, par.primary));
    params = gb_set(p, 0x44, 1, 16);
    CALL(cuGraphExecMemsetNodeSetParams, "2d-to-1d", (exec, node, &params, par.primary));
    CALL(cuGraphLaunch, "ok", (exec, NULL));
    CALL(cuCtxSynchronize, "ok", ());
}

SCENARIO(memcpy_nodes, "graph_update/memcpy_nodes", par_context) {
    static unsigned char pageable[4096];
    CUDA_MEMCPY3D params;
    CUcontext context;
    CUdeviceptr p = par_alloc(8192);
    CUdeviceptr q = par_alloc(8192);
    unsigned char *pinned = par_pinned(4096);
    SETUP(cuMemsetD8_v2, (p, 0x11, 8192));
    SETUP(cuMemsetD8_v2, (q, 0x22, 8192));
    CUgraph graph = gb_graph();
    CUgraphNode node = gb_copy_node(graph, NULL, gb_copy(p, q, 64));
    CUgraphNode empty = gb_empty_node(graph, NULL);
    CUgraph other = gb_graph();
    CUgraphNode foreign = gb_copy_node(other, NULL, gb_copy(p, q, 64));
    CUgraphExec exec = gb_instantiate(graph);
#define SET(cls)                                                                                   \
    CALL(cuGraphExecMemcpyNodeSetParams, cls, (exec, node, &params, par.primary));                 \
    CALL(cuGraphLaunch, cls, (exec, NULL));                                                        \
    SETUP(cuCtxSynchronize, ())
    params = gb_copy(p + 1024, q, 64);
    SET("to");
    gb_show("to", p + 1024);
    params = gb_copy(p + 2048, p, 64);
    SET("from");
    gb_show("from", p + 2048);
    params = gb_copy(p, q, 128);
    SET("longer");
    gb_show("longer", p + 124);
    params = gb_copy(p, q, 4096);
    SET("much-longer");
    params = gb_copy(p, q, 8);
    params.Height = 4;
    params.srcPitch = params.dstPitch = 64;
    SET("to-rows");
    params.Depth = 2;
    params.srcHeight = params.dstHeight = 4;
    SET("to-layers");
    params = gb_copy(p, q, 64);
    SET("back");
    params = gb_copy_to_host(pinned, q, 64);
    SET("to-pinned-host");
    params = gb_copy_to_host(pageable, q, 64);
    SET("to-pageable-host");
    params = gb_copy(p, q, 64);
    params.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    SET("to-unified");
    params.dstMemoryType = (CUmemorytype)9;
    SET("bad-type");
    params = gb_copy(0, q, 64);
    SET("null-to");
    params = gb_copy(p, 0x1000, 64);
    SET("random-from");
    params = gb_copy(p, q, 0);
    SET("no-width");
    params = gb_copy(p, q, 64);
    params.Height = 0;
    SET("no-height");
    params = gb_copy(p, q, 100000000);
    SET("outside");
    params = gb_copy(p + 512, q, 64);
    SET("still-works");
    gb_show("still-works", p + 512);
#undef SET
    CALL(cuGraphExecMemcpyNodeSetParams, "null-exec", (NULL, node, &params, par.primary));
    CALL(cuGraphExecMemcpyNodeSetParams, "null-node", (exec, NULL, &params, par.primary));
    CALL(cuGraphExecMemcpyNodeSetParams, "null-params", (exec, node, NULL, par.primary));
    CALL(cuGraphExecMemcpyNodeSetParams, "null-context", (exec, node, &params, NULL));
    CALL(cuGraphExecMemcpyNodeSetParams, "other-type", (exec, empty, &params, par.primary));
    CALL(cuGraphExecMemcpyNodeSetParams, "of-other-graph", (exec, foreign, &params, par.primary));
    SETUP(cuCtxCreate_v2, (&context, 0, par.dev));
    CALL(cuGraphExecMemcpyNodeSetParams, "other-context", (exec, node, &params, context));
}

SCENARIO(host_nodes, "graph_update/host_nodes", par_context) {
    CUDA_HOST_NODE_PARAMS params = {.fn = count_up, .userData = &host_second};
    CUDA_HOST_NODE_PARAMS got;
    CUstream s = par_stream();
    CUgraph graph = gb_graph();
    CUgraphNode node = gb_host_node(graph, NULL, count_up, &host_first);
    CUgraphNode empty = gb_empty_node(graph, NULL);
    CUgraphExec exec = gb_instantiate(graph);
    CALL(cuGraphLaunch, "ok", (exec, s));
    CALL(cuGraphExecHostNodeSetParams, "ok", (exec, node, &params));
    CALL(cuGraphLaunch, "ok", (exec, s));
    CALL(cuGraphLaunch, "ok", (exec, s));
    CALL(cuStreamSynchronize, "ok", (s));
    par_see("calls", "first=%d second=%d", host_first, host_second);
    CALLO(cuGraphHostNodeGetParams, "node-of-graph-unchanged", (node, &got), OUT_C(got.fn));
    par_see("user-data", "%s", got.userData == &host_first ? "first" : "other");
    par_hold(s);
    CALL(cuGraphLaunch, "held", (exec, s));
    params.userData = &host_first;
    CALL(cuGraphExecHostNodeSetParams, "while-queued", (exec, node, &params));
    PAR_DRAIN("ok", s);
    par_see("calls", "first=%d second=%d", host_first, host_second);
    params.fn = NULL;
    CALL(cuGraphExecHostNodeSetParams, "null-function", (exec, node, &params));
    CALL(cuGraphExecHostNodeSetParams, "null-params", (exec, node, NULL));
    params.fn = count_up;
    CALL(cuGraphExecHostNodeSetParams, "null-exec", (NULL, node, &params));
    CALL(cuGraphExecHostNodeSetParams, "null-node", (exec, NULL, &params));
    CALL(cuGraphExecHostNodeSetParams, "other-type", (exec, empty, &params));
    SETUP(cuCtxSetCurrent, (NULL));
    CALL(cuGraphExecHostNodeSetParams, "no-context", (exec, node, &params));
}

SCENARIO(event_nodes, "graph_update/event_nodes", par_context) {
    CUgraphNode record, wait, got;
    CUevent first, second, in_graph;
    SETUP(cuEventCreate, (&first, CU_EVENT_DISABLE_TIMING));
    SETUP(cuEventCreate, (&second, CU_EVENT_DEFAULT));
    NAME(first);
    NAME(second);
    CUgraph graph = gb_graph();
    SETUP(cuGraphAddEventWaitNode, (&wait, graph, NULL, 0, first));
    SETUP(cuGraphAddEventRecordNode, (&record, graph, &wait, 1, first));
    got = record;
    CUgraphExec exec = gb_instantiate(graph);
    CALL(cuGraphExecEventRecordNodeSetEvent, "ok", (exec, record, second));
    CALL(cuGraphExecEventWaitNodeSetEvent, "ok", (exec, wait, second));
    CALLO(cuGraphEventRecordNodeGetEvent, "unchanged", (got, &in_graph), OUT_H(in_graph));
    CALL(cuGraphLaunch, "ok", (exec, NULL));
    CALL(cuCtxSynchronize, "ok", ());
    CALL(cuEventQuery, "second", (second));
    CALL(cuGraphExecEventRecordNodeSetEvent, "null-event", (exec, record, NULL));
    CALL(cuGraphExecEventWaitNodeSetEvent, "null-event", (exec, wait, NULL));
    CALL(cuGraphExecEventRecordNodeSetEvent, "other-type", (exec, wait, second));
    CALL(cuGraphExecEventWaitNodeSetEvent, "other-type", (exec, record, second));
    CALL(cuGraphExecEventRecordNodeSetEvent, "null-exec", (NULL, record, second));
    CALL(cuGraphExecEventRecordNodeSetEvent, "null-node", (exec, NULL, second));
    CALL(cuGraphExecEventWaitNodeSetEvent, "null-exec", (NULL, wait, second));
    CALL(cuGraphExecEventWaitNodeSetEvent, "null-node", (exec, NULL, second));
    (void)PAR_MADE(CUcontext, cuCtxCreate_v2, 0, par.dev);
    CUevent foreign = par_event(CU_EVENT_DEFAULT);
    CALL(cuGraphExecEventRecordNodeSetEvent, "event-of-other-context", (exec, record, foreign));
    CALL(cuGraphExecEventWaitNodeSetEvent, "event-of-other-context", (exec, wait, foreign));
    CALL(cuGraphLaunch, "event-of-other-context", (exec, NULL));
    SETUP(cuCtxSetCurrent, (par.primary));
    CALL(cuGraphLaunch, "event-of-other-context", (exec, NULL));
    CALL(cuCtxSynchronize, "ok", ());
}

SCENARIO(child_nodes, "graph_update/child_nodes", par_context) {
    CUgraphNode node, empty, inner, inside;
    CUgraph embedded;
    size_t count = 1;
    CUdeviceptr p = par_alloc(4096);
    SETUP(cuMemsetD8_v2, (p, 0x11, 4096));
    CUgraph child = gb_graph();
    gb_set_node(child, NULL, p, 0x22, 4);
    CUgraph same = gb_graph();
    gb_set_node(same, NULL, p, 0x33, 4);
    CUgraph longer = gb_graph();
    gb_empty_node(longer, gb_set_node(longer, NULL, p, 0x44, 4));
    CUgraph other_type = gb_graph();
    gb_empty_node(other_type, NULL);
    CUgraph other_order = gb_graph();
    CUgraph graph = gb_graph();
    SETUP(cuGraphAddChildGraphNode, (&node, graph, NULL, 0, child));
    empty = gb_empty_node(graph, NULL);
    CUgraphExec exec = gb_instantiate(graph);
    CALL(cuGraphLaunch, "ok", (exec, NULL));
    gb_show("child", p);
    CALL(cuGraphExecChildGraphNodeSetParams, "ok", (exec, node, same));
    CALL(cuGraphLaunch, "ok", (exec, NULL));
    gb_show("changed", p);
    CALL(cuGraphExecChildGraphNodeSetParams, "longer", (exec, node, longer));
    CALL(cuGraphExecChildGraphNodeSetParams, "other-type", (exec, node, other_type));
    CALL(cuGraphExecChildGraphNodeSetParams, "no-nodes", (exec, node, other_order));
    CALL(cuGraphExecChildGraphNodeSetParams, "not-a-child-node", (exec, empty, same));
    CALL(cuGraphExecChildGraphNodeSetParams, "null-graph", (exec, node, NULL));
    CALL(cuGraphExecChildGraphNodeSetParams, "null-node", (exec, NULL, same));
    CALL(cuGraphExecChildGraphNodeSetParams, "null-exec", (NULL, node, same));
    /* A node inside of the child, by its handle in the embedded graph. */
    SETUP(cuGraphChildGraphNodeGetGraph, (node, &embedded));
    SETUP(cuGraphGetNodes, (embedded, &inside, &count));
    CUDA_MEMSET_NODE_PARAMS params = gb_set(p, 0x55, 1, 4);
    CALL(cuGraphExecMemsetNodeSetParams, "inside-child", (exec, inside, &params, par.primary));
    CALL(cuGraphNodeSetEnabled, "inside-child", (exec, inside, 0));
    CALL(cuGraphLaunch, "inside-child", (exec, NULL));
    gb_show("inside-child", p);
    count = 1;
    SETUP(cuGraphGetNodes, (child, &inner, &count));
    CALL(cuGraphExecMemsetNodeSetParams, "of-embedded-original",
         (exec, inner, &params, par.primary));
}

SCENARIO(memory_operation_nodes, "graph_update/memory_operation_nodes", par_context) {
    CUgraphNode node, empty;
    CUstreamBatchMemOpParams ops[2];
    CUdeviceptr p = par_alloc(4096);
    SETUP(cuMemsetD8_v2, (p, 0, 4096));
    memset(ops, 0, sizeof(ops));
    for (int i = 0; i < 2; i++) {
        ops[i].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
        ops[i].writeValue.address = p + 4 * (unsigned)i;
        ops[i].writeValue.value = 1;
    }
    CUDA_BATCH_MEM_OP_NODE_PARAMS params = {.ctx = par.primary, .count = 1, .paramArray = ops};
    CUgraph graph = gb_graph();
    SETUP(cuGraphAddBatchMemOpNode, (&node, graph, NULL, 0, &params));
    empty = gb_empty_node(graph, NULL);
    CUgraphExec exec = gb_instantiate(graph);
    ops[0].writeValue.value = 0x05050505;
    CALL(cuGraphExecBatchMemOpNodeSetParams, "value", (exec, node, &params));
    CALL(cuGraphLaunch, "value", (exec, NULL));
    gb_show("value", p);
    params.count = 2;
    CALL(cuGraphExecBatchMemOpNodeSetParams, "more", (exec, node, &params));
    CALL(cuGraphLaunch, "more", (exec, NULL));
    gb_show("more", p + 4);
    params.count = 0;
    CALL(cuGraphExecBatchMemOpNodeSetParams, "none", (exec, node, &params));
    params.count = 1;
    params.flags = 1;
    CALL(cuGraphExecBatchMemOpNodeSetParams, "bad-flags", (exec, node, &params));
    params.flags = 0;
    params.paramArray = NULL;
    CALL(cuGraphExecBatchMemOpNodeSetParams, "null-list", (exec, node, &params));
    params.paramArray = ops;
    ops[0].operation = (CUstreamBatchMemOpType)77;
    CALL(cuGraphExecBatchMemOpNodeSetParams, "bad-operation", (exec, node, &params));
    ops[0].operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
    CALL(cuGraphExecBatchMemOpNodeSetParams, "other-operation", (exec, node, &params));
    ops[0].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    ops[0].writeValue.address = 0x1000;
    CALL(cuGraphExecBatchMemOpNodeSetParams, "random-address", (exec, node, &params));
    ops[0].writeValue.address = p;
    CALL(cuGraphExecBatchMemOpNodeSetParams, "other-type", (exec, empty, &params));
    CALL(cuGraphExecBatchMemOpNodeSetParams, "null-params", (exec, node, NULL));
    CALL(cuGraphExecBatchMemOpNodeSetParams, "null-exec", (NULL, node, &params));
    params.ctx = NULL;
    CALL(cuGraphExecBatchMemOpNodeSetParams, "null-context", (exec, node, &params));
}

SCENARIO(generic, "graph_update/generic", par_context) {
    CUgraphNode set, copy, host, empty, record, allocation;
    CUgraphNodeParams params;
    CUdeviceptr p, q;
    p = par_alloc(4096);
    SETUP(cuMemsetD8_v2, (p, 0x11, 4096));
    CUevent event = par_event(CU_EVENT_DEFAULT);
    CUgraph graph = gb_graph();
    set = gb_set_node(graph, NULL, p, 0x22, 64);
    copy = gb_copy_node(graph, set, gb_copy(p + 64, p, 64));
    host = gb_host_node(graph, copy, count_up, &host_first);
    empty = gb_empty_node(graph, host);
    SETUP(cuGraphAddEventRecordNode, (&record, graph, &empty, 1, event));
    allocation = gb_alloc_node(graph, record, 4096, &q);
    gb_free_node(graph, allocation, q);
    CUgraphExec exec = gb_instantiate(graph);
    memset(&params, 0, sizeof(params));
    params.type = CU_GRAPH_NODE_TYPE_MEMSET;
    params.memset.dst = p;
    params.memset.value = 0x33;
    params.memset.elementSize = 1;
    params.memset.width = 64;
    params.memset.height = 1;
    params.memset.ctx = par.primary;
    CALL(cuGraphExecNodeSetParams, "memset", (exec, set, &params));
    CALL(cuGraphExecNodeSetParams, "memset-to-copy-node", (exec, copy, &params));
    CALL(cuGraphExecNodeSetParams, "memset-to-empty-node", (exec, empty, &params));
    params.memset.ctx = NULL;
    CALL(cuGraphExecNodeSetParams, "memset-null-context", (exec, set, &params));
    params.memset.ctx = par.primary;
    params.reserved2 = 1;
    CALL(cuGraphExecNodeSetParams, "reserved", (exec, set, &params));
    params.reserved2 = 0;
    params.reserved0[0] = 1;
    CALL(cuGraphExecNodeSetParams, "reserved0", (exec, set, &params));
    memset(&params, 0, sizeof(params));
    params.type = CU_GRAPH_NODE_TYPE_MEMCPY;
    params.memcpy.copyCtx = par.primary;
    params.memcpy.copyParams = gb_copy(p + 128, p, 64);
    CALL(cuGraphExecNodeSetParams, "memcpy", (exec, copy, &params));
    params.memcpy.flags = 1;
    CALL(cuGraphExecNodeSetParams, "memcpy-flags", (exec, copy, &params));
    memset(&params, 0, sizeof(params));
    params.type = CU_GRAPH_NODE_TYPE_HOST;
    params.host.fn = count_up;
    params.host.userData = &host_second;
    CALL(cuGraphExecNodeSetParams, "host", (exec, host, &params));
    memset(&params, 0, sizeof(params));
    params.type = CU_GRAPH_NODE_TYPE_EMPTY;
    CALL(cuGraphExecNodeSetParams, "empty", (exec, empty, &params));
    memset(&params, 0, sizeof(params));
    params.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD;
    params.eventRecord.event = event;
    CALL(cuGraphExecNodeSetParams, "event-record", (exec, record, &params));
    memset(&params, 0, sizeof(params));
    params.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
    params.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    params.alloc.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    params.alloc.bytesize = 4096;
    CALL(cuGraphExecNodeSetParams, "alloc", (exec, allocation, &params));
    params.type = (CUgraphNodeType)99;
    CALL(cuGraphExecNodeSetParams, "bad-type", (exec, set, &params));
    CALL(cuGraphExecNodeSetParams, "null-params", (exec, set, NULL));
    CALL(cuGraphExecNodeSetParams, "null-node", (exec, NULL, &params));
    CALL(cuGraphExecNodeSetParams, "null-exec", (NULL, set, &params));
    CALL(cuGraphLaunch, "ok", (exec, NULL));
    CALL(cuCtxSynchronize, "ok", ());
    gb_show("set", p);
    gb_show("copied", p + 128);
    par_see("calls", "first=%d second=%d", host_first, host_second);
}

static void enabled_try(const char *what, CUgraphExec exec, CUgraphNode node) {
    unsigned on;
    par_note("%s", what);
    CALLO(cuGraphNodeGetEnabled, "type", (exec, node, &on), OUT_U(on));
    par_note("%s", what);
    CALL(cuGraphNodeSetEnabled, "type-off", (exec, node, 0));
    par_note("%s", what);
    CALLO(cuGraphNodeGetEnabled, "type-off", (exec, node, &on), OUT_U(on));
    par_note("%s", what);
    CALL(cuGraphNodeSetEnabled, "type-on", (exec, node, 1));
}

SCENARIO(enabled, "graph_update/enabled", par_context) {
    CUgraphNode set, copy, host, empty, record, inner, allocation, release, foreign;
    CUdeviceptr p, q;
    unsigned on;
    p = par_alloc(4096);
    CUevent event = par_event(CU_EVENT_DEFAULT);
    CUgraph graph = gb_graph();
    set = gb_set_node(graph, NULL, p, 0x22, 4);
    copy = gb_copy_node(graph, set, gb_copy(p + 4, p, 4));
    CUgraphExec exec = gb_instantiate(graph);
    SETUP(cuMemsetD8_v2, (p, 0x11, 4096));
    CALL(cuGraphNodeSetEnabled, "off", (exec, set, 0));
    CALLO(cuGraphNodeGetEnabled, "off", (exec, set, &on), OUT_U(on));
    CALLO(cuGraphNodeGetEnabled, "other-node", (exec, copy, &on), OUT_U(on));
    CALL(cuGraphLaunch, "set-off", (exec, NULL));
    gb_show("set-off", p);
    gb_show("copied", p + 4);
    CALL(cuGraphNodeSetEnabled, "on", (exec, set, 7));
    CALLO(cuGraphNodeGetEnabled, "on", (exec, set, &on), OUT_U(on));
    CALL(cuGraphLaunch, "set-on", (exec, NULL));
    gb_show("set-on", p);
    CALL(cuGraphNodeSetEnabled, "null-exec", (NULL, set, 0));
    CALL(cuGraphNodeSetEnabled, "null-node", (exec, NULL, 0));
    CALLO(cuGraphNodeGetEnabled, "null-exec", (NULL, set, &on), OUT_U(on));
    CALLO(cuGraphNodeGetEnabled, "null-node", (exec, NULL, &on), OUT_U(on));
    CALL(cuGraphNodeGetEnabled, "null-out", (exec, set, NULL));
    CUgraph child = gb_graph();
    foreign = gb_set_node(child, NULL, p, 1, 4);
    CALL(cuGraphNodeSetEnabled, "of-other-graph", (exec, foreign, 0));
    CALLO(cuGraphNodeGetEnabled, "of-other-graph", (exec, foreign, &on), OUT_U(on));
    graph = gb_graph();
    host = gb_host_node(graph, NULL, count_up, &host_first);
    empty = gb_empty_node(graph, NULL);
    SETUP(cuGraphAddEventRecordNode, (&record, graph, NULL, 0, event));
    SETUP(cuGraphAddChildGraphNode, (&inner, graph, NULL, 0, child));
    allocation = gb_alloc_node(graph, NULL, 4096, &q);
    release = gb_free_node(graph, allocation, q);
    exec = gb_instantiate(graph);
    enabled_try("host", exec, host);
    enabled_try("empty", exec, empty);
    enabled_try("event-record", exec, record);
    enabled_try("child", exec, inner);
    enabled_try("alloc", exec, allocation);
    enabled_try("free", exec, release);
    SETUP(cuCtxSetCurrent, (NULL));
    CALL(cuGraphNodeSetEnabled, "no-context", (exec, host, 0));
}

/* Enabling survives an update, or not. */
SCENARIO(enabled_and_updated, "graph_update/enabled_and_updated", par_context) {
    CUgraphExecUpdateResultInfo info;
    unsigned on;
    CUdeviceptr p = par_alloc(4096);
    SETUP(cuMemsetD8_v2, (p, 0x11, 4096));
    CUgraph graph = gb_graph();
    CUgraphNode set = gb_set_node(graph, NULL, p, 0x22, 4);
    CUgraphExec exec = gb_instantiate(graph);
    SETUP(cuGraphNodeSetEnabled, (exec, set, 0));
    CUDA_MEMSET_NODE_PARAMS params = gb_set(p, 0x33, 1, 4);
    CALL(cuGraphExecMemsetNodeSetParams, "off", (exec, set, &params, par.primary));
    CALLO(cuGraphNodeGetEnabled, "after-set-params", (exec, set, &on), OUT_U(on));
    CALL(cuGraphLaunch, "ok", (exec, NULL));
    gb_show("set-params", p);
    CUgraph other = gb_graph();
    gb_set_node(other, NULL, p, 0x44, 4);
    CALLO(cuGraphExecUpdate_v2, "off", (exec, other, &info), OUT_U(info.result));
    CALLO(cuGraphNodeGetEnabled, "after-update", (exec, set, &on), OUT_U(on));
    CALL(cuGraphLaunch, "ok", (exec, NULL));
    gb_show("update", p);
}

static CUgraph pair(CUdeviceptr p, unsigned value) {
    CUgraph graph = gb_graph();
    CUgraphNode node = gb_set_node(graph, NULL, p, value, 64);
    gb_copy_node(graph, node, gb_copy(p + 64, p, 64));
    return graph;
}

static CUgraphNode nth(CUgraph graph, size_t n) {
    CUgraphNode nodes[8];
    size_t count = 8;
    SETUP(cuGraphGetNodes, (graph, nodes, &count));
    return nodes[n];
}

SCENARIO(whole, "graph_update/whole", par_context) {
    CUgraph graph, other;
    CUgraphNode node, more, error;
    CUgraphExecUpdateResult result;
    CUgraphExecUpdateResultInfo info;
    CUdeviceptr p = par_alloc(4096);
    CUdeviceptr q = par_alloc(4096);
    graph = pair(p, 0x22);
    CUgraphExec exec = gb_instantiate(graph);
#define UPDATE(cls)                                                                                \
    CALLO(cuGraphExecUpdate_v2, cls, (exec, other, &info), OUT_U(info.result),                     \
          OUT_H(info.errorNode), OUT_H(info.errorFromNode))
    other = graph;
    UPDATE("same-graph");
    other = pair(q, 0x33);
    UPDATE("values");
    CALL(cuGraphLaunch, "values", (exec, NULL));
    gb_show("values", q + 64);
    other = pair(q, 0x44);
    CALLO(cuGraphExecUpdate, "values", (exec, other, &error, &result), OUT_H(error), OUT_U(result));
    CALL(cuGraphLaunch, "values", (exec, NULL));
    gb_show("values", q + 64);
    other = gb_graph();
    UPDATE("no-nodes");
    gb_set_node(other, NULL, p, 0x22, 64);
    UPDATE("fewer-nodes");
    other = pair(p, 0x22);
    gb_empty_node(other, NULL);
    UPDATE("more-nodes");
    other = gb_graph();
    node = gb_set_node(other, NULL, p, 0x22, 64);
    more = gb_copy_node(other, NULL, gb_copy(p + 64, p, 64));
    NAME(node);
    NAME(more);
    UPDATE("no-edge");
    CALLO(cuGraphExecUpdate, "no-edge", (exec, other, &error, &result), OUT_H(error),
          OUT_U(result));
    other = gb_graph();
    node = gb_copy_node(other, NULL, gb_copy(p + 64, p, 64));
    more = gb_set_node(other, node, p, 0x22, 64);
    NAME(node);
    NAME(more);
    UPDATE("types-in-other-order");
    other = gb_graph();
    node = gb_empty_node(other, NULL);
    more = gb_copy_node(other, node, gb_copy(p + 64, p, 64));
    NAME(node);
    NAME(more);
    UPDATE("type-changed");
    other = gb_graph();
    node = gb_set_node(other, NULL, p, 0x22, 128);
    more = gb_copy_node(other, node, gb_copy(p + 64, p, 64));
    NAME(node);
    NAME(more);
    UPDATE("memset-wider");
    other = gb_graph();
    CUDA_MEMSET_NODE_PARAMS params = gb_set(p, 0x22, 1, 16);
    params.height = 2;
    params.pitch = 32;
    SETUP(cuGraphAddMemsetNode, (&node, other, NULL, 0, &params, par.primary));
    more = gb_copy_node(other, node, gb_copy(p + 64, p, 64));
    NAME(node);
    UPDATE("memset-rows");
    other = gb_graph();
    node = gb_set_node(other, NULL, p, 0x22, 64);
    more = gb_copy_node(other, node, gb_copy(p + 64, p, 128));
    NAME(more);
    UPDATE("memcpy-longer");
    other = gb_graph();
    node = gb_set_node(other, NULL, p, 0x22, 64);
    more = gb_copy_node(other, node, gb_copy_to_host(par_pinned(4096), p, 64));
    NAME(more);
    UPDATE("memcpy-to-host");
    other = pair(p, 0x55);
    UPDATE("still-works");
    CALL(cuGraphLaunch, "still-works", (exec, NULL));
    gb_show("still-works", p + 64);
    node = nth(graph, 0);
    params = gb_set(p, 0x66, 1, 64);
    CALL(cuGraphExecMemsetNodeSetParams, "node-of-first-graph", (exec, node, &params, par.primary));
    node = nth(other, 0);
    CALL(cuGraphExecMemsetNodeSetParams, "node-of-updating-graph",
         (exec, node, &params, par.primary));
    CALLO(cuGraphExecUpdate_v2, "null-graph", (exec, NULL, &info), OUT_U(info.result),
          OUT_H(info.errorNode), OUT_H(info.errorFromNode));
    CALLO(cuGraphExecUpdate_v2, "null-exec", (NULL, other, &info), OUT_U(info.result),
          OUT_H(info.errorNode), OUT_H(info.errorFromNode));
    CALL(cuGraphExecUpdate_v2, "null-info", (exec, other, NULL));
    CALLO(cuGraphExecUpdate, "null-node-out", (exec, other, NULL, &result), OUT_U(result));
    CALLO(cuGraphExecUpdate, "null-result-out", (exec, other, &error, NULL), OUT_H(error));
    CALLO(cuGraphExecUpdate, "null-graph", (exec, NULL, &error, &result), OUT_H(error),
          OUT_U(result));
    SETUP(cuCtxSetCurrent, (NULL));
    UPDATE("no-context");
#undef UPDATE
}

static CUgraphNode empty_after(CUgraph graph, CUgraphNode one, CUgraphNode other) {
    const CUgraphNode both[] = {one, other};
    return PAR_MADE(CUgraphNode, cuGraphAddEmptyNode, graph, both, 2);
}

/* The same nodes with other edges, and edges in another order. */
SCENARIO(topology, "graph_update/topology", par_context) {
    CUgraph graph, other;
    CUgraphNode a, b, c, d;
    CUgraphExec exec;
    CUgraphExecUpdateResultInfo info;
#define UPDATE(cls)                                                                                \
    NAME(a);                                                                                       \
    NAME(b);                                                                                       \
    NAME(c);                                                                                       \
    NAME(d);                                                                                       \
    CALLO(cuGraphExecUpdate_v2, cls, (exec, other, &info), OUT_U(info.result),                     \
          OUT_H(info.errorNode), OUT_H(info.errorFromNode))
    graph = gb_graph();
    a = gb_empty_node(graph, NULL);
    b = gb_empty_node(graph, a);
    c = gb_empty_node(graph, a);
    d = empty_after(graph, b, c);
    exec = gb_instantiate(graph);
    other = gb_graph();
    a = gb_empty_node(other, NULL);
    b = gb_empty_node(other, a);
    c = gb_empty_node(other, b);
    d = gb_empty_node(other, c);
    UPDATE("chain-for-diamond");
    other = gb_graph();
    a = gb_empty_node(other, NULL);
    b = gb_empty_node(other, a);
    c = gb_empty_node(other, a);
    d = empty_after(other, c, b);
    UPDATE("edges-in-other-order");
    other = gb_graph();
    a = gb_empty_node(other, NULL);
    b = gb_empty_node(other, a);
    c = gb_empty_node(other, a);
    d = empty_after(other, a, c);
    UPDATE("edge-from-other-node");
    other = gb_graph();
    a = gb_empty_node(other, NULL);
    b = gb_empty_node(other, NULL);
    c = gb_empty_node(other, a);
    d = empty_after(other, b, c);
    UPDATE("second-root");
    other = gb_graph();
    a = gb_empty_node(other, NULL);
    b = gb_empty_node(other, a);
    c = gb_empty_node(other, a);
    d = gb_empty_node(other, b);
    UPDATE("more-exits");
#undef UPDATE
}

/* Types whose change an update may not like. */
SCENARIO(whole_types, "graph_update/whole_types", par_context) {
    CUgraph graph, other;
    CUgraphNode node;
    CUgraphExec exec;
    CUgraphExecUpdateResultInfo info;
    CUstreamBatchMemOpParams op;
    CUDA_BATCH_MEM_OP_NODE_PARAMS operations;
    CUgraphConditionalHandle condition;
    CUgraphNodeParams params;
    CUdeviceptr p = par_alloc(4096);
#define UPDATE(cls)                                                                                \
    CALLO(cuGraphExecUpdate_v2, cls, (exec, other, &info), OUT_U(info.result),                     \
          OUT_H(info.errorNode), OUT_H(info.errorFromNode))
    CUevent first = par_event(CU_EVENT_DEFAULT);
    CUevent second = par_event(CU_EVENT_DEFAULT);
    graph = gb_graph();
    SETUP(cuGraphAddEventRecordNode, (&node, graph, NULL, 0, first));
    exec = gb_instantiate(graph);
    other = gb_graph();
    SETUP(cuGraphAddEventRecordNode, (&node, other, NULL, 0, second));
    UPDATE("event-changed");
    CALL(cuGraphLaunch, "event-changed", (exec, NULL));
    graph = gb_graph();
    gb_host_node(graph, NULL, count_up, &host_first);
    exec = gb_instantiate(graph);
    other = gb_graph();
    gb_host_node(other, NULL, count_up, &host_second);
    UPDATE("host-data-changed");
    CALL(cuGraphLaunch, "host-data-changed", (exec, NULL));
    CALL(cuCtxSynchronize, "ok", ());
    par_see("calls", "first=%d second=%d", host_first, host_second);
    memset(&op, 0, sizeof(op));
    op.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    op.writeValue.address = p;
    op.writeValue.value = 1;
    memset(&operations, 0, sizeof(operations));
    operations.ctx = par.primary;
    operations.count = 1;
    operations.paramArray = &op;
    graph = gb_graph();
    SETUP(cuGraphAddBatchMemOpNode, (&node, graph, NULL, 0, &operations));
    exec = gb_instantiate(graph);
    op.writeValue.value = 2;
    other = gb_graph();
    SETUP(cuGraphAddBatchMemOpNode, (&node, other, NULL, 0, &operations));
    UPDATE("memory-operation-changed");
    for (unsigned value = 0; value < 2; value++) {
        CUgraph made = gb_graph();
        SETUP(cuGraphConditionalHandleCreate,
              (&condition, made, par.primary, value, CU_GRAPH_COND_ASSIGN_DEFAULT));
        memset(&params, 0, sizeof(params));
        params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
        params.conditional.handle = condition;
        params.conditional.type = CU_GRAPH_COND_TYPE_IF;
        params.conditional.size = 1;
        params.conditional.ctx = par.primary;
        SETUP(cuGraphAddNode_v2, (&node, made, NULL, NULL, 0, &params));
        gb_set_node(params.conditional.phGraph_out[0], NULL, p, 0x44 + value, 4);
        if (value == 0)
            exec = gb_instantiate(made);
        else
            other = made;
    }
    SETUP(cuMemsetD8_v2, (p, 0x11, 64));
    UPDATE("condition-default-changed");
    CALL(cuGraphLaunch, "condition-default-changed", (exec, NULL));
    gb_show("condition", p);
#undef UPDATE
}

/* The node, or its graph, is gone. */
SCENARIO(gone, "graph_update/gone", par_context) {
    CUdeviceptr p = par_alloc(4096);
    SETUP(cuMemsetD8_v2, (p, 0x11, 4096));
    CUgraph graph = gb_graph();
    CUgraphNode empty = gb_empty_node(graph, NULL);
    CUgraphNode node = gb_set_node(graph, NULL, p, 0x22, 4);
    CUgraphExec exec = gb_instantiate(graph);
    SETUP(cuGraphDestroyNode, (empty));
    CUDA_MEMSET_NODE_PARAMS params = gb_set(p, 0x33, 1, 4);
    CALL(cuGraphExecMemsetNodeSetParams, "other-node-removed", (exec, node, &params, par.primary));
    CALL(cuGraphLaunch, "other-node-removed", (exec, NULL));
    gb_show("other-node-removed", p);
    SETUP(cuGraphDestroyNode, (node));
    CALL(cuGraphExecMemsetNodeSetParams, "node-removed", (exec, node, &params, par.primary));
}

static const char ptx[] = ".version 7.0\n.target sm_50\n.address_size 64\n"
                          ".visible .entry first(.param .u32 a)\n{\nret;\n}\n"
                          ".visible .entry second(.param .u64 a, .param .u32 b)\n{\nret;\n}\n";

static CUDA_KERNEL_NODE_PARAMS kernel_params(CUfunction function, unsigned blocks, void **values) {
    CUDA_KERNEL_NODE_PARAMS params = {.func = function, .gridDimX = blocks};
    params.gridDimY = params.gridDimZ = 1;
    params.blockDimX = 32;
    params.blockDimY = params.blockDimZ = 1;
    params.kernelParams = values;
    return params;
}

/* Kernels as data: none is launched. */
SCENARIO(kernel_nodes, "graph_update/kernel_nodes", par_context) {
    CUfunction first, second;
    CUgraph graph, other;
    CUgraphNode node, empty;
    CUgraphExecUpdateResultInfo info;
    CUkernelNodeAttrValue value;
    uint64_t wide = 1;
    unsigned narrow = 2, on;
    void *one[] = {&narrow};
    void *two[] = {&wide, &narrow};
    CUmodule module = par_module(ptx);
    SETUP(cuModuleGetFunction, (&first, module, "first"));
    SETUP(cuModuleGetFunction, (&second, module, "second"));
    graph = gb_graph();
    CUDA_KERNEL_NODE_PARAMS params = kernel_params(first, 1, one);
    SETUP(cuGraphAddKernelNode_v2, (&node, graph, NULL, 0, &params));
    empty = gb_empty_node(graph, node);
    CUgraphExec exec = gb_instantiate(graph);
    CALLO(cuGraphNodeGetEnabled, "kernel", (exec, node, &on), OUT_U(on));
    CALL(cuGraphNodeSetEnabled, "kernel", (exec, node, 0));
    CALL(cuGraphLaunch, "kernel-off", (exec, NULL));
    CALL(cuCtxSynchronize, "kernel-off", ());
    params = kernel_params(first, 2, one);
    CALL(cuGraphExecKernelNodeSetParams_v2, "grid", (exec, node, &params));
    params = kernel_params(second, 1, two);
    CALL(cuGraphExecKernelNodeSetParams_v2, "function", (exec, node, &params));
    params = kernel_params(second, 0, two);
    CALL(cuGraphExecKernelNodeSetParams_v2, "no-blocks", (exec, node, &params));
    params = kernel_params(NULL, 1, two);
    CALL(cuGraphExecKernelNodeSetParams_v2, "null-function", (exec, node, &params));
    params = kernel_params(second, 1, NULL);
    CALL(cuGraphExecKernelNodeSetParams_v2, "null-arguments", (exec, node, &params));
    params = kernel_params(second, 1, two);
    params.sharedMemBytes = 1 << 30;
    CALL(cuGraphExecKernelNodeSetParams_v2, "shared-memory", (exec, node, &params));
    params = kernel_params(first, 1, one);
    CALL(cuGraphExecKernelNodeSetParams_v2, "other-type", (exec, empty, &params));
    CALL(cuGraphExecKernelNodeSetParams_v2, "null-node", (exec, NULL, &params));
    CALL(cuGraphExecKernelNodeSetParams_v2, "null-exec", (NULL, node, &params));
    CALL(cuGraphExecKernelNodeSetParams_v2, "null-params", (exec, node, NULL));
    CALL(cuGraphExecKernelNodeSetParams, "ok",
         (exec, node, (const CUDA_KERNEL_NODE_PARAMS_v1 *)(const void *)&params));
    CALL(cuGraphExecKernelNodeSetParams, "null-params", (exec, node, NULL));
#define UPDATE(cls)                                                                                \
    CALLO(cuGraphExecUpdate_v2, cls, (exec, other, &info), OUT_U(info.result),                     \
          OUT_H(info.errorNode), OUT_H(info.errorFromNode))
    other = gb_graph();
    params = kernel_params(second, 3, two);
    SETUP(cuGraphAddKernelNode_v2, (&node, other, NULL, 0, &params));
    gb_empty_node(other, node);
    NAME(node);
    UPDATE("kernel-function-changed");
    other = gb_graph();
    SETUP(cuGraphAddKernelNode_v2, (&node, other, NULL, 0, &params));
    gb_empty_node(other, node);
    NAME(node);
    memset(&value, 0, sizeof(value));
    value.priority = -1;
    CALL(cuGraphKernelNodeSetAttribute, "priority", (node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    UPDATE("kernel-priority-changed");
    memset(&value, 0, sizeof(value));
    value.cooperative = 1;
    CALL(cuGraphKernelNodeSetAttribute, "cooperative",
         (node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
    UPDATE("kernel-cooperative-changed");
    graph = gb_graph();
    params = kernel_params(first, 1, one);
    SETUP(cuGraphAddKernelNode_v2, (&node, graph, NULL, 0, &params));
    SETUP(cuGraphInstantiateWithFlags,
          (&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY));
    other = gb_graph();
    SETUP(cuGraphAddKernelNode_v2, (&node, other, NULL, 0, &params));
    NAME(node);
    memset(&value, 0, sizeof(value));
    value.priority = -1;
    SETUP(cuGraphKernelNodeSetAttribute, (node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    UPDATE("priorities-kept-and-changed");
#undef UPDATE
}

/* A copy of rows: which of its measures may change? */
SCENARIO(copy_rows, "graph_update/copy_rows", par_context) {
    CUdeviceptr p = par_alloc(65536);
    CUdeviceptr q = par_alloc(65536);
    CUDA_MEMCPY3D first = gb_copy(p, q, 16);
    first.srcPitch = first.dstPitch = 64;
    first.Height = 4;
    CUgraph graph = gb_graph();
    CUgraphNode node = gb_copy_node(graph, NULL, first);
    CUgraphExec exec = gb_instantiate(graph);
    CUDA_MEMCPY3D params = first;
    params.WidthInBytes = 32;
    CALL(cuGraphExecMemcpyNodeSetParams, "rows-width", (exec, node, &params, par.primary));
    params = first;
    params.Height = 8;
    CALL(cuGraphExecMemcpyNodeSetParams, "rows-height", (exec, node, &params, par.primary));
    params = first;
    params.dstPitch = 128;
    CALL(cuGraphExecMemcpyNodeSetParams, "rows-pitch", (exec, node, &params, par.primary));
    params = first;
    params.srcXInBytes = 16;
    CALL(cuGraphExecMemcpyNodeSetParams, "rows-offset", (exec, node, &params, par.primary));
    params = first;
    params.Depth = 2;
    params.srcHeight = params.dstHeight = 4;
    CALL(cuGraphExecMemcpyNodeSetParams, "rows-to-layers", (exec, node, &params, par.primary));
    params = gb_copy(p, q, 16);
    CALL(cuGraphExecMemcpyNodeSetParams, "rows-to-one", (exec, node, &params, par.primary));
    CALL(cuGraphLaunch, "ok", (exec, NULL));
    CALL(cuCtxSynchronize, "ok", ());
}
