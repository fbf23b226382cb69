/* When a pool gives memory back: trim, threshold, limit, and want of memory elsewhere. */
#include "pools.h"

static CUmemoryPool pool;
static CUstream s;

static void begin(size_t most) {
    pool = pool_make(CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_HANDLE_TYPE_NONE, most);
    s = new_stream();
}

static size_t free_bytes(void) {
    size_t available, total;
    OK_CU(cu.cuMemGetInfo_v2(&available, &total));
    return available;
}

TEST(trimming_releases_unused_memory) {
    begin(0);
    size_t before = free_bytes();
    CUdeviceptr p = pool_take(pool, 64 * MIB, s);
    CUdeviceptr q = pool_take(pool, 64 * MIB, s);
    assert_int_equal(pool_reserved(pool), 128 * MIB);
    assert_int_equal(before - free_bytes(), 128 * MIB);
    OK_CU(cu.cuMemPoolTrimTo(pool, 0));
    assert_int_equal(pool_reserved(pool), 128 * MIB);
    OK_CU(cu.cuMemFreeAsync(p, s));
    OK_CU(cu.cuStreamSynchronize(s));
    assert_int_equal(pool_reserved(pool), 128 * MIB);
    OK_CU(cu.cuMemPoolTrimTo(pool, 1024 * MIB));
    assert_int_equal(pool_reserved(pool), 128 * MIB);
    OK_CU(cu.cuMemPoolTrimTo(pool, 0));
    assert_int_equal(pool_reserved(pool), 64 * MIB);
    assert_int_equal(before - free_bytes(), 64 * MIB);
    OK_CU(cu.cuMemFreeAsync(q, s));
    OK_CU(cu.cuStreamSynchronize(s));
    OK_CU(cu.cuMemPoolTrimTo(pool, 0));
    assert_int_equal(pool_reserved(pool), 0);
    assert_int_equal(before, free_bytes());
}

TEST(trimming_keeps_memory_with_a_pending_free) {
    begin(0);
    CUdeviceptr p = pool_take(pool, 32 * MIB, s);
    struct gate gate = hold(s);
    OK_CU(cu.cuMemsetD8Async(p, 1, 32 * MIB, s));
    OK_CU(cu.cuMemFreeAsync(p, s));
    OK_CU(cu.cuMemPoolTrimTo(pool, 0));
    assert_int_equal(pool_reserved(pool), 32 * MIB);
    gate_drain(&gate, s);
    OK_CU(cu.cuMemPoolTrimTo(pool, 0));
    assert_int_equal(pool_reserved(pool), 0);
}

/* Allocates and frees; the memory is there until the synchronization. */
static void cache_some(void) {
    CUdeviceptr p = pool_take(pool, 32 * MIB, s);
    OK_CU(cu.cuMemFreeAsync(p, s));
    assert_int_equal(pool_reserved(pool), 32 * MIB);
}

TEST(synchronization_releases_memory_above_the_threshold) {
    begin(0);
    CUevent event = new_event();
    pool_set_threshold(pool, 0);
    cache_some();
    OK_CU(cu.cuStreamSynchronize(s));
    assert_int_equal(pool_reserved(pool), 0);
    cache_some();
    OK_CU(cu.cuCtxSynchronize());
    assert_int_equal(pool_reserved(pool), 0);
    cache_some();
    OK_CU(cu.cuEventRecord(event, s));
    OK_CU(cu.cuEventSynchronize(event));
    assert_int_equal(pool_reserved(pool), 0);
    pool_set_threshold(pool, 32 * MIB);
    cache_some();
    OK_CU(cu.cuStreamSynchronize(s));
    assert_int_equal(pool_reserved(pool), 32 * MIB);
    pool_set_threshold(pool, 1); /* whole steps are kept, and in one byte there is none */
    cache_some();
    OK_CU(cu.cuStreamSynchronize(s));
    assert_int_equal(pool_reserved(pool), 0);
}

/* H200: what one stream freed stays when another is synchronized. */
TEST(synchronizing_another_stream_releases_nothing) {
    begin(0);
    CUstream t = new_stream();
    pool_set_threshold(pool, 0);
    cache_some();
    OK_CU(cu.cuStreamSynchronize(t));
    assert_int_equal(pool_reserved(pool), 32 * MIB);
    OK_CU(cu.cuStreamSynchronize(s));
    assert_int_equal(pool_reserved(pool), 0);
}

/* Each size is allocated behind the last one, and freed and synchronized in this order. */
TEST(of_what_is_free_a_pool_keeps_the_whole_steps_within_its_threshold) {
    static const struct {
        unsigned size[4], threshold, reserved, left[4]; /* MiB */
    } rows[] = {
        {{64, 64, 64}, 100, 192, {128, 96, 96}},
        {{64, 64, 64}, 50, 192, {128, 64, 32}},
        {{64, 64, 64}, 0, 192, {128, 64, 0}},
        {{100, 100}, 100, 224, {128, 96}},
        {{192}, 50, 192, {32}},
        {{48, 48, 48}, 100, 160, {128, 96, 96}},
        {{16, 16, 16, 200}, 100, 256, {256, 224, 224, 96}},
        {{33, 33, 33, 33}, 0, 160, {128, 96, 64, 0}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CUdeviceptr p[4];
        int count = 0;
        begin(0);
        pool_set_threshold(pool, rows[i].threshold * MIB);
        for (; count < 4 && rows[i].size[count]; count++) {
            p[count] = pool_take(pool, rows[i].size[count] * MIB, s);
            if (count > 0)
                assert_int_equal(p[count], p[count - 1] + rows[i].size[count - 1] * MIB);
        }
        assert_int_equal(pool_reserved(pool), rows[i].reserved * MIB);
        for (int k = 0; k < count; k++) {
            OK_CU(cu.cuMemFreeAsync(p[k], s));
            OK_CU(cu.cuStreamSynchronize(s));
            assert_int_equal(pool_reserved(pool), rows[i].left[k] * MIB);
        }
        pool_end(pool);
    }
}

TEST(a_pool_does_not_exceed_its_maximum_size) {
    begin(64 * MIB);
    CUdeviceptr q = 5;
    CUdeviceptr p = pool_take(pool, 64 * MIB, s);
    FAILS_CU(OUT_OF_MEMORY, cu.cuMemAllocFromPoolAsync(&q, 512, pool, s));
    assert_int_equal(q, 0);
    OK_CU(cu.cuMemFreeAsync(p, s));
    OK_CU(cu.cuStreamSynchronize(s));
    /* What is cached in pieces of the wrong size makes room. */
    p = pool_take(pool, 32 * MIB, s);
    OK_CU(cu.cuMemFreeAsync(p, s));
    OK_CU(cu.cuStreamSynchronize(s));
    p = pool_take(pool, 64 * MIB, s);
    OK_CU(cu.cuMemFreeAsync(p, s));
}

/* A cache never makes an allocation fail. */
TEST(cached_memory_is_released_when_another_pool_needs_it) {
    NEEDS_SOFTGPU("it fills the device's memory");
    begin(0);
    CUdeviceptr p, whole;
    size_t available = free_bytes() / (2 * MIB) * (2 * MIB);
    size_t most = available > 512 * MIB ? 512 * MIB : available / 2;
    p = pool_take(pool, most, s);
    OK_CU(cu.cuMemFreeAsync(p, s));
    OK_CU(cu.cuStreamSynchronize(s));
    assert_true(pool_reserved(pool) >= most);
    OK_CU(cu.cuMemAlloc_v2(&whole, available));
    assert_int_equal(pool_reserved(pool), 0);
    OK_CU(cu.cuMemFree_v2(whole));
    /* And that of one pool is available to another. */
    CUmemoryPool other = pool_make(CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_HANDLE_TYPE_NONE, 0);
    p = pool_take(pool, most, s);
    OK_CU(cu.cuMemFreeAsync(p, s));
    OK_CU(cu.cuStreamSynchronize(s));
    CUdeviceptr big = pool_take(other, available, s);
    assert_int_equal(pool_reserved(pool), 0);
    OK_CU(cu.cuMemFreeAsync(big, s));
}

/* A pool that was destroyed ends with its last free; a dump has noticed that before it tells what
 * is in use. */
TEST_WHERE(consecutive_state_dumps_are_equal, NEEDS_SOFTGPU("reads its state")) {
    begin(0);
    CUdeviceptr p = pool_take(pool, 32 * MIB, s);
    struct gate gate = hold(s);
    OK_CU(cu.cuMemFreeAsync(p, s));
    pool_destroy(pool);
    gate_release(&gate);
    CUresult done;
    while ((done = cu.cuStreamQuery(s)) == CUDA_ERROR_NOT_READY)
        ;
    OK_CU(done);
    char *first = soft->state_dump(), *second = soft->state_dump();
    assert_non_null(first);
    assert_non_null(second);
    assert_string_equal(first, second);
    soft->free_text(first);
    soft->free_text(second);
}
