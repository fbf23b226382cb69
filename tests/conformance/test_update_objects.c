/* User objects of executable graphs: an update takes over the new graph's and gives up its own. */
#include "graph_nodes.h"

#include <pthread.h>
#include <time.h>

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int ended;
static CUdeviceptr memory;

/* Each object has a weight of its own, so that the sum says which of them have ended. */
static void destroy(void *weight) {
    pthread_mutex_lock(&guard);
    ended += (int)(intptr_t)weight;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&guard);
}

/* What the destructors have added up to; waits for `wanted`, not forever. */
static int ended_after(int wanted) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 2;
    pthread_mutex_lock(&guard);
    while (ended < wanted && pthread_cond_timedwait(&changed, &guard, &until) == 0) {
    }
    int now = ended;
    pthread_mutex_unlock(&guard);
    return now;
}

static int begin(void **state) {
    int failed = test_begin(state);
    ended = 0;
    if (!failed)
        memory = new_memory(4096);
    return failed;
}

EACH_TEST(begin, test_end);

static CUuserObject own(CUgraph graph, int weight) {
    CUuserObject object;
    OK_CU(cu.cuUserObjectCreate(&object, (void *)(intptr_t)weight, destroy, 1,
                                CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    OK_CU(cu.cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
    return object;
}

/* A graph of one set, which alone keeps an object of this weight. */
static CUgraph graph_with(int weight) {
    CUgraph graph = new_graph();
    add_set(graph, NULL, memory, (unsigned)weight, 64);
    own(graph, weight);
    return graph;
}

/* A graph whose only node embeds one that keeps an object. */
static CUgraph outer_with(int weight, CUgraphNode *node) {
    CUgraph outer = new_graph(), child = graph_with(weight);
    OK_CU(cu.cuGraphAddChildGraphNode(node, outer, NULL, 0, child));
    destroy_graph(child);
    return outer;
}

/* An exec that alone is left of its graph. */
static CUgraphExec exec_of(CUgraph graph) {
    CUgraphExec exec = instantiate(graph);
    destroy_graph(graph);
    return exec;
}

static CUresult update(CUgraphExec exec, CUgraph graph) {
    CUgraphExecUpdateResultInfo info;
    return cu.cuGraphExecUpdate_v2(exec, graph, &info);
}

TEST(an_update_transfers_the_user_objects_of_the_new_graph) {
    CUgraphExec exec = exec_of(graph_with(1));
    CUgraph other = graph_with(10);
    assert_int_equal(ended_after(0), 0);
    OK_CU(update(exec, other));
    assert_int_equal(ended_after(1), 1);
    destroy_graph(other);
    assert_int_equal(ended_after(1), 1);
    run(exec);
    destroy_exec(exec);
    assert_int_equal(ended_after(11), 11);
}

TEST(each_update_releases_the_user_objects_of_the_last) {
    CUgraphExec exec = exec_of(graph_with(1));
    for (int weight = 2, sum = 1; weight <= 64; sum += weight, weight *= 2) {
        CUgraph other = graph_with(weight);
        OK_CU(update(exec, other));
        destroy_graph(other);
        assert_int_equal(ended_after(sum), sum);
    }
    destroy_exec(exec);
    assert_int_equal(ended_after(127), 127);
}

TEST(a_refused_update_changes_no_user_objects) {
    CUgraphExec exec = exec_of(graph_with(1));
    CUgraph other = graph_with(10);
    add_empty(other, NULL);
    FAILS_CU(GRAPH_EXEC_UPDATE_FAILURE, update(exec, other));
    assert_int_equal(ended_after(0), 0);
    destroy_graph(other);
    assert_int_equal(ended_after(10), 10);
    destroy_exec(exec);
    assert_int_equal(ended_after(11), 11);
}

TEST(a_user_object_of_both_graphs_survives_the_update) {
    CUgraph graph = new_graph(), other = new_graph(), none = new_graph();
    CUuserObject object = own(graph, 1);
    OK_CU(cu.cuGraphRetainUserObject(other, object, 3, 0));
    CUgraphExec exec = exec_of(graph);
    OK_CU(update(exec, other));
    OK_CU(update(exec, other));
    destroy_graph(other);
    assert_int_equal(ended_after(0), 0);
    OK_CU(update(exec, none));
    assert_int_equal(ended_after(1), 1);
    destroy_exec(exec);
    destroy_graph(none);
    assert_int_equal(ended_after(1), 1);
}

TEST(an_update_transfers_user_objects_of_child_graphs) {
    CUgraphNode node;
    CUgraphExec exec = exec_of(outer_with(1, &node));
    CUgraph other = outer_with(10, &node);
    assert_int_equal(ended_after(0), 0);
    OK_CU(update(exec, other));
    assert_int_equal(ended_after(1), 1);
    destroy_graph(other);
    assert_int_equal(ended_after(1), 1);
    destroy_exec(exec);
    assert_int_equal(ended_after(11), 11);
}

TEST(a_new_child_graph_brings_its_user_objects) {
    CUgraphNode node;
    CUgraph outer = outer_with(1, &node), child = graph_with(10);
    CUgraphExec exec = instantiate(outer);
    own(outer, 100);
    OK_CU(cu.cuGraphExecChildGraphNodeSetParams(exec, node, child));
    destroy_graph(child);
    assert_int_equal(ended_after(0), 0); /* the outer graph has its copy of the first */
    destroy_graph(outer);
    assert_int_equal(ended_after(101), 101);
    destroy_exec(exec);
    assert_int_equal(ended_after(111), 111);
}

/* "Any references which would be released are held until the launches have finished." */
TEST(a_pending_launch_keeps_its_user_objects) {
    CUstream stream = new_stream();
    CUgraphExec exec = exec_of(graph_with(1));
    CUgraph second = graph_with(10), third = graph_with(100);
    struct gate gate = hold(stream);
    OK_CU(cu.cuGraphLaunch(exec, stream));
    OK_CU(update(exec, second));
    OK_CU(cu.cuGraphLaunch(exec, stream));
    destroy_graph(second);
    OK_CU(update(exec, third));
    destroy_graph(third);
    assert_int_equal(ended_after(0), 0);
    gate_drain(&gate, stream);
    assert_int_equal(ended_after(11), 11);
    destroy_exec(exec);
    assert_int_equal(ended_after(111), 111);
}
