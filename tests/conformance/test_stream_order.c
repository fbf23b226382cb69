/* What is ordered after what, and what is not. States in between are held by gates. */
#include "harness.h"

#include <pthread.h>
#include <time.h>

/* Two streams and a counter in pinned memory that streams write: what has happened so far. */
struct scene {
    CUstream a, b;
    struct gate gate;
    uint32_t *mark;
    CUdeviceptr mark_address;
};

static struct scene make(void) {
    struct scene scene;
    void *memory;
    OK_CU(cu.cuStreamCreate(&scene.a, CU_STREAM_NON_BLOCKING));
    OK_CU(cu.cuStreamCreate(&scene.b, CU_STREAM_NON_BLOCKING));
    gate_make(&scene.gate);
    OK_CU(cu.cuMemHostAlloc(&memory, 64, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
    scene.mark = memory;
    *scene.mark = 0;
    OK_CU(cu.cuMemHostGetDevicePointer_v2(&scene.mark_address, memory, 0));
    return scene;
}

static void end(struct scene *scene) {
    gate_release(&scene->gate);
    OK_CU(cu.cuCtxSynchronize());
    gate_free(&scene->gate);
    OK_CU(cu.cuMemFreeHost(scene->mark));
    DESTROY_CU(scene->a, scene->b);
}

static uint32_t mark(const struct scene *scene) {
    return __atomic_load_n(scene->mark, __ATOMIC_ACQUIRE);
}

static void write_mark(struct scene *scene, CUstream stream, uint32_t value) {
    OK_CU(cu.cuStreamWriteValue32_v2(stream, scene->mark_address, value, 0));
}

TEST(a_stream_runs_in_order) {
    struct scene scene = make();
    gate_hold(&scene.gate, scene.a);
    for (uint32_t i = 1; i <= 100; i++)
        write_mark(&scene, scene.a, i);
    assert_int_equal(mark(&scene), 0);
    gate_drain(&scene.gate, scene.a);
    assert_int_equal(mark(&scene), 100);
    end(&scene);
}

TEST(streams_do_not_wait_for_each_other) {
    struct scene scene = make();
    gate_hold(&scene.gate, scene.a);
    write_mark(&scene, scene.a, 1);
    write_mark(&scene, scene.b, 2);
    OK_CU(cu.cuStreamSynchronize(scene.b));
    assert_int_equal(mark(&scene), 2);
    FAILS_CU(NOT_READY, cu.cuStreamQuery(scene.a));
    gate_drain(&scene.gate, scene.a);
    assert_int_equal(mark(&scene), 1);
    end(&scene);
}

TEST(a_wait_for_an_event_orders_streams) {
    struct scene scene = make();
    CUevent event = new_event();
    gate_hold(&scene.gate, scene.a);
    write_mark(&scene, scene.a, 1);
    order_streams(scene.a, event, scene.b);
    write_mark(&scene, scene.b, 2);
    FAILS_CU(NOT_READY, cu.cuStreamQuery(scene.b));
    gate_drain(&scene.gate, scene.b);
    assert_int_equal(mark(&scene), 2);
    end(&scene);
}

/* A wait is for what the event stood for when the wait was made. */
TEST(recording_an_event_again_does_not_change_earlier_waits) {
    struct scene scene = make();
    CUevent event = new_event();
    OK_CU(cu.cuEventRecord(event, scene.b));
    OK_CU(cu.cuStreamSynchronize(scene.b));
    OK_CU(cu.cuStreamWaitEvent(scene.b, event, 0));
    gate_hold(&scene.gate, scene.a);
    OK_CU(cu.cuEventRecord(event, scene.a));
    write_mark(&scene, scene.b, 5);
    OK_CU(cu.cuStreamSynchronize(scene.b));
    assert_int_equal(mark(&scene), 5);
    end(&scene);
}

TEST(a_chain_of_waiting_streams_completes) {
    struct scene scene = make();
    CUstream chain[20];
    CUevent events[20];
    gate_hold(&scene.gate, scene.a);
    for (unsigned i = 0; i < COUNT(chain); i++) {
        chain[i] = new_stream();
        events[i] = new_event();
        OK_CU(cu.cuEventRecord(events[i], i ? chain[i - 1] : scene.a));
        OK_CU(cu.cuStreamWaitEvent(chain[i], events[i], 0));
        write_mark(&scene, chain[i], i + 1);
    }
    gate_release(&scene.gate);
    OK_CU(cu.cuStreamSynchronize(chain[COUNT(chain) - 1]));
    assert_int_equal(mark(&scene), COUNT(chain));
    end(&scene);
}

TEST(context_synchronization_waits_for_all_streams) {
    struct scene scene = make();
    unsigned char out[2] = {0, 0};
    CUdeviceptr bytes = new_memory((size_t)8 << 20);
    OK_CU(cu.cuMemsetD8Async(bytes, 1, (size_t)4 << 20, scene.a));
    OK_CU(cu.cuMemsetD8Async(bytes + ((size_t)4 << 20), 2, (size_t)4 << 20, scene.b));
    write_mark(&scene, scene.a, 7);
    OK_CU(cu.cuCtxSynchronize());
    assert_int_equal(mark(&scene), 7);
    OK_CU(cu.cuStreamQuery(scene.a));
    OK_CU(cu.cuStreamQuery(scene.b));
    OK_CU(cu.cuMemcpyDtoH_v2(&out[0], bytes, 1));
    OK_CU(cu.cuMemcpyDtoH_v2(&out[1], bytes + ((size_t)8 << 20) - 1, 1));
    assert_int_equal(out[0], 1);
    assert_int_equal(out[1], 2);
    end(&scene);
}

/* ---- Contexts as a whole -------------------------------------------------------------------- */

TEST(a_context_event_covers_all_streams_of_the_context) {
    struct scene scene = make();
    CUevent event = new_event();
    gate_hold(&scene.gate, scene.a);
    write_mark(&scene, scene.a, 3);
    if (cu.cuCtxRecordEvent(ctx, event) == CUDA_ERROR_NOT_SUPPORTED)
        SKIP("the driver records no contexts");
    FAILS_CU(NOT_READY, cu.cuEventQuery(event));
    gate_release(&scene.gate);
    OK_CU(cu.cuEventSynchronize(event));
    assert_int_equal(mark(&scene), 3);
    end(&scene);
}

/* One question may come before a worker has had its turn. */
static void assert_held(CUstream stream) {
    for (int i = 0; i < 20; i++) {
        FAILS_CU(NOT_READY, cu.cuStreamQuery(stream));
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

TEST(a_context_wait_blocks_all_streams_of_the_context) {
    struct scene scene = make();
    CUevent event = MADE_CU(CUevent, cuEventCreate, CU_EVENT_DISABLE_TIMING);
    gate_hold(&scene.gate, scene.a);
    OK_CU(cu.cuEventRecord(event, scene.a));
    OK_CU(cu.cuCtxWaitEvent(ctx, event));
    write_mark(&scene, scene.b, 4);
    assert_held(scene.b);
    CUstream later = MADE_CU(CUstream, cuStreamCreate, CU_STREAM_NON_BLOCKING);
    OK_CU(cu.cuStreamQuery(later)); /* nothing is in it yet */
    assert_int_equal(mark(&scene), 0);
    if (soft) { /* the documentation speaks of all future work; not seen on hardware yet */
        OK_CU(cu.cuStreamWriteValue32_v2(later, scene.mark_address + 4, 1, 0));
        assert_held(later);
    }
    gate_drain(&scene.gate, scene.b);
    assert_int_equal(mark(&scene), 4);
    OK_CU(cu.cuStreamSynchronize(later));
    DESTROY_CU(later, event);
    end(&scene);
}

/* ---- Several threads ------------------------------------------------------------------------ */

static void *synchronize(void *stream) {
    if (cu.cuCtxSetCurrent(ctx) != CUDA_SUCCESS)
        return NULL;
    return cu.cuStreamSynchronize(stream) == CUDA_SUCCESS ? stream : NULL;
}

TEST(many_threads_synchronize_with_one_stream) {
    struct scene scene = make();
    pthread_t threads[8];
    gate_hold(&scene.gate, scene.a);
    for (uint32_t i = 1; i <= 1000; i++)
        write_mark(&scene, scene.a, i);
    for (unsigned i = 0; i < COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, synchronize, scene.a), 0);
    assert_int_equal(mark(&scene), 0);
    gate_release(&scene.gate);
    for (unsigned i = 0; i < COUNT(threads); i++) {
        void *result;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_ptr_equal(result, scene.a);
        assert_int_equal(mark(&scene), 1000);
    }
    end(&scene);
}
