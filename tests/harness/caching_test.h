/* Shared by tests of the caching resource; used together with library_test.h. */
#ifndef TESTS_CACHING_TEST_H
#define TESTS_CACHING_TEST_H

#include "library_test.h"

#include <pthread.h>

static inline gpumem_resource *make_pool(void) {
    gpumem_resource *pool;
    OK(gpumem_device_pool_resource_create(
        device, GPUMEM_OPTIONS(gpumem_device_pool_options, .pool = GPUMEM_POOL_OWN), &pool));
    return pool;
}

static inline gpumem_resource *make_pinned(void) {
    gpumem_resource *pinned;
    OK(gpumem_pinned_resource_create(device, NULL, &pinned));
    return pinned;
}

static inline gpumem_resource *make_cache(gpumem_resource *upstream) {
    gpumem_resource *cache;
    OK(gpumem_caching_resource_create(upstream, NULL, &cache));
    return cache;
}

static inline gpumem_buffer *allocate(gpumem_resource *resource, size_t bytes, CUstream stream) {
    gpumem_buffer *buffer = NULL;
    OK(gpumem_buffer_allocate(resource, bytes,
                              GPUMEM_OPTIONS(gpumem_buffer_options, .stream = stream), &buffer));
    return buffer;
}

static inline CUstream make_stream(void) {
    CUstream stream;
    OK(gpumem_stream_create(device, NULL, &stream));
    return stream;
}

static inline gpumem_caching_info info_of(gpumem_resource *cache) {
    gpumem_caching_info info = {.size = sizeof info};
    OK(gpumem_caching_get_info(cache, &info));
    return info;
}

static inline gpumem_stats stats_of(gpumem_resource *resource) {
    gpumem_stats stats = {.size = sizeof stats};
    OK(gpumem_resource_get_stats(resource, &stats));
    return stats;
}

static inline void run_thread(void *(*function)(void *), void *data) {
    pthread_t thread;
    void *failed = NULL;
    assert_int_equal(pthread_create(&thread, NULL, function, data), 0);
    assert_int_equal(pthread_join(thread, &failed), 0);
    if (failed)
        fail_msg("%s: %s", (const char *)failed, gpumem_last_error()->message);
}

static inline void use_context(void) {
    assert_int_equal(cu->cuCtxPushCurrent_v2(gpumem_device_context(device)), CUDA_SUCCESS);
}

static inline void leave_context(void) {
    CUcontext popped;
    assert_int_equal(cu->cuCtxPopCurrent_v2(&popped), CUDA_SUCCESS);
}

#endif
