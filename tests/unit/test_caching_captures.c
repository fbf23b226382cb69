/* Memory of captures from the caching resource: streams of one capture side by side, what the CPU
 * writes, work beside the graph, and ends in every order. */
#include "caching_test.h"

ALL_TESTS(open_device, close_device);

static void begin(gpumem_capture_pool *pool, CUstream stream) {
    OK(gpumem_capture_pool_begin(pool, stream));
    OK_CU(cu->cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
}

static void end(gpumem_capture_pool *pool, CUstream stream) {
    CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, stream);
    OK_CU(cu->cuGraphDestroy(graph));
    OK(gpumem_capture_pool_end(pool, stream));
}

struct all {
    gpumem_resource *upstream, *cache;
    gpumem_capture_pool *pool;
    CUstream first, second;
};

static struct all make_all(gpumem_resource *upstream) {
    struct all all = {.upstream = upstream, .cache = NEW_CACHING(upstream)};
    OK(gpumem_capture_pool_create(all.cache, &all.pool));
    all.first = NEW_STREAM();
    all.second = NEW_STREAM();
    use_context();
    return all;
}

static void end_all(const struct all *all) {
    leave_context();
    OK(gpumem_capture_pool_destroy(all->pool, GPUMEM_STREAM_NONE));
    OK(gpumem_resource_trim(all->cache, 0));
    assert_int_equal(caching_info_of(all->cache).segments, 0);
    DESTROY(all->cache, all->upstream, all->first, all->second);
}

/* Nothing in the graph puts one after the other. */
TEST(branches_of_a_capture_share_no_memory) {
    struct all all = make_all(new_own_pool());
    begin(all.pool, all.first);
    OK(gpumem_capture_pool_begin(all.pool, all.second));
    CUevent fork = NEW_EVENT();
    CUevent join = NEW_EVENT();
    OK(gpumem_event_record(device, fork, all.first));
    OK(gpumem_stream_wait_event(device, all.second, fork));
    gpumem_buffer *one = allocate_on(all.cache, 4096, all.first);
    CUdeviceptr address = gpumem_buffer_pointer(one);
    OK(gpumem_buffer_fill(one, 0, 4096, 1, all.first));
    OK(gpumem_buffer_free(one, NULL));
    gpumem_buffer *other = allocate_on(all.cache, 4096, all.second);
    assert_false(gpumem_buffer_pointer(other) == address);
    OK(gpumem_buffer_fill(other, 0, 4096, 2, all.second));
    OK(gpumem_buffer_free(other, NULL));
    one = allocate_on(all.cache, 4096, all.first); /* in its own order it comes back */
    assert_true(gpumem_buffer_pointer(one) == address);
    OK(gpumem_buffer_free(one, NULL));
    OK(gpumem_event_record(device, join, all.second));
    OK(gpumem_stream_wait_event(device, all.first, join));
    end(all.pool, all.first);
    OK(gpumem_capture_pool_end(all.pool, all.second));
    DESTROY(fork, join);
    end_all(&all);
}

/* The CPU writes both now, the graph copies both later. */
TEST(host_memory_is_not_reused_within_a_capture) {
    struct all all = make_all(NEW_PINNED());
    gpumem_resource *pool = new_own_pool();
    gpumem_buffer *target = allocate_on(pool, 8192, all.second);
    synchronize(all.second);
    begin(all.pool, all.first);
    CUdeviceptr addresses[2];
    for (unsigned char i = 0; i < 2; i++) {
        gpumem_buffer *source = allocate_on(all.cache, 4096, all.first);
        addresses[i] = gpumem_buffer_pointer(source);
        memset(gpumem_buffer_host_pointer(source), i + 1, 4096);
        OK(gpumem_buffer_copy(target, (size_t)i * 4096, source, 0, 4096, all.first));
        OK(gpumem_buffer_free(source, NULL));
    }
    assert_false(addresses[0] == addresses[1]);
    assert_int_equal(caching_info_of(all.cache).pending_bytes, 8192); /* the graph's */
    assert_int_equal(stats_of(all.cache).deferred_frees, 2);
    CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, all.first);
    OK(gpumem_capture_pool_end(all.pool, all.first));
    CUgraphExec exec = MADE_CU(CUgraphExec, cuGraphInstantiateWithFlags, graph, 0);
    for (int launch = 0; launch < 3; launch++) {
        unsigned char bytes[8192] = {0};
        OK_CU(cu->cuGraphLaunch(exec, all.first));
        OK(gpumem_buffer_read(target, 0, bytes, sizeof bytes, all.first));
        synchronize(all.first);
        for (size_t i = 0; i < sizeof bytes; i++)
            assert_int_equal(bytes[i], i / 4096 + 1);
    }
    OK_CU(cu->cuGraphExecDestroy(exec));
    OK_CU(cu->cuGraphDestroy(graph));
    OK(gpumem_buffer_free(target, NULL));
    end_all(&all);
    OK(gpumem_resource_destroy(pool));
}

/* Freed outside of any capture, while its stream still works: the next capture may run elsewhere.
 */
TEST(a_capture_does_not_reuse_memory_of_running_work) {
    struct all all = make_all(new_own_pool());
    struct gate gate = gate_with_stream();
    begin(all.pool, gate.stream);
    gpumem_buffer *buffer = allocate_on(all.cache, 4096, gate.stream);
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    end(all.pool, gate.stream);
    OK(gpumem_buffer_fill(buffer, 0, 4096, 1, gate.stream));
    OK(gpumem_buffer_free(buffer, NULL));
    assert_int_equal(caching_info_of(all.cache).pending_bytes, 4096);
    begin(all.pool, all.first);
    buffer = allocate_on(all.cache, 4096, all.first);
    assert_false(gpumem_buffer_pointer(buffer) == address);
    OK(gpumem_buffer_free(buffer, NULL));
    end(all.pool, all.first);
    gate_drain(&gate);
    end_all(&all);
    gate_remove(&gate);
}

/* ---- Ends ------------------------------------------------------------------------------------ */

TEST(a_resource_with_a_capture_pool_cannot_be_destroyed) {
    gpumem_resource *pool = new_own_pool(), *cache = NEW_CACHING(pool);
    gpumem_capture_pool *captured = MADE(gpumem_capture_pool *, gpumem_capture_pool_create, cache);
    FAILS_SAYING(BUSY, "capture pools", gpumem_resource_destroy(cache));
    OK(gpumem_capture_pool_destroy(captured, GPUMEM_STREAM_NONE));
    FAILS(INVALID_ARGUMENT, gpumem_capture_pool_destroy(captured, GPUMEM_STREAM_NONE));
    SAYS("destroyed earlier");
    DESTROY(cache, pool);
}

TEST(a_resource_used_by_a_capture_cannot_be_destroyed) {
    gpumem_resource *pool = new_own_pool(), *cache = NEW_CACHING(pool);
    CUstream stream = NEW_STREAM(), other = NEW_STREAM();
    use_context();
    gpumem_buffer *buffer = allocate_on(cache, 4096, other);
    OK_CU(cu->cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(gpumem_buffer_fill(buffer, 0, 4096, 1, stream));
    OK(gpumem_buffer_use(buffer, stream));
    OK(gpumem_buffer_free(buffer, NULL));
    FAILS_SAYING(BUSY, "capturing", gpumem_resource_destroy(cache));
    CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, stream);
    OK_CU(cu->cuGraphDestroy(graph));
    DESTROY(cache, pool);
    leave_context();
    DESTROY(stream, other);
}

/* Its thread is the one that destroys the pool. */
TEST(a_capture_pool_may_be_destroyed_on_the_per_thread_stream) {
    struct all all = make_all(new_own_pool());
    begin(all.pool, all.first);
    gpumem_buffer *buffer = allocate_on(all.cache, 4096, all.first);
    end(all.pool, all.first);
    OK(gpumem_buffer_free(buffer, NULL));
    OK(gpumem_capture_pool_destroy(all.pool, GPUMEM_STREAM_PER_THREAD));
    all.pool = NULL;
    end_all(&all);
}

TEST(a_capture_pool_reuses_memory_for_successive_captures) {
    struct all all = make_all(new_own_pool());
    CUdeviceptr address = 0;
    size_t bytes = 0;
    for (int i = 0; i < 10; i++) {
        CUstream stream = i % 2 ? all.first : all.second;
        begin(all.pool, stream);
        gpumem_buffer *buffer = allocate_on(all.cache, 4096, stream);
        assert_true(!i || gpumem_buffer_pointer(buffer) == address);
        address = gpumem_buffer_pointer(buffer);
        OK(gpumem_buffer_free(buffer, NULL));
        end(all.pool, stream);
        assert_true(!i || caching_info_of(all.cache).segment_bytes == bytes);
        bytes = caching_info_of(all.cache).segment_bytes;
    }
    end_all(&all);
}
