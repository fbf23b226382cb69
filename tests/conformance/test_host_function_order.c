/* Host functions of a context run one after the other, whatever streams they are in. */
#include "harness.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#define MILLISECOND 1000000L /* ns */

static void pause_for(long nanoseconds) {
    struct timespec pause = {0, nanoseconds};
    nanosleep(&pause, NULL);
}

/* ---- Functions that would meet --------------------------------------------------------------- */

/* Two functions of which the first waits a while for the second: side by side they meet. */
struct meeting {
    atomic_int entered, left;
    atomic_bool met;
};

static void CUDAAPI meet(void *argument) {
    struct meeting *meeting = argument;
    bool first = atomic_fetch_add(&meeting->entered, 1) == 0;
    for (int i = 0; first && i < 1000 && atomic_load(&meeting->entered) < 2; i++)
        pause_for(MILLISECOND / 10);
    if (atomic_load(&meeting->entered) == 2 && atomic_load(&meeting->left) == 0)
        atomic_store(&meeting->met, true);
    atomic_fetch_add(&meeting->left, 1);
}

static void CUDAAPI meet_called_back(CUstream stream, CUresult status, void *argument) {
    meet(argument);
}

static CUstream make_stream(void) {
    return MADE_CU(CUstream, cuStreamCreate, CU_STREAM_NON_BLOCKING);
}

TEST(host_functions_of_two_streams_do_not_overlap) {
    CUstream a = make_stream(), b = make_stream();
    struct meeting functions = {0}, mixed = {0};
    OK_CU(cu.cuLaunchHostFunc(a, meet, &functions));
    OK_CU(cu.cuLaunchHostFunc(b, meet, &functions));
    OK_CU(cu.cuStreamSynchronize(b));
    OK_CU(cu.cuStreamSynchronize(a));
    assert_int_equal(atomic_load(&functions.left), 2);
    assert_false(atomic_load(&functions.met));
    OK_CU(cu.cuStreamAddCallback(a, meet_called_back, &mixed, 0));
    OK_CU(cu.cuLaunchHostFunc(CU_STREAM_PER_THREAD, meet, &mixed));
    OK_CU(cu.cuCtxSynchronize());
    assert_int_equal(atomic_load(&mixed.left), 2);
    assert_false(atomic_load(&mixed.met));
    DESTROY_CU(a, b);
}

TEST(host_functions_of_graph_branches_do_not_overlap) {
    struct meeting meeting = {0};
    CUDA_HOST_NODE_PARAMS params = {meet, &meeting};
    CUstream stream = make_stream();
    CUgraph graph = new_graph();
    CUgraphNode node = MADE_CU(CUgraphNode, cuGraphAddHostNode, graph, NULL, 0, &params);
    OK_CU(cu.cuGraphAddHostNode(&node, graph, NULL, 0, &params));
    CUgraphExec exec = instantiate(graph);
    launch_and_wait(exec, stream);
    assert_int_equal(atomic_load(&meeting.left), 2);
    assert_false(atomic_load(&meeting.met));
    OK_CU(cu.cuStreamDestroy_v2(stream));
}

TEST(host_functions_of_two_contexts_run_concurrently) {
    struct meeting meeting = {0};
    CUstream a = make_stream(), b;
    OK_CU(cu.cuLaunchHostFunc(a, meet, &meeting));
    CUcontext other = MADE_CU(CUcontext, cuCtxCreate_v2, 0, dev);
    b = make_stream();
    OK_CU(cu.cuLaunchHostFunc(b, meet, &meeting));
    OK_CU(cu.cuStreamSynchronize(b));
    OK_CU(cu.cuCtxDestroy_v2(other));
    OK_CU(cu.cuStreamSynchronize(a));
    assert_true(atomic_load(&meeting.met));
    OK_CU(cu.cuStreamDestroy_v2(a));
}

/* ---- A function that stays ------------------------------------------------------------------- */

struct block {
    atomic_bool release, entered;
    atomic_int calls;
    int order[8]; /* tags, by call */
};

struct step {
    struct block *block;
    int tag;
    CUstream stream; /* for a thread that waits */
};

static void CUDAAPI stay(void *argument) {
    struct block *block = argument;
    atomic_store(&block->entered, true);
    while (!atomic_load(&block->release))
        pause_for(MILLISECOND / 10);
}

static void CUDAAPI note(void *argument) {
    struct step *step = argument;
    step->block->order[atomic_fetch_add(&step->block->calls, 1)] = step->tag;
}

static void stay_in(CUstream stream, struct block *block) {
    OK_CU(cu.cuLaunchHostFunc(stream, stay, block));
    while (!atomic_load(&block->entered))
        pause_for(MILLISECOND / 10);
}

/* A tenth of a second, in which the driver gets other work to do. */
static void work_meanwhile(CUstream busy, CUdeviceptr memory) {
    for (int i = 0; i < 100; i++) {
        OK_CU(cu.cuMemsetD8Async(memory, (unsigned char)i, 4096, busy));
        while (cu.cuStreamQuery(busy) == CUDA_ERROR_NOT_READY)
            ;
        pause_for(MILLISECOND);
    }
}

static void *wait_for_stream(void *argument) {
    const struct step *step = argument;
    OK_CU(cu.cuCtxSetCurrent(ctx));
    OK_CU(cu.cuStreamSynchronize(step->stream));
    return NULL;
}

/* Queries, waits and other work that goes on change nothing. */
TEST(a_host_function_waits_for_the_running_one) {
    struct block block = {0};
    CUstream held = make_stream(), busy = make_stream();
    struct step step = {&block, 1, make_stream()};
    pthread_t waiter;
    CUdeviceptr memory = new_memory(4096);
    CUevent behind = new_event();
    stay_in(held, &block);
    OK_CU(cu.cuLaunchHostFunc(step.stream, note, &step));
    OK_CU(cu.cuEventRecord(behind, step.stream));
    assert_int_equal(pthread_create(&waiter, NULL, wait_for_stream, &step), 0);
    work_meanwhile(busy, memory);
    FAILS_CU(NOT_READY, cu.cuStreamQuery(step.stream));
    FAILS_CU(NOT_READY, cu.cuEventQuery(behind));
    assert_int_equal(atomic_load(&block.calls), 0);
    atomic_store(&block.release, true);
    assert_int_equal(pthread_join(waiter, NULL), 0);
    assert_int_equal(atomic_load(&block.calls), 1);
    OK_CU(cu.cuEventQuery(behind));
    OK_CU(cu.cuStreamSynchronize(held));
    DESTROY_CU(held, busy, step.stream);
}

/* In the order in which their streams came to them: neither a stream's priority nor who is waited
 * for changes it, and a stream with many does not keep the others out. */
TEST(host_functions_run_in_order_of_arrival) {
    struct block block = {0};
    CUstream held = make_stream(), streams[3];
    struct step steps[6];
    for (int i = 0; i < 3; i++)
        OK_CU(cu.cuStreamCreateWithPriority(&streams[i], CU_STREAM_NON_BLOCKING, -i));
    stay_in(held, &block);
    for (int i = 0; i < 6; i++) {
        steps[i] = (struct step){&block, i, streams[i % 3]};
        OK_CU(cu.cuLaunchHostFunc(streams[i % 3], note, &steps[i]));
    }
    atomic_store(&block.release, true);
    for (int i = 2; i >= 0; i--)
        OK_CU(cu.cuStreamSynchronize(streams[i]));
    assert_int_equal(atomic_load(&block.calls), 6);
    for (int i = 0; i < 6; i++)
        assert_int_equal(block.order[i], i);
    for (int i = 0; i < 3; i++)
        OK_CU(cu.cuStreamDestroy_v2(streams[i]));
    OK_CU(cu.cuStreamDestroy_v2(held));
}

/* Nothing is left in the way of later ones. */
TEST(a_host_function_of_a_destroyed_stream_blocks_no_other) {
    struct block block = {0};
    CUstream held = make_stream();
    struct step gone = {&block, 1, make_stream()}, after = {&block, 2, make_stream()};
    stay_in(held, &block);
    OK_CU(cu.cuLaunchHostFunc(gone.stream, note, &gone));
    DESTROY_CU(gone.stream, held);
    OK_CU(cu.cuLaunchHostFunc(after.stream, note, &after));
    atomic_store(&block.release, true);
    OK_CU(cu.cuStreamSynchronize(after.stream));
    OK_CU(cu.cuCtxSynchronize());
    assert_int_equal(atomic_load(&block.calls), 2);
    OK_CU(cu.cuStreamDestroy_v2(after.stream));
}
