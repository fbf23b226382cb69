/* cuInit, and what answers before it. */
#include "harness.h"

CHILD_TEST(most_calls_before_cuinit_are_refused) {
    int count = -1, version = 0;
    CUdeviceptr memory = 7;
    CUcontext current;
    CUstream stream = NULL;
    FAILS_CU(NOT_INITIALIZED, cu.cuDeviceGetCount(&count));
    FAILS_CU(NOT_INITIALIZED, cu.cuMemAlloc_v2(&memory, 100));
    assert_int_equal(memory, 0);
    FAILS_CU(NOT_INITIALIZED, cu.cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    assert_non_null(stream); /* and leads nowhere */
    FAILS_CU(NOT_INITIALIZED, cu.cuCtxGetCurrent(&current));
    assert_int_equal(count, -1);
    /* These look at their arguments first. */
    FAILS_CU(INVALID_HANDLE, cu.cuEventDestroy_v2(NULL));
    FAILS_CU(INVALID_VALUE, cu.cuCtxGetDevice(NULL));
    FAILS_CU(INVALID_VALUE, cu.cuStreamGetFlags(NULL, NULL));

    void *function;
    OK_CU(cu.cuDriverGetVersion(&version));
    (void)GOT_CU(const char *, cuGetErrorName, CUDA_ERROR_UNKNOWN);
    OK_CU(cu.cuGetProcAddress_v2("cuInit", &function, 2000, CU_GET_PROC_ADDRESS_DEFAULT, NULL));
    assert_non_null(function);
    return 0;
}

CHILD_TEST(cuinit_flags_must_be_zero) {
    int count = -1;
    FAILS_CU(INVALID_VALUE, cu.cuInit(1));
    FAILS_CU(NOT_INITIALIZED, cu.cuDeviceGetCount(&count));
    OK_CU(cu.cuInit(0));
    OK_CU(cu.cuDeviceGetCount(&count));
    assert_true(count > 0);
    return 0;
}

TEST(a_second_cuinit_succeeds) {
    CUcontext current;
    OK_CU(cu.cuInit(0));
    FAILS_CU(INVALID_VALUE, cu.cuInit(2));
    OK_CU(cu.cuCtxGetCurrent(&current));
    assert_ptr_equal(current, ctx);
}

CHILD_THAT_ENDS(no_device) {
    int count = -1;
    FAILS_CU(NO_DEVICE, cu.cuInit(0));
    FAILS_CU(NO_DEVICE, cu.cuInit(0));
    FAILS_CU(NOT_INITIALIZED, cu.cuDeviceGetCount(&count));
}

TEST_WHERE(cuinit_without_devices_fails, NEEDS_SOFTGPU("hides its devices")) {
    setenv("SOFTGPU_DEVICES", "0", 1);
    int status = run_child("no_device", NULL);
    setenv("SOFTGPU_DEVICES", "2", 1);
    assert_int_equal(status, 0);
}

TEST(the_driver_version_is_that_of_the_api) {
    int version = 0;
    OK_CU(cu.cuDriverGetVersion(&version));
    assert_true(version >= 11000 && version % 10 == 0);
    if (soft)
        assert_int_equal(version, 13000);
    FAILS_CU(INVALID_VALUE, cu.cuDriverGetVersion(NULL));
}
