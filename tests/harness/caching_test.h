/* Shared by tests of the caching resource; used together with library_test.h. */
#ifndef TESTS_CACHING_TEST_H
#define TESTS_CACHING_TEST_H

#include "library_test.h"

#include <pthread.h>

static inline gpumem_resource *make_pool(void) {
    return NEW_POOL(.pool = GPUMEM_POOL_OWN);
}

static inline gpumem_buffer *allocate(gpumem_resource *resource, size_t bytes, CUstream stream) {
    return NEW_BUFFER_WITH(resource, bytes, .stream = stream);
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
    OK_CU(cu->cuCtxPushCurrent_v2(gpumem_device_context(device)));
}

static inline void leave_context(void) {
    CUcontext popped;
    OK_CU(cu->cuCtxPopCurrent_v2(&popped));
}

#endif
