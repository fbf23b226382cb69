/* Per-thread default streams: CU_STREAM_PER_THREAD, and NULL in the _ptds and _ptsz twins. */
#include "harness.h"

#include <pthread.h>

static unsigned long long id_of(CUstream stream) {
    return GOT_CU(unsigned long long, cuStreamGetId, stream);
}

struct other {
    unsigned long long id;
    CUresult query;
};

static void *look_from_another_thread(void *argument) {
    struct other *other = argument;
    other->query = cu.cuCtxSetCurrent(ctx);
    if (other->query == CUDA_SUCCESS)
        other->query = cu.cuStreamGetId(CU_STREAM_PER_THREAD, &other->id);
    if (other->query == CUDA_SUCCESS)
        other->query = cu.cuStreamQuery(CU_STREAM_PER_THREAD);
    return NULL;
}

TEST(each_thread_has_its_own_default_stream) {
    pthread_t thread;
    struct other other = {0, CUDA_ERROR_UNKNOWN};
    struct gate gate = hold(CU_STREAM_PER_THREAD);
    assert_int_equal(pthread_create(&thread, NULL, look_from_another_thread, &other), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    OK_CU(other.query);
    FAILS_CU(NOT_READY, cu.cuStreamQuery(CU_STREAM_PER_THREAD));
    assert_int_not_equal(other.id, id_of(CU_STREAM_PER_THREAD));
    assert_int_equal(id_of(CU_STREAM_PER_THREAD), id_of(CU_STREAM_PER_THREAD));
    gate_drain(&gate, CU_STREAM_PER_THREAD);
}

TEST(per_thread_variants_treat_a_null_stream_as_per_thread) {
    const gpumem_driver_api *plain = gpumem_driver_table(driver);
    unsigned char out = 0;
    CUdeviceptr bytes = new_memory(4096);
    set_bytes(bytes, 1, 4096);
    struct gate gate = hold(CU_STREAM_PER_THREAD);
    OK_CU(plain->cuMemsetD8Async_ptsz(bytes, 9, 4096, NULL));
    FAILS_CU(NOT_READY, plain->cuStreamQuery_ptsz(NULL));
    gate_release(&gate);
    OK_CU(plain->cuStreamSynchronize_ptsz(NULL));
    OK_CU(cu.cuStreamQuery(CU_STREAM_PER_THREAD));
    OK_CU(plain->cuMemcpyDtoH_v2_ptds(&out, bytes, 1));
    assert_int_equal(out, 9);
}

/* Of the batches only those of the first version do. */
TEST(batch_calls_of_version_2_treat_a_null_stream_as_legacy) {
    if (!gpumem_driver_has(driver, GPUMEM_FN_cuMemcpyBatchAsync_v2))
        SKIP("the driver has no second version of batches");
    const gpumem_driver_api *plain = gpumem_driver_table(driver);
    CUmemcpyAttributes attributes = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    size_t size = 4096, index = 0, failed = 0;
    CUdeviceptr from = new_memory(size), to = new_memory(size);
    OK_CU(cu.cuMemsetD8_v2(from, 1, size));
    OK_CU(plain->cuMemcpyBatchAsync_ptsz(&to, &from, &size, 1, &attributes, &index, 1, &failed,
                                         NULL));
    FAILS_CU(INVALID_VALUE,
             plain->cuMemcpyBatchAsync_v2_ptsz(&to, &from, &size, 1, &attributes, &index, 1, NULL));
    OK_CU(plain->cuMemcpyBatchAsync_v2_ptsz(&to, &from, &size, 1, &attributes, &index, 1,
                                            CU_STREAM_PER_THREAD));
    OK_CU(cu.cuStreamSynchronize(CU_STREAM_PER_THREAD));
}

TEST(a_per_thread_stream_is_ordered_with_the_legacy_stream) {
    CUdeviceptr bytes = new_memory(4096);
    struct gate gate = hold(CU_STREAM_PER_THREAD);
    OK_CU(cu.cuMemsetD8Async(bytes, 1, 4096, CU_STREAM_LEGACY));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(CU_STREAM_LEGACY));
    gate_drain(&gate, CU_STREAM_LEGACY);
    gate_hold(&gate, CU_STREAM_LEGACY);
    OK_CU(cu.cuMemsetD8Async(bytes, 1, 4096, CU_STREAM_PER_THREAD));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(CU_STREAM_PER_THREAD));
    gate_drain(&gate, CU_STREAM_PER_THREAD);
}

static void *leave_work_behind(void *bytes) {
    CUdeviceptr to = *(CUdeviceptr *)bytes;
    if (cu.cuCtxSetCurrent(ctx) != CUDA_SUCCESS ||
        cu.cuMemsetD8Async(to, 6, 4096, CU_STREAM_PER_THREAD) != CUDA_SUCCESS)
        return NULL;
    return bytes;
}

TEST(work_of_a_per_thread_stream_outlives_its_thread) {
    pthread_t thread;
    void *left;
    CUdeviceptr bytes = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 4096);
    assert_int_equal(pthread_create(&thread, NULL, leave_work_behind, &bytes), 0);
    assert_int_equal(pthread_join(thread, &left), 0);
    assert_ptr_equal(left, &bytes);
    OK_CU(cu.cuCtxSynchronize());
    assert_int_equal(byte_at(bytes + 4095), 6);
    OK_CU(cu.cuMemFree_v2(bytes));
}
