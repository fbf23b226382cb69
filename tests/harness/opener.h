/*
 * A thread that opens a gate once the library waits for an event, so that a test can see that a
 * call waits for held work, without sleeping. A call that does not wait returns with the gate
 * closed.
 */
#ifndef TESTS_OPENER_H
#define TESTS_OPENER_H

#include "library_test.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

struct opener {
    struct gate gate;
    uint64_t waits; /* so far */
    atomic_int over, opened;
    pthread_t thread;
};

static inline void *opener_run(void *data) {
    struct opener *opener = data;
    while (!atomic_load(&opener->over) && soft->call_count("cuEventSynchronize") == opener->waits)
        sched_yield();
    if (!atomic_load(&opener->over)) {
        atomic_store(&opener->opened, 1);
        gate_drain(&opener->gate);
    }
    return NULL;
}

static inline void opener_start(struct opener *opener, struct gate gate) {
    opener->gate = gate;
    opener->waits = soft->call_count("cuEventSynchronize");
    atomic_init(&opener->over, 0);
    atomic_init(&opener->opened, 0);
    assert_int_equal(pthread_create(&opener->thread, NULL, opener_run, opener), 0);
}

/* Returns, after the call, whether it waited. The gate is then open. */
static inline int opener_end(struct opener *opener) {
    atomic_store(&opener->over, 1);
    pthread_join(opener->thread, NULL);
    int waited = atomic_load(&opener->opened);
    if (!waited)
        gate_drain(&opener->gate);
    return waited;
}

#endif
