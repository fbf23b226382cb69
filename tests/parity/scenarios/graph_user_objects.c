/*
 * Graphs, asked again: whose user objects and conditional handles are, and rows of the other
 * scenarios that had a second reason for their answer. One question a scenario.
 */
#include "graph_build.h"

#include <pthread.h>
#include <time.h>

/* ---- User objects: each has a weight, and the sum says which have ended ---------------------- */

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_t main_thread;
static int ended, elsewhere;

static void destroy(void *weight) {
    pthread_mutex_lock(&guard);
    ended += (int)(intptr_t)weight;
    elsewhere += !pthread_equal(main_thread, pthread_self());
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&guard);
}

static void see_ended(const char *what) {
    pthread_mutex_lock(&guard);
    par_see("ended", "%s %d elsewhere %d", what, ended, elsewhere);
    pthread_mutex_unlock(&guard);
}

/* Waits for all of them in vain, or for as long as it takes. */
static void see_ended_within(int seconds, int all) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += seconds;
    pthread_mutex_lock(&guard);
    while (ended < all && pthread_cond_timedwait(&changed, &guard, &until) == 0) {
    }
    pthread_mutex_unlock(&guard);
    see_ended("waited-for");
}

static void begin(void) {
    par_context();
    main_thread = pthread_self();
}

static CUuserObject own(CUgraph graph, int weight) {
    CUuserObject object = NULL;
    SETUP(cuUserObjectCreate,
          (&object, (void *)(intptr_t)weight, destroy, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    SETUP(cuGraphRetainUserObject, (graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
    return object;
}

static CUgraph graph_with(CUdeviceptr p, int weight) {
    CUgraph graph = gb_graph();
    gb_set_node(graph, NULL, p, (unsigned)weight, 64);
    own(graph, weight);
    return graph;
}

/* The graph is gone: only its executable has the objects. */
static CUgraphExec exec_of(CUgraph graph) {
    CUgraphExec exec = gb_instantiate(graph);
    SETUP(cuGraphDestroy, (graph));
    return exec;
}

SCENARIO(update_objects, "graph-again/update-objects", begin) {
    CUgraphExecUpdateResultInfo info;
    CUdeviceptr p = par_alloc(4096);
    CUgraphExec exec = exec_of(graph_with(p, 1));
    CUgraph other = graph_with(p, 10), wrong = graph_with(p, 100);
    gb_empty_node(wrong, NULL);
    CALL(cuGraphExecUpdate_v2, "refused", (exec, wrong, &info));
    see_ended("refused");
    CALL(cuGraphExecUpdate_v2, "objects", (exec, other, &info));
    see_ended("updated");
    CALL(cuGraphExecUpdate_v2, "objects-again", (exec, other, &info));
    see_ended("updated-again");
    CALL(cuGraphDestroy, "after-update", (other));
    see_ended("graph-gone");
    CALL(cuGraphLaunch, "after-update", (exec, NULL));
    CALL(cuStreamSynchronize, "after-update", (NULL));
    CALL(cuGraphExecDestroy, "after-update", (exec));
    see_ended("exec-gone");
}

SCENARIO(update_same_object, "graph-again/update-same-object", begin) {
    CUgraphExecUpdateResultInfo info;
    CUgraph graph = gb_graph(), other = gb_graph(), none = gb_graph();
    CUuserObject object = own(graph, 1);
    SETUP(cuGraphRetainUserObject, (other, object, 3, 0));
    CUgraphExec exec = exec_of(graph);
    CALL(cuGraphExecUpdate_v2, "same-object", (exec, other, &info));
    CALL(cuGraphDestroy, "same-object", (other));
    see_ended("updated");
    CALL(cuGraphExecUpdate_v2, "no-object", (exec, none, &info));
    see_ended("without");
}

SCENARIO(update_old_version, "graph-again/update-old-version", begin) {
    CUgraphNode node;
    CUgraphExecUpdateResult why;
    CUdeviceptr p = par_alloc(4096);
    CUgraphExec exec = exec_of(graph_with(p, 1));
    CUgraph other = graph_with(p, 10);
    CALL(cuGraphExecUpdate, "objects", (exec, other, &node, &why));
    see_ended("updated");
    CALL(cuGraphDestroy, "after-update", (other));
    see_ended("graph-gone");
}

/* A launch that waits began with objects that an update gives up. */
SCENARIO(update_in_flight, "graph-again/update-in-flight", begin) {
    CUgraphExecUpdateResultInfo info;
    CUdeviceptr p = par_alloc(4096);
    CUstream s = par_stream();
    CUgraphExec exec = exec_of(graph_with(p, 1));
    CUgraph second = graph_with(p, 10), third = graph_with(p, 100);
    par_hold(s);
    CALL(cuGraphLaunch, "held", (exec, s));
    CALL(cuGraphExecUpdate_v2, "in-flight", (exec, second, &info));
    see_ended("one-update");
    CALL(cuGraphLaunch, "held", (exec, s));
    CALL(cuGraphExecUpdate_v2, "in-flight", (exec, third, &info));
    SETUP(cuGraphDestroy, (second));
    SETUP(cuGraphDestroy, (third));
    see_ended("two-updates");
    PAR_DRAIN("released", s);
    see_ended("released");
    CALL(cuGraphExecDestroy, "released", (exec));
    see_ended("exec-gone");
}

SCENARIO(destroy_in_flight, "graph-again/destroy-in-flight", begin) {
    CUdeviceptr p = par_alloc(4096);
    CUstream s = par_stream();
    CUgraphExec exec = exec_of(graph_with(p, 1));
    par_hold(s);
    CALL(cuGraphLaunch, "held", (exec, s));
    CALL(cuGraphExecDestroy, "in-flight", (exec));
    see_ended("exec-gone");
    PAR_DRAIN("released", s);
    see_ended("released");
}

/* What was launched keeps its objects after its work: until what? */
SCENARIO(objects_after_launch, "graph-again/objects-after-launch", begin) {
    CUdeviceptr p = par_alloc(4096);
    CUstream s = par_stream();
    CUgraphExec exec = exec_of(graph_with(p, 1)), other = exec_of(graph_with(p, 10));
    CALL(cuGraphLaunch, "one", (exec, s));
    CALL(cuStreamSynchronize, "one", (s));
    CALL(cuGraphExecDestroy, "one", (exec));
    see_ended("exec-gone");
    CALL(cuStreamQuery, "asked", (s));
    see_ended("asked");
    CALL(cuCtxSynchronize, "context", ());
    see_ended("context-synchronized");
    CALL(cuGraphLaunch, "other", (other, s));
    see_ended("other-launched");
    CALL(cuStreamSynchronize, "other", (s));
    see_ended("other-synchronized");
    CALL(cuStreamDestroy_v2, "idle", (s));
    see_ended("stream-gone");
    CALL(cuGraphExecDestroy, "other", (other));
    see_ended("other-gone");
    see_ended_within(2, 11);
    CALL(cuDevicePrimaryCtxReset_v2, "reset", (par.dev));
    see_ended("reset");
}

static CUgraph outer_with(CUdeviceptr p, int weight, CUgraphNode *node) {
    CUgraph outer = gb_graph(), child = graph_with(p, weight);
    SETUP(cuGraphAddChildGraphNode, (node, outer, NULL, 0, child));
    SETUP(cuGraphDestroy, (child));
    return outer;
}

SCENARIO(embedded_objects, "graph-again/embedded-objects", begin) {
    CUgraphNode node;
    CUgraphExecUpdateResultInfo info;
    CUdeviceptr p = par_alloc(4096);
    CUgraph outer = outer_with(p, 1, &node), other = outer_with(p, 10, &node);
    CUgraphExec exec = gb_instantiate(outer);
    CALL(cuGraphDestroy, "embedded-object", (outer));
    see_ended("outer-gone");
    CALL(cuGraphExecUpdate_v2, "embedded-object", (exec, other, &info));
    see_ended("updated");
    CALL(cuGraphDestroy, "embedded-object", (other));
    see_ended("other-gone");
    CALL(cuGraphExecDestroy, "embedded-object", (exec));
    see_ended("exec-gone");
}

SCENARIO(child_params_objects, "graph-again/child-params-objects", begin) {
    CUgraphNode node;
    CUgraphNodeParams params;
    CUdeviceptr p = par_alloc(4096);
    CUgraph outer = outer_with(p, 1, &node), child = graph_with(p, 10), third = graph_with(p, 100);
    CUgraphExec exec = gb_instantiate(outer);
    CALL(cuGraphExecChildGraphNodeSetParams, "objects", (exec, node, child));
    SETUP(cuGraphDestroy, (child));
    see_ended("child-gone");
    memset(&params, 0, sizeof(params));
    params.type = CU_GRAPH_NODE_TYPE_GRAPH;
    params.graph.graph = third;
    CALL(cuGraphExecNodeSetParams, "objects", (exec, node, &params));
    SETUP(cuGraphDestroy, (third));
    see_ended("third-gone");
    CALL(cuGraphDestroy, "objects", (outer));
    see_ended("outer-gone");
    CALL(cuGraphExecDestroy, "objects", (exec));
    see_ended("exec-gone");
}

/* The node's own embedded graph changes, not an executable's. */
SCENARIO(child_of_graph_objects, "graph-again/child-of-graph-objects", begin) {
    CUgraphNode node;
    CUgraphNodeParams params;
    CUdeviceptr p = par_alloc(4096);
    CUgraph outer = outer_with(p, 1, &node), child = graph_with(p, 10);
    memset(&params, 0, sizeof(params));
    params.type = CU_GRAPH_NODE_TYPE_GRAPH;
    params.graph.graph = child;
    CALL(cuGraphNodeSetParams, "child-objects", (node, &params));
    see_ended("set");
    CALL(cuGraphDestroy, "child-objects", (child));
    see_ended("child-gone");
    CALL(cuGraphDestroy, "child-objects", (outer));
    see_ended("outer-gone");
}

/* ---- Conditional handles --------------------------------------------------------------------- */

static CUgraphConditionalHandle condition(CUgraph graph) {
    CUgraphConditionalHandle handle = 0;
    SETUP(cuGraphConditionalHandleCreate, (&handle, graph, par.primary, 0, 0));
    return handle;
}

static CUgraph conditional(const char *cls, CUgraph graph, CUgraphConditionalHandle handle) {
    CUgraphNode node;
    CUgraphNodeParams params = {0};
    params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    params.conditional.handle = handle;
    params.conditional.size = 1;
    params.conditional.ctx = par.primary;
    CALLO(cuGraphAddNode, cls, (&node, graph, NULL, 0, &params), OUT_C(node),
          OUT_C(params.conditional.phGraph_out));
    return par_last() == CUDA_SUCCESS ? params.conditional.phGraph_out[0] : NULL;
}

/* A graph with no handle of its own. */
SCENARIO(handle_of_other_graph, "graph-again/handle-of-other-graph", par_context) {
    CUgraph graph = gb_graph(), other = gb_graph();
    CUgraphConditionalHandle theirs = condition(other);
    conditional("other-graphs-handle", graph, theirs);
    conditional("its-own-handle", other, theirs);
    conditional("other-graphs-used-handle", graph, theirs);
}

/* What is the same of handles of two graphs, and what follows from it? */
SCENARIO(handle_numbers, "graph-again/handle-numbers", par_context) {
    CUgraph graph = gb_graph(), other = gb_graph();
    CUgraphConditionalHandle a = condition(graph), b = condition(other), c = condition(graph);
    CUgraphConditionalHandle d = condition(graph);
    par_see("handles", "first-of-both %s, then %lld %lld", a == b ? "same" : "different",
            (long long)(c - a), (long long)(d - c));
    conditional("number-of-own", graph, b);
    conditional("own-after-number", graph, a);
    conditional("number-beyond", other, d);
}

SCENARIO(handle_in_body, "graph-again/handle-in-body", par_context) {
    CUgraph graph = gb_graph(), other = gb_graph();
    CUgraphConditionalHandle first = condition(graph), second = condition(graph);
    CUgraph body = conditional("outer", graph, condition(graph));
    CUgraph foreign = conditional("foreign", other, condition(other));
    conditional("foreign-body", foreign, second);
    CUgraph inner = conditional("in-body", body, first);
    conditional("in-inner-body", inner, second);
    conditional("used-in-body", graph, first);
    conditional("of-body-in-body", inner, condition(body));
    CUgraphConditionalHandle of_inner = condition(inner);
    par_see("handles", "of-body %lld", (long long)(of_inner - second));
    conditional("of-body-in-graph", graph, of_inner);
}

/* The embedded graph has handles of its own, or those of the graph around it? */
SCENARIO(handle_in_child, "graph-again/handle-in-child", par_context) {
    CUgraph graph = gb_graph(), child = gb_graph();
    CUgraphConditionalHandle outer = condition(graph);
    CUgraphNode node = PAR_MADE(CUgraphNode, cuGraphAddChildGraphNode, graph, NULL, 0, child);
    CUgraph embedded = PAR_GOT(CUgraph, cuGraphChildGraphNodeGetGraph, node);
    conditional("outer-handle-in-child", embedded, outer);
    conditional("of-child-in-child", embedded, condition(embedded));
    conditional("of-original-in-child", embedded, condition(child));
}

SCENARIO(handle_after_graph, "graph-again/handle-after-graph", par_context) {
    CUgraph graph = gb_graph(), other = gb_graph();
    CUgraphConditionalHandle theirs = condition(other);
    SETUP(cuGraphDestroy, (other));
    conditional("graph-gone", graph, theirs);
}

SCENARIO(handle_null_context, "graph-again/handle-null-context", par_context) {
    CUgraphNode node;
    CUgraphNodeParams params = {0};
    CUgraph graph = gb_graph();
    params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    params.conditional.size = 1;
    CALLO(cuGraphAddNode, "zero-handle-null-context", (&node, graph, NULL, 0, &params),
          OUT_C(node));
    params.conditional.handle = condition(graph);
    params.conditional.size = 0;
    CALLO(cuGraphAddNode, "no-body-null-context", (&node, graph, NULL, 0, &params), OUT_C(node));
}

/* ---- Rows that had a second reason ----------------------------------------------------------- */

/* graph_update/enabled#041 asked it of a host node, which cannot be switched off anyway. */
SCENARIO(enabled_without_context, "graph-again/enabled-without-context", par_context) {
    unsigned on;
    CUdeviceptr p = par_alloc(4096);
    CUgraph graph = gb_graph();
    CUgraphNode node = gb_set_node(graph, NULL, p, 1, 64);
    CUgraphExec exec = gb_instantiate(graph);
    SETUP(cuCtxSetCurrent, (NULL));
    CALL(cuGraphNodeSetEnabled, "no-ctx", (exec, node, 0));
    CALLO(cuGraphNodeGetEnabled, "no-ctx", (exec, node, &on), OUT_U(on));
}

/* graph-more/poisoned#007 asked it with memory that no graph has allocated. */
SCENARIO(free_node_poisoned, "graph-again/free-node-poisoned", par_context) {
    CUgraphNode node;
    CUstream s = par_stream();
    CUgraph graph = gb_graph();
    CUdeviceptr address = 0, gone = par_mapped(PAR_2M);
    CUgraphNode alloc = gb_alloc_node(graph, NULL, 4096, &address);
    par_hold(s);
    SETUP(cuMemsetD8Async, (gone, 1, PAR_2M, s));
    SETUP(cuMemUnmap, (gone, PAR_2M));
    PAR_DRAIN("faulted", s);
    CALLO(cuGraphAddMemFreeNode, "faulted", (&node, graph, &alloc, 1, address), OUT_C(node));
}

/* graph/works-no-context#004 had a NULL context in the parameters, too. */
SCENARIO(batch_without_context, "graph-again/batch-without-context", par_context) {
    CUgraphNode node;
    CUstreamBatchMemOpParams write = {0};
    CUdeviceptr p = par_alloc(4096);
    CUgraph graph = gb_graph();
    write.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    write.writeValue.address = p;
    CUDA_BATCH_MEM_OP_NODE_PARAMS ops = {.ctx = par.primary, .count = 1, .paramArray = &write};
    SETUP(cuCtxSetCurrent, (NULL));
    CALLO(cuGraphAddBatchMemOpNode, "no-ctx-named", (&node, graph, NULL, 0, &ops), OUT_C(node));
    ops.ctx = NULL;
    CALLO(cuGraphAddBatchMemOpNode, "no-ctx-null", (&node, graph, NULL, 0, &ops), OUT_C(node));
    SETUP(cuCtxSetCurrent, (par.primary));
    CALLO(cuGraphAddBatchMemOpNode, "null", (&node, graph, NULL, 0, &ops), OUT_C(node));
}

/* graph-more/nested#004 cloned a graph into which no conditional had come. */
SCENARIO(clone_with_conditional_child, "graph-again/clone-with-conditional-child", par_context) {
    CUgraph embedded = NULL, copy;
    CUgraph graph = gb_graph(), child = gb_graph();
    CUgraphNode node = PAR_MADE(CUgraphNode, cuGraphAddChildGraphNode, graph, NULL, 0, child);
    SETUP(cuGraphChildGraphNodeGetGraph, (node, &embedded));
    conditional("in-child", embedded, condition(embedded));
    if (par_last() == CUDA_SUCCESS) {
        CALLO(cuGraphClone, "conditional-in-child", (&copy, graph), OUT_C(copy));
        CALLO(cuGraphAddChildGraphNode, "conditional-in-child", (&node, gb_graph(), NULL, 0, graph),
              OUT_C(node));
    }
}

/* A conditional node of an executable: no scenario had asked for it by the function for any type.
 */
SCENARIO(exec_params_of_conditional, "graph-again/exec-params-of-conditional", par_context) {
    CUgraphNodeParams params = {0};
    CUgraph graph = gb_graph();
    params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    params.conditional.handle = condition(graph);
    params.conditional.size = 1;
    params.conditional.ctx = par.primary;
    CUgraphNode node = PAR_MADE(CUgraphNode, cuGraphAddNode, graph, NULL, 0, &params);
    CUgraphExec exec = gb_instantiate(graph);
    CALL(cuGraphExecNodeSetParams, "conditional-same", (exec, node, &params));
    params.conditional.phGraph_out = NULL;
    CALL(cuGraphExecNodeSetParams, "conditional-null-graphs", (exec, node, &params));
}
