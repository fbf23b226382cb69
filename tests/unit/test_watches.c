/* Word before memory goes: of what, to whom, in which order, and from which threads. */
#include "library_test.h"
#include "run_threads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

static gpumem_resource *memory, *pool;

static int setup(void **state) {
    if (open_device(state) != 0)
        return -1;
    memory = NEW_VIRTUAL(.maximum_chunk_bytes = 2 * MIB, .exact_growth = 1, .capacity = 32 * MIB,
                         .handle_type = GPUMEM_HANDLE_POSIX_FD);
    pool = NEW_POOL(.pool = GPUMEM_POOL_OWN);
    return 0;
}

static int teardown(void **state) {
    DESTROY(pool, memory);
    return close_device(state);
}

ALL_TESTS(setup, teardown);

/* What was told, and by which watch. */
struct heard {
    gpumem_watch_event event;
    int watch;
    int mapped; /* the first and the last byte at that time */
};
static struct heard heard[64];
static size_t heard_count;

static void note(int watch, const gpumem_watch_event *event) {
    assert_true(heard_count < COUNT(heard));
    heard[heard_count++] = (struct heard){
        *event, watch, is_mapped(event->base) && is_mapped(event->base + event->bytes - 1)};
}

static void listen(void *user, const gpumem_watch_event *event) {
    note(*(const int *)user, event);
}

static void check_heard(size_t index, int watch, gpumem_watch_reason reason, CUdeviceptr base,
                        size_t bytes) {
    assert_true(index < heard_count);
    assert_int_equal(heard[index].watch, watch);
    MEMBERS(heard[index].event, (reason, reason), (base, base), (bytes, bytes));
}

static gpumem_watch *watch_buffer(gpumem_buffer *buffer, int *name) {
    gpumem_watch *watch;
    OK(gpumem_buffer_watch(buffer, listen, name, &watch));
    return watch;
}

static gpumem_watch *watch_resource(gpumem_resource *resource, int *name) {
    gpumem_watch *watch;
    OK(gpumem_resource_watch(resource, listen, name, &watch));
    return watch;
}

static int one = 1, two = 2, three = 3, four = 4;

/* ---- Of what --------------------------------------------------------------------------------- */

TEST(a_watch_hears_of_a_free_before_unmapping) {
    heard_count = 0;
    gpumem_buffer *buffer = allocate_on(memory, 5 * MIB, NULL);
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    gpumem_watch *watch = watch_buffer(buffer, &one);
    OK(gpumem_buffer_free(buffer, NULL));
    assert_int_equal(heard_count, 1);
    check_heard(0, 1, GPUMEM_WATCH_FREE, address, 6 * MIB);
    assert_true(heard[0].mapped);
    assert_ptr_equal(heard[0].event.buffer, buffer);
    assert_false(is_mapped(address));
    OK(gpumem_watch_destroy(watch)); /* also after the buffer */
    FAILS(INVALID_ARGUMENT, gpumem_watch_destroy(watch));
}

TEST(a_watch_hears_which_range_a_shrink_unmaps) {
    heard_count = 0;
    gpumem_buffer *buffer = allocate_on(memory, 8 * MIB, NULL);
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    gpumem_watch *watch = watch_buffer(buffer, &one);
    OK(gpumem_buffer_shrink(buffer, 8 * MIB - 1, NULL)); /* within the last handle */
    assert_int_equal(heard_count, 0);
    OK(gpumem_buffer_shrink(buffer, 3 * MIB, NULL));
    assert_int_equal(heard_count, 1);
    check_heard(0, 1, GPUMEM_WATCH_SHRINK, address + 4 * MIB, 4 * MIB);
    assert_true(heard[0].mapped);
    assert_false(is_mapped(address + 4 * MIB));
    OK(gpumem_buffer_grow(buffer, 6 * MIB, NULL));
    assert_int_equal(heard_count, 1);
    OK(gpumem_buffer_free(buffer, NULL));
    check_heard(1, 1, GPUMEM_WATCH_FREE, address, 6 * MIB);
    OK(gpumem_watch_destroy(watch));
}

/* Nothing is told before the work that may use it is done. */
TEST(a_watch_hears_of_a_deferred_free_when_it_happens) {
    heard_count = 0;
    struct gate gate = gate_with_stream();
    gpumem_buffer *buffer = allocate_on(memory, 2 * MIB, gate.stream);
    gpumem_watch *watch = watch_buffer(buffer, &one);
    OK(gpumem_buffer_free(buffer, NULL));
    OK(gpumem_device_trim(device, 0));
    assert_int_equal(heard_count, 0);
    gate_drain(&gate);
    OK(gpumem_device_trim(device, 0));
    assert_int_equal(heard_count, 1);
    assert_true(heard[0].mapped);
    OK(gpumem_watch_destroy(watch));
    gate_remove(&gate);
}

TEST(a_watch_of_stream_ordered_memory_hears_the_stream) {
    heard_count = 0;
    CUstream stream = NEW_STREAM();
    gpumem_buffer *buffer = allocate_on(pool, KIB, stream);
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    gpumem_watch *watch = watch_buffer(buffer, &one);
    OK(gpumem_buffer_free(buffer, NULL));
    assert_int_equal(heard_count, 1);
    check_heard(0, 1, GPUMEM_WATCH_FREE, address, KIB);
    assert_ptr_equal(heard[0].event.stream, stream);
    OK(gpumem_watch_destroy(watch));
    OK(gpumem_stream_destroy(device, stream));
}

/* To be watched is nothing that other calls see. */
TEST(a_watch_does_not_change_other_calls) {
    heard_count = 0;
    gpumem_buffer *buffer = allocate_on(memory, 4 * MIB, NULL);
    gpumem_watch *watch = watch_buffer(buffer, &one);
    gpumem_export *exported = NEW_EXPORT(buffer);
    FAILS(BUSY, gpumem_buffer_shrink(buffer, 2 * MIB, NULL));
    OK(gpumem_export_destroy(exported));
    OK(gpumem_buffer_hold(buffer));
    gpumem_buffer *view = NEW_VIEW(buffer, 0, 1);
    OK(gpumem_buffer_release(buffer));
    OK(gpumem_buffer_free(view, NULL));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_release(buffer));
    assert_int_equal(heard_count, 0); /* what a hold refuses is not announced */
    OK(gpumem_buffer_free(buffer, NULL));
    assert_int_equal(heard_count, 1);
    OK(gpumem_watch_destroy(watch));
}

TEST(imported_and_foreign_memory_can_be_watched) {
    heard_count = 0;
    gpumem_buffer *imported, *foreign, *buffer = allocate_on(memory, 2 * MIB, NULL);
    const void *description;
    size_t bytes;
    gpumem_export *exported = NEW_EXPORT(buffer);
    int fd = MADE(int, export_descriptor, exported, 0);
    OK(export_description(exported, &description, &bytes));
    OK(gpumem_import_create(device, description, bytes, &fd, 1, NULL, &imported));
    OK(gpumem_buffer_from_pointer(device, gpumem_buffer_pointer(buffer) + 16, 100, NULL, &foreign));
    gpumem_watch *first = watch_buffer(imported, &one), *second = watch_buffer(foreign, &two);
    CUdeviceptr address = gpumem_buffer_pointer(imported);
    OK(gpumem_buffer_free(foreign, NULL));
    check_heard(0, 2, GPUMEM_WATCH_FREE, gpumem_buffer_pointer(buffer) + 16, 100);
    OK(gpumem_buffer_free(imported, NULL));
    check_heard(1, 1, GPUMEM_WATCH_FREE, address, 2 * MIB);
    assert_true(heard[1].mapped);
    DESTROY(exported, buffer);
    assert_int_equal(heard_count, 2);
    OK(gpumem_watch_destroy(first));
    OK(gpumem_watch_destroy(second));
}

/* ---- To whom --------------------------------------------------------------------------------- */

TEST(watches_of_buffers_are_called_before_those_of_resources) {
    heard_count = 0;
    gpumem_resource *limit = NEW_LIMIT(memory, 32 * MIB);
    gpumem_watch *watches[5];
    watches[0] = watch_resource(memory, &four);
    watches[1] = watch_resource(limit, &three);
    gpumem_buffer *buffer = allocate_on(limit, 2 * MIB, NULL);
    gpumem_buffer *view = NEW_VIEW(buffer, 0, 1);
    watches[2] = watch_buffer(buffer, &one);
    watches[3] = watch_buffer(view, &two); /* the buffer's */
    watches[4] = watch_buffer(buffer, &one);
    OK(gpumem_watch_destroy(watches[4]));
    OK(gpumem_buffer_free(view, NULL));
    assert_int_equal(heard_count, 0);
    OK(gpumem_buffer_free(buffer, NULL));
    assert_int_equal(heard_count, 4);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(heard[i].watch, i + 1);
    /* Buffers of the wrapped resource itself are not the wrapper's. */
    OK(gpumem_buffer_free(allocate_on(memory, 1, NULL), NULL));
    assert_int_equal(heard_count, 5);
    assert_int_equal(heard[4].watch, 4);
    OK(gpumem_resource_destroy(limit));
    for (size_t i = 0; i < 4; i++)
        OK(gpumem_watch_destroy(watches[i])); /* also after the resource */
}

/* The cache's blocks stay mapped; what it gives back is told below. */
TEST(a_watch_below_a_cache_hears_of_its_segments) {
    heard_count = 0;
    gpumem_resource *cache = NEW_CACHING_WITH(memory, .segment_bytes = 4 * MIB);
    gpumem_watch *of_cache = watch_resource(cache, &one), *below = watch_resource(memory, &three);
    gpumem_buffer *buffer = allocate_on(cache, KIB, NULL), *other = allocate_on(cache, KIB, NULL);
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    gpumem_watch *of_buffer = watch_buffer(buffer, &two);
    OK(gpumem_buffer_free(other, NULL));
    assert_int_equal(heard_count, 0);
    OK(gpumem_buffer_free(buffer, NULL));
    assert_int_equal(heard_count, 1);
    assert_int_equal(heard[0].watch, 2);
    assert_int_equal(heard[0].event.base, address);
    /* The block is handed out again without its watch. */
    buffer = allocate_on(cache, KIB, NULL);
    OK(gpumem_buffer_free(buffer, NULL));
    assert_int_equal(heard_count, 1);
    OK(gpumem_device_trim(device, 1));
    assert_int_equal(heard_count, 3);
    assert_int_equal(heard[1].watch, 1);
    assert_int_equal(heard[2].watch, 3);
    assert_null(heard[1].event.buffer);
    assert_true(heard[1].event.base <= address &&
                address < heard[1].event.base + heard[1].event.bytes);
    assert_int_equal(heard[1].event.bytes % (2 * MIB), 0);
    assert_true(heard[1].mapped);
    OK(gpumem_resource_destroy(cache));
    OK(gpumem_watch_destroy(of_cache));
    OK(gpumem_watch_destroy(below));
    OK(gpumem_watch_destroy(of_buffer));
}

/* ---- What a callback may do ------------------------------------------------------------------ */

static gpumem_watch *own;

static void end_itself(void *user, const gpumem_watch_event *event) {
    note(1, event);
    OK(gpumem_watch_destroy(own));
}

static void use_the_library(void *user, const gpumem_watch_event *event) {
    gpumem_buffer *other = allocate_on(memory, 2 * MIB, NULL);
    gpumem_layout layout = {.size = sizeof layout};
    OK(gpumem_buffer_get_layout(other, &layout, NULL, 0));
    OK(fill_now(other, 0, KIB, 1, NULL));
    OK(gpumem_buffer_free(other, NULL));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_fill(other, 0, 1, 1, NULL));
    if (event->reason == GPUMEM_WATCH_SHRINK)
        OK(gpumem_buffer_get_layout(event->buffer, &layout, NULL, 0));
    assert_int_equal(gpumem_buffer_pointer(event->buffer), *(CUdeviceptr *)user);
    note(2, event);
}

TEST(a_callback_may_end_its_watch_and_use_other_buffers) {
    heard_count = 0;
    gpumem_watch *watch;
    gpumem_buffer *buffer = allocate_on(memory, 6 * MIB, NULL);
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    OK(gpumem_buffer_watch(buffer, end_itself, NULL, &own));
    OK(gpumem_buffer_watch(buffer, use_the_library, &address, &watch));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_view(buffer, 0, 0, &buffer));
    OK(gpumem_buffer_shrink(buffer, 2 * MIB, NULL));
    SAYS("gpumem_buffer_view: 0 bytes"); /* what a callback was refused is its own */
    OK(gpumem_buffer_free(buffer, NULL));
    assert_int_equal(heard_count, 3);
    assert_int_equal(heard[0].watch, 1);
    assert_int_equal(heard[1].watch, 2);
    assert_int_equal(heard[2].watch, 2);
    OK(gpumem_watch_destroy(watch));
}

/* ---- Threads --------------------------------------------------------------------------------- */

struct held_call {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int inside, let_go, ended;
    gpumem_watch *watch;
};

static void stay(void *user, const gpumem_watch_event *event) {
    struct held_call *call = user;
    pthread_mutex_lock(&call->lock);
    call->inside = 1;
    pthread_cond_broadcast(&call->changed);
    while (!call->let_go)
        pthread_cond_wait(&call->changed, &call->lock);
    assert_false(call->ended);
    call->inside = 0;
    pthread_mutex_unlock(&call->lock);
}

static void *free_it(void *buffer) {
    OK(gpumem_buffer_free(buffer, NULL));
    return NULL;
}

static void *end_it(void *user) {
    struct held_call *call = user;
    OK(gpumem_watch_destroy(call->watch));
    pthread_mutex_lock(&call->lock);
    call->ended = 1;
    assert_false(call->inside);
    pthread_mutex_unlock(&call->lock);
    return NULL;
}

/* One thread is in the callback; nothing is unmapped, other threads go on, and who ends the watch
 * comes back when the callback has. */
TEST(ending_a_watch_waits_for_its_callback) {
    struct held_call call = {.lock = PTHREAD_MUTEX_INITIALIZER,
                             .changed = PTHREAD_COND_INITIALIZER};
    pthread_t freeing, ending;
    gpumem_buffer *buffer = allocate_on(memory, 2 * MIB, NULL);
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    OK(gpumem_buffer_watch(buffer, stay, &call, &call.watch));
    assert_int_equal(pthread_create(&freeing, NULL, free_it, buffer), 0);
    pthread_mutex_lock(&call.lock);
    while (!call.inside)
        pthread_cond_wait(&call.changed, &call.lock);
    pthread_mutex_unlock(&call.lock);
    assert_int_equal(pthread_create(&ending, NULL, end_it, &call), 0);
    assert_true(is_mapped(address));
    OK(gpumem_buffer_free(allocate_on(memory, 2 * MIB, NULL), NULL));
    pthread_mutex_lock(&call.lock);
    assert_false(call.ended);
    call.let_go = 1;
    pthread_cond_broadcast(&call.changed);
    pthread_mutex_unlock(&call.lock);
    pthread_join(freeing, NULL);
    pthread_join(ending, NULL);
    assert_true(call.ended);
    assert_false(is_mapped(address));
}

/* One of two watches whose functions meet, and then end one of them. */
struct meeting {
    pthread_t thread;
    pthread_barrier_t *both_inside;
    gpumem_buffer *buffer;
    gpumem_watch **ends;
    gpumem_status status;
    atomic_int calls;
};

static void end_when_both_are_inside(void *user, const gpumem_watch_event *event) {
    struct meeting *self = user;
    atomic_fetch_add(&self->calls, 1);
    pthread_barrier_wait(self->both_inside);
    self->status = gpumem_watch_destroy(*self->ends);
    pthread_barrier_wait(self->both_inside); /* neither left while the other ended a watch */
}

static void *free_of_meeting(void *user) {
    return free_it(((struct meeting *)user)->buffer);
}

/* Two threads, each inside one of these watches, end the watches that `first` and `second` name. */
static void meet(gpumem_watch **first, gpumem_watch **second, struct meeting sides[2],
                 gpumem_watch *made[2]) {
    pthread_barrier_t both;
    struct timespec limit;
    assert_int_equal(pthread_barrier_init(&both, NULL, 2), 0);
    for (size_t i = 0; i < 2; i++) {
        sides[i] = (struct meeting){.both_inside = &both,
                                    .buffer = allocate_on(memory, 2 * MIB, NULL),
                                    .ends = i ? second : first};
        OK(gpumem_buffer_watch(sides[i].buffer, end_when_both_are_inside, &sides[i], &made[i]));
    }
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&sides[i].thread, NULL, free_of_meeting, &sides[i]), 0);
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 40;
    for (size_t i = 0; i < 2; i++) {
        if (pthread_timedjoin_np(sides[i].thread, NULL, &limit) != 0) {
            print_error("two threads that end each other's watch have stayed in their functions\n");
            _exit(1);
        }
        assert_int_equal(atomic_load(&sides[i].calls), 1);
    }
    pthread_barrier_destroy(&both);
}

TEST(watches_may_end_one_another_from_inside) {
    gpumem_watch *made[2];
    struct meeting sides[2];
    meet(&made[1], &made[0], sides, made);
    OK(sides[0].status);
    OK(sides[1].status);
    for (size_t i = 0; i < 2; i++)
        FAILS(INVALID_ARGUMENT, gpumem_watch_destroy(made[i]));
}

/* Only one of them ends it. */
TEST(two_functions_may_end_the_same_watch) {
    gpumem_watch *third, *made[2];
    struct meeting sides[2];
    OK(gpumem_resource_watch(memory, listen, &three, &third));
    heard_count = 0;
    meet(&third, &third, sides, made);
    assert_int_equal(heard_count, 0);
    assert_int_equal(sides[0].status + sides[1].status, GPUMEM_ERROR_INVALID_ARGUMENT);
    for (size_t i = 0; i < 2; i++)
        OK(gpumem_watch_destroy(made[i]));
}

enum { THREADS = 6, ROUNDS = 150 };
static atomic_int told[THREADS], told_resource;

static void count(void *user, const gpumem_watch_event *event) {
    assert_int_equal(event->base % (2 * MIB), 0);
    assert_int_equal(event->bytes % (2 * MIB), 0);
    assert_true(is_mapped(event->base));
    atomic_fetch_add((atomic_int *)user, 1);
}

static void *come_and_go(void *user) {
    atomic_int *mine = user, other = 0;
    for (int round = 0; round < ROUNDS; round++) {
        gpumem_watch *watch, *passing;
        gpumem_buffer *buffer = allocate_on(memory, 4 * MIB, NULL);
        OK(gpumem_buffer_watch(buffer, count, mine, &watch));
        OK(gpumem_resource_watch(memory, count, &other, &passing));
        OK(gpumem_buffer_shrink(buffer, 2 * MIB, NULL));
        OK(gpumem_watch_destroy(passing));
        int last = atomic_load(&other);
        OK(gpumem_buffer_free(buffer, NULL));
        OK(gpumem_watch_destroy(watch));
        assert_int_equal(atomic_load(&other), last); /* nobody calls it any more */
    }
    assert_true(atomic_load(&other) >= ROUNDS);
    return NULL;
}

TEST(threads_watch_and_free_concurrently) {
    gpumem_watch *watch;
    OK(gpumem_resource_watch(memory, count, &told_resource, &watch));
    run_threads(THREADS, come_and_go, told, sizeof *told);
    OK(gpumem_device_trim(device, 1));
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(atomic_load(&told[i]), 2 * ROUNDS);
    assert_int_equal(atomic_load(&told_resource), 2 * THREADS * ROUNDS);
    OK(gpumem_watch_destroy(watch));
}
