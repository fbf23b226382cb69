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
    OK_CU(cu.cuEventQuery(scene.event));
    OK_CU(cu.cuEventSynchronize(scene.event));
    OK_CU(cu.cuStreamWaitEvent(scene.stream, scene.event, 0));
    OK_CU(cu.cuStreamQuery(scene.stream));
}

TEST(a_record_completes_with_its_stream) {
    struct scene scene = make();
    unsigned char out = 0;
    CUdeviceptr bytes = new_memory(4096);
    gate_hold(&scene.gate, scene.stream);
    OK_CU(cu.cuMemsetD8Async(bytes, 8, 4096, scene.stream));
    OK_CU(cu.cuEventRecord(scene.event, scene.stream));
    FAILS_CU(NOT_READY, cu.cuEventQuery(scene.event));
    gate_release(&scene.gate);
    OK_CU(cu.cuEventSynchronize(scene.event));
    OK_CU(cu.cuEventQuery(scene.event));
    OK_CU(cu.cuMemcpyDtoHAsync_v2(&out, bytes, 1, scene.stream));
    assert_int_equal(out, 8);
}

/* What follows in the stream is no part of the record. */
TEST(a_record_covers_only_earlier_work) {
    struct scene scene = make();
    OK_CU(cu.cuEventRecord(scene.event, scene.stream));
    gate_hold(&scene.gate, scene.stream);
    OK_CU(cu.cuEventSynchronize(scene.event));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(scene.stream));
}

TEST(a_new_record_replaces_the_last_one) {
    struct scene scene = make();
    OK_CU(cu.cuEventRecord(scene.event, scene.stream));
    OK_CU(cu.cuEventSynchronize(scene.event));
    gate_hold(&scene.gate, scene.stream);
    OK_CU(cu.cuEventRecordWithFlags(scene.event, scene.stream, CU_EVENT_RECORD_DEFAULT));
    FAILS_CU(NOT_READY, cu.cuEventQuery(scene.event));
    gate_release(&scene.gate);
    OK_CU(cu.cuEventSynchronize(scene.event));
    OK_CU(cu.cuEventQuery(scene.event));
}

TEST(an_event_may_be_destroyed_while_pending) {
    struct scene scene = make();
    CUstream waiting = new_stream();
    CUevent gone = MADE_CU(CUevent, cuEventCreate, CU_EVENT_DEFAULT);
    gate_hold(&scene.gate, scene.stream);
    order_streams(scene.stream, gone, waiting);
    OK_CU(cu.cuEventDestroy_v2(gone));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(waiting));
    gate_drain(&scene.gate, waiting);
}

TEST(the_first_version_of_event_destroy_works) {
    CUevent event = MADE_CU(CUevent, cuEventCreate, CU_EVENT_BLOCKING_SYNC);
    OK_CU(cu.cuEventDestroy(event));
}

TEST(invalid_arguments_are_refused) {
    CUevent event = NULL;
    FAILS_CU(INVALID_VALUE, cu.cuEventCreate(&event, 0x100));
    /* Interprocess events cannot be timed. */
    FAILS_CU(INVALID_VALUE, cu.cuEventCreate(&event, CU_EVENT_INTERPROCESS));
    assert_null(event);
}

TEST(event_and_stream_must_share_a_context) {
    struct scene scene = make();
    CUcontext second = new_context(dev);
    CUstream foreign = new_stream();
    FAILS_CU(INVALID_HANDLE, cu.cuEventRecord(scene.event, foreign));
    /* Waiting across contexts is allowed. */
    gate_hold(&scene.gate, scene.stream);
    OK_CU(cu.cuCtxSetCurrent(ctx));
    OK_CU(cu.cuEventRecord(scene.event, scene.stream));
    OK_CU(cu.cuCtxSetCurrent(second));
    OK_CU(cu.cuStreamWaitEvent(foreign, scene.event, 0));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(foreign));
    gate_drain(&scene.gate, foreign);
    OK_CU(cu.cuCtxSetCurrent(ctx));
}
