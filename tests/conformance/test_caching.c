/* The caching resource on any driver: who gets memory when, with real copies and their bytes. */
#include "library.h"

struct fixture {
    gpumem_resource *upstream, *cache;
    CUstream stream, other;
    struct gate gate;
    unsigned char *seen; /* pinned */
};

static void begin(struct fixture *f, int host, uint64_t maximum) {
    open_library();
    if (host)
        f->upstream = NEW_PINNED();
    else
        f->upstream = NEW_POOL(.pool = GPUMEM_POOL_OWN);
    OK(gpumem_caching_resource_create(
        f->upstream, GPUMEM_OPTIONS(gpumem_caching_options, .maximum_bytes = maximum), &f->cache));
    OK(gpumem_stream_create(device, NULL, &f->stream));
    OK(gpumem_stream_create(device, NULL, &f->other));
    gate_make(&f->gate);
    void *seen = MADE_CU(void *, cuMemHostAlloc, MIB, 0);
    f->seen = seen;
}

static void end(struct fixture *f) {
    DESTROY(f->cache, f->upstream, f->stream, f->other);
    gate_free(&f->gate);
    OK_CU(cu.cuMemFreeHost(f->seen));
}

static gpumem_buffer *allocate(gpumem_resource *resource, size_t bytes, CUstream stream) {
    return NEW_BUFFER_WITH(resource, bytes, .stream = stream);
}

static gpumem_caching_info info_of(gpumem_resource *cache) {
    gpumem_caching_info info = {.size = sizeof info};
    OK(gpumem_caching_get_info(cache, &info));
    return info;
}

static void is_all(const unsigned char *bytes, size_t count, unsigned char value) {
    for (size_t i = 0; i < count; i++)
        assert_int_equal(bytes[i], value);
}

/* ---- Order ----------------------------------------------------------------------------------- */

/* Queued reads see what was there before the memory was given to somebody else. */
TEST(a_stream_reuses_its_memory_in_stream_order) {
    struct fixture f;
    begin(&f, 0, 0);
    gate_hold(&f.gate, f.stream);
    CUdeviceptr address = 0;
    for (unsigned char i = 0; i < 100; i++) {
        gpumem_buffer *buffer = allocate(f.cache, 4 * KIB, f.stream);
        assert_true(!i || gpumem_buffer_pointer(buffer) == address);
        address = gpumem_buffer_pointer(buffer);
        OK(gpumem_buffer_fill(buffer, 0, 4 * KIB, i, f.stream));
        OK(gpumem_buffer_read(buffer, 0, f.seen + i * 4 * KIB, 4 * KIB, f.stream));
        OK(gpumem_buffer_free(buffer, NULL));
    }
    gate_drain(&f.gate, f.stream);
    for (unsigned char i = 0; i < 100; i++)
        is_all(f.seen + i * 4 * KIB, 4 * KIB, i);
    end(&f);
}

/* The other stream works at once, while the first stands still: in other memory. */
TEST(another_stream_reuses_memory_only_after_the_first_passes) {
    struct fixture f;
    begin(&f, 0, 0);
    gate_hold(&f.gate, f.stream);
    gpumem_buffer *first = allocate(f.cache, MIB, f.stream);
    CUdeviceptr address = gpumem_buffer_pointer(first);
    OK(gpumem_buffer_fill(first, 0, MIB, 1, f.stream));
    OK(gpumem_buffer_read(first, 0, f.seen, MIB / 2, f.stream));
    OK(gpumem_buffer_free(first, NULL));
    gpumem_buffer *second = allocate(f.cache, MIB, f.other);
    assert_false(gpumem_buffer_pointer(second) == address);
    OK(gpumem_buffer_fill(second, 0, MIB, 2, f.other));
    OK(gpumem_buffer_read(second, 0, f.seen + MIB / 2, MIB / 2, f.other));
    OK_CU(cu.cuStreamSynchronize(f.other));
    gate_drain(&f.gate, f.stream);
    is_all(f.seen, MIB / 2, 1);
    is_all(f.seen + MIB / 2, MIB / 2, 2);
    OK(gpumem_buffer_free(second, NULL));
    end(&f);
}

/* There is no other memory: the call waits until the streams have passed, whatever they ran. */
TEST(at_the_limit_memory_moves_between_streams) {
    struct fixture f;
    begin(&f, 0, 2 * MIB);
    for (unsigned char i = 0; i < 20; i++) {
        CUstream stream = i % 2 ? f.stream : f.other;
        gpumem_buffer *buffer = allocate(f.cache, MIB, stream);
        OK(gpumem_buffer_fill(buffer, 0, MIB, i, stream));
        OK(gpumem_buffer_read(buffer, 0, f.seen + i * 4 * KIB, 4 * KIB, stream));
        OK(gpumem_buffer_free(buffer, NULL));
        assert_true(info_of(f.cache).segment_bytes <= 2 * MIB);
    }
    OK_CU(cu.cuStreamSynchronize(f.stream));
    OK_CU(cu.cuStreamSynchronize(f.other));
    for (unsigned char i = 0; i < 20; i++)
        is_all(f.seen + i * 4 * KIB, 4 * KIB, i);
    gpumem_buffer *most[2] = {allocate(f.cache, MIB, f.stream), allocate(f.cache, MIB, f.stream)};
    gpumem_buffer *more = NULL;
    assert_int_equal(
        gpumem_buffer_allocate(f.cache, MIB,
                               GPUMEM_OPTIONS(gpumem_buffer_options, .stream = f.other), &more),
        GPUMEM_ERROR_OUT_OF_CAPACITY);
    DESTROY(most[0], most[1]);
    end(&f);
}

/* ---- What the CPU writes --------------------------------------------------------------------- */

TEST(host_memory_is_not_reused_before_queued_copies_finish) {
    struct fixture f;
    begin(&f, 1, 0);
    CUdeviceptr target = MADE_CU(CUdeviceptr, cuMemAlloc_v2, MIB);
    gate_hold(&f.gate, f.stream);
    for (unsigned char i = 0; i < 200; i++) {
        gpumem_buffer *buffer = allocate(f.cache, 4 * KIB, f.stream);
        memset(gpumem_buffer_host_pointer(buffer), i, 4 * KIB);
        OK_CU(cu.cuMemcpyHtoDAsync_v2(target + i * 4 * KIB, gpumem_buffer_host_pointer(buffer),
                                      4 * KIB, f.stream));
        OK(gpumem_buffer_free(buffer, NULL));
    }
    gate_drain(&f.gate, f.stream);
    OK_CU(cu.cuMemcpyDtoH_v2(f.seen, target, MIB));
    for (unsigned char i = 0; i < 200; i++)
        is_all(f.seen + i * 4 * KIB, 4 * KIB, i);
    size_t bytes = info_of(f.cache).segment_bytes;
    for (int i = 0; i < 200; i++) /* now all of it is there again */
        OK(gpumem_buffer_free(allocate(f.cache, 4 * KIB, f.stream), NULL));
    assert_int_equal(info_of(f.cache).segment_bytes, bytes);
    OK_CU(cu.cuMemFree_v2(target));
    end(&f);
}

/* ---- Captures -------------------------------------------------------------------------------- */

#define NODES 4

/* Fills, reads and frees in a capture; the bytes of node i are i + 1. */
static CUgraphExec capture(struct fixture *f, gpumem_capture_pool *pool) {
    OK(gpumem_capture_pool_begin(pool, f->stream));
    OK_CU(cu.cuStreamBeginCapture_v2(f->stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    for (unsigned char i = 0; i < NODES; i++) {
        gpumem_buffer *buffer = allocate(f->cache, 64 * KIB, f->stream);
        OK(gpumem_buffer_fill(buffer, 0, 64 * KIB, (unsigned char)(i + 1), f->stream));
        OK(gpumem_buffer_read(buffer, 0, f->seen + i * 64 * KIB, 64 * KIB, f->stream));
        OK(gpumem_buffer_free(buffer, NULL));
    }
    CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, f->stream);
    OK(gpumem_capture_pool_end(pool, f->stream));
    CUgraphExec exec = MADE_CU(CUgraphExec, cuGraphInstantiateWithFlags, graph, 0);
    OK_CU(cu.cuGraphDestroy(graph));
    return exec;
}

static void is_unharmed(gpumem_buffer *buffer, unsigned char value, CUstream stream,
                        unsigned char *seen) {
    OK(gpumem_buffer_read(buffer, 0, seen, 64 * KIB, stream));
    OK_CU(cu.cuStreamSynchronize(stream));
    is_all(seen, 64 * KIB, value);
}

/* Whoever allocates between the launches has memory that no launch writes. */
TEST(memory_of_a_graph_is_not_reused_between_launches) {
    struct fixture f;
    begin(&f, 0, 0);
    gpumem_capture_pool *pool = MADE(gpumem_capture_pool *, gpumem_capture_pool_create, f.cache);
    CUgraphExec exec = capture(&f, pool);
    gpumem_buffer *buffers[40];
    for (unsigned i = 0; i < COUNT(buffers); i++) {
        CUstream stream = i % 2 ? f.stream : f.other;
        buffers[i] = allocate(f.cache, 64 * KIB, stream);
        OK(gpumem_buffer_fill(buffers[i], 0, 64 * KIB, (unsigned char)(100 + i), stream));
        OK_CU(cu.cuStreamSynchronize(stream));
        if (i % 10)
            continue;
        memset(f.seen, 0, NODES * 64 * KIB);
        launch_and_wait(exec, f.stream);
        for (unsigned char j = 0; j < NODES; j++)
            is_all(f.seen + j * 64 * KIB, 64 * KIB, (unsigned char)(j + 1));
        OK(gpumem_resource_trim(f.cache, 0));
    }
    for (unsigned i = 0; i < COUNT(buffers); i++) {
        CUstream stream = i % 2 ? f.stream : f.other;
        is_unharmed(buffers[i], (unsigned char)(100 + i), stream, f.seen);
        OK(gpumem_buffer_free(buffers[i], NULL));
    }
    OK_CU(cu.cuGraphExecDestroy(exec));
    OK(gpumem_resource_trim(f.cache, 0));
    assert_true(info_of(f.cache).segments > 0);
    OK(gpumem_capture_pool_destroy(pool, f.stream));
    OK(gpumem_resource_trim(f.cache, 0));
    assert_int_equal(info_of(f.cache).segments, 0);
    end(&f);
}

/* Segments of changing sizes come and go: the pool puts the pieces of those that went together. */
TEST(an_own_pool_reserves_hardly_more_than_the_cache_over_it_takes) {
    struct fixture f;
    gpumem_buffer *live[12] = {NULL};
    gpumem_stats stats = {.size = sizeof stats};
    uint64_t reserved, random = 7;
    begin(&f, 0, 0);
    OK(gpumem_pool_set_attribute(f.upstream, GPUMEM_POOL_RELEASE_THRESHOLD, UINT64_MAX));
    for (size_t i = 0; i < 600; i++) {
        gpumem_buffer **one = &live[i % COUNT(live)];
        random = random * 6364136223846793005 + 1442695040888963407;
        if (*one)
            gpumem_buffer_free(*one, f.stream);
        *one = allocate(f.cache, (i / 12 + 1 + (random >> 33) % 24) * MIB, f.stream);
    }
    OK(gpumem_resource_get_stats(f.cache, &stats));
    OK(gpumem_pool_get_attribute(f.upstream, GPUMEM_POOL_RESERVED_HIGH, &reserved));
    assert_in_range(reserved, stats.committed_high,
                    stats.committed_high + stats.committed_high / 4);
    for (size_t i = 0; i < COUNT(live); i++)
        DESTROY(live[i]);
    end(&f);
}
