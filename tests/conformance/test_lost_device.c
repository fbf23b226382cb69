/*
 * A device that is lost, and one whose memory failed: errors that stay, injected by the environment
 * and by call. Queued work drains, nothing hangs, and every later call says what happened.
 */
#include "harness.h"

struct scene {
    struct gate gate;
    CUstream stream, other;
    CUevent event;
    CUdeviceptr memory;
};

/* Work that waits, and work in another stream that waits for it. */
static void begin(struct scene *scene) {
    init_driver();
    gate_make(&scene->gate);
    OK_CU(cu.cuStreamCreate(&scene->stream, CU_STREAM_NON_BLOCKING));
    OK_CU(cu.cuStreamCreate(&scene->other, CU_STREAM_NON_BLOCKING));
    OK_CU(cu.cuEventCreate(&scene->event, CU_EVENT_DISABLE_TIMING));
    OK_CU(cu.cuMemAlloc_v2(&scene->memory, 4096));
    gate_hold(&scene->gate, scene->stream);
    OK_CU(cu.cuMemsetD8Async(scene->memory, 1, 4096, scene->stream));
    order_streams(scene->stream, scene->event, scene->other);
    OK_CU(cu.cuMemsetD8Async(scene->memory, 2, 4096, scene->other));
}

/* The gate is never opened. */
static void all_answer(const struct scene *scene, CUresult error) {
    CUdeviceptr p;
    CUcontext made = NULL;
    unsigned char byte;
    ANSWERS_CU(error, cu.cuStreamSynchronize(scene->other));
    ANSWERS_CU(error, cu.cuEventSynchronize(scene->event));
    ANSWERS_CU(error, cu.cuStreamQuery(scene->stream));
    ANSWERS_CU(error, cu.cuCtxSynchronize());
    ANSWERS_CU(error, cu.cuMemAlloc_v2(&p, 64));
    ANSWERS_CU(error, cu.cuMemcpyDtoH_v2(&byte, scene->memory, 1));
    ANSWERS_CU(error, cu.cuMemsetD8Async(scene->memory, 1, 1, scene->other));
    ANSWERS_CU(error, cu.cuCtxCreate_v2(&made, 0, dev));
    assert_null(made);
    OK_CU(cu.cuDevicePrimaryCtxReset_v2(dev));
    OK_CU(cu.cuCtxSetCurrent(NULL));
    ANSWERS_CU(error, cu.cuDevicePrimaryCtxRetain(&made, dev));
}

CHILD_THAT_ENDS(lost_by_call) {
    struct scene scene;
    begin(&scene);
    assert_int_equal(soft->context_poison(CUDA_ERROR_DEVICE_UNAVAILABLE), 0);
    all_answer(&scene, CUDA_ERROR_DEVICE_UNAVAILABLE);
}

CHILD_THAT_ENDS(failed_at_a_call) {
    struct scene scene;
    begin(&scene);
    assert_int_equal(soft->fault_arm(twins ? "cuStreamQuery_ptsz" : "cuStreamQuery", 2,
                                     CUDA_ERROR_ECC_UNCORRECTABLE, SOFTGPU_FAULT_STICKY),
                     0);
    FAILS_CU(NOT_READY, cu.cuStreamQuery(scene.stream));
    FAILS_CU(ECC_UNCORRECTABLE, cu.cuStreamQuery(scene.stream));
    assert_int_equal(soft->fault_disarm(), 1);
    all_answer(&scene, CUDA_ERROR_ECC_UNCORRECTABLE);
}

/* SOFTGPU_FAULT is set. */
CHILD_THAT_ENDS(failed_by_environment) {
    struct scene scene;
    begin(&scene);
    FAILS_CU(ECC_UNCORRECTABLE, cu.cuStreamSynchronize(scene.stream));
    all_answer(&scene, CUDA_ERROR_ECC_UNCORRECTABLE);
}

DRIVER_CHILD(out_of_memory_and_back) {
    CUdeviceptr held[64], last;
    unsigned count = 0;
    while (count < 64 && cu.cuMemAlloc_v2(&held[count], (size_t)64 << 20) == CUDA_SUCCESS)
        count++;
    assert_in_range(count, 1, 16); /* 1 GiB of addresses in all */
    FAILS_CU(OUT_OF_MEMORY, cu.cuMemAlloc_v2(&last, (size_t)64 << 20));
    OK_CU(cu.cuMemFree_v2(held[0]));
    OK_CU(cu.cuMemAlloc_v2(&held[0], (size_t)64 << 20));
    set_bytes(held[0], 1, 4096);
    for (unsigned i = 0; i < count; i++)
        OK_CU(cu.cuMemFree_v2(held[i]));
}

static void in_a_child(const char *part, const char *variable, const char *value) {
    if (variable)
        setenv(variable, value, 1);
    int status = run_child(part, NULL);
    if (variable)
        unsetenv(variable);
    assert_int_equal(status, 0);
}

TEST_WHERE(a_lost_device_stays_lost, NEEDS_SOFTGPU("loses a device")) {
    in_a_child("lost_by_call", NULL, NULL);
}

TEST_WHERE(an_ecc_error_injected_by_call_is_sticky, NEEDS_SOFTGPU("injects a fault")) {
    in_a_child("failed_at_a_call", NULL, NULL);
}

TEST_WHERE(an_ecc_error_injected_by_the_environment_is_sticky, NEEDS_SOFTGPU("injects a fault")) {
    in_a_child("failed_by_environment", "SOFTGPU_FAULT",
               twins ? "cuStreamSynchronize_ptsz:1:CUDA_ERROR_ECC_UNCORRECTABLE:sticky"
                     : "cuStreamSynchronize:1:CUDA_ERROR_ECC_UNCORRECTABLE:sticky");
}

TEST(a_full_address_space_can_be_used_again_after_frees) {
    NEEDS_SOFTGPU("SOFTGPU_ADDRESS_SPACE");
    in_a_child("out_of_memory_and_back", "SOFTGPU_ADDRESS_SPACE", "1G");
}
