/* Views: parts of a buffer that hold it, and name their streams for it. */
#include "library_test.h"

#include <pthread.h>
#include <sys/wait.h>

static gpumem_resource *virtual_memory, *pool, *cache, *pinned;

BEFORE(open_device) {
    virtual_memory =
        NEW_VIRTUAL(.maximum_chunk_bytes = 2 * MIB, .exact_growth = 1, .capacity = 64 * MIB);
    pool = NEW_POOL(.pool = GPUMEM_POOL_OWN);
    cache = NEW_CACHING(pool);
    pinned = NEW_PINNED();
}

static int teardown(void **state) {
    DESTROY(pinned, cache, pool, virtual_memory);
    return close_device(state);
}

ALL_TESTS(before, teardown);

TEST(a_view_covers_its_part_of_the_buffer) {
    gpumem_buffer *buffer = allocate_on(virtual_memory, 4 * MIB, NULL);
    gpumem_buffer *view = NEW_VIEW(buffer, 3 * KIB, KIB);
    assert_int_equal(gpumem_buffer_pointer(view), gpumem_buffer_pointer(buffer) + 3 * KIB);
    assert_int_equal(gpumem_buffer_size(view), KIB);
    assert_int_equal(gpumem_buffer_capacity(view), KIB);
    assert_ptr_equal(viewed_by(view), buffer);
    assert_null(viewed_by(buffer));
    assert_ptr_equal(gpumem_buffer_resource(view), virtual_memory);
    assert_ptr_equal(gpumem_buffer_device(view), device);
    unsigned char bytes[3 * KIB];
    OK(fill_now(buffer, 0, 4 * MIB, 1, NULL));
    OK(gpumem_buffer_fill(view, 0, KIB, 2, NULL));
    OK(read_now(buffer, 2 * KIB, bytes, sizeof bytes, NULL));
    for (size_t i = 0; i < sizeof bytes; i++)
        assert_int_equal(bytes[i], i / KIB == 1 ? 2 : 1);
    assert_int_equal(device_stats().allocations, 1);
    FAILS(INVALID_ARGUMENT, gpumem_buffer_fill(view, 0, KIB + 1, 0, NULL));
    FAILS(NOT_SUPPORTED, gpumem_buffer_grow(view, 2 * KIB, NULL));
    FAILS(NOT_SUPPORTED, gpumem_buffer_shrink(view, 1, NULL));
    DESTROY(view, buffer);
}

TEST(a_view_beyond_its_buffer_is_refused) {
    gpumem_buffer *view = NULL, *buffer = allocate_on(virtual_memory, 2 * MIB, NULL);
    FAILS(INVALID_ARGUMENT, gpumem_buffer_view(buffer, 0, 0, &view));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_view(buffer, 2 * MIB, 1, &view));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_view(buffer, 1, 2 * MIB, &view));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_view(buffer, SIZE_MAX, 2, &view));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_view(buffer, 0, 1, NULL));
    assert_null(view);
    gpumem_buffer *outer = NEW_VIEW(buffer, MIB, KIB);
    FAILS(INVALID_ARGUMENT, gpumem_buffer_view(outer, 0, KIB + 1, &view));
    OK(gpumem_buffer_free(outer, NULL));
    OK(gpumem_buffer_shrink(buffer, MIB, NULL)); /* nothing holds it any more */
    OK(gpumem_buffer_free(buffer, NULL));
}

TEST(a_viewed_buffer_can_grow_but_not_shrink) {
    gpumem_buffer *buffer = allocate_on(virtual_memory, 4 * MIB, NULL);
    gpumem_buffer *view = NEW_VIEW(buffer, 0, KIB);
    FAILS(BUSY, gpumem_buffer_shrink(buffer, 2 * MIB, NULL));
    OK(gpumem_buffer_grow(buffer, 8 * MIB, NULL));
    OK(gpumem_buffer_fill(view, 0, KIB, 1, NULL));
    OK(gpumem_buffer_free(view, NULL));
    OK(gpumem_buffer_shrink(buffer, 2 * MIB, NULL));
    assert_int_equal(gpumem_buffer_committed(buffer), 2 * MIB);
    OK(gpumem_buffer_free(buffer, NULL));
}

TEST(a_buffer_is_freed_with_its_last_view) {
    gpumem_buffer *buffer = allocate_on(virtual_memory, 2 * MIB, NULL);
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    gpumem_buffer *first = NEW_VIEW(buffer, KIB, KIB), *second = NEW_VIEW(first, 512, 16);
    assert_ptr_equal(viewed_by(second), buffer);
    assert_int_equal(gpumem_buffer_pointer(second), address + KIB + 512);
    DESTROY(buffer, first);
    assert_true(is_mapped(address));
    FAILS(BUSY, gpumem_resource_destroy(virtual_memory));
    OK(fill_now(second, 0, 16, 3, NULL));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_free(first, NULL)); /* it was freed */
    OK(gpumem_buffer_free(second, NULL));
    assert_false(is_mapped(address));
}

/* The gate's stream is known from a view alone, in each of three ways. */
TEST(a_free_waits_for_the_streams_of_views) {
    for (int way = 0; way < 3; way++) {
        struct gate gate = gate_with_stream();
        gpumem_buffer *buffer = allocate_on(virtual_memory, 2 * MIB, NULL);
        CUdeviceptr address = gpumem_buffer_pointer(buffer);
        gpumem_buffer *view = NEW_VIEW(buffer, 0, KIB);
        if (way == 0)
            OK(gpumem_buffer_use(view, gate.stream));
        if (way == 1)
            OK(gpumem_buffer_fill(view, 0, KIB, 1, gate.stream));
        OK(gpumem_buffer_free(view, way == 2 ? gate.stream : NULL));
        OK(gpumem_buffer_free(buffer, NULL));
        OK(gpumem_device_trim(device, 0));
        assert_true(is_mapped(address));
        assert_int_equal(device_stats().deferred_frees, 1);
        gate_drain(&gate);
        OK(gpumem_device_trim(device, 0));
        assert_false(is_mapped(address));
        gate_remove(&gate);
    }
}

/* Every free has room for its stream, whether the owner's comes first or last. */
TEST(many_views_may_each_be_freed_on_their_own_stream) {
    enum { VIEWS = 40 };
    CUstream streams[VIEWS + 1];
    gpumem_buffer *views[VIEWS];
    for (size_t i = 0; i <= VIEWS; i++)
        streams[i] = NEW_STREAM();
    for (int owner_first = 0; owner_first < 2; owner_first++) {
        gpumem_buffer *buffer = allocate_on(virtual_memory, 2 * MIB, NULL);
        for (size_t i = 0; i < VIEWS; i++)
            views[i] = NEW_VIEW(buffer, i, 1);
        if (owner_first)
            OK(gpumem_buffer_free(buffer, streams[VIEWS]));
        for (size_t i = 0; i < VIEWS; i++)
            OK(gpumem_buffer_free(views[i], streams[i]));
        if (!owner_first)
            OK(gpumem_buffer_free(buffer, streams[VIEWS]));
    }
    for (size_t i = 0; i <= VIEWS; i++)
        OK(gpumem_stream_destroy(device, streams[i]));
    assert_int_equal(device_stats().committed_bytes, 0);
}

/* Memory that goes back in the order of a stream does so behind the views' work. */
TEST(stream_ordered_memory_is_freed_after_its_views_work) {
    gpumem_resource *resources[] = {pool, cache};
    for (size_t i = 0; i < COUNT(resources); i++) {
        struct gate gate = gate_with_stream();
        CUstream stream = NEW_STREAM();
        gpumem_buffer *buffer = allocate_on(resources[i], KIB, stream);
        gpumem_buffer *seen = allocate_on(pinned, KIB, GPUMEM_STREAM_NONE);
        const unsigned char *bytes = gpumem_buffer_host_pointer(seen);
        gpumem_buffer *view = NEW_VIEW(buffer, 0, KIB);
        OK(gpumem_buffer_fill(view, 0, KIB, 7, gate.stream));
        OK(gpumem_buffer_free(buffer, stream));
        OK(gpumem_buffer_copy(seen, 0, view, 0, KIB, gate.stream));
        OK(gpumem_buffer_free(view, NULL));
        /* It may be the same memory: its new owner's work comes after the gate then, if at all. */
        gpumem_buffer *next = allocate_on(resources[i], KIB, stream);
        OK(gpumem_buffer_fill(next, 0, KIB, 9, stream));
        gate_drain(&gate);
        for (size_t j = 0; j < KIB; j++)
            assert_int_equal(bytes[j], 7);
        OK(gpumem_buffer_free(next, stream));
        OK(gpumem_buffer_free(seen, NULL));
        OK(gpumem_device_trim(device, 1));
        DESTROY(stream, &gate);
    }
}

TEST(exporting_a_view_is_refused) {
    gpumem_export *exported = NULL;
    gpumem_buffer *buffer = allocate_on(virtual_memory, 2 * MIB, NULL);
    gpumem_buffer *view = NEW_VIEW(buffer, 0, MIB);
    FAILS(NOT_SUPPORTED, gpumem_export_create(view, &exported));
    assert_null(exported);
    DESTROY(view, buffer);
}

TEST(views_may_be_held) {
    gpumem_buffer *buffer = allocate_on(virtual_memory, 2 * MIB, NULL);
    gpumem_buffer *view = NEW_VIEW(buffer, 0, MIB);
    FAILS(INVALID_ARGUMENT, gpumem_buffer_release(view));
    OK(gpumem_buffer_hold(view));
    OK(gpumem_buffer_free(view, NULL));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_free(view, NULL));
    FAILS(BUSY, gpumem_buffer_shrink(buffer, 1, NULL));
    OK(gpumem_buffer_release(view));
    OK(gpumem_buffer_shrink(buffer, 1, NULL));
    OK(gpumem_buffer_free(buffer, NULL));
}

/* Of a forked child's calls on the parent's objects all are refused, and none touches them. */
TEST(a_forked_child_may_not_use_views) {
    gpumem_buffer *buffer = allocate_on(virtual_memory, 2 * MIB, NULL);
    gpumem_buffer *view = NEW_VIEW(buffer, 0, KIB);
    pid_t child = fork();
    if (child == 0) {
        gpumem_buffer *another;
        int refused = gpumem_buffer_view(buffer, 0, 1, &another) == GPUMEM_ERROR_FORKED &&
                      gpumem_buffer_fill(view, 0, 1, 1, NULL) == GPUMEM_ERROR_FORKED &&
                      gpumem_buffer_free(view, NULL) == GPUMEM_ERROR_FORKED;
        _exit(refused ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    OK(fill_now(view, 0, KIB, 1, NULL));
    DESTROY(view, buffer);
}

/* ---- Threads --------------------------------------------------------------------------------- */

enum { THREADS = 6, ROUNDS = 300 };

struct worker {
    gpumem_buffer *buffer;
    unsigned char number;
    int busy; /* shrinks that met a view, or views of what had just gone */
};

/* Each in its own KiB of the first 2 MiB, which no shrink takes. */
static void *make_views(void *data) {
    struct worker *worker = data;
    CUstream stream = NEW_STREAM();
    for (int round = 0; round < ROUNDS; round++) {
        unsigned char bytes[KIB], value = (unsigned char)(worker->number + round);
        gpumem_buffer *view = NEW_VIEW(worker->buffer, worker->number * KIB, KIB);
        OK(gpumem_buffer_fill(view, 0, KIB, value, stream));
        OK(read_now(view, 0, bytes, KIB, stream));
        for (size_t i = 0; i < KIB; i++)
            assert_int_equal(bytes[i], value);
        OK(gpumem_buffer_free(view, stream));
    }
    return NULL;
}

static void *grow_and_shrink(void *data) {
    struct worker *worker = data;
    for (int round = 0; round < ROUNDS; round++) {
        OK(gpumem_buffer_grow(worker->buffer, 32 * MIB, NULL));
        gpumem_status status = gpumem_buffer_shrink(worker->buffer, 4 * MIB, NULL);
        worker->busy += status == GPUMEM_ERROR_BUSY;
        assert_true(status == GPUMEM_OK || status == GPUMEM_ERROR_BUSY);
    }
    return NULL;
}

/* Whoever reads through a view looks for holes, in a list that the growth makes longer. */
static void view_while_it_grows(gpumem_buffer *buffer) {
    pthread_t threads[THREADS + 1];
    struct worker workers[THREADS + 1];
    for (size_t i = 0; i <= THREADS; i++) {
        workers[i] = (struct worker){.buffer = buffer, .number = (unsigned char)i};
        assert_int_equal(pthread_create(&threads[i], NULL,
                                        i < THREADS ? make_views : grow_and_shrink, &workers[i]),
                         0);
    }
    for (size_t i = 0; i <= THREADS; i++)
        pthread_join(threads[i], NULL);
    OK(gpumem_buffer_free(buffer, NULL));
    OK(gpumem_device_trim(device, 1));
    assert_int_equal(device_stats().committed_bytes, 0);
}

TEST(threads_view_a_buffer_that_grows_and_shrinks) {
    view_while_it_grows(allocate_on(virtual_memory, 4 * MIB, GPUMEM_STREAM_NONE));
}

TEST(threads_view_a_buffer_with_a_hole_that_grows_and_shrinks) {
    gpumem_buffer *buffer = allocate_on(virtual_memory, 4 * MIB, GPUMEM_STREAM_NONE);
    size_t released = 0;
    OK(gpumem_buffer_decommit(buffer, 2 * MIB, 2 * MIB, NULL, &released));
    assert_int_equal(released, 2 * MIB);
    view_while_it_grows(buffer);
}
