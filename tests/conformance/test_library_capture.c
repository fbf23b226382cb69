/* The memory library beside stream captures: it disturbs none, and memory of a capture is the
 * graph's. */
#include "library.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

static const CUstreamCaptureMode modes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL,
                                            CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                            CU_STREAM_CAPTURE_MODE_RELAXED};

static CUstream make_stream(unsigned flags) {
    return MADE_CU(CUstream, cuStreamCreate, flags);
}

static CUgraph end_capture(CUstream stream) {
    return GOT_CU(CUgraph, cuStreamEndCapture, stream);
}

static gpumem_buffer *allocate(gpumem_resource *resource, CUstream stream) {
    return NEW_BUFFER_WITH(resource, 2 * MIB, .stream = stream);
}

static gpumem_resource *make_virtual(void) {
    return NEW_VIRTUAL();
}

static gpumem_resource *make_pinned(void) {
    return NEW_PINNED(.slab_bytes = 2 * MIB);
}

/* The driver's own default pool, whose use it tells. */
static gpumem_resource *make_pool(void) {
    return NEW_POOL(.pool = GPUMEM_POOL_DEFAULT);
}

static uint64_t pool_used(void) {
    cuuint64_t used = 0;
    CUmemoryPool pool = MADE_CU(CUmemoryPool, cuDeviceGetDefaultMemPool, dev);
    OK_CU(cu.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    return used;
}

static uint64_t graph_memory_used(void) {
    cuuint64_t used = 0;
    OK_CU(cu.cuDeviceGetGraphMemAttribute(dev, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used));
    return used;
}

/* ---- Nothing is disturbed -------------------------------------------------------------------- */

/* What a program does with the library while something else captures. */
static void use_all(void) {
    bool done;
    char host[64] = {0};
    CUstream other = NEW_STREAM();
    gpumem_resource *resources[] = {make_virtual(), make_pinned(), make_pool()};
    gpumem_resource *own = NEW_POOL(.pool = GPUMEM_POOL_OWN);
    gpumem_buffer *buffer = allocate(own, other);
    OK(gpumem_buffer_free(buffer, other));
    for (size_t i = 0; i < COUNT(resources); i++) {
        buffer = allocate(resources[i], other);
        if (i != 1)
            OK(gpumem_buffer_fill(buffer, 0, 4096, 1, other));
        if (i != 1)
            OK(gpumem_buffer_read(buffer, 0, host, sizeof host, other));
        OK(gpumem_stream_query(device, other, &done));
        OK(gpumem_buffer_free(buffer, NULL));
    }
    OK(gpumem_stream_synchronize(device, other));
    (void)device_stats();
    OK(gpumem_device_trim(device, 1));
    for (size_t i = 0; i < COUNT(resources); i++)
        OK(gpumem_resource_destroy(resources[i]));
    DESTROY(own, other);
}

static void *use_all_elsewhere(void *unused) {
    use_all();
    return NULL;
}

TEST(library_calls_leave_captures_undisturbed) {
    open_library();
    for (size_t i = 0; i < COUNT(modes); i++) {
        CUstream stream = make_stream(CU_STREAM_DEFAULT);
        pthread_t thread;
        OK_CU(cu.cuStreamBeginCapture_v2(stream, modes[i]));
        use_all();
        assert_int_equal(pthread_create(&thread, NULL, use_all_elsewhere, NULL), 0);
        pthread_join(thread, NULL);
        DESTROY_CU(end_capture(stream), stream);
    }
    assert_int_equal(device_stats().quarantined, 0);
}

/* The thread's own mode is what it was. */
TEST(library_calls_preserve_the_capture_mode_of_the_thread) {
    open_library();
    for (size_t i = 0; i < COUNT(modes); i++) {
        CUstreamCaptureMode mode = modes[i];
        OK_CU(cu.cuThreadExchangeStreamCaptureMode(&mode));
        use_all();
        OK_CU(cu.cuThreadExchangeStreamCaptureMode(&mode));
        assert_int_equal(mode, modes[i]);
    }
    CUstreamCaptureMode usual = CU_STREAM_CAPTURE_MODE_GLOBAL;
    OK_CU(cu.cuThreadExchangeStreamCaptureMode(&usual));
}

struct freeing {
    gpumem_buffer *buffers[3];
    CUstream stream;
};

static void *free_them(void *data) {
    struct freeing *freeing = data;
    for (size_t i = 0; i < COUNT(freeing->buffers); i++)
        OK(gpumem_buffer_free(freeing->buffers[i], freeing->stream));
    return NULL;
}

/* A blocking stream captures, so that nobody may touch the default stream: cuStreamQuery of it
 * would spoil the capture. */
static void free_during_a_capture(CUstreamCaptureMode mode, CUstream stream, bool elsewhere) {
    gpumem_resource *resources[] = {make_virtual(), make_pinned(), make_pool()};
    CUstream captured = make_stream(CU_STREAM_DEFAULT);
    struct freeing freeing = {.stream = stream};
    for (size_t i = 0; i < COUNT(resources); i++)
        freeing.buffers[i] = allocate(resources[i], NULL);
    OK_CU(cu.cuStreamBeginCapture_v2(captured, mode));
    pthread_t thread;
    if (elsewhere) {
        assert_int_equal(pthread_create(&thread, NULL, free_them, &freeing), 0);
        pthread_join(thread, NULL);
    } else {
        free_them(&freeing);
    }
    OK_CU(cu.cuGraphDestroy(end_capture(captured)));
    OK(gpumem_device_trim(device, 1));
    gpumem_stats stats = device_stats();
    MEMBERS(stats, (deferred_frees, 0), (quarantined, 0));
    for (size_t i = 0; i < COUNT(resources); i++)
        OK(gpumem_resource_destroy(resources[i]));
    OK_CU(cu.cuStreamDestroy_v2(captured));
}

TEST(frees_on_the_default_stream_do_not_invalidate_captures) {
    open_library();
    uint64_t used = pool_used();
    for (size_t i = 0; i < COUNT(modes); i++) {
        free_during_a_capture(modes[i], NULL, false);
        free_during_a_capture(modes[i], NULL, true);
        free_during_a_capture(modes[i], CU_STREAM_LEGACY, true);
    }
    OK_CU(cu.cuCtxSynchronize());
    assert_int_equal(pool_used(), used);
}

/* The driver would refuse, and spoil the capture. */
TEST(a_refused_allocation_on_the_default_stream_leaves_the_capture_valid) {
    open_library();
    gpumem_resource *pool = make_pool();
    CUstream captured = make_stream(CU_STREAM_DEFAULT);
    gpumem_buffer *none = NULL;
    OK_CU(cu.cuStreamBeginCapture_v2(captured, CU_STREAM_CAPTURE_MODE_RELAXED));
    assert_int_equal(gpumem_buffer_allocate(pool, MIB, NULL, &none), GPUMEM_ERROR_DRIVER);
    assert_int_equal(gpumem_last_error()->driver_code, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    DESTROY_CU(end_capture(captured), captured);
    OK(gpumem_resource_destroy(pool));
}

#define ROUNDS 300

static bool stop;
static unsigned frees;

static void *allocate_and_free(void *data) {
    gpumem_resource *resource = data;
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
        OK(gpumem_buffer_free(allocate(resource, NULL), NULL));
        __atomic_fetch_add(&frees, 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

/* Until the other threads have freed a few more: some frees begin before the capture, some end
 * after it. */
static void let_them_free(void) {
    unsigned until = __atomic_load_n(&frees, __ATOMIC_ACQUIRE) + 4;
    while ((int)(until - __atomic_load_n(&frees, __ATOMIC_ACQUIRE)) > 0)
        sched_yield();
}

/* A capture may begin between any two calls of a free. */
TEST(a_capture_that_begins_during_a_free_stays_valid) {
    open_library();
    gpumem_resource *resources[] = {make_pinned(), make_virtual()};
    CUstream captured = make_stream(CU_STREAM_DEFAULT);
    pthread_t threads[2];
    stop = false;
    for (size_t i = 0; i < COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, allocate_and_free, resources[i]), 0);
    int spoilt = 0;
    for (int i = 0; i < ROUNDS; i++) {
        CUgraph graph = NULL;
        OK_CU(cu.cuStreamBeginCapture_v2(captured, modes[i % 3]));
        let_them_free();
        CUresult ended = cu.cuStreamEndCapture(captured, &graph);
        spoilt += ended != CUDA_SUCCESS;
        if (graph)
            OK_CU(cu.cuGraphDestroy(graph));
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELEASE);
    for (size_t i = 0; i < COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(spoilt, 0);
    for (size_t i = 0; i < COUNT(resources); i++)
        OK(gpumem_resource_destroy(resources[i]));
    OK_CU(cu.cuStreamDestroy_v2(captured));
}

struct exchange {
    gpumem_resource *resource;
    gpumem_buffer *buffer; /* handed from one thread to the other; NULL: taken */
    int task;              /* of the thread that allocated and ended */
};

/* The kernel, and so the library, knows a joined thread for a moment longer. */
static void wait_until_gone(int task) {
    while (tgkill(getpid(), task, 0) == 0)
        sched_yield();
}

static void *free_what_comes(void *data) {
    struct exchange *exchange = data;
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
        gpumem_buffer *taken = __atomic_exchange_n(&exchange->buffer, NULL, __ATOMIC_ACQ_REL);
        if (taken)
            OK(gpumem_buffer_free(taken, NULL));
        else
            sched_yield();
    }
    return NULL;
}

static int capture_while_others_free(struct exchange *exchanges, size_t count, CUstream stream) {
    int spoilt = 0;
    for (int i = 0; i < ROUNDS; i++) {
        CUgraph graph = NULL;
        for (size_t n = 0; n < count; n++) {
            gpumem_buffer *made = allocate(exchanges[n].resource, stream);
            OK(gpumem_buffer_free(__atomic_exchange_n(&exchanges[n].buffer, made, __ATOMIC_ACQ_REL),
                                  NULL));
        }
        OK_CU(cu.cuStreamBeginCapture_v2(stream, modes[i % 3]));
        sched_yield();
        spoilt += cu.cuStreamEndCapture(stream, &graph) != CUDA_SUCCESS;
        if (graph)
            OK_CU(cu.cuGraphDestroy(graph));
    }
    return spoilt;
}

/* What one thread has allocated on its stream another one frees, while that stream begins to
 * capture. */
TEST(frees_in_other_threads_do_not_invalidate_captures) {
    NEEDS_SOFTGPU("NVIDIA's driver 580 crashes when one thread begins captures on a stream while "
                  "another asks anything of it");
    open_library();
    struct exchange exchanges[] = {
        {make_pinned(), NULL, 0}, {make_virtual(), NULL, 0}, {make_pool(), NULL, 0}};
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
    pthread_t threads[COUNT(exchanges)];
    stop = false;
    for (size_t i = 0; i < COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, free_what_comes, &exchanges[i]), 0);
    int spoilt = capture_while_others_free(exchanges, COUNT(exchanges), stream);
    __atomic_store_n(&stop, true, __ATOMIC_RELEASE);
    for (size_t i = 0; i < COUNT(threads); i++) {
        pthread_join(threads[i], NULL);
        OK(gpumem_buffer_free(exchanges[i].buffer, NULL));
    }
    OK(gpumem_device_trim(device, 1));
    assert_int_equal(spoilt, 0);
    gpumem_stats stats = device_stats();
    MEMBERS(stats, (deferred_frees, 0), (quarantined, 0));
    for (size_t i = 0; i < COUNT(exchanges); i++)
        OK(gpumem_resource_destroy(exchanges[i].resource));
    OK_CU(cu.cuCtxSynchronize());
    OK_CU(cu.cuStreamDestroy_v2(stream));
}

static void *allocate_and_end(void *exchange) {
    struct exchange *made = exchange;
    made->task = (int)gettid();
    made->buffer = allocate(made->resource, CU_STREAM_PER_THREAD);
    return NULL;
}

/* Where only the whole context can tell that memory is unused, it is waited for without harm. */
TEST(waiting_for_the_context_does_not_invalidate_captures) {
    open_library();
    struct exchange exchange = {.resource = make_virtual()};
    CUstream captured = make_stream(CU_STREAM_DEFAULT);
    for (size_t i = 0; i < COUNT(modes); i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, allocate_and_end, &exchange), 0);
        pthread_join(thread, NULL);
        wait_until_gone(exchange.task);
        OK_CU(cu.cuStreamBeginCapture_v2(captured, modes[i]));
        OK(gpumem_buffer_free(exchange.buffer, NULL));
        assert_int_equal(device_stats().deferred_frees, 1);
        OK(gpumem_device_trim(device, 1));
        assert_int_equal(device_stats().deferred_frees, 0);
        OK_CU(cu.cuGraphDestroy(end_capture(captured)));
    }
    OK(gpumem_resource_destroy(exchange.resource));
    OK_CU(cu.cuStreamDestroy_v2(captured));
}

/* ---- Memory of a capture --------------------------------------------------------------------- */

static size_t count_nodes(CUgraph graph, CUgraphNodeType type) {
    CUgraphNode nodes[16];
    size_t count = COUNT(nodes), found = 0;
    OK_CU(cu.cuGraphGetNodes(graph, nodes, &count));
    for (size_t i = 0; i < count; i++) {
        CUgraphNodeType is = GOT_CU(CUgraphNodeType, cuGraphNodeGetType, nodes[i]);
        found += is == type;
    }
    return found;
}

static void launch_and_end(CUgraph graph, CUstream stream) {
    CUgraphExec exec = instantiate(graph);
    launch_and_wait(exec, stream);
    OK_CU(cu.cuGraphDestroy(graph));
}

TEST(memory_allocated_and_freed_in_a_capture_becomes_nodes) {
    open_library();
    gpumem_resource *pool = make_pool();
    for (size_t i = 0; i < COUNT(modes); i++) {
        CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
        uint64_t used = pool_used();
        OK_CU(cu.cuStreamBeginCapture_v2(stream, modes[i]));
        gpumem_buffer *buffer = allocate(pool, stream);
        OK(gpumem_buffer_fill(buffer, 0, 4096, 1, stream));
        OK(gpumem_buffer_free(buffer, stream));
        CUgraph graph = end_capture(stream);
        assert_int_equal(count_nodes(graph, CU_GRAPH_NODE_TYPE_MEM_ALLOC), 1);
        assert_int_equal(count_nodes(graph, CU_GRAPH_NODE_TYPE_MEM_FREE), 1);
        assert_int_equal(pool_used(), used);
        launch_and_end(graph, stream);
        OK_CU(cu.cuStreamDestroy_v2(stream));
    }
    gpumem_stats stats = device_stats();
    MEMBERS(stats, (deferred_frees, 0), (quarantined, 0));
    OK(gpumem_resource_destroy(pool));
    OK_CU(cu.cuDeviceGraphMemTrim(dev));
}

/* A second stream of the capture: the free comes after what it did. */
TEST(a_free_in_a_capture_joins_the_other_streams) {
    open_library();
    gpumem_resource *pool = make_pool();
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
    CUstream fork = make_stream(CU_STREAM_NON_BLOCKING);
    CUevent event = new_event();
    OK_CU(cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    gpumem_buffer *buffer = allocate(pool, stream);
    order_streams(stream, event, fork);
    OK(gpumem_buffer_fill(buffer, 0, 4096, 1, fork));
    OK(gpumem_buffer_free(buffer, stream));
    CUgraph graph = end_capture(stream); /* UNJOINED if the fork was not joined */
    assert_int_equal(count_nodes(graph, CU_GRAPH_NODE_TYPE_MEM_FREE), 1);
    launch_and_end(graph, stream);
    assert_int_equal(device_stats().quarantined, 0);
    OK(gpumem_resource_destroy(pool));
    OK_CU(cu.cuDeviceGraphMemTrim(dev));
    DESTROY_CU(fork, stream);
}

static void free_from_outside(gpumem_resource *resource, CUstreamCaptureMode mode) {
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
    gpumem_buffer *buffer = allocate(resource, stream);
    OK_CU(cu.cuStreamSynchronize(stream));
    OK_CU(cu.cuStreamBeginCapture_v2(stream, mode));
    OK(gpumem_buffer_free(buffer, stream));
    assert_int_equal(device_stats().deferred_frees, 1);
    assert_int_equal(gpumem_resource_destroy(resource), GPUMEM_ERROR_BUSY);
    OK(gpumem_device_trim(device, 1)); /* does not wait for the capture */
    assert_int_equal(device_stats().deferred_frees, 1);
    CUgraph graph = end_capture(stream);
    assert_int_equal(count_nodes(graph, CU_GRAPH_NODE_TYPE_MEM_FREE), 0);
    OK(gpumem_device_trim(device, 1));
    gpumem_stats stats = device_stats();
    MEMBERS(stats, (deferred_frees, 0), (quarantined, 0));
    DESTROY_CU(graph, stream);
}

TEST(a_free_in_a_capture_of_older_memory_is_deferred) {
    open_library();
    gpumem_resource *pool = make_pool(), *big = make_virtual();
    uint64_t used = pool_used();
    for (size_t i = 0; i < COUNT(modes); i++) {
        free_from_outside(pool, modes[i]);
        free_from_outside(big, modes[i]);
    }
    OK_CU(cu.cuCtxSynchronize());
    assert_int_equal(pool_used(), used);
    DESTROY(pool, big);
}

/* Its owner may end the stream once the capture is over. */
TEST(a_stream_may_be_destroyed_before_a_deferred_free) {
    open_library();
    gpumem_resource *pool = make_pool();
    uint64_t used = pool_used();
    CUstream stream = NEW_STREAM();
    gpumem_buffer *buffer = allocate(pool, stream);
    OK_CU(cu.cuStreamSynchronize(stream));
    OK_CU(cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(gpumem_buffer_free(buffer, stream));
    OK_CU(cu.cuGraphDestroy(end_capture(stream)));
    OK(gpumem_stream_destroy(device, stream));
    assert_int_equal(device_stats().deferred_frees, 0);
    OK_CU(cu.cuCtxSynchronize());
    assert_int_equal(pool_used(), used);
    OK(gpumem_resource_destroy(pool));
}

/* A wrapper has let go; the pool that it wraps has not. */
TEST(a_free_in_a_capture_through_a_wrapper_is_deferred) {
    open_library();
    gpumem_resource *pool = make_pool(), *limit;
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
    uint64_t used = pool_used();
    OK(gpumem_limiting_resource_create(pool, 4 * MIB, &limit));
    gpumem_buffer *buffer = allocate(limit, stream);
    OK_CU(cu.cuStreamSynchronize(stream));
    OK_CU(cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(gpumem_buffer_free(buffer, stream));
    OK(gpumem_resource_destroy(limit));
    assert_int_equal(gpumem_resource_destroy(pool), GPUMEM_ERROR_BUSY);
    OK_CU(cu.cuGraphDestroy(end_capture(stream)));
    OK(gpumem_resource_destroy(pool));
    OK_CU(cu.cuCtxSynchronize());
    assert_int_equal(pool_used(), used);
    gpumem_stats stats = device_stats();
    MEMBERS(stats, (quarantined, 0), (committed_bytes, 0));
    OK_CU(cu.cuStreamDestroy_v2(stream));
}

/* The capture comes to nothing; the memory does not. */
TEST(an_invalidated_capture_leaks_no_memory) {
    open_library();
    gpumem_resource *pool = make_pool();
    uint64_t used = pool_used();
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
    gpumem_buffer *outside = allocate(pool, stream);
    CUgraph graph = NULL;
    OK_CU(cu.cuStreamSynchronize(stream));
    OK_CU(cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    gpumem_buffer *inside = allocate(pool, stream);
    FAILS_CU(STREAM_CAPTURE_UNSUPPORTED, cu.cuStreamQuery(stream));
    OK(gpumem_buffer_free(outside, stream));
    OK(gpumem_buffer_free(inside, stream));
    FAILS_CU(STREAM_CAPTURE_INVALIDATED, cu.cuStreamEndCapture(stream, &graph));
    OK(gpumem_device_trim(device, 1));
    gpumem_stats stats = device_stats();
    MEMBERS(stats, (deferred_frees, 0), (quarantined, 0));
    OK_CU(cu.cuCtxSynchronize());
    assert_int_equal(pool_used(), used);
    OK(gpumem_resource_destroy(pool));
    OK_CU(cu.cuStreamDestroy_v2(stream));
}

/* As the driver has it: before the launch there is no memory to free, after it there is. */
TEST(a_buffer_allocated_in_a_capture_is_freed_outside) {
    open_library();
    gpumem_resource *pool = make_pool();
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
    OK_CU(cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    gpumem_buffer *early = allocate(pool, stream);
    CUgraph graph = end_capture(stream);
    OK(gpumem_buffer_free(early, stream));
    gpumem_stats stats = device_stats();
    MEMBERS(stats, (deferred_frees, 0), (quarantined, 0), (committed_bytes, 0));
    OK_CU(cu.cuGraphDestroy(graph));

    OK_CU(cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    gpumem_buffer *late = allocate(pool, stream);
    graph = end_capture(stream);
    uint64_t used = graph_memory_used();
    launch_and_end(graph, stream);
    assert_true(graph_memory_used() > used);
    OK(gpumem_buffer_free(late, stream));
    OK_CU(cu.cuStreamSynchronize(stream));
    stats = device_stats();
    MEMBERS(stats, (deferred_frees, 0), (quarantined, 0));
    OK_CU(cu.cuDeviceGraphMemTrim(dev));
    assert_int_equal(graph_memory_used(), used);
    OK(gpumem_resource_destroy(pool));
    OK_CU(cu.cuStreamDestroy_v2(stream));
}
