/* The streams of pool memory: none of the caller's, one that is being captured, one for the free.
 */
#include "library_test.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

ALL_TESTS(open_device, close_device);

static gpumem_resource *pool_of(int host) {
    return host ? NEW_PINNED(.method = GPUMEM_PINNED_POOL, .pool = GPUMEM_POOL_OWN)
                : NEW_POOL(.pool = GPUMEM_POOL_OWN);
}

static uint64_t used(gpumem_resource *resource) {
    return MADE(uint64_t, gpumem_pool_get_attribute, resource, GPUMEM_POOL_USED_CURRENT);
}

static uint64_t reserved(gpumem_resource *resource) {
    uint64_t value = 0;
    OK(gpumem_pool_get_attribute(resource, GPUMEM_POOL_RESERVED_CURRENT, &value));
    return value;
}

/* As late as work may run, the memory is there when the call returns: the CPU writes it. */
TEST(memory_allocated_without_a_stream_is_usable_at_once) {
    gpumem_resource *resource = pool_of(1);
    soft->schedule_set(SOFTGPU_SCHEDULE_LATE, 0);
    gpumem_buffer *buffer = allocate_on(resource, MIB, GPUMEM_STREAM_NONE);
    unsigned char *host = gpumem_buffer_host_pointer(buffer), back[2] = {0};
    memset(host, 0x21, MIB);
    struct gate gate = gate_with_stream();
    gate_drain(&gate);
    OK(gpumem_buffer_read(buffer, MIB - 2, back, 2, gate.stream));
    synchronize(gate.stream);
    assert_int_equal(back[1], 0x21);
    OK(gpumem_buffer_free(buffer, NULL));
    soft->schedule_set(SOFTGPU_SCHEDULE_EAGER, 0);
    DESTROY(resource, &gate);
}

/* No stream is asked for the default stream's sake: work on it holds nothing back. */
TEST(work_on_the_default_stream_does_not_defer_a_free) {
    for (int host = 0; host < 2; host++) {
        gpumem_resource *resource = pool_of(host);
        struct gate gate = gate_with_stream();
        gpumem_buffer *busy = allocate_on(resource, MIB, gate.stream);
        OK(gpumem_buffer_fill(busy, 0, MIB, 1, gate.stream));
        uint64_t queries = soft->call_count("cuStreamQuery");
        gpumem_buffer *buffer = allocate_on(resource, MIB, GPUMEM_STREAM_NONE);
        OK(gpumem_buffer_free(buffer, NULL));
        assert_int_equal(device_stats().deferred_frees, 0);
        buffer = allocate_on(resource, MIB, GPUMEM_STREAM_NONE);
        OK(gpumem_buffer_free(buffer, GPUMEM_STREAM_NONE)); /* names none either */
        assert_int_equal(device_stats().deferred_frees, 0);
        assert_int_equal(soft->call_count("cuStreamQuery"), queries); /* there is none to ask */
        gate_drain(&gate);
        OK(gpumem_buffer_free(busy, gate.stream));
        synchronize(gate.stream);
        DESTROY(resource, &gate);
    }
}

/* A stream that is named later is waited for, and by nobody. */
TEST(a_stream_that_uses_the_memory_defers_its_free) {
    for (int host = 0; host < 2; host++) {
        gpumem_resource *resource = pool_of(host);
        gpumem_buffer *buffer = allocate_on(resource, MIB, GPUMEM_STREAM_NONE);
        struct gate gate = gate_with_stream();
        OK(gpumem_buffer_fill(buffer, 0, MIB, 7, gate.stream));
        OK(gpumem_buffer_free(buffer, NULL));
        assert_int_equal(device_stats().deferred_frees, 1);
        assert_int_equal(used(resource), MIB);
        /* Meanwhile memory is had, other than that. */
        gpumem_buffer *other = allocate_on(resource, MIB, GPUMEM_STREAM_NONE);
        assert_int_equal(used(resource), 2 * MIB);
        OK(gpumem_buffer_free(other, NULL));
        gate_drain(&gate);
        OK(gpumem_device_trim(device, 1));
        assert_int_equal(device_stats().deferred_frees, 0);
        assert_int_equal(used(resource), 0);
        DESTROY(resource, &gate);
    }
}

struct taker {
    gpumem_resource *resource;
    gpumem_buffer *buffer;
    atomic_int done;
};

static void *take_and_write(void *argument) {
    struct taker *taker = argument;
    if (gpumem_buffer_allocate(taker->resource, 32 * MIB,
                               GPUMEM_BUFFER_OPTIONS(.stream = GPUMEM_STREAM_NONE),
                               &taker->buffer) == GPUMEM_OK)
        memset(gpumem_buffer_host_pointer(taker->buffer), 0x22, 32 * MIB);
    atomic_store(&taker->done, 1);
    return NULL;
}

/* Where the driver has nothing but what queued work still writes, the call waits for that work. */
TEST(an_allocation_waits_for_memory_that_queued_work_writes) {
    struct taker taker = {.buffer = NULL};
    pthread_t thread;
    taker.resource = NEW_PINNED(.method = GPUMEM_PINNED_POOL, .maximum_bytes = 32 * MIB);
    struct gate gate = gate_with_stream();
    gpumem_buffer *first = allocate_on(taker.resource, 32 * MIB, gate.stream);
    OK(gpumem_buffer_fill(first, 0, 32 * MIB, 0x11, gate.stream));
    OK(gpumem_buffer_free(first, gate.stream));
    uint64_t waits = soft->call_count("cuStreamSynchronize");
    assert_int_equal(pthread_create(&thread, NULL, take_and_write, &taker), 0);
    while (soft->call_count("cuStreamSynchronize") == waits && !atomic_load(&taker.done))
        sched_yield();
    gate_drain(&gate);
    pthread_join(thread, NULL);
    assert_non_null(taker.buffer);
    synchronize(gate.stream);
    assert_int_equal(*(unsigned char *)gpumem_buffer_host_pointer(taker.buffer), 0x22);
    DESTROY(taker.buffer, taker.resource, &gate);
}

/* The CPU writes at once what it gets, and a queued copy still reads what was there before. */
TEST(host_memory_is_not_reused_before_queued_copies_read_it) {
    gpumem_resource *resource = pool_of(1), *pool = pool_of(0);
    OK(gpumem_pool_set_attribute(resource, GPUMEM_POOL_REUSE_ALLOW_INTERNAL_DEPENDENCIES, 0));
    gpumem_buffer *seen = allocate_on(pool, MIB, GPUMEM_STREAM_NONE);
    gpumem_buffer *read = allocate_on(resource, MIB, GPUMEM_STREAM_NONE), *next;
    struct gate gate = gate_with_stream();
    unsigned char byte = 0;
    memset(gpumem_buffer_host_pointer(read), 0x11, MIB);
    OK(gpumem_buffer_copy(seen, 0, read, 0, MIB, gate.stream));
    OK(gpumem_buffer_free(read, gate.stream));
    next = allocate_on(resource, MIB, GPUMEM_STREAM_NONE);
    memset(gpumem_buffer_host_pointer(next), 0x22, MIB);
    gate_drain(&gate);
    OK(gpumem_buffer_read(seen, MIB - 1, &byte, 1, gate.stream));
    synchronize(gate.stream);
    assert_int_equal(byte, 0x11);
    DESTROY(next, seen, pool, resource, &gate);
}

/* ---- Through wrappers ------------------------------------------------------------------------ */

static gpumem_resource *slabs, *full;

static void make_limit(gpumem_resource *pool, gpumem_resource **made) {
    OK(gpumem_limiting_resource_create(pool, GIB, made));
}

/* As the driver aligns anyway, and by more than that. */
static void make_alignment(gpumem_resource *pool, gpumem_resource **made) {
    OK(gpumem_alignment_resource_create(pool, NULL, made));
}

static void make_wide_alignment(gpumem_resource *pool, gpumem_resource **made) {
    OK(gpumem_alignment_resource_create(pool, GPUMEM_ALIGNMENT_OPTIONS(.alignment = MIB / 2),
                                        made));
}

static void make_fallback(gpumem_resource *pool, gpumem_resource **made) {
    OK(gpumem_fallback_resource_create(pool, slabs, made));
}

static void make_second(gpumem_resource *pool, gpumem_resource **made) {
    OK(gpumem_fallback_resource_create(full, pool, made));
}

static void (*const wrappers[])(gpumem_resource *pool, gpumem_resource **made) = {
    make_limit, make_alignment, make_wide_alignment, make_fallback, make_second,
};

static uint64_t deferred(gpumem_resource *resource) {
    gpumem_stats stats = stats_of(resource);
    return stats.deferred_frees;
}

static void take_and_free_through(gpumem_resource *wrapper, gpumem_resource *pool) {
    gpumem_buffer *buffer = allocate_on(wrapper, MIB, GPUMEM_STREAM_NONE);
    size_t taken = gpumem_buffer_committed(buffer);
    struct gate gate = gate_with_stream();
    assert_true(taken >= MIB);
    assert_int_equal(used(pool), taken);
    /* Waited for by the free: the stream that uses it. */
    OK(gpumem_buffer_fill(buffer, 0, MIB, 7, gate.stream));
    OK(gpumem_buffer_free(buffer, NULL));
    assert_int_equal(deferred(wrapper), 1);
    assert_int_equal(used(pool), taken);
    gate_drain(&gate);
    OK(gpumem_device_trim(device, 1));
    assert_int_equal(deferred(wrapper), 0);
    assert_int_equal(used(pool), 0);
    gate_remove(&gate);
    /* Nobody uses it: it is there again at once. The free may name a stream after all. */
    OK(gpumem_buffer_free(allocate_on(wrapper, MIB, GPUMEM_STREAM_NONE), GPUMEM_STREAM_NONE));
    assert_int_equal(used(pool), 0);
    gate = gate_with_stream();
    OK(gpumem_buffer_free(allocate_on(wrapper, MIB, GPUMEM_STREAM_NONE), gate.stream));
    assert_int_equal(deferred(wrapper), 0);
    OK(gpumem_resource_trim(pool, 0));
    assert_true(reserved(pool) >= taken); /* the stream has not got there */
    gate_drain(&gate);
    OK(gpumem_resource_trim(pool, 0));
    assert_int_equal(reserved(pool), 0);
    gate_remove(&gate);
}

/* A wrapper hands it on, and waits as the pool does. */
TEST(wrappers_accept_allocations_without_a_stream) {
    slabs = NEW_PINNED();
    full = NEW_LIMIT(slabs, 0);
    for (int host = 0; host < 2; host++) {
        for (size_t i = 0; i < COUNT(wrappers); i++) {
            gpumem_resource *pool = pool_of(host), *wrapper;
            wrappers[i](pool, &wrapper);
            take_and_free_through(wrapper, pool);
            DESTROY(wrapper, pool);
        }
    }
    DESTROY(full, slabs);
}

/* Freed on a stream that the free names, in its order. */
TEST(a_free_may_name_a_stream) {
    gpumem_resource *resource = pool_of(0);
    gpumem_buffer *buffer = allocate_on(resource, MIB, GPUMEM_STREAM_NONE);
    struct gate gate = gate_with_stream();
    OK(gpumem_buffer_free(buffer, gate.stream));
    assert_int_equal(device_stats().deferred_frees, 1);
    OK(gpumem_resource_trim(resource, 0));
    assert_true(reserved(resource) >= MIB); /* the stream has not got there */
    gate_drain(&gate);
    OK(gpumem_resource_trim(resource, 0));
    assert_int_equal(reserved(resource), 0);
    DESTROY(resource, &gate);
}

TEST(queueing_work_without_a_stream_is_refused) {
    gpumem_resource *resource = pool_of(1);
    gpumem_buffer *buffer = allocate_on(resource, 4096, GPUMEM_STREAM_NONE);
    char byte = 0;
    FAILS(INVALID_ARGUMENT, gpumem_buffer_use(buffer, GPUMEM_STREAM_NONE));
    SAYS("no work can be queued");
    FAILS(INVALID_ARGUMENT, gpumem_buffer_write(buffer, 0, &byte, 1, GPUMEM_STREAM_NONE));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_read(buffer, 0, &byte, 1, GPUMEM_STREAM_NONE));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_fill(buffer, 0, 1, 1, GPUMEM_STREAM_NONE));
    DESTROY(buffer, resource);
}

/* Other resources have no stream to ask: theirs is memory that nothing holds back. (Managed memory
 * and whole slabs are given back by calls that wait for the device, whoever asks.) */
TEST(every_resource_accepts_allocations_without_a_stream) {
    gpumem_resource *resources[3];
    resources[0] = NEW_VIRTUAL();
    resources[1] = NEW_PINNED();
    resources[2] = NEW_MANAGED();
    struct gate gate = gate_with_stream();
    for (size_t i = 0; i < COUNT(resources); i++) {
        if (i == 2)
            gate_drain(&gate);
        gpumem_buffer *buffer = allocate_on(resources[i], MIB, GPUMEM_STREAM_NONE);
        OK(gpumem_buffer_free(buffer, NULL));
        assert_int_equal(device_stats().deferred_frees, 0);
    }
    DESTROY_EACH(resources, COUNT(resources));
    gate_remove(&gate);
}

/* ---- Captures -------------------------------------------------------------------------------- */

/* Allocated, written and freed inside a graph, which gives the bytes out at each launch. */
TEST(device_pool_memory_can_be_allocated_in_a_capture) {
    gpumem_resource *resource = pool_of(0);
    gpumem_resource *pinned = NEW_PINNED();
    gpumem_buffer *out = allocate_on(pinned, 4096, GPUMEM_STREAM_NONE);
    unsigned char *seen = gpumem_buffer_host_pointer(out);
    CUstream stream = NEW_STREAM();
    use_context();
    OK_CU(cu->cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    gpumem_buffer *buffer = allocate_on(resource, 4096, stream);
    OK(gpumem_buffer_fill(buffer, 0, 4096, 0x6b, stream));
    OK(gpumem_buffer_read(buffer, 0, seen, 4096, stream));
    OK(gpumem_buffer_free(buffer, stream));
    CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, stream);
    assert_int_equal(GOT_CU(size_t, cuGraphGetNodes, graph, NULL), 4);
    CUgraphExec exec = MADE_CU(CUgraphExec, cuGraphInstantiateWithFlags, graph, 0);
    for (int i = 0; i < 2; i++) {
        memset(seen, 0, 4096);
        OK_CU(cu->cuGraphLaunch(exec, stream));
        synchronize(stream);
        assert_int_equal(seen[4095], 0x6b);
    }
    assert_int_equal(used(resource), 0); /* the graph's memory is not the pool's */
    OK_CU(cu->cuGraphExecDestroy(exec));
    OK_CU(cu->cuGraphDestroy(graph));
    OK_CU(cu->cuDeviceGraphMemTrim(gpumem_device_handle(device)));
    leave_context();
    DESTROY(stream, out, pinned, resource);
}

/* Of host memory the driver makes no node; that is said, and nothing is lost. Memory for another
 * stream is had meanwhile, and the capture goes on. */
TEST(host_pool_memory_in_a_capture_is_refused) {
    gpumem_resource *resource = pool_of(1);
    gpumem_buffer *none = NULL;
    CUstream captured = NEW_STREAM();
    CUstream other = NEW_STREAM();
    use_context();
    OK_CU(cu->cuStreamBeginCapture_v2(captured, CU_STREAM_CAPTURE_MODE_GLOBAL));
    gpumem_buffer *buffer = allocate_on(resource, 4096, other);
    gpumem_buffer *at_once = allocate_on(resource, 4096, GPUMEM_STREAM_NONE);
    memset(gpumem_buffer_host_pointer(at_once), 1, 4096);
    OK(gpumem_buffer_fill(buffer, 0, 4096, 0x41, captured));
    CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, captured);
    assert_int_equal(GOT_CU(size_t, cuGraphGetNodes, graph, NULL), 1);
    OK_CU(cu->cuGraphDestroy(graph));
    OK_CU(cu->cuStreamBeginCapture_v2(captured, CU_STREAM_CAPTURE_MODE_GLOBAL));
    FAILS_SAYING(
        NOT_SUPPORTED, "capturing",
        gpumem_buffer_allocate(resource, 4096, GPUMEM_BUFFER_OPTIONS(.stream = captured), &none));
    (void)cu->cuStreamEndCapture(captured, &graph);
    if (graph)
        OK_CU(cu->cuGraphDestroy(graph));
    leave_context();
    OK(gpumem_buffer_free(buffer, other));
    DESTROY(at_once, captured);
    synchronize(other);
    OK(gpumem_device_trim(device, 1));
    DESTROY(other, resource);
}
