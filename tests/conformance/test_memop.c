/* Stream memory operations: waits for a value, writes of one, batches of both. */
#include "harness.h"

struct scene {
    CUstream stream, other;
    uint64_t *word;
    CUdeviceptr address; /* of word */
    CUdeviceptr device;
};

static struct scene make(void) {
    struct scene scene;
    scene.stream = new_stream();
    scene.other = new_stream();
    scene.word = new_pinned(64, CU_MEMHOSTALLOC_DEVICEMAP);
    memset(scene.word, 0, 64);
    OK_CU(cu.cuMemHostGetDevicePointer_v2(&scene.address, scene.word, 0));
    scene.device = new_memory(64);
    set_bytes(scene.device, 0, 64);
    return scene;
}

static void put(struct scene *scene, uint64_t value) {
    __atomic_store_n(scene->word, value, __ATOMIC_RELEASE);
}

/* The stream is held by `before` and freed by `after`. */
static void held_then_free(struct scene *scene, unsigned bits, unsigned flags, uint64_t value,
                           uint64_t before, uint64_t after) {
    put(scene, before);
    if (bits == 32)
        OK_CU(cu.cuStreamWaitValue32_v2(scene->stream, scene->address, (cuuint32_t)value, flags));
    else
        OK_CU(cu.cuStreamWaitValue64_v2(scene->stream, scene->address, value, flags));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(scene->stream));
    put(scene, after);
    OK_CU(cu.cuStreamSynchronize(scene->stream));
}

TEST(a_stream_waits_for_each_condition) {
    struct scene scene = make();
    held_then_free(&scene, 32, CU_STREAM_WAIT_VALUE_GEQ, 5, 4, 5);
    held_then_free(&scene, 32, CU_STREAM_WAIT_VALUE_GEQ, 5, 4, 900);
    held_then_free(&scene, 32, CU_STREAM_WAIT_VALUE_GEQ, 5, 0x80000006u, 6); /* cyclic */
    held_then_free(&scene, 32, CU_STREAM_WAIT_VALUE_EQ, 5, 6, 5);
    held_then_free(&scene, 32, CU_STREAM_WAIT_VALUE_AND, 6, 9, 2);
    held_then_free(&scene, 64, CU_STREAM_WAIT_VALUE_GEQ, 5ull << 32, 4ull << 32, 5ull << 32);
    held_then_free(&scene, 64, CU_STREAM_WAIT_VALUE_GEQ, 5, 0x8000000000000006u, 6);
    held_then_free(&scene, 64, CU_STREAM_WAIT_VALUE_EQ, 1ull << 40, 0, 1ull << 40);
    held_then_free(&scene, 64, CU_STREAM_WAIT_VALUE_AND, 6ull << 40, 9, 2ull << 40);
}

TEST(a_stream_waits_for_the_nor_condition) {
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR);
    struct scene scene = make();
    held_then_free(&scene, 32, CU_STREAM_WAIT_VALUE_NOR, 0xfffffff0u, 0xf, 0);
    held_then_free(&scene, 64, CU_STREAM_WAIT_VALUE_NOR, ~(uint64_t)0xf, 0xf, 0);
}

TEST(a_condition_that_already_holds_does_not_block) {
    struct scene scene = make();
    put(&scene, 7);
    OK_CU(cu.cuStreamWaitValue32_v2(scene.stream, scene.address, 7, CU_STREAM_WAIT_VALUE_EQ));
    OK_CU(cu.cuStreamSynchronize(scene.stream));
}

TEST(value_writes_reach_host_and_device_memory) {
    struct scene scene = make();
    uint32_t words[4] = {0};
    OK_CU(cu.cuStreamWriteValue64_v2(scene.stream, scene.address, 0x1122334455667788u, 0));
    OK_CU(cu.cuStreamWriteValue32_v2(scene.stream, scene.address, 0xaabbccdd, 0));
    OK_CU(cu.cuStreamWriteValue32_v2(scene.stream, scene.device, 0x11111111, 0));
    OK_CU(cu.cuStreamWriteValue64_v2(scene.stream, scene.device + 8, 0x2222222233333333u, 0));
    OK_CU(cu.cuStreamSynchronize(scene.stream));
    assert_true(__atomic_load_n(scene.word, __ATOMIC_ACQUIRE) == 0x11223344aabbccddu);
    OK_CU(cu.cuMemcpyDtoH_v2(words, scene.device, sizeof words));
    assert_int_equal(words[0], 0x11111111);
    assert_int_equal(words[1], 0);
    assert_int_equal(words[2], 0x33333333);
    assert_int_equal(words[3], 0x22222222);
}

TEST(a_value_write_releases_a_waiting_stream) {
    struct scene scene = make();
    OK_CU(cu.cuStreamWaitValue32_v2(scene.stream, scene.device, 7, CU_STREAM_WAIT_VALUE_EQ));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(scene.stream));
    OK_CU(cu.cuStreamWriteValue32_v2(scene.other, scene.device, 7, 0));
    OK_CU(cu.cuStreamSynchronize(scene.stream));
}

/* Any writer will do. Long ones are seen at work by who waits, which ThreadSanitizer must allow. */
TEST(memsets_and_copies_release_a_waiting_stream) {
    struct scene scene = make();
    const size_t size = (size_t)16 << 20;
    CUdeviceptr device = new_memory(size);
    void *pinned = new_pinned(size, CU_MEMHOSTALLOC_DEVICEMAP);
    CUdeviceptr host = device_address(pinned);
    memset(pinned, 0, size);
    set_bytes(device, 0, size);
    OK_CU(cu.cuStreamWaitValue32_v2(scene.stream, device, 0x09090909, CU_STREAM_WAIT_VALUE_EQ));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(scene.stream));
    OK_CU(cu.cuMemsetD8Async(device, 9, size, scene.other));
    OK_CU(cu.cuStreamSynchronize(scene.stream));
    OK_CU(cu.cuStreamWaitValue32_v2(scene.stream, host, 0x09090909, CU_STREAM_WAIT_VALUE_EQ));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(scene.stream));
    OK_CU(cu.cuMemcpyDtoHAsync_v2(pinned, device, size, scene.other));
    OK_CU(cu.cuStreamSynchronize(scene.stream));
    OK_CU(cu.cuStreamSynchronize(scene.other));
}

/* ---- Batches ---- */

static CUstreamBatchMemOpParams entry(CUstreamBatchMemOpType operation, CUdeviceptr address,
                                      uint64_t value, unsigned flags) {
    CUstreamBatchMemOpParams params;
    memset(&params, 0, sizeof params);
    params.waitValue.operation = operation;
    params.waitValue.address = address;
    params.waitValue.value64 = value;
    params.waitValue.flags = flags;
    return params;
}

TEST(a_batch_of_memory_operations_runs_in_order) {
    struct scene scene = make();
    CUstreamBatchMemOpParams batch[5] = {
        entry(CU_STREAM_MEM_OP_WRITE_VALUE_64, scene.device, 21, 0),
        entry(CU_STREAM_MEM_OP_WAIT_VALUE_32, scene.address, 1, CU_STREAM_WAIT_VALUE_EQ),
        entry(CU_STREAM_MEM_OP_WRITE_VALUE_32, scene.device + 8, 22, 0),
        entry(CU_STREAM_MEM_OP_WAIT_VALUE_64, scene.address, 2, CU_STREAM_WAIT_VALUE_EQ),
        entry(CU_STREAM_MEM_OP_WRITE_VALUE_32, scene.address, 3, 0),
    };
    OK_CU(cu.cuStreamBatchMemOp_v2(scene.stream, COUNT(batch), batch, 0));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(scene.stream));
    put(&scene, 1);
    OK_CU(cu.cuStreamWaitValue32_v2(scene.other, scene.device + 8, 22, CU_STREAM_WAIT_VALUE_EQ));
    OK_CU(cu.cuStreamSynchronize(scene.other));
    assert_true(__atomic_load_n(scene.word, __ATOMIC_ACQUIRE) == 1);
    FAILS_CU(NOT_READY, cu.cuStreamQuery(scene.stream));
    put(&scene, 2);
    OK_CU(cu.cuStreamSynchronize(scene.stream));
    assert_true(__atomic_load_n(scene.word, __ATOMIC_ACQUIRE) == 3);
}

TEST(a_batch_with_an_invalid_entry_does_nothing) {
    struct scene scene = make();
    CUstreamBatchMemOpParams batch[2] = {
        entry(CU_STREAM_MEM_OP_WRITE_VALUE_32, scene.address, 3, 0),
        entry(CU_STREAM_MEM_OP_WRITE_VALUE_32, scene.address + 2, 3, 0),
    };
    FAILS_CU(INVALID_VALUE, cu.cuStreamBatchMemOp_v2(scene.stream, 2, batch, 0));
    batch[1] = entry((CUstreamBatchMemOpType)77, scene.address, 3, 0);
    FAILS_CU(INVALID_VALUE, cu.cuStreamBatchMemOp_v2(scene.stream, 2, batch, 0));
    FAILS_CU(INVALID_VALUE, cu.cuStreamBatchMemOp_v2(scene.stream, 1, batch, 1));
    FAILS_CU(INVALID_VALUE, cu.cuStreamBatchMemOp_v2(scene.stream, 256, batch, 0));
    OK_CU(cu.cuStreamBatchMemOp_v2(scene.stream, 0, NULL, 0));
    OK_CU(cu.cuStreamSynchronize(scene.stream));
    assert_true(*scene.word == 0);
}

TEST(invalid_arguments_are_refused) {
    struct scene scene = make();
    CUdeviceptr plain = (CUdeviceptr)(uintptr_t)&scene;
    FAILS_CU(INVALID_VALUE, cu.cuStreamWaitValue32_v2(scene.stream, scene.address, 0, 4));
    FAILS_CU(INVALID_VALUE, cu.cuStreamWaitValue32_v2(scene.stream, scene.address + 2, 0, 0));
    FAILS_CU(INVALID_VALUE, cu.cuStreamWaitValue64_v2(scene.stream, scene.address + 4, 0, 0));
    FAILS_CU(INVALID_VALUE, cu.cuStreamWaitValue32_v2(scene.stream, 0, 0, 0));
    FAILS_CU(INVALID_VALUE, cu.cuStreamWaitValue32_v2(scene.stream, plain & ~7ull, 0, 0));
    FAILS_CU(INVALID_VALUE, cu.cuStreamWriteValue32_v2(scene.stream, scene.address, 0, 1));
    FAILS_CU(INVALID_VALUE, cu.cuStreamWriteValue64_v2(scene.stream, scene.address, 0, 2));
    FAILS_CU(INVALID_VALUE, cu.cuStreamWriteValue64_v2(scene.stream, 0x1000, 0, 0));
    FAILS_CU(NOT_SUPPORTED,
             cu.cuStreamWaitValue32_v2(scene.stream, scene.address, 0, CU_STREAM_WAIT_VALUE_FLUSH));
    OK_CU(cu.cuStreamQuery(scene.stream));
}

/* Where the attribute says no, and captures are not helped either. */
TEST(memory_operations_of_version_1_are_refused) {
    if (device_attribute(CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1) > 0)
        SKIP("the device has the first version of memory operations");
    struct scene scene = make();
    CUgraph graph = NULL;
    FAILS_CU(NOT_SUPPORTED, cu.cuStreamWriteValue64(scene.stream, scene.address, 1, 0));
    FAILS_CU(NOT_SUPPORTED, cu.cuStreamWaitValue32(scene.stream, scene.address, 0, 0));
    FAILS_CU(NOT_SUPPORTED, cu.cuStreamWaitValue64(scene.stream, scene.address, 0, 0));
    FAILS_CU(INVALID_VALUE, cu.cuStreamBatchMemOp(scene.stream, 257, NULL, 0));
    OK_CU(cu.cuStreamBeginCapture_v2(scene.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    FAILS_CU(STREAM_CAPTURE_UNSUPPORTED,
             cu.cuStreamWriteValue32(scene.stream, scene.address, 1, 0));
    FAILS_CU(STREAM_CAPTURE_INVALIDATED, cu.cuStreamEndCapture(scene.stream, &graph));
    assert_true(*scene.word == 0);
}

/* As managed memory is. A graph takes it, and cannot be launched. */
TEST(memory_operations_on_pool_memory_are_refused) {
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
    struct scene scene = make();
    cuuint32_t seen = 0;
    CUdeviceptr pooled = MADE_CU(CUdeviceptr, cuMemAllocAsync, 64, scene.stream);
    OK_CU(cu.cuMemsetD32Async(pooled, 9, 16, scene.stream));
    OK_CU(cu.cuStreamSynchronize(scene.stream));
    FAILS_CU(INVALID_VALUE, cu.cuStreamWriteValue32_v2(scene.stream, pooled, 7, 0));
    FAILS_CU(INVALID_VALUE,
             cu.cuStreamWaitValue32_v2(scene.stream, pooled, 0, CU_STREAM_WAIT_VALUE_GEQ));
    OK_CU(cu.cuStreamBeginCapture_v2(scene.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK_CU(cu.cuStreamWriteValue32_v2(scene.stream, pooled, 7, 0));
    CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, scene.stream);
    CUgraphExec exec = instantiate(graph);
    FAILS_CU(INVALID_VALUE, cu.cuGraphLaunch(exec, scene.stream));
    OK_CU(cu.cuStreamSynchronize(scene.stream));
    OK_CU(cu.cuMemcpyDtoH_v2(&seen, pooled, sizeof(seen)));
    assert_int_equal(seen, 9);
    OK_CU(cu.cuGraphDestroy(graph));
    OK_CU(cu.cuMemFreeAsync(pooled, scene.stream));
}
