/* Injected faults of softgpu, in each of their modes. */
#include "harness.h"

static CUdeviceptr allocate(void) {
    return MADE_CU(CUdeviceptr, cuMemAlloc_v2, 4096);
}

/* Memory that can be taken away from under its address. */
struct region {
    CUdeviceptr at;
    CUmemGenericAllocationHandle handle;
    size_t bytes;
};

static void region_map_again(const struct region *region) {
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = dev},
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    OK_CU(cu.cuMemMap(region->at, region->bytes, 0, region->handle, 0));
    OK_CU(cu.cuMemSetAccess(region->at, region->bytes, &access, 1));
}

static struct region region_map(size_t bytes) {
    struct region made = {.bytes = bytes};
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = dev}};
    OK_CU(cu.cuMemCreate(&made.handle, bytes, &prop, 0));
    OK_CU(cu.cuMemAddressReserve(&made.at, bytes, 0, 0, 0));
    region_map_again(&made);
    return made;
}

static void region_end(const struct region *region) {
    OK_CU(cu.cuMemUnmap(region->at, region->bytes));
    OK_CU(cu.cuMemRelease(region->handle));
    OK_CU(cu.cuMemAddressFree(region->at, region->bytes));
}

static uint64_t used(void) {
    uint64_t bytes = 0, limit = 0;
    assert_int_equal(soft->memory_info(0, &bytes, &limit), 0);
    assert_true(limit > 0);
    return bytes;
}

TEST_WHERE(a_fault_before_refuses_the_nth_call, NEEDS_SOFTGPU("injects faults")) {
    CUdeviceptr first, second = 7, third;
    assert_int_equal(
        soft->fault_arm("cuMemAlloc_v2", 2, CUDA_ERROR_OUT_OF_MEMORY, SOFTGPU_FAULT_BEFORE), 0);
    first = allocate();
    uint64_t before = used();
    FAILS_CU(OUT_OF_MEMORY, cu.cuMemAlloc_v2(&second, 4096));
    assert_int_equal(used(), before);
    assert_int_equal(second, 7);
    third = allocate();
    assert_int_equal(soft->fault_disarm(), 1);
    DESTROY_CU(first, third);
}

TEST_WHERE(a_fault_after_reports_an_error_after_the_effect, NEEDS_SOFTGPU("injects faults")) {
    CUdeviceptr memory = 7;
    assert_int_equal(soft->fault_arm("cuMemAlloc_v2", 1, CUDA_ERROR_UNKNOWN, SOFTGPU_FAULT_AFTER),
                     0);
    FAILS_CU(UNKNOWN, cu.cuMemAlloc_v2(&memory, 4096));
    assert_int_equal(soft->fault_disarm(), 1);
    assert_true(memory != 7 && memory != 0);
    OK_CU(cu.cuMemFree_v2(memory));
}

/* An error of the call's own is the better news. */
TEST_WHERE(a_fault_after_keeps_the_calls_own_error, NEEDS_SOFTGPU("injects faults")) {
    assert_int_equal(soft->fault_arm("cuMemFree_v2", 1, CUDA_ERROR_UNKNOWN, SOFTGPU_FAULT_AFTER),
                     0);
    FAILS_CU(INVALID_VALUE, cu.cuMemFree_v2(12345));
    soft->fault_disarm();
}

TEST_WHERE(a_fault_from_refuses_all_later_calls, NEEDS_SOFTGPU("injects faults")) {
    CUdeviceptr memory = allocate(), other;
    CUcontext current;
    assert_int_equal(
        soft->fault_arm("cuMemAlloc_v2", 1, CUDA_ERROR_ILLEGAL_ADDRESS, SOFTGPU_FAULT_FROM), 0);
    OK_CU(cu.cuCtxGetCurrent(&current));
    FAILS_CU(ILLEGAL_ADDRESS, cu.cuMemAlloc_v2(&other, 4096));
    FAILS_CU(ILLEGAL_ADDRESS, cu.cuMemFree_v2(memory));
    FAILS_CU(ILLEGAL_ADDRESS, cu.cuCtxGetCurrent(&current));
    (void)GOT_CU(const char *, cuGetErrorName, CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(soft->fault_disarm(), 3);
    OK_CU(cu.cuMemFree_v2(memory));
}

/* Whoever is told that the device has stopped may take memory away from under queued work. */
static void work_ends_where_a_lasting_error_is_told(softgpu_fault_mode mode, CUresult error) {
    struct gate gate;
    struct region m = region_map(2 << 20);
    OK_CU(cu.cuMemsetD8_v2(m.at, 1, m.bytes));
    gate_make(&gate);
    CUstream stream = MADE_CU(CUstream, cuStreamCreate, CU_STREAM_NON_BLOCKING);
    gate_hold(&gate, stream);
    OK_CU(cu.cuMemsetD8Async(m.at, 2, m.bytes, stream));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(stream));
    size_t limit;
    assert_int_equal(soft->fault_arm("cuCtxGetLimit", 1, (int)error, mode), 0);
    ANSWERS_CU(error, cu.cuCtxGetLimit(&limit, CU_LIMIT_STACK_SIZE));
    assert_int_equal(soft->fault_disarm(), 1);
    OK_CU(cu.cuMemUnmap(m.at, m.bytes));
    gate_release(&gate);
    OK_CU(cu.cuStreamSynchronize(stream)); /* no fault: the set was dropped */
    region_map_again(&m);
    assert_int_equal(byte_at(m.at), 1);
    OK_CU(cu.cuMemsetD8Async(m.at, 3, m.bytes, stream)); /* later work runs */
    OK_CU(cu.cuStreamSynchronize(stream));
    assert_int_equal(byte_at(m.at), 3);
    OK_CU(cu.cuStreamDestroy_v2(stream));
    gate_free(&gate);
    region_end(&m);
}

TEST_WHERE(a_sticky_injected_error_drops_queued_work, NEEDS_SOFTGPU("injects faults")) {
    work_ends_where_a_lasting_error_is_told(SOFTGPU_FAULT_BEFORE, CUDA_ERROR_LAUNCH_FAILED);
    work_ends_where_a_lasting_error_is_told(SOFTGPU_FAULT_AFTER, CUDA_ERROR_ILLEGAL_ADDRESS);
    work_ends_where_a_lasting_error_is_told(SOFTGPU_FAULT_FROM, CUDA_ERROR_ILLEGAL_ADDRESS);
}

/* What could run had begun before the device stopped; so programs find what they had queued. */
TEST_WHERE(work_that_can_run_runs_before_a_sticky_injected_error, NEEDS_SOFTGPU("injects faults")) {
    size_t limit;
    CUdeviceptr memory = allocate();
    CUstream stream = new_stream();
    OK_CU(cu.cuMemsetD8Async(memory, 2, 4096, stream));
    assert_int_equal(soft->fault_arm("cuCtxGetLimit", 1, CUDA_ERROR_ASSERT, SOFTGPU_FAULT_AFTER),
                     0);
    FAILS_CU(ASSERT, cu.cuCtxGetLimit(&limit, CU_LIMIT_STACK_SIZE));
    assert_int_equal(soft->fault_disarm(), 1);
    OK_CU(cu.cuStreamQuery(stream));
    assert_int_equal(byte_at(memory), 2);
    OK_CU(cu.cuMemFree_v2(memory));
}

/* Any other error tells nothing of queued work. */
TEST_WHERE(queued_work_runs_after_a_non_sticky_injected_error, NEEDS_SOFTGPU("injects faults")) {
    size_t limit;
    CUdeviceptr memory = allocate();
    CUstream stream = new_stream();
    struct gate gate = hold(stream);
    OK_CU(cu.cuMemsetD8Async(memory, 2, 4096, stream));
    assert_int_equal(soft->fault_arm("cuCtxGetLimit", 1, CUDA_ERROR_UNKNOWN, SOFTGPU_FAULT_AFTER),
                     0);
    FAILS_CU(UNKNOWN, cu.cuCtxGetLimit(&limit, CU_LIMIT_STACK_SIZE));
    assert_int_equal(soft->fault_disarm(), 1);
    gate_drain(&gate, stream);
    assert_int_equal(byte_at(memory), 2);
    OK_CU(cu.cuMemFree_v2(memory));
}

TEST_WHERE(a_fault_skip_makes_the_call_do_nothing, NEEDS_SOFTGPU("injects faults")) {
    CUdeviceptr memory = 7;
    uint64_t before = used();
    assert_int_equal(soft->fault_arm("cuMemAlloc_v2", 0, CUDA_SUCCESS, SOFTGPU_FAULT_SKIP), 0);
    OK_CU(cu.cuMemAlloc_v2(&memory, 1 << 20));
    OK_CU(cu.cuMemAlloc_v2(&memory, 1 << 20));
    assert_int_equal(soft->fault_disarm(), 2);
    assert_int_equal(memory, 7);
    assert_int_equal(used(), before);
}

TEST_WHERE(a_star_counts_every_call, NEEDS_SOFTGPU("injects faults")) {
    CUcontext current;
    CUdevice device;
    const char *name;
    assert_int_equal(soft->fault_arm("*", 3, CUDA_ERROR_UNKNOWN, SOFTGPU_FAULT_BEFORE), 0);
    OK_CU(cu.cuCtxGetCurrent(&current));
    OK_CU(cu.cuGetErrorName(CUDA_SUCCESS, &name)); /* no driver fails it: not counted */
    OK_CU(cu.cuCtxGetDevice(&device));
    FAILS_CU(UNKNOWN, cu.cuCtxGetCurrent(&current));
    OK_CU(cu.cuCtxGetCurrent(&current));
    assert_int_equal(soft->fault_disarm(), 1);
    assert_int_equal(soft->fault_disarm(), 0);
}

TEST_WHERE(invalid_faults_are_not_armed, NEEDS_SOFTGPU("injects faults")) {
    assert_int_equal(soft->fault_arm("cuNoSuchFunction", 1, 1, SOFTGPU_FAULT_BEFORE), -1);
    assert_int_equal(soft->fault_arm(NULL, 1, 1, SOFTGPU_FAULT_BEFORE), -1);
    assert_int_equal(soft->fault_arm("cuInit", 1, 1, (softgpu_fault_mode)9), -1);
}

DRIVER_CHILD(fault_from_environment) {
    CUdeviceptr memory = allocate();
    FAILS_CU(OUT_OF_MEMORY, cu.cuMemAlloc_v2(&memory, 4096));
}

TEST_WHERE(an_environment_variable_arms_a_fault, NEEDS_SOFTGPU("injects faults")) {
    const char *given = getenv("SOFTGPU_FAULT");
    char saved[256] = "";
    snprintf(saved, sizeof saved, "%s", given ? given : "");
    setenv("SOFTGPU_FAULT", "cuMemAlloc_v2:2:OUT_OF_MEMORY:before", 1);
    int status = run_child("fault_from_environment", NULL);
    if (given)
        setenv("SOFTGPU_FAULT", saved, 1);
    else
        unsetenv("SOFTGPU_FAULT");
    assert_int_equal(status, 0);
}
