/* Threads of a test that run at the same time, and are waited for. */
#ifndef TESTS_RUN_THREADS_H
#define TESTS_RUN_THREADS_H

#include "test.h"

#include <pthread.h>

/* Each has its element of `arguments`, which are `size` bytes apart; 0: all have the same. */
static inline void run_threads(size_t count, void *(*run)(void *), void *arguments, size_t size) {
    pthread_t threads[64];
    assert_in_range(count, 1, sizeof threads / sizeof *threads);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run, (char *)arguments + i * size), 0);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

#endif
