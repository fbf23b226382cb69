/* Memory that goes away under queued work: cuMemUnmap waits for nothing, the work faults, and
 * virtual memory can still be taken apart afterwards. In processes of their own: the context is
 * lost. */
#include "harness.h"

#define PAGE ((size_t)2 << 20)

struct mapped {
    CUdeviceptr at;
    CUmemGenericAllocationHandle handle;
};

static struct mapped map(void) {
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
    CUmemAccessDesc desc = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    struct mapped made;
    prop.location = device_location(dev);
    desc.location = prop.location;
    OK_CU(cu.cuMemCreate(&made.handle, PAGE, &prop, 0));
    OK_CU(cu.cuMemAddressReserve(&made.at, PAGE, 0, 0, 0));
    OK_CU(cu.cuMemMap(made.at, PAGE, 0, made.handle, 0));
    OK_CU(cu.cuMemSetAccess(made.at, PAGE, &desc, 1));
    return made;
}

/* Work waits at a gate until its memory is gone. */
static void fault(struct gate *gate) {
    struct mapped m = map();
    gate_make(gate);
    CUstream stream = MADE_CU(CUstream, cuStreamCreate, CU_STREAM_NON_BLOCKING);
    gate_hold(gate, stream);
    OK_CU(cu.cuMemsetD8Async(m.at, 1, PAGE, stream));
    OK_CU(cu.cuMemUnmap(m.at, PAGE));
    OK_CU(cu.cuMemRelease(m.handle));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(stream));
    gate_release(gate);
    FAILS_CU(ILLEGAL_ADDRESS, cu.cuStreamSynchronize(stream));
}

CHILD_TEST(virtual_memory_can_be_released_after_unmapping_under_queued_work) {
    struct gate gate;
    init_driver();
    struct mapped other = map();
    fault(&gate);
    CUdeviceptr p = 7;
    size_t left = 7, total = 7;
    FAILS_CU(ILLEGAL_ADDRESS, cu.cuMemAlloc_v2(&p, 64));
    assert_int_equal(p, 0);
    FAILS_CU(ILLEGAL_ADDRESS, cu.cuMemGetInfo_v2(&left, &total));
    assert_int_equal(left | total, 0);
    FAILS_CU(ILLEGAL_ADDRESS, cu.cuMemFree_v2(0));
    struct mapped later = map();
    OK_CU(cu.cuMemUnmap(later.at, PAGE));
    OK_CU(cu.cuMemRelease(later.handle));
    OK_CU(cu.cuMemAddressFree(later.at, PAGE));
    OK_CU(cu.cuMemUnmap(other.at, PAGE));
    OK_CU(cu.cuMemRelease(other.handle));
    OK_CU(cu.cuMemAddressFree(other.at, PAGE));
    return 0;
}

/* Memory that is released while work may be running on it: a fault or none, never a crash. */
CHILD(released_under_running_work) {
    init_driver();
    CUstream stream = MADE_CU(CUstream, cuStreamCreate, CU_STREAM_NON_BLOCKING);
    CUdeviceptr large = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 64 * PAGE);
    for (int round = 0; round < 50; round++) {
        struct mapped m = map();
        /* May run before, while or after the memory goes: all but a crash is right. */
        CUresult result = cu.cuMemcpyDtoDAsync_v2(m.at, large, PAGE, stream);
        if (cu.cuMemUnmap(m.at, PAGE) != CUDA_SUCCESS ||
            cu.cuMemRelease(m.handle) != CUDA_SUCCESS ||
            cu.cuMemAddressFree(m.at, PAGE) != CUDA_SUCCESS)
            return 1;
        if (result == CUDA_ERROR_ILLEGAL_ADDRESS)
            return 0;
        result = cu.cuStreamSynchronize(stream);
        if (result == CUDA_ERROR_ILLEGAL_ADDRESS)
            return 0;
        if (result != CUDA_SUCCESS)
            return 2;
    }
    return 0;
}

TEST(releasing_memory_under_running_work_does_not_crash) {
    for (int i = 0; i < 5; i++)
        assert_int_equal(run_child("released_under_running_work", NULL), 0);
}
