/* Host functions and stream callbacks: in the stream's order, on a thread of the driver's. */
#include "harness.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

struct record {
    atomic_int calls;
    int order[8]; /* tags in order of calls; written by one stream's functions only */
    pthread_t thread;
    CUresult answers[3];
    CUstream stream, seen_stream;
    CUresult status;
};

struct step {
    struct record *record;
    int tag;
};

static void CUDAAPI note(void *argument) {
    struct step *step = argument;
    struct record *record = step->record;
    record->thread = pthread_self();
    record->order[atomic_fetch_add(&record->calls, 1)] = step->tag;
}

TEST(host_functions_run_in_stream_order) {
    struct record record = {0};
    struct step steps[3] = {{&record, 1}, {&record, 2}, {&record, 3}};
    CUstream stream = new_stream();
    struct gate gate = hold(stream);
    for (unsigned i = 0; i < COUNT(steps); i++)
        OK_CU(cu.cuLaunchHostFunc(stream, note, &steps[i]));
    assert_int_equal(atomic_load(&record.calls), 0);
    gate_drain(&gate, stream);
    assert_int_equal(atomic_load(&record.calls), 3);
    MEMBERS(record, (order[0], 1), (order[1], 2), (order[2], 3));
    assert_false(pthread_equal(record.thread, pthread_self()));
}

static void CUDAAPI ask(void *argument) {
    struct record *record = argument;
    CUdeviceptr memory;
    CUcontext context;
    record->answers[0] = cu.cuMemAlloc_v2(&memory, 64);
    record->answers[1] = cu.cuCtxGetCurrent(&context);
    record->answers[2] = cu.cuStreamQuery(record->stream);
}

TEST(most_driver_calls_in_a_host_function_are_refused) {
    struct record record = {.stream = new_stream()};
    OK_CU(cu.cuLaunchHostFunc(record.stream, ask, &record));
    OK_CU(cu.cuStreamSynchronize(record.stream));
    FAILS_CU(NOT_PERMITTED, record.answers[0]);
    FAILS_CU(NOT_PERMITTED, record.answers[1]);
    FAILS_CU(NOT_READY, record.answers[2]);
}

struct inside {
    struct record record;
    struct step step;
    CUstream stream, other;
    CUevent event;
    CUresult recorded, queried, launched;
};

static void CUDAAPI queue_more(void *argument) {
    struct inside *inside = argument;
    inside->recorded = cu.cuEventRecord(inside->event, inside->other);
    inside->queried = cu.cuEventQuery(inside->event);
    inside->launched = cu.cuLaunchHostFunc(inside->other, note, &inside->step);
}

/* Seen on H200, though the documentation forbids all calls. */
TEST(host_functions_may_record_events_and_launch_host_functions) {
    struct inside inside = {.recorded = CUDA_ERROR_UNKNOWN};
    inside.step = (struct step){&inside.record, 5};
    inside.stream = new_stream();
    inside.other = new_stream();
    inside.event = new_event();
    OK_CU(cu.cuLaunchHostFunc(inside.stream, queue_more, &inside));
    OK_CU(cu.cuStreamSynchronize(inside.stream));
    OK_CU(inside.recorded);
    OK_CU(inside.launched);
    assert_true(inside.queried == CUDA_SUCCESS || inside.queried == CUDA_ERROR_NOT_READY);
    OK_CU(cu.cuStreamSynchronize(inside.other));
    assert_int_equal(atomic_load(&inside.record.calls), 1);
    assert_int_equal(inside.record.order[0], 5);
}

static void CUDAAPI called_back(CUstream stream, CUresult status, void *argument) {
    struct record *record = argument;
    record->seen_stream = stream;
    record->status = status;
    atomic_fetch_add(&record->calls, 1);
}

TEST(a_stream_callback_gets_its_stream_and_status) {
    struct record record = {.status = CUDA_ERROR_UNKNOWN};
    record.stream = new_stream();
    OK_CU(cu.cuStreamAddCallback(record.stream, called_back, &record, 0));
    OK_CU(cu.cuStreamSynchronize(record.stream));
    assert_int_equal(atomic_load(&record.calls), 1);
    assert_ptr_equal(record.seen_stream, record.stream);
    OK_CU(record.status);
}

struct block {
    atomic_bool release;
    atomic_bool entered;
};

static void CUDAAPI stay(void *argument) {
    struct block *block = argument;
    struct timespec pause = {0, 100000};
    atomic_store(&block->entered, true);
    while (!atomic_load(&block->release))
        nanosleep(&pause, NULL);
}

static void wait_until(atomic_bool *flag) {
    struct timespec pause = {0, 100000};
    while (!atomic_load(flag))
        nanosleep(&pause, NULL);
}

TEST(a_blocking_host_function_does_not_delay_other_copies) {
    struct block block = {0};
    CUdeviceptr bytes = new_memory(4096);
    CUstream other = new_stream();
    CUstream held = MADE_CU(CUstream, cuStreamCreate, CU_STREAM_NON_BLOCKING);
    OK_CU(cu.cuLaunchHostFunc(held, stay, &block));
    wait_until(&block.entered);
    OK_CU(cu.cuMemsetD8Async(bytes, 4, 4096, other));
    while (cu.cuStreamQuery(other) == CUDA_ERROR_NOT_READY)
        ;
    FAILS_CU(NOT_READY, cu.cuStreamQuery(held));
    atomic_store(&block.release, true);
    OK_CU(cu.cuStreamSynchronize(held));
    OK_CU(cu.cuStreamDestroy_v2(held));
    assert_int_equal(byte_at(bytes), 4);
}
