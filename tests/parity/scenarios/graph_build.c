/* Graphs: made, filled with nodes and edges, asked, cloned, embedded, emptied. Nothing runs. */
#include "../parity.h"
#include "graph_names.h"

#define MOST 8

/* Lists are filled with ones before, so that what was not written shows. */
static CUgraphNode listed[MOST], listed_to[MOST];

static void clear_lists(void) {
    memset(listed, 0, sizeof(listed));
    memset(listed_to, 0, sizeof(listed_to));
}

#define FOUR(l) OUT_H(l[0]), OUT_H(l[1]), OUT_H(l[2]), OUT_H(l[3])

static void show_nodes(const char *cls, CUgraph g) {
    size_t count = 4;
    clear_lists();
    CALLO(cuGraphGetNodes, cls, (g, listed, &count), IO_U(count), FOUR(listed));
}

static void show_edges(const char *cls, CUgraph g) {
    size_t count = 4;
    clear_lists();
    CALLO(cuGraphGetEdges, cls, (g, listed, listed_to, &count), IO_U(count), FOUR(listed),
          FOUR(listed_to));
}

static void host_work(void *data) {
}

/* ---- Graphs --------------------------------------------------------------------------------- */

SCENARIO(creates, "graph/create", par_context) {
    static const unsigned flags[] = {0, 1, 2, 0x80000000u, ~0u};
    CUgraph g;
    for (size_t i = 0; i < COUNT(flags); i++) {
        par_note("flags=0x%x", flags[i]);
        CALLO(cuGraphCreate, flags[i] ? "bad-flags" : "ok", (&g, flags[i]), OUT_H(g));
        if (par_last() == CUDA_SUCCESS) {
            CALL(cuGraphDestroy, "fresh", (g));
            FORGET(g);
        }
    }
    CALL(cuGraphCreate, "null-out", (NULL, 0));
    CALL(cuGraphCreate, "null-out-bad-flags", (NULL, 1));
    CALL(cuGraphDestroy, "null", (NULL));
    CALL(cuGraphDestroyNode, "null", (NULL));
    CALLO(cuGraphClone, "null", (&g, NULL), OUT_H(g));
}

SCENARIO(without_context, "graph/create-no-context", par_init) {
    CUgraph g, copy;
    CUgraphNode node;
    CUgraphNodeType type;
    size_t count;
    CUDA_HOST_NODE_PARAMS host = {host_work, NULL};
    CALLO(cuGraphCreate, "no-context", (&g, 0), OUT_H(g));
    CALLO(cuGraphAddEmptyNode, "no-context", (&node, g, NULL, 0), OUT_H(node));
    CALLO(cuGraphNodeGetType, "no-context", (node, &type), OUT_I(type));
    CALLO(cuGraphAddHostNode, "no-context", (&node, g, NULL, 0, &host), OUT_H(node));
    CALLO(cuGraphGetNodes, "no-context", (g, NULL, &count), OUT_U(count));
    CALLO(cuGraphClone, "no-context", (&copy, g), OUT_H(copy));
    CALLO(cuGraphAddChildGraphNode, "no-context", (&node, g, NULL, 0, copy), OUT_H(node));
    CALL(cuGraphDestroyNode, "no-context", (node));
    CALL(cuGraphDestroy, "no-context", (copy));
    CALL(cuGraphDestroy, "no-context", (g));
}

SCENARIO(works_without_context, "graph/works-no-context", par_context) {
    CUgraph g;
    CUgraphNode node;
    CUgraphConditionalHandle handle;
    CUcontext primary;
    CUDA_BATCH_MEM_OP_NODE_PARAMS ops = {0};
    CUDA_MEM_ALLOC_NODE_PARAMS alloc = {0};
    CUgraphNodeParams any = {0};
    primary = par.primary;
    CUdeviceptr p = par_alloc(4096);
    SETUP(cuCtxSetCurrent, (NULL));
    g = new_graph("g");
    CUDA_MEMSET_NODE_PARAMS set = {.dst = p, .elementSize = 1, .width = 16, .height = 1};
    CUDA_MEMCPY3D copy = {FROM_DEVICE(p), TO_DEVICE(p + 1024), EXTENT_3D(16, 1, 1)};
    CALLO(cuGraphAddMemsetNode, "no-context", (&node, g, NULL, 0, &set, NULL), OUT_C(node));
    CALLO(cuGraphAddMemsetNode, "named-context", (&node, g, NULL, 0, &set, primary), OUT_C(node));
    CALLO(cuGraphAddMemcpyNode, "no-context", (&node, g, NULL, 0, &copy, NULL), OUT_C(node));
    CALLO(cuGraphAddMemcpyNode, "named-context", (&node, g, NULL, 0, &copy, primary), OUT_C(node));
    CALLO(cuGraphAddBatchMemOpNode, "no-context", (&node, g, NULL, 0, &ops), OUT_C(node));
    ops.ctx = primary;
    CALLO(cuGraphAddBatchMemOpNode, "named-context", (&node, g, NULL, 0, &ops), OUT_C(node));
    CALLO(cuGraphConditionalHandleCreate, "no-context", (&handle, g, NULL, 0, 0), OUT_C(handle));
    CALLO(cuGraphConditionalHandleCreate, "named-context", (&handle, g, primary, 0, 0),
          OUT_C(handle));
    any.type = CU_GRAPH_NODE_TYPE_MEMSET;
    any.memset.dst = p;
    any.memset.elementSize = 1;
    any.memset.width = 16;
    any.memset.height = 1;
    CALLO(cuGraphAddNode, "no-context", (&node, g, NULL, 0, &any), OUT_C(node));
    any.memset.ctx = primary;
    CALLO(cuGraphAddNode, "named-context", (&node, g, NULL, 0, &any), OUT_C(node));
    memset(&any, 0, sizeof(any));
    any.type = CU_GRAPH_NODE_TYPE_MEMCPY;
    any.memcpy.copyParams = copy;
    CALLO(cuGraphAddNode, "no-context", (&node, g, NULL, 0, &any), OUT_C(node));
    alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    alloc.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    alloc.bytesize = 4096;
    CALLO(cuGraphAddMemAllocNode, "no-context", (&node, g, NULL, 0, &alloc), OUT_C(node));
    CALL(cuGraphDestroy, "no-context", (g));
}

SCENARIO(in_destroyed_context, "graph/destroyed-context", par_init) {
    CUgraph g, old;
    CUgraphNode node, old_node;
    size_t count;
    CUDA_MEMSET_NODE_PARAMS set = {0}, out;
    CUcontext ctx = par_new_context();
    par_name((uint64_t)(uintptr_t)ctx, 0, "ctx");
    old = new_graph("old");
    set.dst = par_alloc(4096);
    set.elementSize = 1;
    set.width = 16;
    set.height = 1;
    NAME(set.dst);
    SETUP(cuGraphAddMemsetNode, (&old_node, old, NULL, 0, &set, ctx));
    SETUP(cuCtxPushCurrent_v2, (ctx));
    SETUP(cuCtxDestroy_v2, (ctx));
    CALLO(cuGraphCreate, "destroyed-context", (&g, 0), OUT_H(g));
    CALLO(cuGraphAddEmptyNode, "destroyed-context", (&node, old, NULL, 0), OUT_H(node));
    CALLO(cuGraphGetNodes, "destroyed-context", (old, NULL, &count), OUT_U(count));
    CALLO(cuGraphMemsetNodeGetParams, "of-destroyed-context", (old_node, &out), OUT_P(out.dst),
          OUT_U(out.width));
    CALLO(cuGraphClone, "of-destroyed-context", (&g, old), OUT_H(g));
    CALL(cuGraphMemsetNodeSetParams, "of-destroyed-context", (old_node, &set));
    CALLO(cuGraphAddMemsetNode, "destroyed-context", (&node, old, NULL, 0, &set, NULL),
          OUT_C(node));
    CALL(cuGraphDestroy, "of-destroyed-context", (old));
}

SCENARIO(add_to_destroyed_context, "graph/stale-context", par_context) {
    CUgraph g;
    CUgraphNode node;
    CUcontext ctx = par_new_context();
    SETUP(cuCtxDestroy_v2, (ctx));
    SETUP(cuCtxSetCurrent, (par.primary));
    g = new_graph("g");
    CUDA_MEMSET_NODE_PARAMS set = {
        .dst = par_alloc(4096), .elementSize = 1, .width = 16, .height = 1};
    CALLO(cuGraphAddMemsetNode, "stale-context", (&node, g, NULL, 0, &set, ctx), OUT_C(node));
}

SCENARIO(poisoned, "graph/poisoned", par_context) {
    CUgraph g, copy, old;
    CUgraphNode node, old_node;
    CUgraphNodeType type;
    CUuserObject object;
    CUevent event, got;
    CUgraphConditionalHandle handle;
    size_t count;
    CUDA_HOST_NODE_PARAMS host = {host_work, NULL}, host_out;
    CUDA_MEMSET_NODE_PARAMS set = {0};
    old = new_graph("old");
    old_node = empty(old, NULL, 0, "old_node");
    CUstream s = par_stream();
    CUdeviceptr p = par_alloc(4096);
    CUdeviceptr m = par_mapped(PAR_2M);
    SETUP(cuEventCreate, (&event, 0));
    NAME(event);
    par_hold(s);
    SETUP(cuMemsetD8Async, (m, 1, PAR_2M, s));
    SETUP(cuMemUnmap, (m, PAR_2M));
    PAR_DRAIN("faulted", s);
    CALLO(cuGraphCreate, "faulted", (&g, 0), OUT_H(g));
    CALLO(cuGraphAddEmptyNode, "faulted", (&node, old, NULL, 0), OUT_H(node));
    CALLO(cuGraphAddEmptyNode, "faulted", (&node, old, &old_node, 1), OUT_H(node));
    CALLO(cuGraphAddHostNode, "faulted", (&node, old, NULL, 0, &host), OUT_H(node));
    if (par_last() == CUDA_SUCCESS) {
        CALLO(cuGraphHostNodeGetParams, "faulted", (node, &host_out), OUT_C(host_out.fn));
        CALL(cuGraphHostNodeSetParams, "faulted", (node, &host));
    }
    CALLO(cuGraphAddEventRecordNode, "faulted", (&node, old, NULL, 0, event), OUT_H(node));
    if (par_last() == CUDA_SUCCESS) {
        CALLO(cuGraphEventRecordNodeGetEvent, "faulted", (node, &got), OUT_H(got));
        CALL(cuGraphEventRecordNodeSetEvent, "faulted", (node, event));
    }
    set.dst = p;
    set.elementSize = 1;
    set.width = 16;
    set.height = 1;
    CALLO(cuGraphAddMemsetNode, "faulted", (&node, old, NULL, 0, &set, par.primary), OUT_C(node));
    CALLO(cuGraphAddChildGraphNode, "faulted", (&node, old, NULL, 0, old), OUT_C(node));
    CALLO(cuGraphNodeGetType, "faulted", (old_node, &type), OUT_I(type));
    CALLO(cuGraphGetNodes, "faulted", (old, NULL, &count), OUT_U(count));
    CALLO(cuGraphGetRootNodes, "faulted", (old, NULL, &count), OUT_U(count));
    CALLO(cuGraphGetEdges, "faulted", (old, NULL, NULL, &count), OUT_U(count));
    CALLO(cuGraphNodeGetDependencies, "faulted", (old_node, NULL, &count), OUT_U(count));
    CALLO(cuGraphNodeGetDependentNodes, "faulted", (old_node, NULL, &count), OUT_U(count));
    CALLO(cuGraphClone, "faulted", (&copy, old), OUT_H(copy));
    CALLO(cuGraphConditionalHandleCreate, "faulted", (&handle, old, par.primary, 0, 0),
          OUT_C(handle));
    CALLO(cuUserObjectCreate, "faulted",
          (&object, NULL, host_work, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC), OUT_C(object));
    if (par_last() == CUDA_SUCCESS) {
        CALL(cuGraphRetainUserObject, "faulted", (old, object, 1, 0));
        CALL(cuGraphReleaseUserObject, "faulted", (old, object, 1));
        CALL(cuUserObjectRetain, "faulted", (object, 1));
        CALL(cuUserObjectRelease, "faulted", (object, 2));
    }
    CALL(cuGraphDestroyNode, "faulted", (old_node));
    CALL(cuGraphDestroy, "faulted", (old));
}

/* ---- Nodes and lists ------------------------------------------------------------------------ */

SCENARIO(dependencies_of_new_nodes, "graph/dependencies-of-new", par_context) {
    CUgraph g, other;
    CUgraphNode a, b, stranger, node, list[2];
    g = new_graph("g");
    other = new_graph("other");
    a = empty(g, NULL, 0, "a");
    b = empty(g, NULL, 0, "b");
    stranger = empty(other, NULL, 0, "stranger");
    CALLO(cuGraphAddEmptyNode, "null-graph", (&node, NULL, NULL, 0), OUT_H(node));
    CALL(cuGraphAddEmptyNode, "null-out", (NULL, g, NULL, 0));
    CALLO(cuGraphAddEmptyNode, "null-list", (&node, g, NULL, 1), OUT_H(node));
    CALLO(cuGraphAddEmptyNode, "zero-count", (&node, g, &a, 0), OUT_H(node));
    CALLO(cuGraphAddEmptyNode, "ok", (&node, g, &a, 1), OUT_H(node));
    list[0] = a;
    list[1] = a;
    CALLO(cuGraphAddEmptyNode, "duplicate", (&node, g, list, 2), OUT_H(node));
    list[1] = NULL;
    CALLO(cuGraphAddEmptyNode, "null-node", (&node, g, list, 2), OUT_H(node));
    list[1] = stranger;
    CALLO(cuGraphAddEmptyNode, "foreign-node", (&node, g, list, 2), OUT_H(node));
    list[1] = b;
    CALLO(cuGraphAddEmptyNode, "two", (&node, g, list, 2), OUT_H(node));
    show_nodes("after-refusals", g);
    show_edges("after-refusals", g);
    CALLO(cuGraphAddEmptyNode, "count-huge", (&node, g, NULL, (size_t)1 << 60), OUT_H(node));
}

SCENARIO(lists, "graph/lists", par_context) {
    CUgraph g;
    CUgraphNode a, b, c, list[2];
    g = new_graph("g");
    size_t count = 4;
    CALLO(cuGraphGetNodes, "empty-graph", (g, NULL, &count), OUT_U(count));
    show_nodes("empty-graph", g);
    show_edges("empty-graph", g);
    a = empty(g, NULL, 0, "a");
    b = empty(g, &a, 1, "b");
    list[0] = b;
    list[1] = a;
    c = empty(g, list, 2, "c");
    empty(g, NULL, 0, "d");
    for (size_t room = 0; room <= 6; room++) {
        count = room;
        clear_lists();
        par_note("room=%zu", room);
        CALLO(cuGraphGetNodes, "room", (g, listed, &count), IO_U(count), FOUR(listed),
              OUT_H(listed[4]), OUT_H(listed[5]));
        count = room;
        par_note("room=%zu", room);
        CALLO(cuGraphGetRootNodes, "room", (g, listed, &count), IO_U(count), FOUR(listed));
        count = room;
        par_note("room=%zu", room);
        CALLO(cuGraphGetEdges, "room", (g, listed, listed_to, &count), IO_U(count), FOUR(listed),
              FOUR(listed_to));
        count = room;
        par_note("room=%zu", room);
        CALLO(cuGraphNodeGetDependencies, "room", (c, listed, &count), IO_U(count), FOUR(listed));
        count = room;
        par_note("room=%zu", room);
        CALLO(cuGraphNodeGetDependentNodes, "room", (a, listed, &count), IO_U(count), FOUR(listed));
    }
    CALLO(cuGraphGetNodes, "null-list", (g, NULL, &count), OUT_U(count));
    CALLO(cuGraphGetRootNodes, "null-list", (g, NULL, &count), OUT_U(count));
    CALLO(cuGraphGetEdges, "null-list", (g, NULL, NULL, &count), OUT_U(count));
    CALLO(cuGraphGetEdges, "null-from", (g, NULL, listed_to, &count), IO_U(count));
    CALLO(cuGraphGetEdges, "null-to", (g, listed, NULL, &count), IO_U(count));
    CALLO(cuGraphNodeGetDependencies, "null-list", (c, NULL, &count), OUT_U(count));
    CALLO(cuGraphNodeGetDependentNodes, "null-list", (a, NULL, &count), OUT_U(count));
    CALLO(cuGraphNodeGetDependencies, "root", (a, NULL, &count), OUT_U(count));
    CALLO(cuGraphNodeGetDependentNodes, "leaf", (c, NULL, &count), OUT_U(count));
    CALLO(cuGraphGetNodes, "null-graph", (NULL, NULL, &count), OUT_U(count));
    CALLO(cuGraphGetRootNodes, "null-graph", (NULL, NULL, &count), OUT_U(count));
    CALLO(cuGraphGetEdges, "null-graph", (NULL, NULL, NULL, &count), OUT_U(count));
    CALLO(cuGraphGetEdges_v2, "null-graph", (NULL, NULL, NULL, NULL, &count), OUT_U(count));
    CALLO(cuGraphNodeGetDependencies, "null-node", (NULL, NULL, &count), OUT_U(count));
    CALLO(cuGraphNodeGetDependentNodes, "null-node", (NULL, NULL, &count), OUT_U(count));
    CALL(cuGraphGetNodes, "null-count", (g, NULL, NULL));
    CALL(cuGraphGetRootNodes, "null-count", (g, NULL, NULL));
    CALL(cuGraphGetEdges, "null-count", (g, NULL, NULL, NULL));
    CALL(cuGraphNodeGetDependencies, "null-count", (a, NULL, NULL));
    CALL(cuGraphNodeGetDependentNodes, "null-count", (a, NULL, NULL));
    CALL(cuGraphNodeGetType, "null-out", (a, NULL));
}

SCENARIO(lists_in_order, "graph/lists-in-order", par_context) {
    CUgraph g;
    CUgraphNode a, b, c, d, from[3], to[3];
    size_t count = 4;
    g = new_graph("g");
    a = empty(g, NULL, 0, "a");
    b = empty(g, NULL, 0, "b");
    c = empty(g, NULL, 0, "c");
    d = empty(g, NULL, 0, "d");
    from[0] = c, to[0] = d;
    from[1] = a, to[1] = d;
    from[2] = b, to[2] = d;
    CALL(cuGraphAddDependencies, "ok", (g, from, to, 3));
    clear_lists();
    CALLO(cuGraphNodeGetDependencies, "order", (d, listed, &count), IO_U(count), FOUR(listed));
    show_edges("order", g);
    CALL(cuGraphRemoveDependencies, "middle", (g, &from[1], &to[1], 1));
    CALL(cuGraphAddDependencies, "again", (g, &from[1], &to[1], 1));
    show_edges("order-after-removal", g);
    count = 4;
    clear_lists();
    CALLO(cuGraphGetRootNodes, "order", (g, listed, &count), IO_U(count), FOUR(listed));
    CALL(cuGraphDestroyNode, "middle", (b));
    FORGET(b);
    show_nodes("node-destroyed", g);
    show_edges("node-destroyed", g);
}

/* ---- Edges ---------------------------------------------------------------------------------- */

SCENARIO(dependencies, "graph/dependencies", par_context) {
    CUgraph g, other;
    CUgraphNode a, b, c, stranger, from[3], to[3];
    g = new_graph("g");
    other = new_graph("other");
    a = empty(g, NULL, 0, "a");
    b = empty(g, NULL, 0, "b");
    c = empty(g, NULL, 0, "c");
    stranger = empty(other, NULL, 0, "stranger");
    CALL(cuGraphAddDependencies, "zero-count", (g, NULL, NULL, 0));
    CALL(cuGraphAddDependencies, "null-lists", (g, NULL, NULL, 1));
    CALL(cuGraphAddDependencies, "null-from", (g, NULL, &b, 1));
    CALL(cuGraphAddDependencies, "null-to", (g, &a, NULL, 1));
    CALL(cuGraphAddDependencies, "null-graph", (NULL, &a, &b, 1));
    CALL(cuGraphAddDependencies, "null-graph-zero-count", (NULL, NULL, NULL, 0));
    from[0] = NULL, to[0] = b;
    CALL(cuGraphAddDependencies, "null-node", (g, from, to, 1));
    from[0] = a, to[0] = NULL;
    CALL(cuGraphAddDependencies, "null-node", (g, from, to, 1));
    from[0] = stranger, to[0] = b;
    CALL(cuGraphAddDependencies, "foreign-node", (g, from, to, 1));
    from[0] = a, to[0] = stranger;
    CALL(cuGraphAddDependencies, "foreign-node", (g, from, to, 1));
    CALL(cuGraphAddDependencies, "wrong-graph", (other, &a, &b, 1));
    CALL(cuGraphAddDependencies, "ok", (g, &a, &b, 1));
    CALL(cuGraphAddDependencies, "existing", (g, &a, &b, 1));
    show_edges("after-existing", g);
    from[0] = b, to[0] = c;
    from[1] = a, to[1] = b;
    from[2] = a, to[2] = c;
    CALL(cuGraphAddDependencies, "second-existing", (g, from, to, 3));
    show_edges("after-second-existing", g);
    from[0] = a, to[0] = c;
    from[1] = a, to[1] = c;
    CALL(cuGraphAddDependencies, "duplicate-in-call", (g, from, to, 2));
    show_edges("after-duplicate-in-call", g);
    CALL(cuGraphRemoveDependencies, "zero-count", (g, NULL, NULL, 0));
    CALL(cuGraphRemoveDependencies, "null-lists", (g, NULL, NULL, 1));
    CALL(cuGraphRemoveDependencies, "not-existing", (g, &c, &a, 1));
    CALL(cuGraphRemoveDependencies, "backwards", (g, &b, &a, 1));
    CALL(cuGraphRemoveDependencies, "foreign-node", (g, &stranger, &b, 1));
    CALL(cuGraphRemoveDependencies, "wrong-graph", (other, &a, &b, 1));
    CALL(cuGraphRemoveDependencies, "null-graph", (NULL, &a, &b, 1));
    from[0] = a, to[0] = b;
    from[1] = c, to[1] = a;
    CALL(cuGraphRemoveDependencies, "second-not-existing", (g, from, to, 2));
    show_edges("after-second-not-existing", g);
    CALL(cuGraphAddDependencies, "again", (g, &a, &b, 1));
    from[1] = a, to[1] = b;
    CALL(cuGraphRemoveDependencies, "duplicate-in-call", (g, from, to, 2));
    show_edges("after-duplicate-removal", g);
}

SCENARIO(self_edge, "graph/self-edge", par_context) {
    CUgraph g;
    CUgraphNode a;
    CUgraphExec exec;
    g = new_graph("g");
    a = empty(g, NULL, 0, "a");
    CALL(cuGraphAddDependencies, "self", (g, &a, &a, 1));
    show_edges("after-self", g);
    CALLO(cuGraphInstantiateWithFlags, "self", (&exec, g, 0), OUT_C(exec));
}

SCENARIO(cycles, "graph/cycles", par_context) {
    CUgraph g, copy;
    CUgraphNode a, b, c, d;
    CUgraphExec exec;
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {0};
    size_t count;
    g = new_graph("g");
    a = empty(g, NULL, 0, "a");
    b = empty(g, &a, 1, "b");
    c = empty(g, &b, 1, "c");
    CALL(cuGraphAddDependencies, "cycle-of-two", (g, &b, &a, 1));
    show_edges("after-cycle-of-two", g);
    CALL(cuGraphAddDependencies, "cycle-of-three", (g, &c, &a, 1));
    show_edges("after-cycle-of-three", g);
    CALLO(cuGraphGetRootNodes, "cycle", (g, NULL, &count), OUT_U(count));
    CALLO(cuGraphAddEmptyNode, "cycle", (&d, g, &c, 1), OUT_C(d));
    CALLO(cuGraphClone, "cycle", (&copy, g), OUT_C(copy));
    CALLO(cuGraphInstantiateWithFlags, "cycle", (&exec, g, 0), OUT_C(exec));
    CALLO(cuGraphInstantiateWithParams, "cycle", (&exec, g, &params), OUT_C(exec),
          OUT_I(params.result_out), OUT_H(params.hErrNode_out));
    CALL(cuGraphRemoveDependencies, "cycle", (g, &c, &a, 1));
    CALL(cuGraphDestroy, "cycle", (g));
}

static const char kernels[] = ".version 7.0\n.target sm_52\n.address_size 64\n"
                              ".visible .entry nothing()\n{\n    ret;\n}\n";

static CUfunction nothing(void) {
    CUmodule module = par_module(kernels);
    CUfunction f = PAR_MADE(CUfunction, cuModuleGetFunction, module, "nothing");
    par_name((uint64_t)(uintptr_t)f, 0, "nothing");
    return f;
}

static CUgraphNode kernel(CUgraph g, CUfunction f, const char *name) {
    CUDA_KERNEL_NODE_PARAMS params = {.func = f};
    params.gridDimX = params.gridDimY = params.gridDimZ = 1;
    params.blockDimX = params.blockDimY = params.blockDimZ = 1;
    CUgraphNode node = PAR_MADE(CUgraphNode, cuGraphAddKernelNode_v2, g, NULL, 0, &params);
    par_name((uint64_t)(uintptr_t)node, 0, name);
    return node;
}

static void try_data(CUgraph g, const char *cls, CUgraphNode from, CUgraphNode to,
                     CUgraphEdgeData data) {
    par_note("from_port=%d to_port=%d type=%d reserved=%d", data.from_port, data.to_port, data.type,
             data.reserved[4]);
    CALL(cuGraphAddDependencies_v2, cls, (g, &from, &to, &data, 1));
    if (par_last() == CUDA_SUCCESS)
        SETUP(cuGraphRemoveDependencies_v2, (g, &from, &to, &data, 1));
}

SCENARIO(edge_data, "graph/edge-data", par_context) {
    CUgraph g;
    CUgraphNode k, l, e;
    CUfunction f = nothing();
    g = new_graph("g");
    k = kernel(g, f, "k");
    l = kernel(g, f, "l");
    e = empty(g, NULL, 0, "e");
    for (unsigned char port = 0; port <= 3; port++) {
        for (unsigned char type = 0; type <= 2; type++) {
            CUgraphEdgeData data = {port, 0, type, {0}};
            try_data(g, "kernel-kernel", k, l, data);
            try_data(g, "kernel-empty", k, e, data);
            try_data(g, "empty-kernel", e, k, data);
        }
    }
    try_data(g, "to-port", k, l, (CUgraphEdgeData){0, 1, 0, {0}});
    try_data(g, "to-port", k, l, (CUgraphEdgeData){1, 1, 1, {0}});
    try_data(g, "reserved", k, l, (CUgraphEdgeData){0, 0, 0, {0, 0, 0, 0, 1}});
}

SCENARIO(edge_data_queries, "graph/edge-data-queries", par_context) {
    const CUgraphEdgeData programmatic = {1, 0, 1, {0}}, order = {2, 0, 1, {0}}, plain = {0};
    CUgraphEdgeData data[4];
    CUgraph g;
    CUgraphNode k, l, m, node;
    CUgraphNodeParams params = {0};
    size_t count = 4;
    CUfunction f = nothing();
    g = new_graph("g");
    k = kernel(g, f, "k");
    l = kernel(g, f, "l");
    m = kernel(g, f, "m");
    CALL(cuGraphAddDependencies_v2, "programmatic", (g, &k, &l, &programmatic, 1));
    CALL(cuGraphAddDependencies_v2, "same-nodes-other-data", (g, &k, &l, &order, 1));
    CALL(cuGraphAddDependencies_v2, "same-nodes-plain", (g, &k, &l, &plain, 1));
    CALL(cuGraphAddDependencies_v2, "same-nodes-same-data", (g, &k, &l, &programmatic, 1));
    CALL(cuGraphAddDependencies_v2, "null-data", (g, &l, &m, NULL, 1));
    CALL(cuGraphAddDependencies, "same-nodes-no-data", (g, &k, &l, 1));
#define DATA(d) OUT_U((d).from_port), OUT_U((d).to_port), OUT_U((d).type)
    clear_lists();
    CALLO(cuGraphGetEdges_v2, "ok", (g, listed, listed_to, data, &count), IO_U(count), FOUR(listed),
          FOUR(listed_to), DATA(data[0]), DATA(data[1]), DATA(data[2]), DATA(data[3]));
    count = 4;
    CALLO(cuGraphGetEdges, "lossy", (g, listed, listed_to, &count), IO_U(count), FOUR(listed));
    CALLO(cuGraphGetEdges_v2, "lossy", (g, listed, listed_to, NULL, &count), IO_U(count));
    CALLO(cuGraphGetEdges_v2, "count-only", (g, NULL, NULL, NULL, &count), OUT_U(count));
    count = 4;
    CALLO(cuGraphGetEdges_v2, "data-only", (g, NULL, NULL, data, &count), IO_U(count));
    CALLO(cuGraphGetEdges, "count-only", (g, NULL, NULL, &count), OUT_U(count));
    count = 4;
    clear_lists();
    CALLO(cuGraphNodeGetDependencies_v2, "ok", (l, listed, data, &count), IO_U(count), FOUR(listed),
          DATA(data[0]), DATA(data[1]), DATA(data[2]));
    count = 4;
    CALLO(cuGraphNodeGetDependencies_v2, "lossy", (l, listed, NULL, &count), IO_U(count));
    CALLO(cuGraphNodeGetDependencies, "lossy", (l, listed, &count), IO_U(count));
    CALLO(cuGraphNodeGetDependencies, "count-only", (l, NULL, &count), OUT_U(count));
    CALLO(cuGraphNodeGetDependencies_v2, "data-only", (l, NULL, data, &count), IO_U(count));
    count = 4;
    clear_lists();
    CALLO(cuGraphNodeGetDependentNodes_v2, "ok", (k, listed, data, &count), IO_U(count),
          FOUR(listed), DATA(data[0]));
    count = 4;
    CALLO(cuGraphNodeGetDependentNodes_v2, "lossy", (k, listed, NULL, &count), IO_U(count));
    CALLO(cuGraphNodeGetDependentNodes, "lossy", (k, listed, &count), IO_U(count));
    CALLO(cuGraphNodeGetDependentNodes_v2, "plain-data", (l, listed, NULL, &count), IO_U(count));
    count = 4;
    clear_lists();
    memset(data, 0x5a, sizeof(data));
    CALLO(cuGraphNodeGetDependentNodes_v2, "room-left", (l, listed, data, &count), IO_U(count),
          FOUR(listed), DATA(data[0]), DATA(data[1]));
    CALL(cuGraphRemoveDependencies_v2, "other-data", (g, &k, &l, &order, 1));
    CALL(cuGraphRemoveDependencies_v2, "null-data", (g, &k, &l, NULL, 1));
    CALL(cuGraphRemoveDependencies, "of-edge-with-data", (g, &k, &l, 1));
    CALL(cuGraphRemoveDependencies_v2, "ok", (g, &k, &l, &programmatic, 1));
    CALL(cuGraphRemoveDependencies_v2, "again", (g, &k, &l, &programmatic, 1));
    CALLO(cuGraphGetEdges_v2, "count-after", (g, NULL, NULL, NULL, &count), OUT_U(count));
    params.type = CU_GRAPH_NODE_TYPE_EMPTY;
    CALLO(cuGraphAddNode_v2, "empty-after-programmatic", (&node, g, &k, &programmatic, 1, &params),
          OUT_C(node));
    CALLO(cuGraphAddNode_v2, "empty-plain-data", (&node, g, &k, &plain, 1, &params), OUT_C(node));
    CALLO(cuGraphAddNode_v2, "empty-null-data", (&node, g, &k, NULL, 1, &params), OUT_C(node));
    params.type = CU_GRAPH_NODE_TYPE_KERNEL;
    params.kernel.func = f;
    params.kernel.gridDimX = params.kernel.gridDimY = params.kernel.gridDimZ = 1;
    params.kernel.blockDimX = params.kernel.blockDimY = params.kernel.blockDimZ = 1;
    CALLO(cuGraphAddNode_v2, "kernel-after-programmatic", (&node, g, &k, &programmatic, 1, &params),
          OUT_C(node));
    {
        CUgraphNode twice[2] = {k, k};
        const CUgraphEdgeData both[2] = {programmatic, order};
        CALLO(cuGraphAddNode_v2, "twice-other-data", (&node, g, twice, both, 2, &params),
              OUT_C(node));
    }
}

/* ---- Destroying nodes ----------------------------------------------------------------------- */

SCENARIO(destroy_nodes, "graph/destroy-nodes", par_context) {
    CUgraph g;
    CUgraphNode a, b, c;
    size_t count = 4;
    g = new_graph("g");
    a = empty(g, NULL, 0, "a");
    b = empty(g, &a, 1, "b");
    c = empty(g, &b, 1, "c");
    CALL(cuGraphDestroyNode, "middle", (b));
    FORGET(b);
    show_nodes("after", g);
    show_edges("after", g);
    clear_lists();
    CALLO(cuGraphGetRootNodes, "after", (g, listed, &count), IO_U(count), FOUR(listed));
    CALLO(cuGraphNodeGetDependencies, "after", (c, NULL, &count), OUT_U(count));
    CALLO(cuGraphNodeGetDependentNodes, "after", (a, NULL, &count), OUT_U(count));
    CALL(cuGraphDestroyNode, "first", (a));
    CALL(cuGraphDestroyNode, "last", (c));
    CALLO(cuGraphGetNodes, "empty-again", (g, NULL, &count), OUT_U(count));
    CALL(cuGraphDestroy, "empty-again", (g));
}

/* ---- Clones --------------------------------------------------------------------------------- */

SCENARIO(clones, "graph/clones", par_context) {
    CUgraph g, copy, second, other;
    CUgraphNode a, b, later, found, stranger, in_copy;
    g = new_graph("g");
    a = empty(g, NULL, 0, "a");
    b = empty(g, &a, 1, "b");
    other = new_graph("other");
    stranger = empty(other, NULL, 0, "stranger");
    CALLO(cuGraphClone, "ok", (&copy, g), OUT_H(copy));
    CALL(cuGraphClone, "null-out", (NULL, g));
    CALLO(cuGraphNodeFindInClone, "ok", (&found, a, copy), OUT_H(found));
    in_copy = found;
    CALLO(cuGraphNodeFindInClone, "ok", (&found, b, copy), OUT_H(found));
    show_nodes("clone", copy);
    show_edges("clone", copy);
    CALLO(cuGraphNodeFindInClone, "foreign-node", (&found, stranger, copy), OUT_H(found));
    CALLO(cuGraphNodeFindInClone, "not-a-clone", (&found, a, other), OUT_H(found));
    CALLO(cuGraphNodeFindInClone, "original-graph", (&found, a, g), OUT_H(found));
    CALLO(cuGraphNodeFindInClone, "node-of-clone", (&found, in_copy, copy), OUT_H(found));
    CALLO(cuGraphNodeFindInClone, "node-of-clone", (&found, in_copy, g), OUT_H(found));
    CALL(cuGraphNodeFindInClone, "null-out", (NULL, a, copy));
    CALLO(cuGraphNodeFindInClone, "null-node", (&found, NULL, copy), OUT_H(found));
    CALLO(cuGraphNodeFindInClone, "null-graph", (&found, a, NULL), OUT_H(found));
    later = empty(g, NULL, 0, "later");
    CALLO(cuGraphNodeFindInClone, "added-later", (&found, later, copy), OUT_H(found));
    CALLO(cuGraphClone, "clone-of-clone", (&second, copy), OUT_H(second));
    CALLO(cuGraphNodeFindInClone, "clone-of-clone", (&found, in_copy, second), OUT_C(found));
    CALLO(cuGraphNodeFindInClone, "grandchild", (&found, a, second), OUT_C(found));
    CALL(cuGraphDestroyNode, "in-clone", (in_copy));
    CALLO(cuGraphNodeFindInClone, "removed-from-clone", (&found, a, copy), OUT_C(found));
    CALLO(cuGraphNodeFindInClone, "other-still-there", (&found, b, copy), OUT_C(found));
    CALL(cuGraphDestroy, "original", (g));
    CALL(cuGraphDestroy, "clone", (copy));
    CALLO(cuGraphGetNodes, "original-gone", (second, NULL, &(size_t){0}), OUT_C(found));
}

/* ---- Embedded graphs ------------------------------------------------------------------------ */

SCENARIO(children, "graph/children", par_context) {
    CUgraph g, child, embedded, again, copy, other;
    CUgraphNode node, a, in_child, found, deep;
    CUgraphNodeType type;
    size_t count;
    g = new_graph("g");
    child = new_graph("child");
    a = empty(child, NULL, 0, "a");
    CALLO(cuGraphAddChildGraphNode, "null-child", (&node, g, NULL, 0, NULL), OUT_H(node));
    CALLO(cuGraphAddChildGraphNode, "null-graph", (&node, NULL, NULL, 0, child), OUT_H(node));
    CALL(cuGraphAddChildGraphNode, "null-out", (NULL, g, NULL, 0, child));
    CALLO(cuGraphAddChildGraphNode, "ok", (&node, g, NULL, 0, child), OUT_H(node));
    CALLO(cuGraphNodeGetType, "child", (node, &type), OUT_I(type));
    CALLO(cuGraphChildGraphNodeGetGraph, "ok", (node, &embedded), OUT_H(embedded));
    CALLO(cuGraphChildGraphNodeGetGraph, "again", (node, &again), OUT_H(again));
    CALL(cuGraphChildGraphNodeGetGraph, "null-out", (node, NULL));
    CALLO(cuGraphChildGraphNodeGetGraph, "null-node", (NULL, &again), OUT_H(again));
    CALLO(cuGraphChildGraphNodeGetGraph, "wrong-type", (a, &again), OUT_H(again));
    CALLO(cuGraphNodeFindInClone, "in-embedded", (&in_child, a, embedded), OUT_H(in_child));
    CALLO(cuGraphGetNodes, "embedded", (embedded, NULL, &count), OUT_U(count));
    empty(child, NULL, 0, "later");
    CALLO(cuGraphGetNodes, "child-changed", (embedded, NULL, &count), OUT_U(count));
    empty(embedded, NULL, 0, "into_embedded");
    CALLO(cuGraphGetNodes, "embedded-changed", (embedded, NULL, &count), OUT_U(count));
    CALLO(cuGraphGetNodes, "outer", (g, NULL, &count), OUT_U(count));
    CALLO(cuGraphAddChildGraphNode, "itself", (&found, g, NULL, 0, g), OUT_H(found));
    CALLO(cuGraphAddChildGraphNode, "of-embedded", (&found, g, NULL, 0, embedded), OUT_H(found));
    CALLO(cuGraphAddChildGraphNode, "into-embedded", (&deep, embedded, NULL, 0, child),
          OUT_H(deep));
    CALLO(cuGraphAddChildGraphNode, "outer-into-embedded", (&deep, embedded, NULL, 0, g),
          OUT_H(deep));
    CALLO(cuGraphClone, "of-embedded", (&other, embedded), OUT_H(other));
    CALLO(cuGraphClone, "with-children", (&copy, g), OUT_H(copy));
    CALLO(cuGraphNodeFindInClone, "child-node", (&found, node, copy), OUT_H(found));
    CALLO(cuGraphNodeFindInClone, "inside-child", (&found, in_child, copy), OUT_H(found));
    CALL(cuGraphAddDependencies, "inside-and-outside", (g, &in_child, &node, 1));
    CALL(cuGraphDestroyNode, "with-child", (node));
    CALLO(cuGraphGetNodes, "copy-alive", (copy, NULL, &count), OUT_U(count));
}

SCENARIO(destroy_embedded, "graph/destroy-embedded", par_context) {
    CUgraph g, child, embedded;
    size_t count;
    g = new_graph("g");
    child = new_graph("child");
    CUgraphNode node = PAR_MADE(CUgraphNode, cuGraphAddChildGraphNode, g, NULL, 0, child);
    SETUP(cuGraphChildGraphNodeGetGraph, (node, &embedded));
    CALL(cuGraphDestroy, "embedded", (embedded));
    CALLO(cuGraphGetNodes, "embedded-destroyed", (embedded, NULL, &count), OUT_U(count));
}

static CUresult move(const char *cls, CUgraphNode *node, CUgraph g, CUgraph child, int ownership) {
    CUgraphNodeParams params = {0};
    params.type = CU_GRAPH_NODE_TYPE_GRAPH;
    params.graph.graph = child;
    params.graph.ownership = (CUgraphChildGraphNodeOwnership)ownership;
    par_note("ownership=%d", ownership);
    CALLO(cuGraphAddNode, cls, (node, g, NULL, 0, &params), OUT_C(*node));
    return par_last();
}

SCENARIO(moves, "graph/moves", par_context) {
    CUgraph g, child, embedded, copy, second;
    CUgraphNode node, other, a;
    size_t count;
    g = new_graph("g");
    child = new_graph("child");
    a = empty(child, NULL, 0, "a");
    second = new_graph("second");
    move("null-graph", &other, g, NULL, 1);
    move("bad-ownership", &other, g, child, 2);
    move("bad-ownership", &other, g, child, -1);
    move("clone", &other, g, child, 0);
    if (move("move", &node, g, child, 1) == CUDA_SUCCESS) {
        CALLO(cuGraphChildGraphNodeGetGraph, "moved", (node, &embedded), OUT_H(embedded));
        CALLO(cuGraphGetNodes, "moved", (child, NULL, &count), OUT_U(count));
        CALLO(cuGraphAddEmptyNode, "into-moved", (&other, child, &a, 1), OUT_C(other));
        move("moved-again", &other, second, child, 1);
        move("moved-cloned", &other, second, child, 0);
        CALLO(cuGraphAddChildGraphNode, "moved", (&other, second, NULL, 0, child), OUT_C(other));
        CALLO(cuGraphClone, "of-moved", (&copy, child), OUT_C(copy));
        CALLO(cuGraphClone, "with-moved", (&copy, g), OUT_C(copy));
        move("outer-into-moved", &other, child, g, 1);
        CALL(cuGraphDestroy, "moved", (child));
    }
    move("itself", &other, second, second, 1);
}

SCENARIO(move_with_memory, "graph/move-with-memory", par_context) {
    CUgraph g, child, copy;
    CUgraphNode node, alloc, other;
    g = new_graph("g");
    child = new_graph("child");
    CUDA_MEM_ALLOC_NODE_PARAMS params = {.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                         .poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE,
                                         .bytesize = 4096};
    SETUP(cuGraphAddMemAllocNode, (&alloc, child, NULL, 0, &params));
    move("with-alloc-clone", &other, g, child, 0);
    if (move("with-alloc-move", &node, g, child, 1) == CUDA_SUCCESS) {
        CALLO(cuGraphClone, "with-moved-alloc", (&copy, g), OUT_C(copy));
        CALLO(cuGraphAddMemFreeNode, "outside-of-child", (&other, g, NULL, 0, params.dptr),
              OUT_C(other));
        CALLO(cuGraphAddMemFreeNode, "in-child", (&other, child, &alloc, 1, params.dptr),
              OUT_C(other));
        CALLO(cuGraphAddMemAllocNode, "into-moved", (&other, child, NULL, 0, &params),
              OUT_C(other));
        CALL(cuGraphDestroyNode, "moved-child", (node));
    }
}

/* ---- Memory nodes restrict their graph ------------------------------------------------------ */

SCENARIO(memory_nodes, "graph/memory-nodes", par_context) {
    CUgraph g, copy, other, embedded;
    CUgraphNode alloc, freed, node, a, b;
    g = new_graph("g");
    other = new_graph("other");
    a = empty(g, NULL, 0, "a");
    b = empty(g, &a, 1, "b");
    CUDA_MEM_ALLOC_NODE_PARAMS params = {.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                         .poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE,
                                         .bytesize = 4096};
    CALLO(cuGraphAddMemAllocNode, "ok", (&alloc, g, NULL, 0, &params), OUT_H(alloc),
          OUT_C(params.dptr));
    CALLO(cuGraphClone, "with-alloc", (&copy, g), OUT_C(copy));
    CALLO(cuGraphAddChildGraphNode, "with-alloc", (&node, other, NULL, 0, g), OUT_C(node));
    CALL(cuGraphDestroyNode, "alloc", (alloc));
    CALL(cuGraphDestroyNode, "beside-alloc", (b));
    CALL(cuGraphRemoveDependencies, "beside-alloc", (g, &a, &b, 1));
    CALL(cuGraphAddDependencies, "beside-alloc", (g, &alloc, &a, 1));
    CALLO(cuGraphAddChildGraphNode, "into-graph-with-alloc", (&node, g, NULL, 0, other),
          OUT_C(node));
    CALLO(cuGraphAddMemFreeNode, "ok", (&freed, g, &alloc, 1, params.dptr), OUT_H(freed));
    CALLO(cuGraphAddMemFreeNode, "twice", (&node, g, &alloc, 1, params.dptr), OUT_C(node));
    CALLO(cuGraphAddMemFreeNode, "other-graph", (&node, other, NULL, 0, params.dptr), OUT_C(node));
    CALLO(cuGraphAddMemFreeNode, "inside", (&node, g, &alloc, 1, params.dptr + 256), OUT_C(node));
    CALLO(cuGraphAddMemFreeNode, "null", (&node, g, NULL, 0, 0), OUT_C(node));
    CALLO(cuGraphAddMemFreeNode, "not-graph-memory", (&node, g, NULL, 0, par_alloc(4096)),
          OUT_C(node));
    CALL(cuGraphDestroyNode, "free", (freed));
    SETUP(cuGraphDestroy, (other));
    other = new_graph("fresh");
    SETUP(cuGraphAddChildGraphNode, (&node, other, NULL, 0, new_graph("inner")));
    SETUP(cuGraphChildGraphNodeGetGraph, (node, &embedded));
    CALLO(cuGraphAddMemAllocNode, "into-embedded", (&node, embedded, NULL, 0, &params),
          OUT_C(node));
    CALLO(cuGraphAddMemFreeNode, "into-embedded", (&node, embedded, NULL, 0, params.dptr),
          OUT_C(node));
    CALL(cuGraphDestroy, "with-alloc", (g));
    CALLO(cuGraphAddMemFreeNode, "graph-gone", (&node, other, NULL, 0, params.dptr), OUT_C(node));
}

/* Free in another graph first, then in the owning one. */
SCENARIO(free_elsewhere, "graph/free-elsewhere", par_context) {
    CUgraph g, other, third, copy;
    CUgraphNode alloc, node;
    CUdeviceptr dptr;
    g = new_graph("g");
    other = new_graph("other");
    third = new_graph("third");
    CUDA_MEM_ALLOC_NODE_PARAMS params = {.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                         .poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE,
                                         .bytesize = 4096};
    SETUP(cuGraphAddMemAllocNode, (&alloc, g, NULL, 0, &params));
    NAME(params.dptr);
    CALLO(cuGraphAddMemFreeNode, "other-graph", (&node, other, NULL, 0, params.dptr), OUT_C(node));
    if (par_last() == CUDA_SUCCESS)
        CALLO(cuGraphMemFreeNodeGetParams, "ok", (node, &dptr), OUT_P(dptr));
    CALLO(cuGraphClone, "with-free", (&copy, other), OUT_C(copy));
    CALLO(cuGraphAddMemFreeNode, "other-graph-twice", (&node, other, NULL, 0, params.dptr),
          OUT_C(node));
    CALLO(cuGraphAddMemFreeNode, "third-graph", (&node, third, NULL, 0, params.dptr), OUT_C(node));
    CALLO(cuGraphAddMemFreeNode, "owning-graph-after", (&node, g, &alloc, 1, params.dptr),
          OUT_C(node));
}

/* Must a free come after its allocation? */
SCENARIO(free_order, "graph/free-order", par_context) {
    CUgraph g;
    CUgraphNode alloc, node;
    g = new_graph("g");
    CUDA_MEM_ALLOC_NODE_PARAMS params = {.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                         .poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE,
                                         .bytesize = 4096};
    SETUP(cuGraphAddMemAllocNode, (&alloc, g, NULL, 0, &params));
    CALLO(cuGraphAddMemFreeNode, "not-after-alloc", (&node, g, NULL, 0, params.dptr), OUT_C(node));
}

/* ---- Conditional nodes ---------------------------------------------------------------------- */

SCENARIO(condition_handles, "graph/condition-handles", par_context) {
    CUgraph g;
    CUgraphConditionalHandle h;
    CUcontext other = par_new_context();
    SETUP(cuCtxSetCurrent, (par.primary));
    g = new_graph("g");
    CALLO(cuGraphConditionalHandleCreate, "ok", (&h, g, par.primary, 0, 0), OUT_C(h));
    CALLO(cuGraphConditionalHandleCreate, "default", (&h, g, par.primary, 7, 1), OUT_C(h));
    CALLO(cuGraphConditionalHandleCreate, "value-without-flag", (&h, g, par.primary, 7, 0),
          OUT_C(h));
    CALLO(cuGraphConditionalHandleCreate, "bad-flags", (&h, g, par.primary, 0, 2), OUT_C(h));
    CALLO(cuGraphConditionalHandleCreate, "bad-flags", (&h, g, par.primary, 0, ~0u), OUT_C(h));
    CALLO(cuGraphConditionalHandleCreate, "null-context", (&h, g, NULL, 0, 0), OUT_C(h));
    CALLO(cuGraphConditionalHandleCreate, "other-context", (&h, g, other, 0, 0), OUT_C(h));
    CALLO(cuGraphConditionalHandleCreate, "null-graph", (&h, NULL, par.primary, 0, 0), OUT_C(h));
    CALL(cuGraphConditionalHandleCreate, "null-out", (NULL, g, par.primary, 0, 0));
}

static CUgraphConditionalHandle condition(CUgraph g) {
    CUgraphConditionalHandle h = 0;
    SETUP(cuGraphConditionalHandleCreate, (&h, g, par.primary, 0, 0));
    return h;
}

static CUgraph conditional(const char *cls, CUgraph g, CUgraphConditionalHandle h, int type,
                           unsigned size, CUcontext ctx) {
    CUgraphNode node;
    CUgraphNodeParams params = {0};
    params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    params.conditional.handle = h;
    params.conditional.type = (CUgraphConditionalNodeType)type;
    params.conditional.size = size;
    params.conditional.ctx = ctx;
    par_note("type=%d size=%u", type, size);
    CALLO(cuGraphAddNode, cls, (&node, g, NULL, 0, &params), OUT_C(node),
          OUT_C(params.conditional.phGraph_out));
    return par_last() == CUDA_SUCCESS ? params.conditional.phGraph_out[0] : NULL;
}

SCENARIO(conditionals, "graph/conditionals", par_context) {
    static const unsigned sizes[] = {0, 1, 2, 3, 5};
    CUgraph g, other;
    CUcontext second = par_new_context();
    SETUP(cuCtxSetCurrent, (par.primary));
    g = new_graph("g");
    other = new_graph("other");
    for (int type = -1; type <= 3; type++)
        for (size_t i = 0; i < COUNT(sizes); i++)
            conditional(type >= 0 && type <= 2 ? "sizes" : "bad-type", g, condition(g), type,
                        sizes[i], par.primary);
    conditional("null-context", g, condition(g), 0, 1, NULL);
    conditional("other-context", g, condition(g), 0, 1, second);
    conditional("zero-handle", g, 0, 0, 1, par.primary);
    conditional("handle-of-other-graph", g, condition(other), 0, 1, par.primary);
    {
        CUgraphConditionalHandle h = condition(g);
        conditional("first", g, h, 0, 1, par.primary);
        conditional("handle-twice", g, h, 0, 1, par.primary);
    }
}

SCENARIO(body_contents, "graph/body-contents", par_context) {
    CUgraph g, body, child, copy;
    CUgraphNode node, a, inner;
    CUDA_HOST_NODE_PARAMS host = {host_work, NULL};
    size_t count;
    CUfunction f = nothing();
    CUevent event = par_event(0);
    CUdeviceptr p = par_alloc(4096);
    g = new_graph("g");
    CUgraphConditionalHandle outer = condition(g);
    body = conditional("ok", g, condition(g), 0, 1, par.primary);
    par_name((uint64_t)(uintptr_t)body, 0, "body");
    CALLO(cuGraphGetNodes, "fresh-body", (body, NULL, &count), OUT_U(count));
    CALLO(cuGraphAddEmptyNode, "body", (&a, body, NULL, 0), OUT_C(a));
    kernel(body, f, "k");
    CUDA_MEMSET_NODE_PARAMS set = {.dst = p, .elementSize = 1, .width = 16, .height = 1};
    CALLO(cuGraphAddMemsetNode, "body", (&node, body, &a, 1, &set, par.primary), OUT_C(node));
    CUDA_MEMCPY3D bytes = {FROM_DEVICE(p), TO_DEVICE(p + 1024), EXTENT_3D(16, 1, 1)};
    CALLO(cuGraphAddMemcpyNode, "body", (&node, body, NULL, 0, &bytes, par.primary), OUT_C(node));
    CALLO(cuGraphAddHostNode, "body", (&node, body, NULL, 0, &host), OUT_C(node));
    CALLO(cuGraphAddEventRecordNode, "body", (&node, body, NULL, 0, event), OUT_C(node));
    CALLO(cuGraphAddEventWaitNode, "body", (&node, body, NULL, 0, event), OUT_C(node));
    CUDA_BATCH_MEM_OP_NODE_PARAMS ops = {.ctx = par.primary};
    CALLO(cuGraphAddBatchMemOpNode, "body", (&node, body, NULL, 0, &ops), OUT_C(node));
    CUDA_MEM_ALLOC_NODE_PARAMS alloc = {.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                        .poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE,
                                        .bytesize = 4096};
    CALLO(cuGraphAddMemAllocNode, "body", (&node, body, NULL, 0, &alloc), OUT_C(node));
    child = new_graph("child");
    empty(child, NULL, 0, "in_child");
    CALLO(cuGraphAddChildGraphNode, "body", (&node, body, NULL, 0, child), OUT_C(node));
    SETUP(cuGraphAddHostNode, (&node, child, NULL, 0, &host));
    CALLO(cuGraphAddChildGraphNode, "body-with-host", (&inner, body, NULL, 0, child), OUT_C(inner));
    conditional("in-body-outer-handle", body, outer, 0, 1, par.primary);
    conditional("in-body-own-handle", body, condition(body), 1, 1, par.primary);
    CALLO(cuGraphGetNodes, "filled-body", (body, NULL, &count), OUT_U(count));
    CALLO(cuGraphClone, "with-conditional", (&copy, g), OUT_C(copy));
    CALLO(cuGraphClone, "of-body", (&copy, body), OUT_C(copy));
    CALLO(cuGraphAddChildGraphNode, "with-conditional", (&node, child, NULL, 0, g), OUT_C(node));
    CALLO(cuGraphAddChildGraphNode, "body-as-child", (&node, child, NULL, 0, body), OUT_C(node));
    CALL(cuGraphDestroyNode, "in-body", (a));
}

SCENARIO(conditional_nodes, "graph/conditional-nodes", par_context) {
    CUgraph g, copy;
    CUgraphNode node, second;
    CUgraphNodeType type;
    CUgraphNodeParams params = {0};
    g = new_graph("g");
    CUgraphConditionalHandle h = condition(g);
    params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    params.conditional.handle = h;
    params.conditional.size = 2;
    params.conditional.ctx = par.primary;
    SETUP(cuGraphAddNode, (&node, g, NULL, 0, &params));
    CALLO(cuGraphNodeGetType, "conditional", (node, &type), OUT_I(type));
    CALL(cuGraphNodeSetParams, "conditional-same", (node, &params));
    params.conditional.phGraph_out = NULL;
    CALL(cuGraphNodeSetParams, "conditional-null-graphs", (node, &params));
    params.conditional.type = CU_GRAPH_COND_TYPE_WHILE;
    params.conditional.size = 1;
    CALL(cuGraphNodeSetParams, "conditional-other-type", (node, &params));
    CALLO(cuGraphClone, "with-conditional", (&copy, g), OUT_C(copy));
    CALLO(cuGraphAddChildGraphNode, "with-conditional", (&second, new_graph("outer"), NULL, 0, g),
          OUT_C(second));
    CALL(cuGraphDestroyNode, "conditional", (node));
    params.conditional.type = CU_GRAPH_COND_TYPE_IF;
    CALLO(cuGraphAddNode, "handle-after-node-gone", (&node, g, NULL, 0, &params), OUT_C(node));
    CALL(cuGraphDestroy, "with-conditional", (g));
}

SCENARIO(destroy_body, "graph/destroy-body", par_context) {
    CUgraph g, body;
    g = new_graph("g");
    body = conditional("ok", g, condition(g), 0, 1, par.primary);
    CALL(cuGraphDestroy, "body", (body));
}

/* ---- Handles that are none ------------------------------------------------------------------ */

static uint64_t words[512];
#define STALE_GRAPH(function, title, call)                                                         \
    SCENARIO(function, title) {                                                                    \
        CUgraph g;                                                                                 \
        CUgraphNode node = NULL;                                                                   \
        size_t count = 0;                                                                          \
        par_context();                                                                             \
        g = new_graph("g");                                                                        \
        SETUP(cuGraphDestroy, (g));                                                                \
        call;                                                                                      \
        (void)node, (void)count;                                                                   \
    }
STALE_GRAPH(stale_destroy, "graph/stale-destroy", CALL(cuGraphDestroy, "stale-handle", (g)))
STALE_GRAPH(stale_add, "graph/stale-add",
            CALLO(cuGraphAddEmptyNode, "stale-handle", (&node, g, NULL, 0), OUT_C(node)))
STALE_GRAPH(stale_nodes, "graph/stale-nodes",
            CALLO(cuGraphGetNodes, "stale-handle", (g, NULL, &count), OUT_C(count)))
#define STALE_NODE(function, title, call)                                                          \
    SCENARIO(function, title) {                                                                    \
        CUgraph g;                                                                                 \
        CUgraphNode node;                                                                          \
        CUgraphNodeType type = (CUgraphNodeType)0;                                                 \
        par_context();                                                                             \
        g = new_graph("g");                                                                        \
        node = empty(g, NULL, 0, "node");                                                          \
        SETUP(cuGraphDestroyNode, (node));                                                         \
        call;                                                                                      \
        (void)type;                                                                                \
    }
STALE_NODE(stale_node_destroy, "graph/stale-node-destroy",
           CALL(cuGraphDestroyNode, "stale-handle", (node)))
STALE_NODE(stale_node_type, "graph/stale-node-type",
           CALLO(cuGraphNodeGetType, "stale-handle", (node, &type), OUT_C(type)))

SCENARIO(foreign_graph, "graph/foreign-graph", par_context) {
    size_t count;
    CALLO(cuGraphGetNodes, "foreign-handle", ((CUgraph)(void *)words, NULL, &count), OUT_C(count));
}

SCENARIO(foreign_node, "graph/foreign-node", par_context) {
    CUgraphNodeType type;
    CALLO(cuGraphNodeGetType, "foreign-handle", ((CUgraphNode)(void *)words, &type), OUT_C(type));
}
