/* What a stream is, and the calls that ask it. */
#include "harness.h"

TEST(flags_and_priority_are_kept) {
    CUstream other;
    unsigned flags = 99;
    int priority = 99, least, greatest;
    OK_CU(cu.cuCtxGetStreamPriorityRange(&least, &greatest));
    CUstream blocking = new_blocking_stream();
    OK_CU(cu.cuStreamCreateWithPriority(&other, CU_STREAM_NON_BLOCKING, greatest));
    OK_CU(cu.cuStreamGetFlags(blocking, &flags));
    assert_int_equal(flags, CU_STREAM_DEFAULT);
    OK_CU(cu.cuStreamGetFlags(other, &flags));
    assert_int_equal(flags, CU_STREAM_NON_BLOCKING);
    OK_CU(cu.cuStreamGetPriority(blocking, &priority));
    assert_int_equal(priority, 0);
    OK_CU(cu.cuStreamGetPriority(other, &priority));
    assert_int_equal(priority, greatest);
    OK_CU(cu.cuStreamDestroy_v2(other));
}

TEST(a_priority_out_of_range_is_clamped) {
    CUstream high, low;
    int priority, least, greatest;
    OK_CU(cu.cuCtxGetStreamPriorityRange(&least, &greatest));
    OK_CU(cu.cuStreamCreateWithPriority(&high, CU_STREAM_DEFAULT, greatest - 100));
    OK_CU(cu.cuStreamCreateWithPriority(&low, CU_STREAM_DEFAULT, least + 100));
    OK_CU(cu.cuStreamGetPriority(high, &priority));
    assert_int_equal(priority, greatest);
    OK_CU(cu.cuStreamGetPriority(low, &priority));
    assert_int_equal(priority, least);
    DESTROY_CU(high, low);
}

TEST(a_stream_reports_its_context_and_device) {
    CUgreenCtx green = (CUgreenCtx)(uintptr_t)1;
    CUstream stream = new_blocking_stream();
    CUcontext context = GOT_CU(CUcontext, cuStreamGetCtx, stream);
    assert_ptr_equal(context, ctx);
    if (gpumem_driver_has(driver, GPUMEM_FN_cuStreamGetCtx_v2)) {
        context = NULL;
        OK_CU(cu.cuStreamGetCtx_v2(stream, &context, &green));
        assert_ptr_equal(context, ctx);
        assert_null(green);
    }
    if (gpumem_driver_has(driver, GPUMEM_FN_cuStreamGetGreenCtx)) {
        green = (CUgreenCtx)(uintptr_t)1;
        OK_CU(cu.cuStreamGetGreenCtx(stream, &green));
        assert_null(green);
    }
    if (gpumem_driver_has(driver, GPUMEM_FN_cuStreamGetGreenCtx)) {
        green = (CUgreenCtx)(uintptr_t)1;
        OK_CU(cu.cuStreamGetGreenCtx(stream, &green));
        assert_null(green);
    }
    context = NULL;
    OK_CU(cu.cuStreamGetCtx(NULL, &context));
    assert_ptr_equal(context, ctx);
    if (gpumem_driver_has(driver, GPUMEM_FN_cuStreamGetDevice)) {
        CUdevice device = -1;
        OK_CU(cu.cuStreamGetDevice(stream, &device));
        assert_int_equal(device, dev);
    }
}

TEST(stream_ids_are_unique) {
    CUstream a = new_blocking_stream(), b = new_blocking_stream();
    unsigned long long first = GOT_CU(unsigned long long, cuStreamGetId, a);
    unsigned long long second = GOT_CU(unsigned long long, cuStreamGetId, b);
    unsigned long long again = GOT_CU(unsigned long long, cuStreamGetId, a);
    unsigned long long legacy = GOT_CU(unsigned long long, cuStreamGetId, CU_STREAM_LEGACY);
    assert_int_equal(first, again);
    assert_int_not_equal(first, second);
    assert_int_not_equal(first, legacy);
}

TEST(a_query_reports_whether_work_is_pending) {
    CUstream stream = new_stream();
    OK_CU(cu.cuStreamQuery(stream));
    struct gate gate = hold(stream);
    FAILS_CU(NOT_READY, cu.cuStreamQuery(stream));
    gate_drain(&gate, stream);
    OK_CU(cu.cuStreamQuery(stream));
}

/* Nobody waits: polling alone must come to an end. */
TEST(polling_a_stream_makes_progress) {
    CUstream stream = new_stream();
    CUdeviceptr bytes = new_memory(4096);
    OK_CU(cu.cuMemsetD8Async(bytes, 0x5a, 4096, stream));
    while (cu.cuStreamQuery(stream) == CUDA_ERROR_NOT_READY)
        ;
    assert_int_equal(byte_at(bytes + 4095), 0x5a);
}

TEST(a_destroyed_stream_finishes_its_work) {
    CUdeviceptr bytes = new_memory(4096);
    set_bytes(bytes, 1, 4096);
    CUstream stream = MADE_CU(CUstream, cuStreamCreate, CU_STREAM_NON_BLOCKING);
    struct gate gate = hold(stream);
    OK_CU(cu.cuMemsetD8Async(bytes, 2, 4096, stream));
    OK_CU(cu.cuStreamDestroy_v2(stream));
    gate_release(&gate);
    OK_CU(cu.cuCtxSynchronize());
    assert_int_equal(byte_at(bytes), 2);
}

TEST(a_destroyed_stream_is_an_invalid_handle) {
    NEEDS_SOFTGPU("a dangling stream handle is undefined behaviour elsewhere");
    CUstream stream = MADE_CU(CUstream, cuStreamCreate, CU_STREAM_DEFAULT);
    OK_CU(cu.cuStreamDestroy_v2(stream));
    assert_int_not_equal(cu.cuStreamQuery(stream), CUDA_SUCCESS);
    assert_int_not_equal(cu.cuStreamSynchronize(stream), CUDA_SUCCESS);
    assert_int_not_equal(cu.cuStreamDestroy_v2(stream), CUDA_SUCCESS);
}

TEST(the_first_abi_of_stream_destruction_works) {
    CUstream stream = MADE_CU(CUstream, cuStreamCreate, CU_STREAM_DEFAULT);
    OK_CU(cu.cuStreamDestroy(stream));
}

TEST(invalid_arguments_are_refused) {
    CUstream stream = NULL;
    FAILS_CU(INVALID_VALUE, cu.cuStreamCreate(&stream, 0x100));
    FAILS_CU(INVALID_VALUE, cu.cuStreamCreateWithPriority(&stream, 0x100, 0));
    assert_null(stream);
}

/* The output is written before the context is looked for, and not taken back. */
TEST(a_stream_created_without_a_context_is_an_invalid_handle) {
    CUstream stream = NULL, other = NULL;
    OK_CU(cu.cuCtxSetCurrent(NULL));
    FAILS_CU(INVALID_CONTEXT, cu.cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    FAILS_CU(INVALID_CONTEXT, cu.cuStreamCreateWithPriority(&other, CU_STREAM_DEFAULT, 0));
    OK_CU(cu.cuCtxSetCurrent(ctx));
    assert_non_null(stream);
    assert_non_null(other);
    if (soft) {
        FAILS_CU(INVALID_HANDLE, cu.cuStreamQuery(stream));
        FAILS_CU(INVALID_HANDLE, cu.cuStreamSynchronize(stream));
        FAILS_CU(INVALID_HANDLE, cu.cuStreamDestroy_v2(stream));
    }
}

/* ---- Attributes ----------------------------------------------------------------------------- */

TEST(stream_attributes_are_kept_and_copied) {
    CUstreamAttrValue value = {.syncPolicy = CU_SYNC_POLICY_BLOCKING_SYNC};
    CUstream from = new_blocking_stream(), to = new_blocking_stream();
    OK_CU(cu.cuStreamSetAttribute(from, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
    value.syncPolicy = CU_SYNC_POLICY_SPIN;
    OK_CU(cu.cuStreamGetAttribute(from, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
    assert_int_equal(value.syncPolicy, CU_SYNC_POLICY_BLOCKING_SYNC);
    OK_CU(cu.cuStreamCopyAttributes(to, from));
    value.syncPolicy = CU_SYNC_POLICY_SPIN;
    OK_CU(cu.cuStreamGetAttribute(to, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
    assert_int_equal(value.syncPolicy, CU_SYNC_POLICY_BLOCKING_SYNC);
}

TEST(the_priority_is_read_as_an_attribute) {
    CUstreamAttrValue value = {.priority = 99};
    int least, greatest;
    OK_CU(cu.cuCtxGetStreamPriorityRange(&least, &greatest));
    CUstream stream = MADE_CU(CUstream, cuStreamCreateWithPriority, CU_STREAM_DEFAULT, greatest);
    OK_CU(cu.cuStreamGetAttribute(stream, CU_STREAM_ATTRIBUTE_PRIORITY, &value));
    assert_int_equal(value.priority, greatest);
    FAILS_CU(INVALID_VALUE,
             cu.cuStreamGetAttribute(stream, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
    OK_CU(cu.cuStreamDestroy_v2(stream));
}

/* ---- Capture: what can be asked of a stream that does not ----------------------------------- */

TEST(a_stream_is_initially_not_capturing) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    CUstream stream = new_blocking_stream();
    OK_CU(cu.cuStreamIsCapturing(stream, &status));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_NONE);
    status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    OK_CU(cu.cuStreamGetCaptureInfo(stream, &status, NULL));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_NONE);
    status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    OK_CU(cu.cuStreamGetCaptureInfo_v2(stream, &status, NULL, NULL, NULL, NULL));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_NONE);
    if (gpumem_driver_has(driver, GPUMEM_FN_cuStreamGetCaptureInfo_v3)) {
        status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
        OK_CU(cu.cuStreamGetCaptureInfo_v3(stream, &status, NULL, NULL, NULL, NULL, NULL));
        assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_NONE);
    }
}

TEST(the_capture_mode_belongs_to_the_thread) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    OK_CU(cu.cuThreadExchangeStreamCaptureMode(&mode));
    assert_int_equal(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
    OK_CU(cu.cuThreadExchangeStreamCaptureMode(&mode));
    assert_int_equal(mode, CU_STREAM_CAPTURE_MODE_RELAXED);
    OK_CU(cu.cuThreadExchangeStreamCaptureMode(&mode));
    assert_int_equal(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
    /* No value is refused. */
    mode = (CUstreamCaptureMode)7;
    OK_CU(cu.cuThreadExchangeStreamCaptureMode(&mode));
    mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    OK_CU(cu.cuThreadExchangeStreamCaptureMode(&mode));
}

/* Seen on H200: a priority out of range is taken for the nearest, other values are refused. */
TEST(invalid_stream_attributes_are_refused) {
    CUstreamAttrValue value;
    int priority = 77, window = device_attribute(CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE),
        domains = device_attribute(CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT);
    CUstream stream = new_stream();
    memset(&value, 0, sizeof value);
    value.priority = -100;
    OK_CU(cu.cuStreamSetAttribute(stream, CU_STREAM_ATTRIBUTE_PRIORITY, &value));
    OK_CU(cu.cuStreamGetPriority(stream, &priority));
    int least, greatest;
    OK_CU(cu.cuCtxGetStreamPriorityRange(&least, &greatest));
    assert_int_equal(priority, greatest);
    memset(&value, 0, sizeof value);
    value.memSyncDomainMap.default_ = (unsigned char)domains;
    FAILS_CU(INVALID_VALUE,
             cu.cuStreamSetAttribute(stream, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, &value));
    value.memSyncDomainMap.default_ = (unsigned char)(domains - 1);
    OK_CU(cu.cuStreamSetAttribute(stream, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, &value));
    memset(&value, 0, sizeof value);
    OK_CU(cu.cuStreamGetAttribute(stream, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, &value));
    assert_int_equal(value.memSyncDomainMap.default_, domains - 1);
    memset(&value, 0, sizeof value);
    value.accessPolicyWindow.num_bytes = (size_t)window + 1;
    FAILS_CU(INVALID_VALUE,
             cu.cuStreamSetAttribute(stream, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value));
    value.accessPolicyWindow.num_bytes = (size_t)window;
    OK_CU(cu.cuStreamSetAttribute(stream, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value));
}
