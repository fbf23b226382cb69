/* Shared by tests of the caching resource; used together with library_test.h. */
#ifndef TESTS_CACHING_TEST_H
#define TESTS_CACHING_TEST_H

#include "library_test.h"

#include <pthread.h>

static inline void run_thread(void *(*function)(void *), void *data) {
    pthread_t thread;
    void *failed = NULL;
    assert_int_equal(pthread_create(&thread, NULL, function, data), 0);
    assert_int_equal(pthread_join(thread, &failed), 0);
    if (failed)
        fail_msg("%s: %s", (const char *)failed, gpumem_last_error()->message);
}

#endif
