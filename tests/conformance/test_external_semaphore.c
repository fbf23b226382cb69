/* External semaphores. Descriptors of hardware's come from a graphics driver; here they are of
 * softgpu's format, made by its controls and signaled by hand. */
#include "harness.h"

#include <fcntl.h>
#include <sys/mman.h>

#define NEEDS_FDS NEEDS_SOFTGPU("semaphores of a graphics driver would be needed")
#define BINARY    CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD
#define TIMELINE  CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD

/* A semaphore as the driver has it and as the other side does. */
struct both {
    CUexternalSemaphore semaphore;
    softgpu_semaphore *shared;
};

static CUresult import(CUexternalSemaphore *semaphore, CUexternalSemaphoreHandleType type, int fd) {
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC desc;
    memset(&desc, 0, sizeof desc);
    desc.type = type;
    desc.handle.fd = fd;
    return cu.cuImportExternalSemaphore(semaphore, &desc);
}

static struct both make(CUexternalSemaphoreHandleType type, uint64_t value) {
    struct both both = {0};
    int fd = soft->semaphore_create(
        type == BINARY ? SOFTGPU_SEMAPHORE_BINARY : SOFTGPU_SEMAPHORE_TIMELINE, value);
    assert_true(fd >= 0);
    both.shared = mmap(NULL, SOFTGPU_SEMAPHORE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true((void *)both.shared != MAP_FAILED);
    OK_CU(import(&both.semaphore, type, fd));
    assert_int_equal(fcntl(fd, F_GETFD), -1); /* it is the driver's now */
    return both;
}

static void end(struct both both) {
    OK_CU(cu.cuDestroyExternalSemaphore(both.semaphore));
    munmap(both.shared, SOFTGPU_SEMAPHORE_SIZE);
}

static uint64_t value_of(struct both both) {
    return __atomic_load_n(&both.shared->value, __ATOMIC_ACQUIRE);
}

static void set(struct both both, uint64_t value) {
    __atomic_store_n(&both.shared->value, value, __ATOMIC_RELEASE);
}

static CUresult signal_to(struct both both, uint64_t value, CUstream stream) {
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS params;
    memset(&params, 0, sizeof params);
    params.params.fence.value = value;
    return cu.cuSignalExternalSemaphoresAsync(&both.semaphore, &params, 1, stream);
}

static CUresult wait_for(struct both both, uint64_t value, CUstream stream) {
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS params;
    memset(&params, 0, sizeof params);
    params.params.fence.value = value;
    return cu.cuWaitExternalSemaphoresAsync(&both.semaphore, &params, 1, stream);
}

TEST_WHERE(a_signal_sets_the_semaphore_value, NEEDS_FDS) {
    struct both timeline = make(TIMELINE, 5), binary = make(BINARY, 0);
    OK_CU(signal_to(timeline, 6, NULL));
    OK_CU(signal_to(binary, 0, NULL));
    OK_CU(cu.cuCtxSynchronize());
    assert_int_equal(value_of(timeline), 6);
    assert_int_equal(value_of(binary), 1);
    end(timeline);
    end(binary);
}

TEST_WHERE(a_timeline_semaphore_orders_streams, NEEDS_FDS) {
    struct both timeline = make(TIMELINE, 5);
    CUstream producer = new_stream(), consumer = new_stream();
    OK_CU(wait_for(timeline, 7, consumer));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(consumer));
    OK_CU(signal_to(timeline, 6, producer));
    OK_CU(cu.cuStreamSynchronize(producer));
    assert_int_equal(value_of(timeline), 6);
    FAILS_CU(NOT_READY, cu.cuStreamQuery(consumer));
    OK_CU(signal_to(timeline, 9, producer));
    OK_CU(cu.cuStreamSynchronize(consumer));
    assert_int_equal(value_of(timeline), 9);
    OK_CU(wait_for(timeline, 9, consumer)); /* reached values stay reached */
    OK_CU(wait_for(timeline, 1, consumer));
    OK_CU(cu.cuStreamSynchronize(consumer));
    end(timeline);
}

TEST_WHERE(a_signal_comes_after_the_work_before_it, NEEDS_FDS) {
    struct both timeline = make(TIMELINE, 0);
    CUstream stream = new_stream();
    struct gate gate = hold(stream);
    OK_CU(signal_to(timeline, 1, stream));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(stream));
    assert_int_equal(value_of(timeline), 0);
    gate_drain(&gate, stream);
    assert_int_equal(value_of(timeline), 1);
    end(timeline);
}

/* "Therefore for every signal operation, there can only be one wait operation." */
TEST_WHERE(a_binary_semaphore_releases_one_wait_per_signal, NEEDS_FDS) {
    struct both binary = make(BINARY, 0);
    CUstream first = new_stream(), second = new_stream();
    OK_CU(signal_to(binary, 0, first));
    OK_CU(cu.cuStreamSynchronize(first));
    assert_int_equal(value_of(binary), 1);
    OK_CU(wait_for(binary, 0, first));
    OK_CU(cu.cuStreamSynchronize(first));
    assert_int_equal(value_of(binary), 0);
    OK_CU(wait_for(binary, 0, second));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(second));
    set(binary, 1); /* by the other side */
    OK_CU(cu.cuStreamSynchronize(second));
    assert_int_equal(value_of(binary), 0);
    end(binary);
}

TEST_WHERE(several_semaphores_are_signalled_and_awaited_in_one_call, NEEDS_FDS) {
    enum { MANY = 20 };
    struct both all[MANY];
    CUexternalSemaphore list[MANY];
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS signals[MANY];
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS waits[MANY];
    CUstream stream = new_stream(), other = new_stream();
    memset(signals, 0, sizeof signals);
    memset(waits, 0, sizeof waits);
    for (unsigned i = 0; i < MANY; i++) {
        all[i] = make(i % 2 ? BINARY : TIMELINE, 0);
        list[i] = all[i].semaphore;
        signals[i].params.fence.value = waits[i].params.fence.value = 100 + i;
    }
    OK_CU(cu.cuWaitExternalSemaphoresAsync(list, waits, MANY, stream));
    for (unsigned i = 0; i < MANY - 1; i++)
        set(all[i], i % 2 ? 1 : 100 + i);
    FAILS_CU(NOT_READY, cu.cuStreamQuery(stream)); /* the last one lacks */
    OK_CU(cu.cuSignalExternalSemaphoresAsync(list, signals, MANY, other));
    OK_CU(cu.cuStreamSynchronize(stream));
    OK_CU(cu.cuStreamSynchronize(other));
    assert_int_equal(value_of(all[18]), 118);
    for (unsigned i = 0; i < MANY; i++)
        end(all[i]);
}

/* The child takes `shared` over by its descriptor, waits for 1 and signals 2. */
CHILD(answering) {
    CUexternalSemaphore semaphore;
    if (argc != 2)
        return 9;
    init_driver();
    OK_CU(import(&semaphore, TIMELINE, atoi(argv[1])));
    struct both both = {.semaphore = semaphore};
    OK_CU(wait_for(both, 1, NULL));
    OK_CU(signal_to(both, 2, NULL));
    OK_CU(cu.cuCtxSynchronize());
    OK_CU(cu.cuDestroyExternalSemaphore(semaphore));
    return 0;
}

TEST_WHERE(a_timeline_semaphore_orders_two_processes, NEEDS_FDS) {
    int fd = soft->semaphore_create(SOFTGPU_SEMAPHORE_TIMELINE, 0), copy = fcntl(fd, F_DUPFD, 10);
    struct both both = {0};
    CUstream stream = new_stream();
    char text[16];
    OK_CU(import(&both.semaphore, TIMELINE, fd));
    snprintf(text, sizeof text, "%d", copy);
    int child = start_child("answering", text, NULL);
    close(copy);
    OK_CU(signal_to(both, 1, stream));
    OK_CU(wait_for(both, 2, stream));
    OK_CU(cu.cuStreamSynchronize(stream));
    assert_int_equal(wait_child(child), 0);
    OK_CU(cu.cuDestroyExternalSemaphore(both.semaphore));
}

TEST(descriptors_that_are_not_semaphores_are_refused) {
    CUexternalSemaphore semaphore = (CUexternalSemaphore)(uintptr_t)1;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    assert_int_not_equal(import(&semaphore, BINARY, null), CUDA_SUCCESS);
    assert_int_not_equal(import(&semaphore, TIMELINE, null), CUDA_SUCCESS);
    assert_int_not_equal(import(&semaphore, BINARY, -1), CUDA_SUCCESS);
    assert_int_not_equal(import(&semaphore, (CUexternalSemaphoreHandleType)77, null), CUDA_SUCCESS);
    assert_true(semaphore == (CUexternalSemaphore)(uintptr_t)1);
    assert_true(fcntl(null, F_GETFD) >= 0);
    close(null);
}

TEST_WHERE(importing_with_the_wrong_semaphore_type_is_refused, NEEDS_FDS) {
    CUexternalSemaphore semaphore;
    int fd = soft->semaphore_create(SOFTGPU_SEMAPHORE_BINARY, 0);
    assert_int_not_equal(import(&semaphore, TIMELINE, fd), CUDA_SUCCESS);
    OK_CU(import(&semaphore, BINARY, fd));
    OK_CU(cu.cuDestroyExternalSemaphore(semaphore));
    assert_int_equal(soft->semaphore_create((softgpu_semaphore_kind)3, 0), -1);
}

TEST_WHERE(a_destroyed_semaphore_is_refused, NEEDS_FDS) {
    struct both binary = make(BINARY, 1), live = make(BINARY, 1);
    end(binary);
    FAILS_CU(INVALID_HANDLE, cu.cuDestroyExternalSemaphore(binary.semaphore));
    FAILS_CU(INVALID_HANDLE, signal_to(binary, 1, NULL));
    CUexternalSemaphore list[2] = {live.semaphore, binary.semaphore};
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS waits[2];
    memset(waits, 0, sizeof waits);
    /* All or none. */
    FAILS_CU(INVALID_HANDLE, cu.cuWaitExternalSemaphoresAsync(list, waits, 2, NULL));
    OK_CU(cu.cuCtxSynchronize());
    assert_int_equal(value_of(live), 1);
    end(live);
}

/* A wait that is queued holds the semaphore. */
TEST_WHERE(a_semaphore_may_be_destroyed_during_a_wait, NEEDS_FDS) {
    struct both timeline = make(TIMELINE, 0);
    CUstream stream = new_stream();
    OK_CU(wait_for(timeline, 1, stream));
    OK_CU(cu.cuDestroyExternalSemaphore(timeline.semaphore));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(stream));
    set(timeline, 1);
    OK_CU(cu.cuStreamSynchronize(stream));
    munmap(timeline.shared, SOFTGPU_SEMAPHORE_SIZE);
}

TEST_WHERE(semaphores_are_destroyed_with_their_context, NEEDS_FDS) {
    CUcontext other = MADE_CU(CUcontext, cuCtxCreate_v2, 0, dev);
    struct both binary = make(BINARY, 0);
    OK_CU(cu.cuCtxDestroy_v2(other));
    OK_CU(cu.cuCtxSetCurrent(ctx));
    FAILS_CU(INVALID_HANDLE, cu.cuDestroyExternalSemaphore(binary.semaphore));
    munmap(binary.shared, SOFTGPU_SEMAPHORE_SIZE);
}

/* ---- In graphs ------------------------------------------------------------------------------- */

struct signal_node {
    CUexternalSemaphore semaphore;
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS values;
    CUDA_EXT_SEM_SIGNAL_NODE_PARAMS params;
};

static void signal_node(struct signal_node *node, struct both both, uint64_t value) {
    memset(node, 0, sizeof *node);
    node->semaphore = both.semaphore;
    node->values.params.fence.value = value;
    node->params.extSemArray = &node->semaphore;
    node->params.paramsArray = &node->values;
    node->params.numExtSems = 1;
}

struct wait_node {
    CUexternalSemaphore semaphore;
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS values;
    CUDA_EXT_SEM_WAIT_NODE_PARAMS params;
};

static void wait_node(struct wait_node *node, struct both both, uint64_t value) {
    memset(node, 0, sizeof *node);
    node->semaphore = both.semaphore;
    node->values.params.fence.value = value;
    node->params.extSemArray = &node->semaphore;
    node->params.paramsArray = &node->values;
    node->params.numExtSems = 1;
}

/* wait for 1 -> signal 2 */
TEST_WHERE(graph_nodes_wait_for_and_signal_semaphores, NEEDS_FDS) {
    struct both timeline = make(TIMELINE, 0);
    CUstream stream = new_stream();
    struct wait_node wait;
    struct signal_node signal;
    CUDA_EXT_SEM_SIGNAL_NODE_PARAMS told;
    CUDA_EXT_SEM_WAIT_NODE_PARAMS told_wait;
    CUgraphNode first, second;
    wait_node(&wait, timeline, 1);
    signal_node(&signal, timeline, 2);
    CUgraph graph = MADE_CU(CUgraph, cuGraphCreate, 0);
    OK_CU(cu.cuGraphAddExternalSemaphoresWaitNode(&first, graph, NULL, 0, &wait.params));
    OK_CU(cu.cuGraphAddExternalSemaphoresSignalNode(&second, graph, &first, 1, &signal.params));
    OK_CU(cu.cuGraphExternalSemaphoresSignalNodeGetParams(second, &told));
    assert_int_equal(told.numExtSems, 1);
    assert_int_equal(told.paramsArray[0].params.fence.value, 2);
    OK_CU(cu.cuGraphExternalSemaphoresWaitNodeGetParams(first, &told_wait));
    assert_int_equal(told_wait.paramsArray[0].params.fence.value, 1);
    CUgraphExec exec = MADE_CU(CUgraphExec, cuGraphInstantiateWithFlags, graph, 0);
    OK_CU(cu.cuGraphLaunch(exec, stream));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(stream));
    assert_int_equal(value_of(timeline), 0);
    set(timeline, 1);
    OK_CU(cu.cuStreamSynchronize(stream));
    assert_int_equal(value_of(timeline), 2);
    /* The exec's own values are other ones now, and the graph's too. */
    signal_node(&signal, timeline, 7);
    OK_CU(cu.cuGraphExecExternalSemaphoresSignalNodeSetParams(exec, second, &signal.params));
    wait_node(&wait, timeline, 4);
    OK_CU(cu.cuGraphExecExternalSemaphoresWaitNodeSetParams(exec, first, &wait.params));
    OK_CU(cu.cuGraphLaunch(exec, stream));
    for (int i = 0; i < 100; i++) /* questions have little work done */
        FAILS_CU(NOT_READY, cu.cuStreamQuery(stream));
    set(timeline, 4);
    OK_CU(cu.cuStreamSynchronize(stream));
    assert_int_equal(value_of(timeline), 7);
    signal_node(&signal, timeline, 9);
    OK_CU(cu.cuGraphExternalSemaphoresSignalNodeSetParams(second, &signal.params));
    OK_CU(cu.cuGraphExternalSemaphoresSignalNodeGetParams(second, &told));
    assert_int_equal(told.paramsArray[0].params.fence.value, 9);
    wait_node(&wait, timeline, 8);
    OK_CU(cu.cuGraphExternalSemaphoresWaitNodeSetParams(first, &wait.params));
    OK_CU(cu.cuGraphExternalSemaphoresWaitNodeGetParams(first, &told_wait));
    assert_int_equal(told_wait.paramsArray[0].params.fence.value, 8);
    DESTROY_CU(exec, graph);
    end(timeline);
}

TEST_WHERE(signals_and_waits_are_captured_as_nodes, NEEDS_FDS) {
    struct both timeline = make(TIMELINE, 0);
    CUstream stream = new_stream();
    CUgraphNode nodes[3];
    size_t count = COUNT(nodes);
    OK_CU(cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    OK_CU(signal_to(timeline, 3, stream));
    OK_CU(wait_for(timeline, 3, stream));
    CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, stream);
    assert_int_equal(value_of(timeline), 0);
    OK_CU(cu.cuGraphGetNodes(graph, nodes, &count));
    assert_int_equal(count, 2);
    CUgraphNodeType type = GOT_CU(CUgraphNodeType, cuGraphNodeGetType, nodes[0]);
    assert_int_equal(type, CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL);
    OK_CU(cu.cuGraphNodeGetType(nodes[1], &type));
    assert_int_equal(type, CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT);
    CUgraphExec exec = instantiate(graph);
    launch_and_wait(exec, stream);
    assert_int_equal(value_of(timeline), 3);
    OK_CU(cu.cuGraphDestroy(graph));
    end(timeline);
}
