/* Stream-ordered allocation and freeing: the calls themselves. */
#include "harness.h"

static CUstream make_stream(void) {
    return MADE_CU(CUstream, cuStreamCreate, CU_STREAM_NON_BLOCKING);
}

static void end_stream(CUstream stream) {
    OK_CU(cu.cuStreamSynchronize(stream));
    OK_CU(cu.cuStreamDestroy_v2(stream));
}

TEST(stream_ordered_memory_holds_its_bytes) {
    static unsigned char out[8192], back[8192];
    CUstream stream = make_stream();
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemAllocAsync, sizeof out, stream);
    CUdeviceptr q = MADE_CU(CUdeviceptr, cuMemAllocAsync, sizeof out, stream);
    assert_int_not_equal(p, 0);
    assert_true(q >= p + sizeof out || p >= q + sizeof out);
    fill_pattern(out, sizeof out, 3);
    OK_CU(cu.cuMemcpyHtoDAsync_v2(p, out, sizeof out, stream));
    OK_CU(cu.cuMemcpyDtoDAsync_v2(q, p, sizeof out, stream));
    OK_CU(cu.cuMemcpyDtoHAsync_v2(back, q, sizeof back, stream));
    OK_CU(cu.cuStreamSynchronize(stream));
    assert_true(has_pattern(back, sizeof back, 3));
    OK_CU(cu.cuMemFreeAsync(p, stream));
    OK_CU(cu.cuMemFreeAsync(q, stream));
    end_stream(stream);
}

TEST(addresses_are_aligned_to_512_bytes) {
    static const size_t sizes[] = {1, 3, 512, 513, 4097, 70000};
    CUdeviceptr p[COUNT(sizes)];
    CUstream stream = make_stream();
    for (size_t i = 0; i < COUNT(sizes); i++) {
        OK_CU(cu.cuMemAllocAsync(&p[i], sizes[i], stream));
        assert_int_equal(p[i] % 512, 0);
    }
    for (size_t i = 0; i < COUNT(sizes); i++)
        OK_CU(cu.cuMemFreeAsync(p[i], stream));
    end_stream(stream);
}

TEST(more_than_the_device_memory_is_refused) {
    CUdeviceptr p = 77;
    size_t free_bytes, total;
    CUstream stream = make_stream();
    OK_CU(cu.cuMemGetInfo_v2(&free_bytes, &total));
    FAILS_CU(OUT_OF_MEMORY, cu.cuMemAllocAsync(&p, total + 64 * MIB, stream));
    FAILS_CU(OUT_OF_MEMORY, cu.cuMemAllocAsync(&p, SIZE_MAX, stream));
    assert_int_equal(p, 0); /* not left as it was: H200 */
    end_stream(stream);
}

TEST(the_address_range_of_stream_ordered_memory_is_found) {
    CUdeviceptr p, base = 0;
    size_t size = 0;
    CUstream stream = make_stream();
    OK_CU(cu.cuMemAllocAsync(&p, 3 * MIB, stream));
    OK_CU(cu.cuStreamSynchronize(stream));
    OK_CU(cu.cuMemGetAddressRange_v2(&base, &size, p + MIB));
    assert_int_equal(base, p);
    assert_int_equal(size, 3 * MIB);
    /* A copy that leaves the allocation is refused at once. */
    static unsigned char bytes[64];
    FAILS_CU(INVALID_VALUE, cu.cuMemcpyDtoH_v2(bytes, p + 3 * MIB - 32, 64));
    OK_CU(cu.cuMemFreeAsync(p, stream));
    OK_CU(cu.cuStreamSynchronize(stream));
    FAILS_CU(NOT_FOUND, cu.cuMemGetAddressRange_v2(&base, &size, p + MIB));
    end_stream(stream);
}

TEST(stream_ordered_memory_may_be_freed_with_cumemfree) {
    size_t size;
    CUstream stream = make_stream();
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemAllocAsync, MIB, stream);
    OK_CU(cu.cuStreamSynchronize(stream));
    OK_CU(cu.cuMemFree_v2(p));
    FAILS_CU(NOT_FOUND, cu.cuMemGetAddressRange_v2(NULL, &size, p));
    FAILS_CU(INVALID_VALUE, cu.cuMemFree_v2(p));
    end_stream(stream);
}

/* The free is queued: work queued before it in its stream still has the memory. */
TEST(a_free_runs_in_stream_order) {
    const size_t size = 4096;
    CUstream stream = make_stream();
    struct gate gate = new_gate();
    /* Pinned: a copy to pageable memory would wait for the gate here and now. */
    void *memory = new_pinned(size, 0);
    volatile unsigned char *back = memory;
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemAllocAsync, size, stream);
    gate_hold(&gate, stream);
    OK_CU(cu.cuMemsetD8Async(p, 0x5a, size, stream));
    OK_CU(cu.cuMemcpyDtoHAsync_v2(memory, p, size, stream));
    OK_CU(cu.cuMemFreeAsync(p, stream));
    gate_drain(&gate, stream);
    assert_int_equal(back[0], 0x5a);
    assert_int_equal(back[4095], 0x5a);
    end_stream(stream);
}

/* cuMemAlloc's memory can be freed in stream order too: its bytes stay until the stream is there.
 */
TEST(memory_of_cumemalloc_may_be_freed_in_stream_order) {
    size_t before, held, after, total;
    CUstream stream = make_stream();
    struct gate gate;
    gate_make(&gate);
    OK_CU(cu.cuMemGetInfo_v2(&before, &total));
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 8 * MIB);
    gate_hold(&gate, stream);
    OK_CU(cu.cuMemsetD8Async(p, 1, 8 * MIB, stream));
    OK_CU(cu.cuMemFreeAsync(p, stream));
    if (soft) /* an H200's driver takes it a second time, and then hangs */
        FAILS_CU(INVALID_VALUE, cu.cuMemFreeAsync(p, stream));
    OK_CU(cu.cuMemGetInfo_v2(&held, &total));
    assert_int_equal(before - held, 8 * MIB);
    gate_drain(&gate, stream);
    FAILS_CU(INVALID_VALUE, cu.cuMemFreeAsync(p, stream));
    OK_CU(cu.cuMemGetInfo_v2(&after, &total));
    if (soft) /* others may use the same GPU, and when it is given back is not promised */
        assert_int_equal(before, after);
    end_stream(stream);
    gate_free(&gate);
}

TEST(allocating_no_bytes_returns_a_null_pointer) {
    CUdeviceptr p = 5;
    CUstream stream = make_stream();
    OK_CU(cu.cuMemAllocAsync(&p, 0, stream));
    assert_int_equal(p, 0);
    OK_CU(cu.cuMemFreeAsync(0, stream));
    end_stream(stream);
}

/* Memory belongs to the pool, not to the stream or to the context that was current. */
TEST(memory_outlives_its_stream_and_context) {
    CUcontext other = MADE_CU(CUcontext, cuCtxCreate_v2, 0, dev);
    CUstream stream = make_stream();
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemAllocAsync, MIB, stream);
    OK_CU(cu.cuMemsetD8Async(p, 0x77, MIB, stream));
    OK_CU(cu.cuStreamSynchronize(stream));
    DESTROY_CU(stream, other);
    OK_CU(cu.cuCtxSetCurrent(ctx));
    assert_int_equal(byte_at(p + MIB - 1), 0x77);
    OK_CU(cu.cuMemFreeAsync(p, NULL));
    OK_CU(cu.cuStreamSynchronize(NULL));
}
