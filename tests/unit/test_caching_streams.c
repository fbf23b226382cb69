/* Which stream the caching resource waits for: another thread's per-thread stream, streams that
 * have been destroyed, and those of caches below caches. */
#include "cache/cache.h"
#include "caching_test.h"

ALL_TESTS(open_device, close_device);

static size_t lanes_of(gpumem_resource *resource) {
    size_t count = 0;
    for (const struct gm_lane *lane = gm_cache_of(resource)->lanes; lane; lane = lane->next)
        count++;
    return count;
}

/* ---- The per-thread stream ------------------------------------------------------------------- */

struct visit {
    gpumem_buffer *buffer;
    uint32_t *flag;
    pthread_barrier_t freed, passed;
};

static void *use_and_free(void *data) {
    struct visit *visit = data;
    CUdeviceptr address = 0;
    const char *failed = NULL;
    use_context();
    if (cu->cuMemHostGetDevicePointer_v2(&address, visit->flag, 0) != CUDA_SUCCESS ||
        cu->cuStreamWaitValue32_v2(CU_STREAM_PER_THREAD, address, 1, CU_STREAM_WAIT_VALUE_EQ) !=
            CUDA_SUCCESS ||
        gpumem_buffer_free(visit->buffer, GPUMEM_STREAM_PER_THREAD) != GPUMEM_OK)
        failed = "use and free";
    pthread_barrier_wait(&visit->freed);
    pthread_barrier_wait(&visit->passed);
    leave_context();
    return (void *)(uintptr_t)failed;
}

TEST(a_free_on_another_threads_default_stream_is_waited_for) {
    gpumem_resource *pinned = NEW_PINNED(), *cache = NEW_CACHING(pinned);
    struct gate gate = gate_with_stream(); /* for its flag */
    struct visit visit = {.buffer = allocate_on(cache, 4096, GPUMEM_STREAM_PER_THREAD),
                          .flag = gate.flag};
    pthread_barrier_init(&visit.freed, NULL, 2);
    pthread_barrier_init(&visit.passed, NULL, 2);
    pthread_t thread;
    void *failed;
    assert_int_equal(pthread_create(&thread, NULL, use_and_free, &visit), 0);
    pthread_barrier_wait(&visit.freed);
    OK(gpumem_resource_trim(cache, SIZE_MAX));
    assert_int_equal(caching_info_of(cache).pending_bytes, 4096);
    gate_drain(&gate);
    OK(gpumem_resource_trim(cache, SIZE_MAX));
    pthread_barrier_wait(&visit.passed);
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_null(failed);
    OK(gpumem_device_trim(device, 1));
    assert_int_equal(caching_info_of(cache).pending_bytes, 0);
    DESTROY(cache, pinned);
    pthread_barrier_destroy(&visit.freed);
    pthread_barrier_destroy(&visit.passed);
    gate_remove(&gate);
}

/* ---- Streams that end ------------------------------------------------------------------------ */

/* The driver gives no event when the stream ends. What has its handle next would tell nothing about
 * what it ran: it is not asked, and the whole context is waited for. */
static void a_gone_stream_is_not_asked(gpumem_resource *upstream) {
    gpumem_resource *cache = NEW_CACHING(upstream);
    use_context();
    struct gate gate = gate_with_stream();
    CUdeviceptr flag = 0;
    OK_CU(cu->cuMemHostGetDevicePointer_v2(&flag, gate.flag, 0));
    CUstream stream = NEW_STREAM();
    OK_CU(cu->cuStreamWaitValue32_v2(stream, flag, 1, CU_STREAM_WAIT_VALUE_EQ));
    OK(gpumem_buffer_free(allocate_on(cache, 4096, stream), NULL));
    const int refused = CUDA_ERROR_OUT_OF_MEMORY;
    assert_int_equal(soft->fault_arm("cuEventRecord", 0, refused, SOFTGPU_FAULT_BEFORE), 0);
    OK(gpumem_caching_forget_stream(cache, stream));
    assert_true(soft->fault_disarm() > 0);
    assert_int_equal(soft->fault_arm("cuEventRecord", 0, refused, SOFTGPU_FAULT_BEFORE), 0);
    OK(gpumem_resource_trim(cache, 0));
    uint64_t asked = soft->fault_disarm();
    gpumem_caching_info info = caching_info_of(cache);
    gate_drain(&gate);
    assert_int_equal(asked, 0);
    assert_true(info.segments > 0);
    OK(gpumem_device_trim(device, 1));
    assert_int_equal(caching_info_of(cache).segments, 0);
    DESTROY(stream, cache, upstream, &gate);
    leave_context();
}

TEST_IS(a_destroyed_stream_is_not_queried_for_device_memory,
        a_gone_stream_is_not_asked(new_own_pool()));
TEST_IS(a_destroyed_stream_is_not_queried_for_pinned_memory,
        a_gone_stream_is_not_asked(NEW_PINNED()));

TEST(destroyed_streams_leave_nothing_in_the_cache) {
    gpumem_resource *pool = new_own_pool(), *cache = NEW_CACHING(pool);
    for (int i = 0; i < 500; i++) {
        CUstream stream = NEW_STREAM();
        DESTROY(allocate_on(cache, 4096, stream), stream);
    }
    assert_in_range(lanes_of(cache), 0, 4);
    DESTROY(cache, pool);
}

/* ---- Caches below caches --------------------------------------------------------------------- */

/* The stream on which the outer cache asks the inner one ends with it. */
TEST(an_inner_cache_survives_the_destruction_of_its_outer_cache) {
    gpumem_resource *pool = new_own_pool(), *inner = NEW_CACHING(pool), *outer = NEW_CACHING(inner);
    DESTROY(allocate_on(outer, 4096, NULL), allocate_on(outer, 5 * MIB, NULL));
    assert_true(caching_info_of(inner).segments > 0);
    OK(gpumem_resource_destroy(outer));
    OK(gpumem_resource_trim(inner, 0));
    assert_int_equal(caching_info_of(inner).segments, 0);
    DESTROY(inner, pool);
}
