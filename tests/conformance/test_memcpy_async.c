/* Asynchronous copies: what is ordered, when the host may reuse its memory, batches. */
#include "harness.h"

#define SIZE  ((size_t)3 << 20)
#define SMALL ((size_t)4096)

struct scene {
    CUstream stream;
    struct gate gate;
    CUdeviceptr a, b;
    unsigned char *pinned, *plain;
};

static struct scene make(void) {
    struct scene scene;
    scene.stream = new_stream();
    scene.gate = new_gate();
    scene.a = new_memory(SIZE);
    scene.b = new_memory(SIZE);
    OK_CU(cu.cuMemsetD8_v2(scene.a, 0, SIZE));
    OK_CU(cu.cuMemsetD8_v2(scene.b, 0, SIZE));
    scene.pinned = new_pinned(SIZE, CU_MEMHOSTALLOC_PORTABLE);
    scene.plain = new_bytes(SIZE);
    OK_CU(cu.cuCtxSynchronize());
    return scene;
}

static CUdeviceptr unified(void *host) {
    return (CUdeviceptr)(uintptr_t)host;
}

TEST(copies_of_a_stream_run_in_order) {
    struct scene scene = make();
    fill_pattern(scene.pinned, SIZE, 4);
    gate_hold(&scene.gate, scene.stream);
    OK_CU(cu.cuMemcpyHtoDAsync_v2(scene.a, scene.pinned, SIZE, scene.stream));
    OK_CU(cu.cuMemcpyDtoDAsync_v2(scene.b, scene.a, SIZE, scene.stream));
    OK_CU(cu.cuMemsetD8Async(scene.a, 0, SIZE, scene.stream));
    OK_CU(cu.cuMemcpyAsync(scene.a, scene.b, SIZE / 2, scene.stream));
    gate_drain(&scene.gate, scene.stream);
    OK_CU(cu.cuMemcpyDtoHAsync_v2(scene.pinned, scene.b, SIZE, scene.stream));
    OK_CU(cu.cuStreamSynchronize(scene.stream));
    assert_true(has_pattern(scene.pinned, SIZE, 4));
    OK_CU(cu.cuMemcpyDtoHAsync_v2(scene.plain, scene.a, SIZE, scene.stream));
    assert_true(has_pattern(scene.plain, SIZE / 2, 4));
    assert_int_equal(scene.plain[SIZE / 2], 0);
}

/* Pinned memory is read when the copy runs, pageable memory at the call. */
TEST(a_pending_copy_reads_pinned_memory_when_it_runs) {
    struct scene scene = make();
    memset(scene.pinned, 1, SMALL);
    gate_hold(&scene.gate, scene.stream);
    OK_CU(cu.cuMemcpyHtoDAsync_v2(scene.a, scene.pinned, SMALL, scene.stream));
    memset(scene.pinned, 2, SMALL);
    gate_drain(&scene.gate, scene.stream);
    assert_int_equal(byte_at(scene.a), 2);
}

TEST(a_pending_copy_has_read_pageable_memory_at_the_call) {
    struct scene scene = make();
    memset(scene.plain, 1, SMALL);
    gate_hold(&scene.gate, scene.stream);
    OK_CU(cu.cuMemcpyHtoDAsync_v2(scene.a, scene.plain, SMALL, scene.stream));
    memset(scene.plain, 2, SMALL);
    FAILS_CU(NOT_READY, cu.cuStreamQuery(scene.stream));
    gate_drain(&scene.gate, scene.stream);
    assert_int_equal(byte_at(scene.a), 1);
}

/* However large, the source may be overwritten as soon as the call is back. */
TEST(a_pageable_source_may_be_reused_after_the_call) {
    struct scene scene = make();
    fill_pattern(scene.plain, SIZE, 6);
    OK_CU(cu.cuMemcpyHtoDAsync_v2(scene.a, scene.plain, SIZE, scene.stream));
    memset(scene.plain, 0, SIZE);
    OK_CU(cu.cuMemcpyDtoHAsync_v2(scene.pinned, scene.a, SIZE, scene.stream));
    OK_CU(cu.cuStreamSynchronize(scene.stream));
    assert_true(has_pattern(scene.pinned, SIZE, 6));
}

TEST(copies_to_pageable_memory_are_synchronous) {
    struct scene scene = make();
    OK_CU(cu.cuMemsetD8Async(scene.a, 0x33, SIZE, scene.stream));
    OK_CU(cu.cuMemcpyDtoHAsync_v2(scene.plain, scene.a, SIZE, scene.stream));
    assert_int_equal(scene.plain[0], 0x33);
    assert_int_equal(scene.plain[SIZE - 1], 0x33);
}

TEST(invalid_arguments_are_refused) {
    struct scene scene = make();
    FAILS_CU(INVALID_VALUE, cu.cuMemcpyHtoDAsync_v2(scene.a, scene.pinned, SIZE + 1, scene.stream));
    FAILS_CU(INVALID_VALUE, cu.cuMemcpyDtoHAsync_v2(scene.pinned + 1, scene.a, SIZE, scene.stream));
    FAILS_CU(INVALID_VALUE, cu.cuMemcpyHtoDAsync_v2(scene.a, NULL, 16, scene.stream));
    FAILS_CU(INVALID_VALUE,
             cu.cuMemcpyDtoDAsync_v2(scene.a, unified(scene.plain), 16, scene.stream));
    FAILS_CU(INVALID_VALUE, cu.cuMemcpyAsync(scene.a, 0, 16, scene.stream));
    OK_CU(cu.cuMemcpyAsync(0, 0, 0, scene.stream));
    OK_CU(cu.cuStreamSynchronize(scene.stream));
}

TEST(a_copy_without_a_current_context_uses_the_context_of_its_stream) {
    struct scene scene = make();
    memset(scene.pinned, 7, SMALL);
    OK_CU(cu.cuCtxSetCurrent(NULL));
    FAILS_CU(INVALID_CONTEXT, cu.cuMemcpyHtoD_v2(scene.a, scene.pinned, SMALL));
    FAILS_CU(INVALID_CONTEXT, cu.cuMemcpyDtoDAsync_v2(scene.b, scene.a, SMALL, NULL));
    OK_CU(cu.cuMemcpyHtoDAsync_v2(scene.a, scene.pinned, SMALL, scene.stream));
    OK_CU(cu.cuMemcpyDtoDAsync_v2(scene.b, scene.a, SMALL, scene.stream));
    OK_CU(cu.cuMemcpyDtoHAsync_v2(scene.pinned + SMALL, scene.b, SMALL, scene.stream));
    OK_CU(cu.cuStreamSynchronize(scene.stream));
    OK_CU(cu.cuCtxSetCurrent(ctx));
    assert_int_equal(scene.pinned[2 * SMALL - 1], 7);
}

/* ---- Batches ---- */

static CUmemcpyAttributes in_order(CUmemcpySrcAccessOrder order) {
    CUmemcpyAttributes attributes = {.srcAccessOrder = order};
    return attributes;
}

TEST(a_batch_runs_all_its_copies) {
    if (!gpumem_driver_has(driver, GPUMEM_FN_cuMemcpyBatchAsync))
        SKIP("the driver has no batches");
    struct scene scene = make();
    fill_pattern(scene.pinned, 3 * SMALL, 8);
    CUdeviceptr to[3] = {scene.a, scene.b, scene.a + SMALL};
    CUdeviceptr from[3] = {unified(scene.pinned), unified(scene.pinned + SMALL),
                           unified(scene.pinned + 2 * SMALL)};
    size_t sizes[3] = {SMALL, SMALL, SMALL}, indices[2] = {0, 1}, failed = 0;
    CUmemcpyAttributes attributes[2] = {in_order(CU_MEMCPY_SRC_ACCESS_ORDER_STREAM),
                                        in_order(CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL)};
    gate_hold(&scene.gate, scene.stream);
    OK_CU(cu.cuMemcpyBatchAsync(to, from, sizes, 2, attributes, indices, 1, &failed, scene.stream));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(scene.stream));
    memset(scene.pinned, 0x11, SMALL); /* read in stream order */
    gate_release(&scene.gate);
    /* What is read during the call may make it wait for the stream, so nothing holds that now. */
    OK_CU(cu.cuMemcpyBatchAsync(to + 1, from + 1, sizes, 2, attributes, indices, 2, &failed,
                                scene.stream));
    unsigned char third = scene.pinned[2 * SMALL];
    memset(scene.pinned + 2 * SMALL, 0, SMALL);
    OK_CU(cu.cuMemcpyDtoHAsync_v2(scene.plain, scene.a, 2 * SMALL, scene.stream));
    assert_int_equal(scene.plain[0], 0x11);
    assert_int_equal(scene.plain[SMALL], third);
    OK_CU(cu.cuMemcpyDtoHAsync_v2(scene.plain, scene.b, SMALL, scene.stream));
    assert_memory_equal(scene.plain, scene.pinned + SMALL, SMALL);
    if (gpumem_driver_has(driver, GPUMEM_FN_cuMemcpyBatchAsync_v2)) {
        OK_CU(
            cu.cuMemcpyBatchAsync_v2(to + 1, from, sizes, 1, attributes, indices, 1, scene.stream));
        OK_CU(cu.cuMemcpyDtoHAsync_v2(scene.plain, scene.b, SMALL, scene.stream));
        assert_int_equal(scene.plain[SMALL - 1], 0x11);
    }
}

/* Host memory that was mapped for the device alone. */
TEST(a_batch_reads_host_memory_that_only_the_device_can_access) {
    if (!gpumem_driver_has(driver, GPUMEM_FN_cuMemcpyBatchAsync))
        SKIP("the driver has no batches");
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA};
    const size_t size = (size_t)2 << 20;
    if (cu.cuMemCreate(&handle, size, &prop, 0) != CUDA_SUCCESS)
        SKIP("no virtual memory on this host's node 0");
    struct scene scene = make();
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUdeviceptr hidden = MADE_CU(CUdeviceptr, cuMemAddressReserve, size, 0, 0, 0);
    OK_CU(cu.cuMemMap(hidden, size, 0, handle, 0));
    OK_CU(cu.cuMemSetAccess(hidden, size, &access, 1));
    set_bytes(hidden, 0x3c, SMALL);

    size_t bytes = SMALL, index = 0, failed = 0;
    CUmemcpyAttributes attributes = in_order(CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL);
    OK_CU(cu.cuMemcpyBatchAsync(&scene.a, &hidden, &bytes, 1, &attributes, &index, 1, &failed,
                                scene.stream));
    OK_CU(cu.cuMemcpyDtoHAsync_v2(scene.plain, scene.a, SMALL, scene.stream));
    OK_CU(cu.cuStreamSynchronize(scene.stream));
    assert_int_equal(scene.plain[0], 0x3c);
    assert_int_equal(scene.plain[SMALL - 1], 0x3c);
    unmap_and_free(hidden, size, handle);
}

/* The row is named. Whether the rows before it are done is left open: an H200 does them, softgpu
 * does none. */
TEST(a_batch_reports_the_index_of_an_invalid_copy) {
    if (!gpumem_driver_has(driver, GPUMEM_FN_cuMemcpyBatchAsync))
        SKIP("the driver has no batches");
    struct scene scene = make();
    memset(scene.pinned, 5, SMALL);
    CUdeviceptr to[2] = {scene.a, scene.b}, from[2];
    size_t sizes[2] = {SMALL, SIZE + 1}, index = 0, failed = 0;
    CUmemcpyAttributes attributes = in_order(CU_MEMCPY_SRC_ACCESS_ORDER_ANY);
    from[0] = from[1] = unified(scene.pinned);
    FAILS_CU(INVALID_VALUE, cu.cuMemcpyBatchAsync(to, from, sizes, 2, &attributes, &index, 1,
                                                  &failed, scene.stream));
    assert_int_equal(failed, 1);
    OK_CU(cu.cuMemcpyDtoHAsync_v2(scene.plain, scene.a, SMALL, scene.stream));
    if (soft)
        assert_int_equal(scene.plain[0], 0);
    attributes = in_order(CU_MEMCPY_SRC_ACCESS_ORDER_STREAM);
    attributes.flags = 8;
    sizes[1] = SMALL;
    FAILS_CU(INVALID_VALUE, cu.cuMemcpyBatchAsync(to, from, sizes, 2, &attributes, &index, 1,
                                                  &failed, scene.stream));
    assert_true(failed == SIZE_MAX);
    attributes = in_order(CU_MEMCPY_SRC_ACCESS_ORDER_INVALID);
    FAILS_CU(INVALID_VALUE, cu.cuMemcpyBatchAsync(to, from, sizes, 2, &attributes, &index, 1,
                                                  &failed, scene.stream));
    assert_true(failed == SIZE_MAX);
    FAILS_CU(INVALID_VALUE, cu.cuMemcpyBatchAsync(to, from, sizes, 2, &attributes, &index, 1,
                                                  &failed, CU_STREAM_LEGACY));
    failed = 0;
    FAILS_CU(INVALID_VALUE, cu.cuMemcpyBatchAsync(NULL, from, sizes, 2, &attributes, &index, 1,
                                                  &failed, scene.stream));
    assert_true(failed == SIZE_MAX);
}
