/* The legacy default stream: it waits for blocking streams, and they wait for it. */
#include "harness.h"

struct scene {
    CUstream blocking, free;
    struct gate gate;
    CUdeviceptr bytes;
};

static struct scene make(void) {
    struct scene scene;
    OK(cu.cuStreamCreate(&scene.blocking, CU_STREAM_DEFAULT));
    OK(cu.cuStreamCreate(&scene.free, CU_STREAM_NON_BLOCKING));
    gate_make(&scene.gate);
    OK(cu.cuMemAlloc_v2(&scene.bytes, 4096));
    OK(cu.cuMemsetD8_v2(scene.bytes, 0, 4096));
    OK(cu.cuCtxSynchronize());
    return scene;
}

static void end(struct scene *scene) {
    gate_release(&scene->gate);
    OK(cu.cuCtxSynchronize());
    gate_free(&scene->gate);
    OK(cu.cuMemFree_v2(scene->bytes));
    OK(cu.cuStreamDestroy_v2(scene->blocking));
    OK(cu.cuStreamDestroy_v2(scene->free));
}

static unsigned char first_byte(const struct scene *scene) {
    unsigned char out = 0;
    OK(cu.cuMemcpyDtoH_v2(&out, scene->bytes, 1));
    return out;
}

TEST(blocking_streams_wait_for_the_legacy_stream) {
    struct scene scene = make();
    gate_hold(&scene.gate, CU_STREAM_LEGACY);
    OK(cu.cuMemsetD8Async(scene.bytes, 1, 4096, CU_STREAM_LEGACY));
    OK(cu.cuMemsetD8Async(scene.bytes, 2, 4096, scene.blocking));
    FAILS(CUDA_ERROR_NOT_READY, cu.cuStreamQuery(scene.blocking));
    gate_release(&scene.gate);
    OK(cu.cuStreamSynchronize(scene.blocking));
    OK(cu.cuStreamQuery(CU_STREAM_LEGACY));
    assert_int_equal(first_byte(&scene), 2);
    end(&scene);
}

TEST(the_legacy_stream_waits_for_blocking_streams) {
    struct scene scene = make();
    gate_hold(&scene.gate, scene.blocking);
    OK(cu.cuMemsetD8Async(scene.bytes, 1, 4096, scene.blocking));
    OK(cu.cuMemsetD8Async(scene.bytes, 2, 4096, CU_STREAM_LEGACY));
    FAILS(CUDA_ERROR_NOT_READY, cu.cuStreamQuery(CU_STREAM_LEGACY));
    gate_release(&scene.gate);
    OK(cu.cuStreamSynchronize(CU_STREAM_LEGACY));
    OK(cu.cuStreamQuery(scene.blocking));
    assert_int_equal(first_byte(&scene), 2);
    end(&scene);
}

TEST(a_null_stream_is_the_legacy_stream) {
    NEEDS_LEGACY_STREAM();
    struct scene scene = make();
    gate_hold(&scene.gate, NULL);
    OK(cu.cuMemsetD8Async(scene.bytes, 2, 4096, scene.blocking));
    FAILS(CUDA_ERROR_NOT_READY, cu.cuStreamQuery(NULL));
    FAILS(CUDA_ERROR_NOT_READY, cu.cuStreamQuery(CU_STREAM_LEGACY));
    FAILS(CUDA_ERROR_NOT_READY, cu.cuStreamQuery(scene.blocking));
    gate_release(&scene.gate);
    OK(cu.cuStreamSynchronize(NULL));
    end(&scene);
}

TEST(non_blocking_streams_are_independent_of_the_legacy_stream) {
    struct scene scene = make();
    gate_hold(&scene.gate, CU_STREAM_LEGACY);
    OK(cu.cuMemsetD8Async(scene.bytes, 3, 4096, scene.free));
    OK(cu.cuStreamSynchronize(scene.free));
    FAILS(CUDA_ERROR_NOT_READY, cu.cuStreamQuery(CU_STREAM_LEGACY));
    gate_release(&scene.gate);
    assert_int_equal(first_byte(&scene), 3);

    gate_hold(&scene.gate, scene.free);
    OK(cu.cuMemsetD8Async(scene.bytes, 4, 4096, CU_STREAM_LEGACY));
    OK(cu.cuStreamSynchronize(CU_STREAM_LEGACY));
    FAILS(CUDA_ERROR_NOT_READY, cu.cuStreamQuery(scene.free));
    assert_int_equal(first_byte(&scene), 4);
    end(&scene);
}

/* Two blocking streams meet only through the legacy stream's work between them. */
TEST(the_legacy_stream_orders_blocking_streams_with_each_other) {
    struct scene scene = make();
    CUstream second;
    OK(cu.cuStreamCreate(&second, CU_STREAM_DEFAULT));
    gate_hold(&scene.gate, scene.blocking);
    OK(cu.cuMemsetD8Async(scene.bytes, 1, 4096, scene.blocking));
    OK(cu.cuMemsetD8Async(scene.bytes, 2, 4096, CU_STREAM_LEGACY));
    OK(cu.cuMemsetD8Async(scene.bytes, 3, 4096, second));
    FAILS(CUDA_ERROR_NOT_READY, cu.cuStreamQuery(second));
    gate_release(&scene.gate);
    OK(cu.cuStreamSynchronize(second));
    assert_int_equal(first_byte(&scene), 3);
    OK(cu.cuStreamDestroy_v2(second));
    end(&scene);
}

/* The order outlives the stream. */
TEST(the_legacy_stream_waits_for_destroyed_streams) {
    struct scene scene = make();
    CUstream second;
    OK(cu.cuStreamCreate(&second, CU_STREAM_DEFAULT));
    gate_hold(&scene.gate, second);
    OK(cu.cuMemsetD8Async(scene.bytes, 1, 4096, second));
    OK(cu.cuStreamDestroy_v2(second));
    OK(cu.cuMemsetD8Async(scene.bytes, 2, 4096, CU_STREAM_LEGACY));
    FAILS(CUDA_ERROR_NOT_READY, cu.cuStreamQuery(CU_STREAM_LEGACY));
    gate_release(&scene.gate);
    OK(cu.cuStreamSynchronize(CU_STREAM_LEGACY));
    assert_int_equal(first_byte(&scene), 2);
    end(&scene);
}

/* Asking completes what has nothing left to wait for; the streams asked about may go with it. */
TEST(a_query_may_complete_destroyed_streams) {
    struct scene scene = make();
    CUstream gone[3];
    CUevent event;
    OK(cu.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    gate_hold(&scene.gate, scene.free);
    OK(cu.cuEventRecord(event, scene.free));
    for (unsigned i = 0; i < COUNT(gone); i++) {
        OK(cu.cuStreamCreate(&gone[i], CU_STREAM_DEFAULT));
        OK(cu.cuStreamWaitEvent(gone[i], event, 0));
        OK(cu.cuEventRecord(event, gone[i]));
        OK(cu.cuStreamDestroy_v2(gone[i]));
    }
    FAILS(CUDA_ERROR_NOT_READY, cu.cuStreamQuery(CU_STREAM_LEGACY));
    gate_release(&scene.gate);
    while (cu.cuStreamQuery(CU_STREAM_LEGACY) == CUDA_ERROR_NOT_READY)
        ;
    OK(cu.cuStreamQuery(CU_STREAM_LEGACY));
    OK(cu.cuStreamQuery(scene.free));
    OK(cu.cuEventDestroy_v2(event));
    end(&scene);
}
