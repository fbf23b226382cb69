/* The legacy default stream: it waits for blocking streams, and they wait for it. */
#include "harness.h"

struct scene {
    CUstream blocking, free;
    struct gate gate;
    CUdeviceptr bytes;
};

static struct scene make(void) {
    struct scene scene;
    scene.blocking = new_blocking_stream();
    scene.free = new_stream();
    scene.gate = new_gate();
    scene.bytes = new_memory(4096);
    set_bytes(scene.bytes, 0, 4096);
    return scene;
}

static unsigned char first_byte(const struct scene *scene) {
    unsigned char out = 0;
    OK_CU(cu.cuMemcpyDtoH_v2(&out, scene->bytes, 1));
    return out;
}

TEST(blocking_streams_wait_for_the_legacy_stream) {
    struct scene scene = make();
    gate_hold(&scene.gate, CU_STREAM_LEGACY);
    OK_CU(cu.cuMemsetD8Async(scene.bytes, 1, 4096, CU_STREAM_LEGACY));
    OK_CU(cu.cuMemsetD8Async(scene.bytes, 2, 4096, scene.blocking));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(scene.blocking));
    gate_drain(&scene.gate, scene.blocking);
    OK_CU(cu.cuStreamQuery(CU_STREAM_LEGACY));
    assert_int_equal(first_byte(&scene), 2);
}

TEST(the_legacy_stream_waits_for_blocking_streams) {
    struct scene scene = make();
    gate_hold(&scene.gate, scene.blocking);
    OK_CU(cu.cuMemsetD8Async(scene.bytes, 1, 4096, scene.blocking));
    OK_CU(cu.cuMemsetD8Async(scene.bytes, 2, 4096, CU_STREAM_LEGACY));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(CU_STREAM_LEGACY));
    gate_drain(&scene.gate, CU_STREAM_LEGACY);
    OK_CU(cu.cuStreamQuery(scene.blocking));
    assert_int_equal(first_byte(&scene), 2);
}

TEST_WHERE(a_null_stream_is_the_legacy_stream, NEEDS_LEGACY_STREAM()) {
    struct scene scene = make();
    gate_hold(&scene.gate, NULL);
    OK_CU(cu.cuMemsetD8Async(scene.bytes, 2, 4096, scene.blocking));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(NULL));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(CU_STREAM_LEGACY));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(scene.blocking));
    gate_drain(&scene.gate, NULL);
}

TEST(non_blocking_streams_are_independent_of_the_legacy_stream) {
    struct scene scene = make();
    gate_hold(&scene.gate, CU_STREAM_LEGACY);
    OK_CU(cu.cuMemsetD8Async(scene.bytes, 3, 4096, scene.free));
    OK_CU(cu.cuStreamSynchronize(scene.free));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(CU_STREAM_LEGACY));
    gate_release(&scene.gate);
    assert_int_equal(first_byte(&scene), 3);

    gate_hold(&scene.gate, scene.free);
    OK_CU(cu.cuMemsetD8Async(scene.bytes, 4, 4096, CU_STREAM_LEGACY));
    OK_CU(cu.cuStreamSynchronize(CU_STREAM_LEGACY));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(scene.free));
    assert_int_equal(first_byte(&scene), 4);
}

/* Two blocking streams meet only through the legacy stream's work between them. */
TEST(the_legacy_stream_orders_blocking_streams_with_each_other) {
    struct scene scene = make();
    CUstream second = new_blocking_stream();
    gate_hold(&scene.gate, scene.blocking);
    OK_CU(cu.cuMemsetD8Async(scene.bytes, 1, 4096, scene.blocking));
    OK_CU(cu.cuMemsetD8Async(scene.bytes, 2, 4096, CU_STREAM_LEGACY));
    OK_CU(cu.cuMemsetD8Async(scene.bytes, 3, 4096, second));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(second));
    gate_drain(&scene.gate, second);
    assert_int_equal(first_byte(&scene), 3);
}

/* The order outlives the stream. */
TEST(the_legacy_stream_waits_for_destroyed_streams) {
    struct scene scene = make();
    CUstream second = MADE_CU(CUstream, cuStreamCreate, CU_STREAM_DEFAULT);
    gate_hold(&scene.gate, second);
    OK_CU(cu.cuMemsetD8Async(scene.bytes, 1, 4096, second));
    OK_CU(cu.cuStreamDestroy_v2(second));
    OK_CU(cu.cuMemsetD8Async(scene.bytes, 2, 4096, CU_STREAM_LEGACY));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(CU_STREAM_LEGACY));
    gate_drain(&scene.gate, CU_STREAM_LEGACY);
    assert_int_equal(first_byte(&scene), 2);
}

/* Asking completes what has nothing left to wait for; the streams asked about may go with it. */
TEST(a_query_may_complete_destroyed_streams) {
    struct scene scene = make();
    CUstream gone[3];
    CUevent event = new_event();
    gate_hold(&scene.gate, scene.free);
    OK_CU(cu.cuEventRecord(event, scene.free));
    for (unsigned i = 0; i < COUNT(gone); i++) {
        OK_CU(cu.cuStreamCreate(&gone[i], CU_STREAM_DEFAULT));
        OK_CU(cu.cuStreamWaitEvent(gone[i], event, 0));
        OK_CU(cu.cuEventRecord(event, gone[i]));
        OK_CU(cu.cuStreamDestroy_v2(gone[i]));
    }
    FAILS_CU(NOT_READY, cu.cuStreamQuery(CU_STREAM_LEGACY));
    gate_release(&scene.gate);
    while (cu.cuStreamQuery(CU_STREAM_LEGACY) == CUDA_ERROR_NOT_READY)
        ;
    OK_CU(cu.cuStreamQuery(CU_STREAM_LEGACY));
    OK_CU(cu.cuStreamQuery(scene.free));
}
