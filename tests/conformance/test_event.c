/* Events: recorded, asked, awaited, re-recorded, destroyed while pending. */
#include "harness.h"

struct scene {
    CUstream stream;
    CUevent event;
    struct gate gate;
};

static struct scene make(void) {
    struct scene scene;
    scene.stream = new_stream();
    scene.event = new_timed_event();
    scene.gate = new_gate();
    return scene;
}

TEST(an_event_never_recorded_is_complete) {
    struct scene scene = make();
    OK(cu.cuEventQuery(scene.event));
    OK(cu.cuEventSynchronize(scene.event));
    OK(cu.cuStreamWaitEvent(scene.stream, scene.event, 0));
    OK(cu.cuStreamQuery(scene.stream));
}

TEST(a_record_completes_with_its_stream) {
    struct scene scene = make();
    unsigned char out = 0;
    CUdeviceptr bytes = new_memory(4096);
    gate_hold(&scene.gate, scene.stream);
    OK(cu.cuMemsetD8Async(bytes, 8, 4096, scene.stream));
    OK(cu.cuEventRecord(scene.event, scene.stream));
    FAILS(CUDA_ERROR_NOT_READY, cu.cuEventQuery(scene.event));
    gate_release(&scene.gate);
    OK(cu.cuEventSynchronize(scene.event));
    OK(cu.cuEventQuery(scene.event));
    OK(cu.cuMemcpyDtoHAsync_v2(&out, bytes, 1, scene.stream));
    assert_int_equal(out, 8);
}

/* What follows in the stream is no part of the record. */
TEST(a_record_covers_only_earlier_work) {
    struct scene scene = make();
    OK(cu.cuEventRecord(scene.event, scene.stream));
    gate_hold(&scene.gate, scene.stream);
    OK(cu.cuEventSynchronize(scene.event));
    FAILS(CUDA_ERROR_NOT_READY, cu.cuStreamQuery(scene.stream));
}

TEST(a_new_record_replaces_the_last_one) {
    struct scene scene = make();
    OK(cu.cuEventRecord(scene.event, scene.stream));
    OK(cu.cuEventSynchronize(scene.event));
    gate_hold(&scene.gate, scene.stream);
    OK(cu.cuEventRecordWithFlags(scene.event, scene.stream, CU_EVENT_RECORD_DEFAULT));
    FAILS(CUDA_ERROR_NOT_READY, cu.cuEventQuery(scene.event));
    gate_release(&scene.gate);
    OK(cu.cuEventSynchronize(scene.event));
    OK(cu.cuEventQuery(scene.event));
}

TEST(an_event_may_be_destroyed_while_pending) {
    struct scene scene = make();
    CUevent gone;
    CUstream waiting;
    OK(cu.cuStreamCreate(&waiting, CU_STREAM_NON_BLOCKING));
    OK(cu.cuEventCreate(&gone, CU_EVENT_DEFAULT));
    gate_hold(&scene.gate, scene.stream);
    OK(cu.cuEventRecord(gone, scene.stream));
    OK(cu.cuStreamWaitEvent(waiting, gone, 0));
    OK(cu.cuEventDestroy_v2(gone));
    FAILS(CUDA_ERROR_NOT_READY, cu.cuStreamQuery(waiting));
    gate_drain(&scene.gate, waiting);
    OK(cu.cuStreamDestroy_v2(waiting));
}

TEST(the_first_version_of_event_destroy_works) {
    CUevent event;
    OK(cu.cuEventCreate(&event, CU_EVENT_BLOCKING_SYNC));
    OK(cu.cuEventDestroy(event));
}

TEST(invalid_arguments_are_refused) {
    CUevent event = NULL;
    FAILS(CUDA_ERROR_INVALID_VALUE, cu.cuEventCreate(&event, 0x100));
    /* Interprocess events cannot be timed. */
    FAILS(CUDA_ERROR_INVALID_VALUE, cu.cuEventCreate(&event, CU_EVENT_INTERPROCESS));
    assert_null(event);
}

TEST(event_and_stream_must_share_a_context) {
    struct scene scene = make();
    CUcontext second = new_context(dev);
    CUstream foreign = new_stream();
    FAILS(CUDA_ERROR_INVALID_HANDLE, cu.cuEventRecord(scene.event, foreign));
    /* Waiting across contexts is allowed. */
    gate_hold(&scene.gate, scene.stream);
    OK(cu.cuCtxSetCurrent(ctx));
    OK(cu.cuEventRecord(scene.event, scene.stream));
    OK(cu.cuCtxSetCurrent(second));
    OK(cu.cuStreamWaitEvent(foreign, scene.event, 0));
    FAILS(CUDA_ERROR_NOT_READY, cu.cuStreamQuery(foreign));
    gate_drain(&scene.gate, foreign);
    OK(cu.cuCtxSetCurrent(ctx));
}
