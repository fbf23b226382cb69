/* Graphs: what the first questions left open. */
#include "../parity.h"
#include "graph_names.h"

#include <pthread.h>

#define SYNC CU_USER_OBJECT_NO_DESTRUCTOR_SYNC

static const char text[] = ".version 7.0\n.target sm_52\n.address_size 64\n"
                           ".visible .entry nothing()\n{\n    ret;\n}\n";

static CUgraphNode kernel(CUgraph g, const char *name) {
    static CUfunction f;
    if (f == NULL) {
        CUmodule module = PAR_MADE(CUmodule, cuModuleLoadData, text);
        SETUP(cuModuleGetFunction, (&f, module, "nothing"));
    }
    CUDA_KERNEL_NODE_PARAMS params = {.func = f};
    params.gridDimX = params.gridDimY = params.gridDimZ = 4;
    params.blockDimX = params.blockDimY = params.blockDimZ = 1;
    CUgraphNode node = PAR_MADE(CUgraphNode, cuGraphAddKernelNode_v2, g, NULL, 0, &params);
    par_name((uint64_t)(uintptr_t)node, 0, name);
    return node;
}

/* ---- Removing edges that have data ----------------------------------------------------------- */

static void removal(const char *cls, CUgraphEdgeData has, const CUgraphEdgeData *given) {
    CUgraph g = new_graph("g");
    CUgraphNode k = kernel(g, "k"), l = kernel(g, "l");
    SETUP(cuGraphAddDependencies_v2, (g, &k, &l, &has, 1));
    if (given)
        par_note("has %d,%d given %d,%d,%d", has.from_port, has.type, given->from_port,
                 given->to_port, given->type);
    else
        par_note("has %d,%d given none", has.from_port, has.type);
    CALL(cuGraphRemoveDependencies_v2, cls, (g, &k, &l, given, 1));
    SETUP(cuGraphDestroy, (g));
    FORGET(g);
    FORGET(k);
    FORGET(l);
}

SCENARIO(removals, "graph-more/removals", par_context) {
    static const CUgraphEdgeData kinds[] = {
        {0, 0, 0, {0}}, {1, 0, 1, {0}}, {2, 0, 1, {0}}, {2, 0, 0, {0}},
        {3, 0, 1, {0}}, {0, 1, 0, {0}}, {0, 0, 1, {0}}, {0, 0, 2, {0}},
    };
    for (size_t has = 0; has < 4; has++) {
        removal("null-data", kinds[has], NULL);
        for (size_t given = 0; given < COUNT(kinds); given++)
            removal(given == has ? "same-data" : "other-data", kinds[has], &kinds[given]);
    }
}

/* ---- Order of roots -------------------------------------------------------------------------- */

static CUgraphNode listed[4];

static void show_roots(const char *cls, CUgraph g) {
    size_t count = 4;
    memset(listed, 0, sizeof(listed));
    CALLO(cuGraphGetRootNodes, cls, (g, listed, &count), IO_U(count), OUT_H(listed[0]),
          OUT_H(listed[1]), OUT_H(listed[2]), OUT_H(listed[3]));
}

SCENARIO(roots, "graph-more/roots", par_context) {
    CUgraph g, copy;
    CUgraphNode a, b, c, d, x;
    g = new_graph("g");
    a = empty(g, NULL, 0, "a");
    b = empty(g, NULL, 0, "b");
    c = empty(g, NULL, 0, "c");
    d = empty(g, NULL, 0, "d");
    show_roots("four", g);
    SETUP(cuGraphAddDependencies, (g, &a, &b, 1));
    show_roots("b-depends", g);
    SETUP(cuGraphRemoveDependencies, (g, &a, &b, 1));
    show_roots("b-free-again", g);
    CALLO(cuGraphClone, "ok", (&copy, g), OUT_C(copy));
    for (int i = 0; i < 4; i++) {
        CUgraphNode originals[4] = {a, b, c, d};
        static const char *const names[] = {"copy_a", "copy_b", "copy_c", "copy_d"};
        SETUP(cuGraphNodeFindInClone, (&x, originals[i], copy));
        par_name((uint64_t)(uintptr_t)x, 0, names[i]);
    }
    show_roots("of-clone", copy);
    CALL(cuGraphDestroyNode, "ok", (c));
    show_roots("c-gone", g);
}

SCENARIO(edges_of_clone, "graph-more/edges-of-clone") {
    CUgraph g, copy;
    CUgraphNode nodes[4], from[3], to[3], x;
    size_t count = 4;
    static const char *const names[] = {"a", "b", "c", "d"};
    static const char *const copies[] = {"copy_a", "copy_b", "copy_c", "copy_d"};
    par_context();
    g = new_graph("g");
    for (int i = 0; i < 4; i++)
        nodes[i] = empty(g, NULL, 0, names[i]);
    for (int i = 0; i < 3; i++) {
        from[i] = nodes[2 - i];
        to[i] = nodes[3];
    }
    SETUP(cuGraphAddDependencies, (g, from, to, 3));
    SETUP(cuGraphClone, (&copy, g));
    for (int i = 0; i < 4; i++) {
        SETUP(cuGraphNodeFindInClone, (&x, nodes[i], copy));
        par_name((uint64_t)(uintptr_t)x, 0, copies[i]);
    }
    SETUP(cuGraphNodeFindInClone, (&x, nodes[3], copy));
    memset(listed, 0, sizeof(listed));
    CALLO(cuGraphNodeGetDependencies, "of-clone", (x, listed, &count), IO_U(count),
          OUT_H(listed[0]), OUT_H(listed[1]), OUT_H(listed[2]));
}

/* ---- User objects, one question each --------------------------------------------------------- */

static int calls;

static void destroy(void *data) {
    calls++;
}

static CUuserObject object_of(unsigned count) {
    CUuserObject object = NULL;
    SETUP(cuUserObjectCreate, (&object, NULL, destroy, count, SYNC));
    return object;
}

static void see_calls(const char *what) {
    par_see("destructor", "%s calls %d", what, calls);
}

SCENARIO(release_not_retained, "graph-more/release-not-retained", par_context) {
    CUgraph g;
    g = new_graph("g");
    CUuserObject a = object_of(2);
    CALL(cuGraphReleaseUserObject, "not-retained", (g, a, 1));
    see_calls("not-retained");
    CALL(cuUserObjectRelease, "own", (a, 1));
    see_calls("own-one");
    CALL(cuUserObjectRelease, "own", (a, 1));
    see_calls("own-two");
}

SCENARIO(release_more_than_retained, "graph-more/release-more-than-retained", par_context) {
    CUgraph g;
    g = new_graph("g");
    CUuserObject a = object_of(4);
    CALL(cuGraphRetainUserObject, "ok", (g, a, 2, 0));
    CALL(cuGraphReleaseUserObject, "more-than-retained", (g, a, 3));
    see_calls("more-than-retained");
    for (int i = 0; i < 4 && calls == 0; i++) {
        CALL(cuUserObjectRelease, "own", (a, 1));
        see_calls("own");
    }
}

SCENARIO(retained_twice, "graph-more/retained-twice", par_context) {
    CUgraph g;
    g = new_graph("g");
    CUuserObject a = object_of(1);
    CALL(cuGraphRetainUserObject, "ok", (g, a, 1, 0));
    CALL(cuGraphRetainUserObject, "again", (g, a, 2, 0));
    CALL(cuUserObjectRelease, "own", (a, 1));
    CALL(cuGraphReleaseUserObject, "part", (g, a, 2));
    see_calls("one-left");
    CALL(cuGraphReleaseUserObject, "rest", (g, a, 1));
    see_calls("none-left");
}

SCENARIO(clone_and_child_hold, "graph-more/clone-and-child-hold", par_context) {
    CUgraph g, copy, outer, embedded;
    g = new_graph("g");
    outer = new_graph("outer");
    CUuserObject a = object_of(1);
    SETUP(cuGraphRetainUserObject, (g, a, 1, CU_GRAPH_USER_OBJECT_MOVE));
    SETUP(cuGraphClone, (&copy, g));
    CUgraphNode node = PAR_MADE(CUgraphNode, cuGraphAddChildGraphNode, outer, NULL, 0, g);
    CALL(cuGraphDestroy, "original", (g));
    see_calls("original-gone");
    CALL(cuGraphDestroy, "clone", (copy));
    see_calls("clone-gone");
    SETUP(cuGraphChildGraphNodeGetGraph, (node, &embedded));
    CALL(cuGraphDestroyNode, "child", (node));
    see_calls("child-gone");
}

SCENARIO(moved_child_holds, "graph-more/moved-child-holds", par_context) {
    CUgraph child, outer;
    CUgraphNode node;
    CUgraphNodeParams params = {0};
    child = new_graph("child");
    outer = new_graph("outer");
    CUuserObject a = object_of(1);
    SETUP(cuGraphRetainUserObject, (child, a, 1, CU_GRAPH_USER_OBJECT_MOVE));
    params.type = CU_GRAPH_NODE_TYPE_GRAPH;
    params.graph.graph = child;
    params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
    CALLO(cuGraphAddNode, "move", (&node, outer, NULL, 0, &params), OUT_C(node));
    see_calls("moved");
    CALL(cuGraphDestroy, "outer", (outer));
    see_calls("outer-gone");
}

/* ---- Frees in several graphs ----------------------------------------------------------------- */

static CUDA_MEM_ALLOC_NODE_PARAMS alloc_params(void) {
    return (CUDA_MEM_ALLOC_NODE_PARAMS){.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                        .poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE,
                                        .bytesize = 4096};
}

SCENARIO(frees, "graph-more/frees", par_context) {
    CUgraph g, other, third, fourth;
    CUgraphNode alloc, node;
    CUDA_MEM_ALLOC_NODE_PARAMS params = alloc_params();
    g = new_graph("g");
    other = new_graph("other");
    third = new_graph("third");
    fourth = new_graph("fourth");
    SETUP(cuGraphAddMemAllocNode, (&alloc, g, NULL, 0, &params));
    CALLO(cuGraphAddMemFreeNode, "other-graph", (&node, other, NULL, 0, params.dptr), OUT_C(node));
    CALLO(cuGraphAddMemFreeNode, "third-graph", (&node, third, NULL, 0, params.dptr), OUT_C(node));
    CALL(cuGraphDestroy, "with-free", (other));
    CALLO(cuGraphAddMemFreeNode, "fourth-graph", (&node, fourth, NULL, 0, params.dptr),
          OUT_C(node));
    CALL(cuGraphDestroy, "with-free", (third));
    CALL(cuGraphDestroy, "with-free", (fourth));
    CALLO(cuGraphAddMemFreeNode, "owning-graph-after", (&node, g, &alloc, 1, params.dptr),
          OUT_C(node));
}

/* ---- Moved graphs with memory ---------------------------------------------------------------- */

SCENARIO(moved_memory, "graph-more/moved-memory", par_context) {
    CUgraph g, child, copy, outer;
    CUgraphNode node, alloc, other, beside;
    CUDA_MEM_ALLOC_NODE_PARAMS alloc_in = alloc_params();
    CUgraphNodeParams params = {0};
    g = new_graph("g");
    child = new_graph("child");
    outer = new_graph("outer");
    SETUP(cuGraphAddMemAllocNode, (&alloc, child, NULL, 0, &alloc_in));
    beside = empty(g, NULL, 0, "beside");
    params.type = CU_GRAPH_NODE_TYPE_GRAPH;
    params.graph.graph = child;
    params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE;
    CALLO(cuGraphAddNode, "clone", (&node, g, NULL, 0, &params), OUT_C(node));
    params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
    CALLO(cuGraphAddNode, "move", (&node, g, NULL, 0, &params), OUT_C(node));
    if (par_last() != CUDA_SUCCESS)
        return;
    CALL(cuGraphDestroyNode, "beside-child-with-alloc", (beside));
    CALLO(cuGraphAddMemAllocNode, "into-moved", (&other, child, NULL, 0, &alloc_in), OUT_C(other));
    alloc_in.dptr = 0;
    CALLO(cuGraphMemAllocNodeGetParams, "in-moved", (alloc, &alloc_in), OUT_C(alloc_in.dptr));
    CALLO(cuGraphAddMemFreeNode, "outside", (&other, g, &node, 1, alloc_in.dptr), OUT_C(other));
    CALLO(cuGraphAddMemFreeNode, "inside", (&other, child, &alloc, 1, alloc_in.dptr), OUT_C(other));
    CALLO(cuGraphClone, "with-moved-alloc", (&copy, g), OUT_C(copy));
    CALLO(cuGraphAddChildGraphNode, "with-moved-alloc", (&other, outer, NULL, 0, g), OUT_C(other));
    CALL(cuGraphDestroyNode, "child-with-alloc", (node));
}

/* ---- What may be nested ---------------------------------------------------------------------- */

SCENARIO(nested, "graph-more/nested", par_context) {
    CUgraph g, child, embedded, deep;
    CUgraphNode node, other, inner;
    CUgraphNodeParams params = {0};
    CUgraphConditionalHandle handle;
    g = new_graph("g");
    child = new_graph("child");
    SETUP(cuGraphAddChildGraphNode, (&node, g, NULL, 0, child));
    SETUP(cuGraphChildGraphNodeGetGraph, (node, &embedded));
    params.type = CU_GRAPH_NODE_TYPE_GRAPH;
    params.graph.graph = embedded;
    params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
    CALLO(cuGraphAddNode, "move-embedded", (&other, child, NULL, 0, &params), OUT_C(other));
    params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE;
    CALLO(cuGraphAddNode, "clone-embedded", (&other, child, NULL, 0, &params), OUT_C(other));
    deep = new_graph("deep");
    memset(&params, 0, sizeof(params));
    params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    params.conditional.size = 1;
    params.conditional.ctx = par.primary;
    SETUP(cuGraphConditionalHandleCreate, (&handle, deep, par.primary, 0, 0));
    params.conditional.handle = handle;
    SETUP(cuGraphAddNode, (&inner, deep, NULL, 0, &params));
    memset(&params, 0, sizeof(params));
    params.type = CU_GRAPH_NODE_TYPE_GRAPH;
    params.graph.graph = deep;
    CALLO(cuGraphAddNode, "clone-with-conditional", (&other, g, NULL, 0, &params), OUT_C(other));
    params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
    CALLO(cuGraphAddNode, "move-with-conditional", (&other, g, NULL, 0, &params), OUT_C(other));
    CALLO(cuGraphClone, "with-moved-conditional", (&deep, g), OUT_C(deep));
}

/* Child nodes whose graph is set again. */
SCENARIO(set_child, "graph-more/set-child", par_context) {
    CUgraph g, child, other, embedded, again;
    CUgraphNodeParams params = {0};
    size_t count;
    g = new_graph("g");
    child = new_graph("child");
    other = new_graph("other");
    empty(child, NULL, 0, "a");
    empty(other, NULL, 0, "b");
    empty(other, NULL, 0, "c");
    params.type = CU_GRAPH_NODE_TYPE_GRAPH;
    params.graph.graph = child;
    CUgraphNode node = PAR_MADE(CUgraphNode, cuGraphAddNode, g, NULL, 0, &params);
    SETUP(cuGraphChildGraphNodeGetGraph, (node, &embedded));
    NAME(embedded);
    params.graph.graph = other;
    CALL(cuGraphNodeSetParams, "child-other-topology", (node, &params));
    CALLO(cuGraphChildGraphNodeGetGraph, "after-set", (node, &again), OUT_H(again));
    CALLO(cuGraphGetNodes, "after-set", (again, NULL, &count), OUT_U(count));
    params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
    CALL(cuGraphNodeSetParams, "child-move", (node, &params));
    params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE;
    params.graph.graph = NULL;
    CALL(cuGraphNodeSetParams, "child-null", (node, &params));
}

/* ---- Attributes of kernel nodes -------------------------------------------------------------- */

SCENARIO(more_attributes, "graph-more/attributes", par_context) {
    CUgraph g;
    CUgraphNode node;
    CUkernelNodeAttrValue v;
    g = new_graph("g");
    node = kernel(g, "node");
#define SET(cls, id, change)                                                                       \
    do {                                                                                           \
        memset(&v, 0, sizeof(v));                                                                  \
        change;                                                                                    \
        par_note("id=%d", id);                                                                     \
        CALL(cuGraphKernelNodeSetAttribute, cls, (node, (CUkernelNodeAttrID)(id), &v));            \
    } while (0)
    SET("nvlink-one", 16, v.nvlinkUtilCentricScheduling = 1);
    SET("nvlink-two", 16, v.nvlinkUtilCentricScheduling = 2);
    SET("cluster-two", 4, v.clusterDim.x = 2; v.clusterDim.y = 1; v.clusterDim.z = 1);
    SET("cluster-three", 4, v.clusterDim.x = 3; v.clusterDim.y = 1; v.clusterDim.z = 1);
    SET("cluster-sixteen", 4, v.clusterDim.x = 4; v.clusterDim.y = 4; v.clusterDim.z = 1);
    SET("cluster-sixty-four", 4, v.clusterDim.x = 4; v.clusterDim.y = 4; v.clusterDim.z = 4);
    SET("preferred-cluster", 11, v.preferredClusterDim.x = 2; v.preferredClusterDim.y = 1;
        v.preferredClusterDim.z = 1);
    SET("domain-map-edge", 9, v.memSyncDomainMap.default_ = 3);
    SET("domain-map-edge", 9, v.memSyncDomainMap.default_ = 4);
    SET("window-negative", 1, v.accessPolicyWindow.hitRatio = -0.5f);
    SET("window-large", 1, v.accessPolicyWindow.num_bytes = (size_t)1 << 40);
    SET("window-bad-property", 1, v.accessPolicyWindow.hitProp = (CUaccessProperty)9);
    SET("updatable-two", 13, v.deviceUpdatableKernelNode.deviceUpdatable = 2);
    SET("updatable-off", 13, v.deviceUpdatableKernelNode.deviceUpdatable = 0);
    SET("completion-event", 12, (void)0);
    SET("programmatic-event", 7, (void)0);
}

SCENARIO(updatable, "graph-more/updatable", par_context) {
    CUgraph g, outer;
    CUgraphNode node, other, beside;
    CUkernelNodeAttrValue v;
    CUgraphNodeParams params = {0};
    g = new_graph("g");
    outer = new_graph("outer");
    node = kernel(g, "node");
    beside = empty(g, NULL, 0, "beside");
    memset(&v, 0, sizeof(v));
    v.deviceUpdatableKernelNode.deviceUpdatable = 1;
    SETUP(cuGraphKernelNodeSetAttribute,
          (node, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, &v));
    CALLO(cuGraphAddChildGraphNode, "updatable", (&other, outer, NULL, 0, g), OUT_C(other));
    CALL(cuGraphDestroyNode, "beside-updatable", (beside));
    params.type = CU_GRAPH_NODE_TYPE_GRAPH;
    params.graph.graph = g;
    params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
    CALLO(cuGraphAddNode, "move-updatable", (&other, outer, NULL, 0, &params), OUT_C(other));
    v.deviceUpdatableKernelNode.deviceUpdatable = 0;
    CALL(cuGraphKernelNodeSetAttribute, "updatable-off-again",
         (node, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, &v));
    CALL(cuGraphDestroyNode, "updatable-off-again", (node));
}

/* ---- After a fault --------------------------------------------------------------------------- */

SCENARIO(poisoned, "graph-more/poisoned", par_context) {
    CUgraph g;
    CUgraphNode node;
    CUDA_MEM_ALLOC_NODE_PARAMS alloc = alloc_params();
    CUDA_BATCH_MEM_OP_NODE_PARAMS ops = {0};
    CUgraphNode there, set_node;
    g = new_graph("g");
    there = kernel(g, "there");
    CUstream s = par_stream();
    CUdeviceptr p = par_alloc(4096);
    CUdeviceptr m = par_mapped(PAR_2M);
    CUDA_MEMSET_NODE_PARAMS set = {.dst = p, .elementSize = 1, .width = 16, .height = 1};
    SETUP(cuGraphAddMemsetNode, (&set_node, g, NULL, 0, &set, par.primary));
    par_hold(s);
    SETUP(cuMemsetD8Async, (m, 1, PAR_2M, s));
    SETUP(cuMemUnmap, (m, PAR_2M));
    PAR_DRAIN("faulted", s);
    CALLO(cuGraphAddMemsetNode, "faulted-null-context", (&node, g, NULL, 0, &set, NULL),
          OUT_C(node));
    CALL(cuGraphMemsetNodeSetParams, "faulted", (set_node, &set));
    CUDA_MEMCPY3D copy = {FROM_DEVICE(p), TO_DEVICE(p + 2048), EXTENT_3D(64, 1, 1)};
    CALLO(cuGraphAddMemcpyNode, "faulted", (&node, g, NULL, 0, &copy, par.primary), OUT_C(node));
    CALLO(cuGraphAddMemcpyNode, "faulted-null-context", (&node, g, NULL, 0, &copy, NULL),
          OUT_C(node));
    ops.ctx = par.primary;
    CALLO(cuGraphAddBatchMemOpNode, "faulted", (&node, g, NULL, 0, &ops), OUT_C(node));
    CALLO(cuGraphAddMemAllocNode, "faulted", (&node, g, NULL, 0, &alloc), OUT_C(node));
    CALLO(cuGraphAddMemFreeNode, "faulted", (&node, g, NULL, 0, p), OUT_C(node));
    {
        CUDA_KERNEL_NODE_PARAMS params;
        CUkernelNodeAttrValue v;
        CALLO(cuGraphKernelNodeGetParams_v2, "faulted", (there, &params), OUT_C(params.func));
        CALL(cuGraphKernelNodeSetParams_v2, "faulted", (there, &params));
        CALLO(cuGraphAddKernelNode_v2, "faulted", (&node, g, NULL, 0, &params), OUT_C(node));
        CALLO(cuGraphKernelNodeGetAttribute, "faulted",
              (there, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &v), OUT_I(v.cooperative));
        memset(&v, 0, sizeof(v));
        CALL(cuGraphKernelNodeSetAttribute, "faulted",
             (there, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &v));
    }
    CALL(cuGraphDebugDotPrint, "faulted", (g, "/dev/null", 0));
}
