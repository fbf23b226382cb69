/*
 * Frees that a pool's driver has taken, and that queued work holds back: other resources wait for
 * them when memory runs out, trims wait, statistics show them. No stream is touched that the
 * program may have destroyed.
 */
#include "library_test.h"
#include "run_threads.h"

EACH_TEST(open_device, close_device);

/* Most of what the device has: of two such buffers, the second needs the memory of the first. */
static size_t most_of_it(void) {
    uint64_t free_bytes, total;
    OK(gpumem_device_get_memory(device, &free_bytes, &total));
    return (size_t)free_bytes / 64 / MIB * 33 * MIB;
}

enum stream_kind { OURS, THE_PROGRAMS, DEFAULT, PER_THREAD, STREAM_KINDS };

static CUstream stream_of(enum stream_kind kind) {
    CUstream stream = kind == OURS         ? NEW_STREAM()
                      : kind == PER_THREAD ? CU_STREAM_PER_THREAD
                                           : NULL;
    if (kind == THE_PROGRAMS)
        OK_CU(cu->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    return stream;
}

static gpumem_resource *pool_of(gpumem_pool_choice choice) {
    return NEW_POOL(.pool = choice);
}

/* Freed behind work that has not begun: softgpu runs it when somebody waits for it. */
static void free_behind_work(gpumem_resource *pool, size_t bytes, CUstream stream) {
    gpumem_buffer *buffer = allocate_on(pool, bytes, stream);
    soft->schedule_set(SOFTGPU_SCHEDULE_LATE, 0);
    OK(gpumem_buffer_fill(buffer, 0, MIB, 3, stream));
    OK(gpumem_buffer_free(buffer, NULL));
}

static void end_stream(enum stream_kind kind, CUstream stream) {
    soft->schedule_set(SOFTGPU_SCHEDULE_EAGER, 0);
    synchronize(stream);
    if (kind == OURS)
        OK(gpumem_stream_destroy(device, stream));
    if (kind == THE_PROGRAMS)
        OK_CU(cu->cuStreamDestroy_v2(stream));
}

/* ---- Running out ----------------------------------------------------------------------------- */

TEST(another_resource_waits_for_memory_freed_into_a_pool) {
    static const gpumem_pool_choice choices[] = {GPUMEM_POOL_OWN, GPUMEM_POOL_DEFAULT};
    gpumem_resource *other = NEW_VIRTUAL();
    use_context();
    for (size_t c = 0; c < COUNT(choices); c++) {
        for (enum stream_kind kind = 0; kind < STREAM_KINDS; kind++) {
            gpumem_resource *pool = pool_of(choices[c]);
            CUstream stream = stream_of(kind);
            free_behind_work(pool, most_of_it(), stream);
            print_message("pool %d, stream %d\n", (int)choices[c], (int)kind);
            gpumem_buffer *buffer = NEW_BUFFER(other, most_of_it());
            end_stream(kind, stream);
            DESTROY(buffer, pool);
        }
    }
    leave_context();
    OK(gpumem_resource_destroy(other));
}

TEST(a_pool_waits_for_what_was_freed_into_another) {
    gpumem_resource *pools[] = {pool_of(GPUMEM_POOL_OWN), pool_of(GPUMEM_POOL_OWN)};
    CUstream stream = NEW_STREAM();
    free_behind_work(pools[0], most_of_it(), stream);
    gpumem_buffer *buffer = NEW_BUFFER(pools[1], most_of_it());
    end_stream(OURS, stream);
    OK(gpumem_buffer_free(buffer, NULL));
    DESTROY_EACH(pools, 2);
}

TEST(another_resource_waits_for_a_pool_that_was_destroyed) {
    gpumem_resource *pool = pool_of(GPUMEM_POOL_OWN), *other = NEW_VIRTUAL();
    CUstream stream = NEW_STREAM();
    free_behind_work(pool, most_of_it(), stream);
    OK(gpumem_resource_destroy(pool));
    assert_int_equal(device_stats().deferred_frees, 1);
    gpumem_buffer *buffer = NEW_BUFFER(other, most_of_it());
    OK(gpumem_device_trim(device, 1));
    assert_int_equal(device_stats().deferred_frees, 0);
    end_stream(OURS, stream);
    DESTROY(buffer, other);
}

/* A stream of the program's is marked by the free; nobody looks at it again. One of the library's
 * is marked when it ends. */
TEST(memory_freed_on_a_destroyed_stream_is_waited_for) {
    gpumem_resource *pool = pool_of(GPUMEM_POOL_OWN), *other = NEW_VIRTUAL();
    use_context();
    for (enum stream_kind kind = OURS; kind <= THE_PROGRAMS; kind++) {
        CUstream stream = stream_of(kind);
        free_behind_work(pool, most_of_it(), stream);
        if (kind == OURS)
            OK(gpumem_stream_destroy(device, stream));
        else
            OK_CU(cu->cuStreamDestroy_v2(stream));
        OK(gpumem_buffer_free(NEW_BUFFER(other, most_of_it()), NULL));
        soft->schedule_set(SOFTGPU_SCHEDULE_EAGER, 0);
    }
    leave_context();
    DESTROY(pool, other);
}

/* What is small is not marked, and the stream must not be asked later. */
TEST(destroyed_streams_are_not_asked) {
    gpumem_resource *pool = pool_of(GPUMEM_POOL_OWN);
    CUstream streams[20];
    use_context();
    for (size_t i = 0; i < COUNT(streams); i++) {
        streams[i] = stream_of(THE_PROGRAMS);
        OK(gpumem_buffer_free(allocate_on(pool, 4096, streams[i]), NULL));
        OK_CU(cu->cuStreamDestroy_v2(streams[i]));
    }
    uint64_t before = soft->call_count("cuStreamGetCaptureInfo_v2") +
                      soft->call_count("cuStreamQuery") + soft->call_count("cuEventRecord");
    OK(gpumem_device_trim(device, 1));
    assert_int_equal(device_stats().deferred_frees, 0);
    assert_int_equal(soft->call_count("cuStreamGetCaptureInfo_v2") +
                         soft->call_count("cuStreamQuery") + soft->call_count("cuEventRecord"),
                     before);
    leave_context();
    OK(gpumem_resource_destroy(pool));
}

struct freeing {
    gpumem_resource *pool;
    CUstream stream;
    size_t bytes;
};

static void *free_there(void *data) {
    struct freeing *freeing = data;
    free_behind_work(freeing->pool, freeing->bytes, freeing->stream);
    return NULL;
}

/* The thread that freed has ended meanwhile. */
TEST(memory_freed_by_another_thread_is_waited_for) {
    struct freeing freeing = {pool_of(GPUMEM_POOL_OWN), NEW_STREAM(), most_of_it()};
    gpumem_resource *other = NEW_VIRTUAL();
    run_threads(1, free_there, &freeing, sizeof freeing);
    gpumem_buffer *buffer = NEW_BUFFER(other, most_of_it());
    end_stream(OURS, freeing.stream);
    DESTROY(buffer, other, freeing.pool);
}

#define FREED_THERE 16

/* ---- Trims and statistics -------------------------------------------------------------------- */

static uint64_t reserved_by(gpumem_resource *pool) {
    uint64_t bytes = 0;
    OK(gpumem_pool_get_attribute(pool, GPUMEM_POOL_RESERVED_CURRENT, &bytes));
    return bytes;
}

TEST(a_trim_that_waits_gives_back_what_queued_work_held) {
    gpumem_resource *pool = pool_of(GPUMEM_POOL_OWN);
    CUstream stream = NEW_STREAM();
    free_behind_work(pool, 64 * MIB, stream);
    OK(gpumem_device_trim(device, 0));
    assert_int_equal(reserved_by(pool), 64 * MIB);
    OK(gpumem_device_trim(device, 1));
    assert_int_equal(reserved_by(pool), 0);
    end_stream(OURS, stream);
    OK(gpumem_resource_destroy(pool));
}

static void check_held(gpumem_resource *pool, uint64_t frees, uint64_t bytes) {
    gpumem_stats of_pool = stats_of(pool), of_device = device_stats();
    assert_int_equal(of_pool.deferred_frees, frees);
    assert_int_equal(of_pool.deferred_bytes, bytes);
    assert_int_equal(of_device.deferred_frees, frees);
    assert_int_equal(of_device.deferred_bytes, bytes);
    assert_true(of_pool.committed_bytes >= of_pool.deferred_bytes + of_pool.cached_bytes);
}

TEST(statistics_show_what_queued_work_holds_of_a_pool) {
    static const gpumem_pool_choice choices[] = {GPUMEM_POOL_OWN, GPUMEM_POOL_DEFAULT};
    for (size_t c = 0; c < COUNT(choices); c++) {
        gpumem_resource *pool = pool_of(choices[c]);
        struct gate gate = gate_with_stream();
        gpumem_buffer *buffers[3];
        for (size_t i = 0; i < COUNT(buffers); i++)
            buffers[i] = allocate_on(pool, MIB, gate.stream);
        check_held(pool, 0, 0);
        DESTROY_EACH(buffers, COUNT(buffers));
        check_held(pool, 3, 3 * MIB);
        if (choices[c] == GPUMEM_POOL_OWN)
            assert_int_equal(stats_of(pool).cached_bytes, reserved_by(pool) - 3 * MIB);
        gate_drain(&gate);
        check_held(pool, 0, 0);
        if (choices[c] == GPUMEM_POOL_OWN)
            assert_int_equal(stats_of(pool).cached_bytes, reserved_by(pool));
        DESTROY(&gate, pool);
    }
}

/* On the stream itself the memory can be used again at once. */
TEST(what_its_own_stream_uses_again_is_not_held_back) {
    gpumem_resource *pool = pool_of(GPUMEM_POOL_OWN);
    struct gate gate = gate_with_stream();
    for (int i = 0; i < 1000; i++)
        OK(gpumem_buffer_free(allocate_on(pool, MIB, gate.stream), NULL));
    gpumem_buffer *again = allocate_on(pool, MIB, gate.stream);
    check_held(pool, 0, 0);
    OK(gpumem_buffer_free(again, NULL));
    check_held(pool, 1, MIB);
    gate_drain(&gate);
    DESTROY(&gate, pool);
}

/* Of a program that never asks for figures, with a thread that frees what another allocated. */
struct handed_over {
    CUstream stream;
    gpumem_buffer *buffers[FREED_THERE];
};

static void *free_them(void *data) {
    const struct handed_over *all = data;
    uint64_t made = 0, asked = soft->call_count("cuStreamQuery");
    use_context();
    for (int i = 0; i < FREED_THERE; i++) {
        if (i == 4)
            made = soft->call_count("cuEventCreate");
        OK(gpumem_buffer_fill(all->buffers[i], 0, MIB, 3, all->stream));
        OK(gpumem_buffer_free(all->buffers[i], NULL));
        synchronize(all->stream);
    }
    assert_int_equal(soft->call_count("cuEventCreate"), made);
    /* Its own thread may be beginning a capture, which that would invalidate. */
    assert_int_equal(soft->call_count("cuStreamQuery"), asked);
    return NULL;
}

TEST(marks_that_have_passed_do_not_become_ever_more) {
    gpumem_resource *pool = pool_of(GPUMEM_POOL_OWN);
    use_context();
    struct handed_over all = {.stream = stream_of(THE_PROGRAMS)};
    for (int i = 0; i < FREED_THERE; i++)
        all.buffers[i] = allocate_on(pool, 33 * MIB, all.stream);
    soft->schedule_set(SOFTGPU_SCHEDULE_LATE, 0);
    run_threads(1, free_them, &all, 0);
    end_stream(THE_PROGRAMS, all.stream);
    DESTROY(pool);
}

TEST(host_and_managed_pools_show_it_too) {
    gpumem_resource *pools[] = {
        NEW_PINNED(.method = GPUMEM_PINNED_POOL, .pool = GPUMEM_POOL_OWN),
        NEW_MANAGED(.method = GPUMEM_MANAGED_POOL, .pool = GPUMEM_POOL_OWN)};
    for (size_t i = 0; i < COUNT(pools); i++) {
        struct gate gate = gate_with_stream();
        OK(gpumem_buffer_free(allocate_on(pools[i], MIB, gate.stream), NULL));
        check_held(pools[i], 1, MIB);
        gate_drain(&gate);
        check_held(pools[i], 0, 0);
        DESTROY(&gate);
    }
    DESTROY_EACH(pools, COUNT(pools));
}

/* A free in a capture is a node: nothing waits for it, and the capture is not harmed. */
TEST(statistics_and_trims_leave_captures_alone) {
    gpumem_resource *pool = pool_of(GPUMEM_POOL_OWN);
    CUstream stream = NEW_STREAM();
    CUgraph graph = NULL;
    OK_CU(cu->cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(gpumem_buffer_free(allocate_on(pool, MIB, stream), NULL));
    assert_int_equal(device_stats().deferred_frees, 0);
    OK(gpumem_device_trim(device, 1));
    OK_CU(cu->cuStreamEndCapture(stream, &graph));
    assert_non_null(graph);
    OK_CU(cu->cuGraphDestroy(graph));
    assert_int_equal(device_stats().deferred_frees, 0);
    DESTROY(stream, pool);
}
