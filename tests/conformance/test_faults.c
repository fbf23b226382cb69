/* Injected faults of softgpu, in each of their modes. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>

static CUdeviceptr allocate(void) {
    CUdeviceptr memory = 0;
    OK(cu.cuMemAlloc_v2(&memory, 4096));
    return memory;
}

static uint64_t used(void) {
    uint64_t bytes = 0, limit = 0;
    assert_int_equal(soft->memory_info(0, &bytes, &limit), 0);
    assert_true(limit > 0);
    return bytes;
}

static void the_nth_call_is_refused(void **state) {
    (void)state;
    NEEDS_SOFTGPU("injects faults");
    CUdeviceptr first, second = 7, third;
    assert_int_equal(
        soft->fault_arm("cuMemAlloc_v2", 2, CUDA_ERROR_OUT_OF_MEMORY, SOFTGPU_FAULT_BEFORE), 0);
    first = allocate();
    uint64_t before = used();
    FAILS(CUDA_ERROR_OUT_OF_MEMORY, cu.cuMemAlloc_v2(&second, 4096));
    assert_int_equal(used(), before);
    assert_int_equal(second, 7);
    third = allocate();
    assert_int_equal(soft->fault_disarm(), 1);
    OK(cu.cuMemFree_v2(first));
    OK(cu.cuMemFree_v2(third));
}

static void after_the_effect_the_error_is_told(void **state) {
    (void)state;
    NEEDS_SOFTGPU("injects faults");
    CUdeviceptr memory = 7;
    assert_int_equal(soft->fault_arm("cuMemAlloc_v2", 1, CUDA_ERROR_UNKNOWN, SOFTGPU_FAULT_AFTER),
                     0);
    FAILS(CUDA_ERROR_UNKNOWN, cu.cuMemAlloc_v2(&memory, 4096));
    assert_int_equal(soft->fault_disarm(), 1);
    assert_true(memory != 7 && memory != 0);
    OK(cu.cuMemFree_v2(memory));
}

/* An error of the call's own is the better news. */
static void after_a_refusal_nothing_is_added(void **state) {
    (void)state;
    NEEDS_SOFTGPU("injects faults");
    assert_int_equal(soft->fault_arm("cuMemFree_v2", 1, CUDA_ERROR_UNKNOWN, SOFTGPU_FAULT_AFTER),
                     0);
    FAILS(CUDA_ERROR_INVALID_VALUE, cu.cuMemFree_v2(12345));
    soft->fault_disarm();
}

static void from_then_on_all_calls_are_refused(void **state) {
    (void)state;
    NEEDS_SOFTGPU("injects faults");
    CUdeviceptr memory = allocate(), other;
    CUcontext current;
    const char *name = NULL;
    assert_int_equal(
        soft->fault_arm("cuMemAlloc_v2", 1, CUDA_ERROR_ILLEGAL_ADDRESS, SOFTGPU_FAULT_FROM), 0);
    OK(cu.cuCtxGetCurrent(&current));
    FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuMemAlloc_v2(&other, 4096));
    FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuMemFree_v2(memory));
    FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuCtxGetCurrent(&current));
    OK(cu.cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &name));
    assert_int_equal(soft->fault_disarm(), 3);
    OK(cu.cuMemFree_v2(memory));
}

static void a_skipped_call_does_nothing(void **state) {
    (void)state;
    NEEDS_SOFTGPU("injects faults");
    CUdeviceptr memory = 7;
    uint64_t before = used();
    assert_int_equal(soft->fault_arm("cuMemAlloc_v2", 0, CUDA_SUCCESS, SOFTGPU_FAULT_SKIP), 0);
    OK(cu.cuMemAlloc_v2(&memory, 1 << 20));
    OK(cu.cuMemAlloc_v2(&memory, 1 << 20));
    assert_int_equal(soft->fault_disarm(), 2);
    assert_int_equal(memory, 7);
    assert_int_equal(used(), before);
}

static void a_star_counts_every_call(void **state) {
    (void)state;
    NEEDS_SOFTGPU("injects faults");
    CUcontext current;
    CUdevice device;
    const char *name;
    assert_int_equal(soft->fault_arm("*", 3, CUDA_ERROR_UNKNOWN, SOFTGPU_FAULT_BEFORE), 0);
    OK(cu.cuCtxGetCurrent(&current));
    OK(cu.cuGetErrorName(CUDA_SUCCESS, &name)); /* no driver fails it: not counted */
    OK(cu.cuCtxGetDevice(&device));
    FAILS(CUDA_ERROR_UNKNOWN, cu.cuCtxGetCurrent(&current));
    OK(cu.cuCtxGetCurrent(&current));
    assert_int_equal(soft->fault_disarm(), 1);
    assert_int_equal(soft->fault_disarm(), 0);
}

static void nonsense_is_not_armed(void **state) {
    (void)state;
    NEEDS_SOFTGPU("injects faults");
    assert_int_equal(soft->fault_arm("cuNoSuchFunction", 1, 1, SOFTGPU_FAULT_BEFORE), -1);
    assert_int_equal(soft->fault_arm(NULL, 1, 1, SOFTGPU_FAULT_BEFORE), -1);
    assert_int_equal(soft->fault_arm("cuInit", 1, 1, (softgpu_fault_mode)9), -1);
}

static int fault_from_environment(int argc, char **argv) {
    (void)argc;
    (void)argv;
    init_driver();
    CUdeviceptr memory = allocate();
    FAILS(CUDA_ERROR_OUT_OF_MEMORY, cu.cuMemAlloc_v2(&memory, 4096));
    return 0;
}

static void the_environment_can_ask_for_one(void **state) {
    (void)state;
    NEEDS_SOFTGPU("injects faults");
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

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        TEST(the_nth_call_is_refused),
        TEST(after_the_effect_the_error_is_told),
        TEST(after_a_refusal_nothing_is_added),
        TEST(from_then_on_all_calls_are_refused),
        TEST(a_skipped_call_does_nothing),
        TEST(a_star_counts_every_call),
        TEST(nonsense_is_not_armed),
        TEST(the_environment_can_ask_for_one),
    };
    const struct child children[] = {{"fault_from_environment", fault_from_environment}};
    return conformance(argc, argv, tests, COUNT(tests), children, COUNT(children));
}
