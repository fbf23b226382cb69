/* A poisoned context: which calls still answer. softgpu poisons on demand; on hardware this wants a
 * device fault, which the parity scenarios provoke. */
#include "harness.h"

static int poisoned(int argc, char **argv) {
    (void)argc;
    (void)argv;
    init_driver();
    CUdeviceptr memory, other;
    CUevent event;
    CUcontext current;
    CUdevice device = -1;
    void *host;
    size_t free_bytes, total;
    CUmemorytype type = (CUmemorytype)0;
    OK(cu.cuMemAlloc_v2(&memory, 4096));
    assert_int_equal(soft->context_poison(CUDA_ERROR_ILLEGAL_ADDRESS), 0);

    FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuMemFree_v2(memory));
    FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuMemAlloc_v2(&other, 4096));
    FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuEventCreate(&event, 0));
    FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuMemHostAlloc(&host, 4096, 0));
    FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuCtxSynchronize());
    FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuMemGetInfo_v2(&free_bytes, &total));

    OK(cu.cuCtxGetDevice(&device));
    assert_int_equal(device, dev);
    OK(cu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory));
    assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
    OK(cu.cuCtxGetCurrent(&current));
    assert_ptr_equal(current, ctx);

    /* Another thread of control: without the context the device can still be asked. */
    OK(cu.cuCtxSetCurrent(NULL));
    OK(cu.cuDeviceGetCount(&device_count));
    OK(cu.cuCtxSetCurrent(ctx));
    FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuMemFree_v2(memory));
    OK(cu.cuDevicePrimaryCtxReset_v2(dev));
    return 0;
}

static void most_calls_answer_the_error(void **state) {
    (void)state;
    NEEDS_SOFTGPU("poisons a context on demand");
    assert_int_equal(run_child("poisoned", NULL), 0);
}

static int not_poisoned(int argc, char **argv) {
    (void)argc;
    (void)argv;
    OK(cu.cuInit(0));
    assert_int_equal(soft->context_poison(CUDA_ERROR_ILLEGAL_ADDRESS), -1);
    return 0;
}

static void without_a_context_there_is_nothing_to_poison(void **state) {
    (void)state;
    NEEDS_SOFTGPU("poisons a context on demand");
    assert_int_equal(run_child("not_poisoned", NULL), 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {TEST(most_calls_answer_the_error),
                                       TEST(without_a_context_there_is_nothing_to_poison)};
    const struct child children[] = {{"poisoned", poisoned}, {"not_poisoned", not_poisoned}};
    return conformance(argc, argv, tests, COUNT(tests), children, COUNT(children));
}
