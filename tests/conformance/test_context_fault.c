/* A context that a device fault has poisoned: what still answers, and how long it lasts. */
#include "harness.h"

/* As queued work that reads an address that is no more would do. */
static void poison(void) {
    assert_int_equal(soft->context_poison(CUDA_ERROR_ILLEGAL_ADDRESS), 0);
}

static int begin(void) {
    init_driver();
    return soft ? 0 : 1;
}

/* A fault lasts as long as the process. */
#define FAULT_TEST(function)                                                                       \
    CHILD_TEST_WHERE(function, NEEDS_SOFTGPU("faults are made by its controls"); NEEDS_DEVICES(2))

FAULT_TEST(later_calls_return_the_fault) {
    CUevent event;
    CUcontext current = NULL;
    CUdevice device = -1;
    size_t limit;
    unsigned flags, version;
    if (begin())
        return 1;
    poison();
    FAILS_CU(ILLEGAL_ADDRESS, cu.cuCtxSynchronize());
    FAILS_CU(ILLEGAL_ADDRESS, cu.cuEventCreate(&event, 0));
    FAILS_CU(ILLEGAL_ADDRESS, cu.cuCtxGetLimit(&limit, CU_LIMIT_STACK_SIZE));
    OK_CU(cu.cuCtxGetDevice(&device));
    assert_int_equal(device, 0);
    OK_CU(cu.cuCtxGetCurrent(&current));
    assert_ptr_equal(current, ctx);
    OK_CU(cu.cuCtxGetFlags(&flags));
    OK_CU(cu.cuCtxSetFlags(0));
    /* These two do so when the context is named, but not for the current one. */
    unsigned long long id = GOT_CU(unsigned long long, cuCtxGetId, ctx);
    OK_CU(cu.cuCtxGetApiVersion(ctx, &version));
    FAILS_CU(ILLEGAL_ADDRESS, cu.cuCtxGetId(NULL, &id));
    FAILS_CU(ILLEGAL_ADDRESS, cu.cuCtxGetApiVersion(NULL, &version));
    /* Arguments come before the fault in what does not use the context, such as pools. */
    FAILS_CU(INVALID_VALUE, cu.cuMemPoolDestroy(NULL));
    FAILS_CU(INVALID_VALUE, cu.cuCtxCreate_v2(NULL, 0, dev));
    OK_CU(cu.cuDevicePrimaryCtxRetain(&current, dev));
    return 0;
}

/* Seen on H200: the reset succeeds, and the next retain answers the fault again. */
FAULT_TEST(a_reset_does_not_repair_the_context) {
    CUcontext again = NULL;
    int active = 77;
    unsigned flags;
    if (begin())
        return 1;
    poison();
    OK_CU(cu.cuDevicePrimaryCtxReset_v2(dev));
    OK_CU(cu.cuDevicePrimaryCtxGetState(dev, &flags, &active));
    assert_int_equal(active, 0);
    FAILS_CU(CONTEXT_IS_DESTROYED, cu.cuCtxSynchronize());
    FAILS_CU(ILLEGAL_ADDRESS, cu.cuDevicePrimaryCtxRetain(&again, dev));
    assert_null(again);
    OK_CU(cu.cuCtxSetCurrent(NULL));
    FAILS_CU(ILLEGAL_ADDRESS, cu.cuCtxCreate_v2(&again, 0, dev));
    assert_null(again);
    return 0;
}

FAULT_TEST(the_first_fault_is_kept) {
    if (begin())
        return 1;
    poison();
    assert_int_equal(soft->context_poison(CUDA_ERROR_LAUNCH_FAILED), 0);
    FAILS_CU(ILLEGAL_ADDRESS, cu.cuCtxSynchronize());
    return 0;
}

FAULT_TEST(contexts_of_other_devices_are_unaffected) {
    if (begin())
        return 1;
    poison();
    OK_CU(cu.cuCtxSetCurrent(NULL));
    CUcontext other = MADE_CU(CUcontext, cuCtxCreate_v2, 0, 1);
    OK_CU(cu.cuCtxSynchronize());
    OK_CU(cu.cuCtxDestroy_v2(other));
    return 0;
}

/* Seen on H200: a fault in one context of a device is one in all, and outlives the one. */
FAULT_TEST(a_fault_affects_every_context_of_the_device) {
    CUcontext other, current = NULL;
    if (begin())
        return 1;
    OK_CU(cu.cuCtxCreate_v2(&other, 0, dev));
    poison();
    FAILS_CU(ILLEGAL_ADDRESS, cu.cuCtxSynchronize());
    OK_CU(cu.cuCtxDestroy_v2(other));
    OK_CU(cu.cuCtxGetCurrent(&current));
    assert_ptr_equal(current, ctx);
    FAILS_CU(ILLEGAL_ADDRESS, cu.cuCtxSynchronize());
    return 0;
}
