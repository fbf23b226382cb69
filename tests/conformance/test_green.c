/* Green contexts: dividing a device, and contexts that have a part of it. */
#include "harness.h"

#include <pthread.h>
#include <sched.h>

static CUdevResource whole(void) {
    CUdevResource all;
    memset(&all, 0xff, sizeof all);
    OK_CU(cu.cuDeviceGetDevResource(dev, &all, CU_DEV_RESOURCE_TYPE_SM));
    return all;
}

/* A description of the least part of the device, and what is left. */
static CUdevResourceDesc least(CUdevResource *part) {
    CUdevResource all = whole();
    unsigned groups = 1;
    OK_CU(cu.cuDevSmResourceSplitByCount(part, &groups, &all, NULL, 0, 0));
    assert_int_equal(groups, 1);
    CUdevResourceDesc desc = MADE_CU(CUdevResourceDesc, cuDevResourceGenerateDesc, part, 1);
    assert_non_null(desc);
    return desc;
}

static CUgreenCtx make_green(void) {
    CUdevResource part;
    CUgreenCtx green = NULL;
    OK_CU(cu.cuGreenCtxCreate(&green, least(&part), dev, CU_GREEN_CTX_DEFAULT_STREAM));
    assert_non_null(green);
    return green;
}

static CUcontext context_of(CUgreenCtx green) {
    CUcontext context = MADE_CU(CUcontext, cuCtxFromGreenCtx, green);
    assert_non_null(context);
    return context;
}

/* ---- Resources ------------------------------------------------------------------------------- */

TEST(a_device_has_all_its_multiprocessors) {
    CUdevResource all = whole(), of_context;
    assert_int_equal(all.type, CU_DEV_RESOURCE_TYPE_SM);
    assert_int_equal(all.sm.smCount, device_attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
    memset(&of_context, 0xff, sizeof of_context);
    OK_CU(cu.cuCtxGetDevResource(ctx, &of_context, CU_DEV_RESOURCE_TYPE_SM));
    assert_int_equal(of_context.type, CU_DEV_RESOURCE_TYPE_SM);
    assert_int_equal(of_context.sm.smCount, all.sm.smCount);
    FAILS_CU(INVALID_CONTEXT, cu.cuCtxGetDevResource(NULL, &of_context, CU_DEV_RESOURCE_TYPE_SM));
    FAILS_CU(INVALID_RESOURCE_TYPE,
             cu.cuCtxGetDevResource(ctx, &of_context, CU_DEV_RESOURCE_TYPE_INVALID));
    FAILS_CU(INVALID_RESOURCE_TYPE, cu.cuDeviceGetDevResource(dev, &all, (CUdevResourceType)7));
}

/* What a split gives adds up, and a simulated one says how much there will be. */
TEST(splits_of_multiprocessors_add_up) {
    CUdevResource all = whole(), part[128], rest;
    for (unsigned flags = 0; flags < 3; flags++) {
        for (unsigned wanted = 1; wanted <= all.sm.smCount; wanted += 5) {
            unsigned most = 0, groups = COUNT(part), sum = 0;
            OK_CU(cu.cuDevSmResourceSplitByCount(NULL, &most, &all, NULL, flags, wanted));
            assert_in_range(most, 1, all.sm.smCount);
            memset(part, 0xff, sizeof part);
            memset(&rest, 0xff, sizeof rest);
            OK_CU(cu.cuDevSmResourceSplitByCount(part, &groups, &all, &rest, flags, wanted));
            assert_int_equal(groups, most);
            for (unsigned i = 0; i < groups; i++) {
                assert_int_equal(part[i].type, CU_DEV_RESOURCE_TYPE_SM);
                assert_true(part[i].sm.smCount >= wanted);
                assert_int_equal(part[i].sm.smCount, part[0].sm.smCount);
                sum += part[i].sm.smCount;
            }
            if (sum == all.sm.smCount)
                assert_int_equal(rest.type, CU_DEV_RESOURCE_TYPE_INVALID);
            else
                assert_int_equal(sum + rest.sm.smCount, all.sm.smCount);
        }
    }
}

TEST(invalid_splits_are_refused) {
    CUdevResource all = whole(), part[2], rest, bad;
    unsigned groups = 0;
    FAILS_CU(INVALID_VALUE, cu.cuDevSmResourceSplitByCount(part, &groups, &all, &rest, 0, 8));
    groups = 2;
    FAILS_CU(INVALID_RESOURCE_CONFIGURATION,
             cu.cuDevSmResourceSplitByCount(part, &groups, &all, &rest, 0, all.sm.smCount + 1));
    memset(&bad, 0, sizeof bad);
    FAILS_CU(INVALID_RESOURCE_TYPE,
             cu.cuDevSmResourceSplitByCount(part, &groups, &bad, &rest, 0, 8));
    bad.type = CU_DEV_RESOURCE_TYPE_SM;
    bad.sm.smCount = 16;
    FAILS_CU(INVALID_RESOURCE_CONFIGURATION,
             cu.cuDevSmResourceSplitByCount(part, &groups, &bad, &rest, 0, 8));
    /* What a split gave cannot be split again. */
    OK_CU(cu.cuDevSmResourceSplitByCount(part, &groups, &all, &rest, 0, 16));
    bad = part[0];
    FAILS_CU(INVALID_RESOURCE_CONFIGURATION,
             cu.cuDevSmResourceSplitByCount(part, &groups, &bad, &rest, 0, 8));
}

TEST(resource_descriptions_accept_results_of_splits) {
    CUdevResource all = whole(), part[2], rest, bad;
    CUgreenCtx green = NULL;
    unsigned groups = 2;
    OK_CU(cu.cuDevSmResourceSplitByCount(part, &groups, &all, &rest, 0, 0));
    assert_int_equal(groups, 2);
    if (rest.type != CU_DEV_RESOURCE_TYPE_SM)
        SKIP("two groups are all of the multiprocessors: there is no rest");
    CUdevResourceDesc desc = MADE_CU(CUdevResourceDesc, cuDevResourceGenerateDesc, part, 2);
    OK_CU(cu.cuGreenCtxCreate(&green, desc, dev, CU_GREEN_CTX_DEFAULT_STREAM));
    OK_CU(cu.cuGreenCtxGetDevResource(green, &bad, CU_DEV_RESOURCE_TYPE_SM));
    assert_int_equal(bad.sm.smCount, part[0].sm.smCount + part[1].sm.smCount);
    OK_CU(cu.cuGreenCtxDestroy(green));
    OK_CU(cu.cuDevResourceGenerateDesc(&desc, &rest, 1));
    OK_CU(cu.cuDevResourceGenerateDesc(&desc, &all, 1));
    memset(&bad, 0, sizeof bad);
    FAILS_CU(INVALID_RESOURCE_TYPE, cu.cuDevResourceGenerateDesc(&desc, &bad, 1));
}

/* Where hardware follows a pointer that leads nowhere. */
TEST_WHERE(forged_resources_are_refused, NEEDS_SOFTGPU("hardware crashes")) {
    CUdevResource part, all = whole(), changed = all;
    CUdevResourceDesc desc = least(&part);
    CUgreenCtx green = NULL;
    CUcontext context;
    FAILS_CU(INVALID_VALUE, cu.cuDevResourceGenerateDesc(&desc, &part, 0));
    changed.sm.smCount--;
    FAILS_CU(INVALID_RESOURCE_CONFIGURATION, cu.cuDevResourceGenerateDesc(&desc, &changed, 1));
    changed = all;
    changed._internal_padding[20] ^= 1;
    FAILS_CU(INVALID_RESOURCE_CONFIGURATION, cu.cuDevResourceGenerateDesc(&desc, &changed, 1));
    FAILS_CU(INVALID_VALUE, cu.cuGreenCtxCreate(&green, (CUdevResourceDesc)&part, dev,
                                                CU_GREEN_CTX_DEFAULT_STREAM));
    FAILS_CU(INVALID_CONTEXT, cu.cuCtxFromGreenCtx(&context, (CUgreenCtx)ctx));
    FAILS_CU(INVALID_CONTEXT, cu.cuGreenCtxDestroy((CUgreenCtx)ctx));
    green = make_green();
    OK_CU(cu.cuGreenCtxDestroy(green));
    FAILS_CU(CONTEXT_IS_DESTROYED, cu.cuGreenCtxDestroy(green));
    FAILS_CU(CONTEXT_IS_DESTROYED, cu.cuCtxFromGreenCtx(&context, green));
}

/* ---- Life ------------------------------------------------------------------------------------ */

TEST(a_green_context_reports_its_part_of_the_device) {
    CUdevResource part, got;
    CUdevResourceDesc desc = least(&part);
    CUgreenCtx green[2] = {NULL, NULL};
    unsigned long long id[2] = {0, 0}, context_id = 0;
    CUcontext current = NULL;
    CUexecAffinityParam affinity;
    CUdevice device = -1;
    for (int i = 0; i < 2; i++) {
        OK_CU(cu.cuGreenCtxCreate(&green[i], desc, dev, CU_GREEN_CTX_DEFAULT_STREAM));
        OK_CU(cu.cuGreenCtxGetId(green[i], &id[i]));
    }
    assert_true(id[0] != id[1]);
    OK_CU(cu.cuGreenCtxGetDevResource(green[0], &got, CU_DEV_RESOURCE_TYPE_SM));
    assert_int_equal(got.sm.smCount, part.sm.smCount);
    CUcontext context = context_of(green[0]);
    assert_ptr_not_equal(context, ctx);
    OK_CU(cu.cuCtxSetCurrent(context));
    OK_CU(cu.cuCtxGetCurrent(&current));
    assert_ptr_equal(current, context);
    OK_CU(cu.cuCtxGetDevice(&device));
    assert_int_equal(device, dev);
    OK_CU(cu.cuCtxGetId(context, &context_id));
    assert_true(context_id == id[0]);
    memset(&got, 0, sizeof got);
    OK_CU(cu.cuCtxGetDevResource(context, &got, CU_DEV_RESOURCE_TYPE_SM));
    assert_int_equal(got.sm.smCount, part.sm.smCount);
    FAILS_CU(INVALID_CONTEXT, cu.cuCtxGetExecAffinity(&affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT));
    FAILS_CU(INVALID_CONTEXT, cu.cuCtxDestroy_v2(context));
    OK_CU(cu.cuGreenCtxDestroy(green[0]));
    FAILS_CU(CONTEXT_IS_DESTROYED, cu.cuCtxSynchronize());
    OK_CU(cu.cuCtxSetCurrent(ctx));
    OK_CU(cu.cuGreenCtxDestroy(green[1]));
}

TEST(invalid_green_contexts_are_refused) {
    CUdevResource part;
    CUdevResourceDesc desc = least(&part);
    CUgreenCtx green = NULL;
    for (unsigned flags = 0; flags <= 4; flags++)
        if (flags != CU_GREEN_CTX_DEFAULT_STREAM)
            FAILS_CU(INVALID_VALUE, cu.cuGreenCtxCreate(&green, desc, dev, flags));
    FAILS_CU(INVALID_DEVICE, cu.cuGreenCtxCreate(&green, desc, 99, CU_GREEN_CTX_DEFAULT_STREAM));
    assert_null(green);
    green = make_green();
    OK_CU(cu.cuGreenCtxDestroy(green));
}

static int active(void) {
    unsigned flags;
    int state = -1;
    OK_CU(cu.cuDevicePrimaryCtxGetState(0, &flags, &state));
    return state;
}

/* The first green context makes the primary one, the last one ends it. */
CHILD_TEST(a_green_context_keeps_the_primary_context_alive) {
    OK_CU(cu.cuInit(0));
    assert_int_equal(active(), 0);
    CUgreenCtx one = make_green(), two = make_green();
    assert_int_equal(active(), 1);
    OK_CU(cu.cuGreenCtxDestroy(one));
    assert_int_equal(active(), 1);
    OK_CU(cu.cuGreenCtxDestroy(two));
    assert_int_equal(active(), 0);
    return 0;
}

/* softgpu's answer to what hardware leaves undefined: the part ends, its retain stays. */
CHILD_TEST_WHERE(resetting_the_primary_context_destroys_its_green_contexts,
                 NEEDS_SOFTGPU("not defined")) {
    OK_CU(cu.cuInit(0));
    CUgreenCtx green = make_green();
    CUcontext context = context_of(green);
    CUstream stream = MADE_CU(CUstream, cuGreenCtxStreamCreate, green, CU_STREAM_NON_BLOCKING, 0);
    OK_CU(cu.cuDevicePrimaryCtxReset_v2(0));
    OK_CU(cu.cuCtxSetCurrent(context));
    FAILS_CU(CONTEXT_IS_DESTROYED, cu.cuCtxSynchronize());
    FAILS_CU(CONTEXT_IS_DESTROYED,
             cu.cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
    OK_CU(cu.cuGreenCtxDestroy(green));
    FAILS_CU(INVALID_CONTEXT, cu.cuDevicePrimaryCtxRelease_v2(0));
    return 0;
}

/* ---- Ended by two threads at once ---- */

struct ends {
    CUgreenCtx green;
    CUresult destroyed, reset;
};

static void *destroy_green(void *argument) {
    struct ends *ends = argument;
    ends->destroyed = cu.cuGreenCtxDestroy(ends->green);
    return NULL;
}

static void *reset_primary(void *argument) {
    struct ends *ends = argument;
    ends->reset = cu.cuDevicePrimaryCtxReset_v2(dev);
    return NULL;
}

/* The memory that work of a part uses is the primary context's: it is there until the part has
 * ended, and a set that finds it gone would leave the device with a fault. */
CHILD_TEST_WHERE(a_reset_waits_for_work_of_green_contexts, NEEDS_SOFTGPU("resets the device")) {
    CUstream stream;
    CUcontext own, again;
    struct gate gate;
    struct ends ends = {.destroyed = CUDA_ERROR_UNKNOWN, .reset = CUDA_ERROR_UNKNOWN};
    pthread_t destroying, resetting;
    unsigned long long id;
    init_driver();
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 1 << 20);
    ends.green = make_green();
    OK_CU(cu.cuGreenCtxStreamCreate(&stream, ends.green, CU_STREAM_NON_BLOCKING, 0));
    OK_CU(cu.cuCtxCreate_v2(&own, 0, dev)); /* keeps the gate */
    gate_make(&gate);
    gate_hold(&gate, stream);
    OK_CU(cu.cuMemsetD8Async(p, 1, 1 << 20, stream));
    pthread_create(&destroying, NULL, destroy_green, &ends);
    while (cu.cuGreenCtxGetId(ends.green, &id) == CUDA_SUCCESS)
        sched_yield();
    pthread_create(&resetting, NULL, reset_primary, &ends);
    while (active())
        sched_yield();
    gate_release(&gate);
    pthread_join(destroying, NULL);
    pthread_join(resetting, NULL);
    OK_CU(ends.destroyed);
    OK_CU(ends.reset);
    OK_CU(cu.cuDevicePrimaryCtxRetain(&again, dev));
    OK_CU(cu.cuDevicePrimaryCtxRelease_v2(dev));
    return 0;
}

TEST(memory_of_a_green_context_belongs_to_the_primary_context) {
    CUgreenCtx green = make_green();
    unsigned char bytes[64];
    OK_CU(cu.cuCtxSetCurrent(context_of(green)));
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemAlloc_v2, sizeof bytes);
    CUcontext owner = MADE_CU(CUcontext, cuPointerGetAttribute, CU_POINTER_ATTRIBUTE_CONTEXT, p);
    assert_ptr_equal(owner, ctx);
    set_bytes(p, 0x5a, sizeof bytes);
    CUevent event = new_event();
    OK_CU(cu.cuCtxSetCurrent(ctx));
    OK_CU(cu.cuGreenCtxDestroy(green));
    /* It outlives the green context. */
    memset(bytes, 0, sizeof bytes);
    OK_CU(cu.cuMemcpyDtoH_v2(bytes, p, sizeof bytes));
    for (unsigned i = 0; i < sizeof bytes; i++)
        assert_int_equal(bytes[i], 0x5a);
    OK_CU(cu.cuMemFree_v2(p));
    if (soft) { /* where an event made in a green context belongs has not been asked of hardware */
        OK_CU(cu.cuEventRecord(event, CU_STREAM_LEGACY));
        OK_CU(cu.cuEventSynchronize(event));
    }
}

/* ---- Streams and events ---------------------------------------------------------------------- */

TEST(streams_of_a_green_context_report_it) {
    CUgreenCtx green = make_green(), got = NULL;
    CUcontext context = context_of(green), of = NULL;
    CUstream stream = NULL, plain = NULL;
    int priority = 1;
    OK_CU(cu.cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, -100));
    OK_CU(cu.cuStreamGetPriority(stream, &priority));
    assert_int_equal(priority, -5);
    unsigned flags = GOT_CU(unsigned, cuStreamGetFlags, stream);
    assert_int_equal(flags, CU_STREAM_NON_BLOCKING);
    OK_CU(cu.cuStreamGetGreenCtx(stream, &got));
    assert_ptr_equal(got, green);
    OK_CU(cu.cuStreamGetCtx(stream, &of));
    assert_ptr_equal(of, context);
    got = NULL;
    OK_CU(cu.cuStreamGetCtx_v2(stream, &of, &got));
    assert_ptr_equal(of, ctx);
    assert_ptr_equal(got, green);
    OK_CU(cu.cuStreamCreate(&plain, CU_STREAM_NON_BLOCKING));
    OK_CU(cu.cuStreamGetGreenCtx(plain, &got));
    assert_null(got);
    OK_CU(cu.cuStreamDestroy_v2(plain));
    OK_CU(cu.cuCtxSetCurrent(context));
    OK_CU(cu.cuStreamGetGreenCtx(CU_STREAM_LEGACY, &got));
    assert_ptr_equal(got, green);
    OK_CU(cu.cuStreamCreate(&plain, CU_STREAM_NON_BLOCKING));
    got = NULL;
    OK_CU(cu.cuStreamGetGreenCtx(plain, &got));
    assert_ptr_equal(got, green);
    OK_CU(cu.cuCtxSetCurrent(ctx));
    plain = NULL;
    FAILS_CU(INVALID_VALUE, cu.cuGreenCtxStreamCreate(&plain, green, 0, 0));
    assert_non_null(plain); /* and leads nowhere: the output is written before the look at flags */
    plain = NULL;
    FAILS_CU(INVALID_CONTEXT, cu.cuGreenCtxStreamCreate(&plain, NULL, CU_STREAM_NON_BLOCKING, 0));
    assert_non_null(plain);
    OK_CU(cu.cuGreenCtxDestroy(green));
}

TEST(streams_of_a_green_context_end_with_it) {
    CUgreenCtx green = make_green();
    CUcontext context = context_of(green);
    unsigned char bytes[256];
    CUdeviceptr p = new_memory(sizeof bytes);
    CUstream stream = MADE_CU(CUstream, cuGreenCtxStreamCreate, green, CU_STREAM_NON_BLOCKING, 0);
    OK_CU(cu.cuMemsetD8Async(p, 7, sizeof bytes, stream));
    OK_CU(cu.cuStreamSynchronize(stream));
    OK_CU(cu.cuMemcpyDtoH_v2(bytes, p, sizeof bytes));
    assert_int_equal(bytes[255], 7);
    /* Destroying waits for what is queued, as for any context. */
    OK_CU(cu.cuMemsetD8Async(p, 9, sizeof bytes, stream));
    OK_CU(cu.cuCtxSetCurrent(context));
    OK_CU(cu.cuGreenCtxDestroy(green));
    FAILS_CU(CONTEXT_IS_DESTROYED, cu.cuStreamSynchronize(stream));
    FAILS_CU(CONTEXT_IS_DESTROYED, cu.cuStreamDestroy_v2(stream));
    OK_CU(cu.cuCtxSetCurrent(ctx));
    OK_CU(cu.cuMemcpyDtoH_v2(bytes, p, sizeof bytes));
    assert_int_equal(bytes[0], 9);
}

TEST(an_event_can_stand_for_all_work_of_a_green_context) {
    CUgreenCtx green = make_green();
    CUdeviceptr p = new_memory(256);
    CUevent event = new_event(), of_plain = new_event();
    CUstream stream = MADE_CU(CUstream, cuGreenCtxStreamCreate, green, CU_STREAM_NON_BLOCKING, 0);
    struct gate gate = hold(stream);
    OK_CU(cu.cuGreenCtxRecordEvent(green, event));
    FAILS_CU(NOT_READY, cu.cuEventQuery(event));
    gate_release(&gate);
    OK_CU(cu.cuEventSynchronize(event));

    CUstream plain = new_stream();
    gate_hold(&gate, plain);
    OK_CU(cu.cuEventRecord(of_plain, plain));
    OK_CU(cu.cuGreenCtxWaitEvent(green, of_plain));
    OK_CU(cu.cuMemsetD8Async(p, 0, 256, stream));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(stream));
    gate_drain(&gate, stream);

    OK_CU(cu.cuGreenCtxDestroy(green));
}

/* As documented: the primary context as a whole includes its parts. */
TEST(the_primary_context_waits_for_its_green_contexts) {
    CUgreenCtx green = make_green();
    CUdeviceptr p = new_memory(256);
    CUevent event = new_event();
    CUstream stream = MADE_CU(CUstream, cuGreenCtxStreamCreate, green, CU_STREAM_NON_BLOCKING, 0);
    struct gate gate = hold(stream);
    OK_CU(cu.cuCtxRecordEvent(ctx, event));
    FAILS_CU(NOT_READY, cu.cuEventQuery(event));
    gate_release(&gate);
    OK_CU(cu.cuMemsetD8Async(p, 1, 256, stream));
    OK_CU(cu.cuCtxSynchronize());
    OK_CU(cu.cuEventQuery(event));
    OK_CU(cu.cuStreamQuery(stream));
    OK_CU(cu.cuGreenCtxDestroy(green));
}

TEST_WHERE(green_contexts_are_listed_in_state_and_leaks, NEEDS_SOFTGPU("reports")) {
    CUgreenCtx green = make_green();
    char *state_text = soft->state_dump(), *leaks = soft->leak_report();
    assert_non_null(strstr(state_text, " green uses "));
    assert_non_null(strstr(leaks, "green on device 0, not destroyed"));
    soft->free_text(state_text);
    soft->free_text(leaks);
    OK_CU(cu.cuGreenCtxDestroy(green));
}
