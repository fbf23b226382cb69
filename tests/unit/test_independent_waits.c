/* Nobody waits for work that is not his: each call that may wait, beside a stream that is stuck. */
#include "library_test.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

EACH_TEST(open_device, close_device);

#define PATIENCE 10 /* seconds; a call that waits for the wrong work never ends */

/* A call in a thread of its own. */
struct call {
    pthread_t thread;
    gpumem_resource *resource;
    gpumem_buffer *buffer;
    size_t bytes;
    gpumem_status status;
};

static void *run_destroy(void *data) {
    struct call *call = data;
    call->status = gpumem_resource_destroy(call->resource);
    return NULL;
}

static void *run_allocate(void *data) {
    struct call *call = data;
    call->status = gpumem_buffer_allocate(call->resource, call->bytes, NULL, &call->buffer);
    return NULL;
}

static void *run_stats(void *data) {
    struct call *call = data;
    gpumem_stats stats = {.size = sizeof stats};
    call->status = gpumem_library_get_stats(library, &stats);
    return NULL;
}

static void *run_wait_for_all(void *data) {
    struct call *call = data;
    call->status = gpumem_device_trim(device, 1);
    return NULL;
}

static void begin(struct call *call, void *(*run)(void *)) {
    assert_int_equal(pthread_create(&call->thread, NULL, run, call), 0);
}

/* Whether it has ended before PATIENCE is over. */
static int ends(struct call *call) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE;
    return pthread_timedjoin_np(call->thread, NULL, &until) == 0;
}

/* Begins a call that waits for an event, and returns when it is at it. */
static void begin_waiting(struct call *call, void *(*run)(void *)) {
    uint64_t before = soft->call_count("cuEventSynchronize");
    begin(call, run);
    while (soft->call_count("cuEventSynchronize") == before)
        sched_yield();
}

static void free_behind(gpumem_resource *resource, size_t bytes, struct gate gate) {
    gpumem_buffer *buffer = NEW_BUFFER(resource, bytes);
    OK(gpumem_buffer_free(buffer, gate.stream));
}

/* ---- Destroying ------------------------------------------------------------------------------ */

TEST(destroying_a_resource_waits_only_for_its_own_frees) {
    struct gate stuck = gate_with_stream(), other = gate_with_stream();
    struct call a = {.resource = NEW_VIRTUAL()}, b = {.resource = NEW_VIRTUAL()};
    free_behind(a.resource, 2 * MIB, stuck);
    free_behind(b.resource, 2 * MIB, other);
    begin_waiting(&a, run_destroy);
    gate_drain(&other);
    begin(&b, run_destroy);
    int apart = ends(&b);
    gate_drain(&stuck);
    assert_true(ends(&a));
    if (!apart)
        pthread_join(b.thread, NULL);
    assert_true(apart);
    OK(a.status);
    OK(b.status);
    gate_remove(&stuck);
    gate_remove(&other);
}

/* Other threads go on working off what is done. */
TEST(a_waiting_thread_does_not_block_deferred_frees) {
    struct gate stuck = gate_with_stream(), other = gate_with_stream();
    gpumem_resource *second = NEW_VIRTUAL();
    struct call a = {.resource = NEW_VIRTUAL()};
    free_behind(a.resource, 2 * MIB, stuck);
    free_behind(second, 2 * MIB, other);
    begin_waiting(&a, run_destroy);
    gate_drain(&other);
    OK(gpumem_device_trim(device, 0));
    uint64_t left = device_stats().deferred_frees;
    gate_drain(&stuck);
    pthread_join(a.thread, NULL);
    assert_int_equal(left, 1);
    OK(a.status);
    DESTROY(second, &stuck);
    gate_remove(&other);
}

/* Two threads that wait for the same free both see it. */
TEST(two_threads_may_wait_for_one_free) {
    struct gate stuck = gate_with_stream();
    struct call all = {0}, a = {.resource = NEW_VIRTUAL()};
    free_behind(a.resource, 2 * MIB, stuck);
    begin_waiting(&all, run_wait_for_all);
    begin(&a, run_destroy);
    gate_drain(&stuck);
    assert_true(ends(&all));
    assert_true(ends(&a));
    OK(all.status);
    OK(a.status);
    gate_remove(&stuck);
}

TEST(statistics_do_not_wait) {
    struct gate stuck = gate_with_stream();
    struct call a = {.resource = NEW_VIRTUAL()}, stats = {0};
    free_behind(a.resource, 2 * MIB, stuck);
    begin_waiting(&a, run_destroy);
    begin(&stats, run_stats);
    int apart = ends(&stats);
    gate_drain(&stuck);
    pthread_join(a.thread, NULL);
    assert_true(apart);
    gate_remove(&stuck);
}

/* ---- Limits ---------------------------------------------------------------------------------- */

TEST(a_limit_does_not_wait_for_frees_of_other_resources) {
    struct gate stuck = gate_with_stream();
    gpumem_resource *upstream = NEW_VIRTUAL();
    struct call limited = {.bytes = 4 * MIB};
    limited.resource = NEW_LIMIT(upstream, 2 * MIB);
    free_behind(upstream, 2 * MIB, stuck);
    begin(&limited, run_allocate);
    int apart = ends(&limited);
    gate_drain(&stuck);
    if (!apart)
        pthread_join(limited.thread, NULL);
    assert_true(apart);
    FAILS(OUT_OF_CAPACITY, limited.status);
    DESTROY(limited.resource, upstream, &stuck);
}

TEST(the_pinned_maximum_does_not_wait_for_other_resources) {
    struct gate stuck = gate_with_stream();
    struct call pinned = {.bytes = 4 * MIB};
    pinned.resource = NEW_PINNED(.slab_bytes = 2 * MIB, .maximum_bytes = 2 * MIB);
    gpumem_resource *other = NEW_PINNED(.slab_bytes = 2 * MIB);
    free_behind(other, MIB, stuck);
    begin(&pinned, run_allocate);
    int apart = ends(&pinned);
    gate_drain(&stuck);
    if (!apart)
        pthread_join(pinned.thread, NULL);
    assert_true(apart);
    FAILS(OUT_OF_CAPACITY, pinned.status);
    DESTROY(pinned.resource, other, &stuck);
}

TEST(a_pools_maximum_does_not_wait_for_other_resources) {
    struct gate stuck = gate_with_stream();
    gpumem_resource *other = NEW_VIRTUAL();
    struct call pool = {.bytes = 64 * MIB};
    pool.resource = NEW_POOL(.maximum_bytes = 32 * MIB);
    free_behind(other, 2 * MIB, stuck);
    begin(&pool, run_allocate);
    int apart = ends(&pool);
    gate_drain(&stuck);
    if (!apart)
        pthread_join(pool.thread, NULL);
    assert_true(apart);
    FAILS(OUT_OF_CAPACITY, pool.status);
    DESTROY(pool.resource, other, &stuck);
}

/* What counts against the limit is waited for, through a wrapper over it too. */
TEST(a_limit_waits_for_deferred_frees_that_count_against_it) {
    struct gate stuck = gate_with_stream(), own = gate_with_stream();
    gpumem_resource *upstream = NEW_VIRTUAL();
    struct call limited = {.bytes = 2 * MIB};
    gpumem_resource *limit = NEW_LIMIT(upstream, 2 * MIB);
    limited.resource = NEW_LOGGING(limit, .level = GPUMEM_LOG_DEBUG);
    free_behind(upstream, 2 * MIB, stuck);
    free_behind(limit, 2 * MIB, own);
    begin_waiting(&limited, run_allocate);
    gate_drain(&own);
    int apart = ends(&limited);
    gate_drain(&stuck);
    if (!apart)
        pthread_join(limited.thread, NULL);
    assert_true(apart);
    OK(limited.status);
    DESTROY(limited.buffer, limited.resource, limit, upstream, &stuck);
    gate_remove(&own);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static size_t free_now(void) {
    uint64_t free_bytes, total;
    OK(gpumem_device_get_memory(device, &free_bytes, &total));
    return (size_t)free_bytes / (2 * MIB) * (2 * MIB);
}

/* Until enough is free, and no longer: the stuck stream has freed first. */
TEST(running_out_waits_until_enough_is_free) {
    struct gate stuck = gate_with_stream(), enough = gate_with_stream();
    gpumem_resource *other = NEW_VIRTUAL();
    struct call big = {.resource = NEW_VIRTUAL()};
    free_behind(other, 2 * MIB, stuck);
    big.bytes = free_now() / 2;
    free_behind(other, big.bytes / (2 * MIB) * (2 * MIB) + 4 * MIB, enough);
    uint64_t queries = soft->call_count("cuEventQuery");
    begin(&big, run_allocate);
    while (soft->call_count("cuEventQuery") < queries + 4) /* it asks again: it waits */
        sched_yield();
    gate_drain(&enough);
    int apart = ends(&big);
    gate_drain(&stuck);
    if (!apart)
        pthread_join(big.thread, NULL);
    assert_true(apart);
    OK(big.status);
    DESTROY(big.buffer, big.resource, other, &stuck);
    gate_remove(&enough);
}

/* All that is held back would not do. */
TEST(an_allocation_that_can_never_fit_is_refused_at_once) {
    struct gate stuck = gate_with_stream();
    gpumem_resource *other = NEW_VIRTUAL();
    struct call big = {.resource = NEW_VIRTUAL(), .bytes = (size_t)1 << 40};
    free_behind(other, 2 * MIB, stuck);
    begin(&big, run_allocate);
    int apart = ends(&big);
    gate_drain(&stuck);
    if (!apart)
        pthread_join(big.thread, NULL);
    assert_true(apart);
    FAILS(OUT_OF_MEMORY, big.status);
    DESTROY(big.resource, other, &stuck);
}
