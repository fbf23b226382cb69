/* Green contexts: what a device can be divided into, and contexts on a part of it. */
#include "../parity.h"

#define GROUPS 80

static void see_resource(const CUdevResource *r) {
    par_see("resource", "type %d count %u least %u alignment %u", (int)r->type, r->sm.smCount,
            r->sm.minSmPartitionSize, r->sm.smCoscheduledAlignment);
}

static CUdevResource whole(void) {
    CUdevResource all;
    memset(&all, 0, sizeof all);
    SETUP(cuDeviceGetDevResource, (0, &all, CU_DEV_RESOURCE_TYPE_SM));
    return all;
}

static CUdevResourceDesc description(unsigned least) {
    CUdevResource all = whole(), part, rest;
    unsigned groups = 1;
    SETUP(cuDevSmResourceSplitByCount, (&part, &groups, &all, &rest, 0, least));
    return PAR_MADE(CUdevResourceDesc, cuDevResourceGenerateDesc, &part, 1);
}

static CUgreenCtx green_of(unsigned least) {
    CUgreenCtx green = NULL;
    SETUP(cuGreenCtxCreate, (&green, description(least), 0, CU_GREEN_CTX_DEFAULT_STREAM));
    par_name((uint64_t)(uintptr_t)green, 0, "green");
    return green;
}

SCENARIO(resources, "green/resources", par_init) {
    CUdevResource r;
    for (int type = -1; type <= 4; type++) {
        memset(&r, 0, sizeof r);
        par_note("type=%d", type);
        CALL(cuDeviceGetDevResource, "type", (0, &r, (CUdevResourceType)type));
        if (par_last() == CUDA_SUCCESS)
            see_resource(&r);
    }
    CALL(cuDeviceGetDevResource, "bad-device", (99, &r, CU_DEV_RESOURCE_TYPE_SM));
    CALL(cuDeviceGetDevResource, "null-out", (0, NULL, CU_DEV_RESOURCE_TYPE_SM));
    CALL(cuCtxGetDevResource, "no-context", (NULL, &r, CU_DEV_RESOURCE_TYPE_SM));
    SETUP(cuDevicePrimaryCtxRetain, (&par.primary, 0));
    CALL(cuCtxGetDevResource, "ok", (par.primary, &r, CU_DEV_RESOURCE_TYPE_SM));
    if (par_last() == CUDA_SUCCESS)
        see_resource(&r);
    CALL(cuCtxGetDevResource, "null-out", (par.primary, NULL, CU_DEV_RESOURCE_TYPE_SM));
    CALL(cuCtxGetDevResource, "bad-type", (par.primary, &r, (CUdevResourceType)7));
    SETUP(cuCtxSetCurrent, (par.primary));
    CALL(cuCtxGetDevResource, "current", (NULL, &r, CU_DEV_RESOURCE_TYPE_SM));
}

static void split_one(const char *cls, unsigned wanted, unsigned flags, unsigned least) {
    CUdevResource all = whole(), part[GROUPS], rest;
    unsigned groups = wanted;
    memset(part, 0, sizeof part);
    memset(&rest, 0, sizeof rest);
    par_note("groups=%u flags=%u least=%u", wanted, flags, least);
    CALLO(cuDevSmResourceSplitByCount, cls, (part, &groups, &all, &rest, flags, least),
          IO_U(groups));
    if (par_last() != CUDA_SUCCESS)
        return;
    for (unsigned i = 0; i < groups && i < 3; i++)
        see_resource(&part[i]);
    see_resource(&rest);
}

SCENARIO(splits, "green/splits", par_context) {
    static const unsigned least[] = {0,  1,  2,  4,   7,   8,   9,   15,  16,  17,
                                     32, 64, 66, 100, 128, 131, 132, 133, 1000};
    static const unsigned wanted[] = {0, 1, 2, 3, 8, 16, 33, 66};
    for (unsigned f = 0; f <= 4; f++)
        for (unsigned i = 0; i < COUNT(least); i++)
            split_one("least", 1, f, least[i]);
    for (unsigned f = 0; f <= 3; f++)
        for (unsigned i = 0; i < COUNT(wanted); i++)
            for (unsigned l = 1; l <= 16; l += 5)
                split_one("groups", wanted[i], f, l);
}

SCENARIO(split_bad, "green/split-bad", par_context) {
    CUdevResource all, part[GROUPS], rest, bad;
    all = whole();
    unsigned groups = 0;
    CALLO(cuDevSmResourceSplitByCount, "only-count", (NULL, &groups, &all, &rest, 0, 8),
          IO_U(groups));
    groups = 4;
    CALLO(cuDevSmResourceSplitByCount, "null-result", (NULL, &groups, &all, &rest, 0, 8),
          IO_U(groups));
    CALL(cuDevSmResourceSplitByCount, "null-count", (part, NULL, &all, &rest, 0, 8));
    CALLO(cuDevSmResourceSplitByCount, "null-input", (part, &groups, NULL, &rest, 0, 8),
          IO_U(groups));
    groups = 4;
    CALLO(cuDevSmResourceSplitByCount, "null-rest", (part, &groups, &all, NULL, 0, 8),
          IO_U(groups));
    memset(&bad, 0, sizeof bad);
    groups = 1;
    CALLO(cuDevSmResourceSplitByCount, "zero-input", (part, &groups, &bad, &rest, 0, 8),
          IO_U(groups));
    bad.type = CU_DEV_RESOURCE_TYPE_SM;
    bad.sm.smCount = 16;
    CALLO(cuDevSmResourceSplitByCount, "made-up-input", (part, &groups, &bad, &rest, 0, 8),
          IO_U(groups));
    groups = 2;
    SETUP(cuDevSmResourceSplitByCount, (part, &groups, &all, &rest, 0, 16));
    groups = 2;
    bad = part[0];
    CALLO(cuDevSmResourceSplitByCount, "split-again", (part, &groups, &bad, &rest, 0, 8),
          IO_U(groups));
    see_resource(&part[0]);
    see_resource(&rest);
}

SCENARIO(descriptions, "green/descriptions", par_context) {
    CUdevResource all, part[2], rest, bad;
    CUdevResourceDesc desc;
    unsigned groups = 2;
    all = whole();
    CALLO(cuDevResourceGenerateDesc, "whole", (&desc, &all, 1), OUT_C(desc));
    SETUP(cuDevSmResourceSplitByCount, (part, &groups, &all, &rest, 0, 16));
    CALLO(cuDevResourceGenerateDesc, "part", (&desc, part, 1), OUT_C(desc));
    CALLO(cuDevResourceGenerateDesc, "two-parts", (&desc, part, 2), OUT_C(desc));
    CALLO(cuDevResourceGenerateDesc, "rest", (&desc, &rest, 1), OUT_C(desc));
    CALLO(cuDevResourceGenerateDesc, "none", (&desc, part, 0), OUT_C(desc));
    CALL(cuDevResourceGenerateDesc, "null-out", (NULL, part, 1));
    CALLO(cuDevResourceGenerateDesc, "null-resources", (&desc, NULL, 1), OUT_C(desc));
    memset(&bad, 0, sizeof bad);
    CALLO(cuDevResourceGenerateDesc, "zero-resource", (&desc, &bad, 1), OUT_C(desc));
    CUdevResource twice[2] = {part[0], part[0]};
    CALLO(cuDevResourceGenerateDesc, "twice", (&desc, twice, 2), OUT_C(desc));
}

SCENARIO(life, "green/life", par_context) {
    CUgreenCtx green, other;
    CUcontext ctx, again, current;
    unsigned long long id, id_of_other, ctx_id;
    CUdevResource r;
    CUdevice device;
    unsigned flags, version;
    CUdevResourceDesc desc = description(16);
    CALLO(cuGreenCtxCreate, "ok", (&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM), OUT_H(green));
    CALLO(cuGreenCtxCreate, "same-description", (&other, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM),
          OUT_H(other));
    CALLO(cuGreenCtxGetId, "ok", (green, &id), OUT_C(id));
    CALLO(cuGreenCtxGetId, "ok", (other, &id_of_other), OUT_C(id_of_other));
    par_see("ids", "%s", id == id_of_other ? "equal" : "differ");
    CALL(cuGreenCtxGetDevResource, "ok", (green, &r, CU_DEV_RESOURCE_TYPE_SM));
    see_resource(&r);
    CALLO(cuCtxFromGreenCtx, "ok", (&ctx, green), OUT_H(ctx));
    CALLO(cuCtxFromGreenCtx, "again", (&again, green), OUT_H(again));
    CALL(cuCtxSetCurrent, "green", (ctx));
    CALLO(cuCtxGetCurrent, "green", (&current), OUT_H(current));
    CALLO(cuCtxGetDevice, "green", (&device), OUT_I(device));
    CALLO(cuCtxGetFlags, "green", (&flags), OUT_X(flags));
    CALLO(cuCtxGetId, "green", (ctx, &ctx_id), OUT_C(ctx_id));
    par_see("ids", "context and green context %s", ctx_id == id ? "equal" : "differ");
    CALLO(cuCtxGetApiVersion, "green", (ctx, &version), OUT_U(version));
    CALL(cuCtxGetDevResource, "green", (ctx, &r, CU_DEV_RESOURCE_TYPE_SM));
    see_resource(&r);
    CUexecAffinityParam affinity;
    CALLO(cuCtxGetExecAffinity, "green", (&affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT),
          OUT_U(affinity.param.smCount.val));
    CALL(cuCtxSetFlags, "green", (CU_CTX_SCHED_SPIN));
    CALL(cuCtxDestroy_v2, "green", (ctx));
    CALL(cuGreenCtxDestroy, "current", (green));
    CALLO(cuCtxGetCurrent, "green-destroyed", (&current), OUT_C(current));
    CALL(cuGreenCtxDestroy, "ok", (other));
}

SCENARIO(bad, "green/bad", par_context) {
    CUgreenCtx green;
    CUcontext ctx;
    CUdevResource r;
    unsigned long long id;
    CUdevResourceDesc desc = description(16);
    for (unsigned flags = 0; flags <= 4; flags++) {
        par_note("flags=%u", flags);
        CALLO(cuGreenCtxCreate, "flags", (&green, desc, 0, flags), OUT_C(green));
    }
    CALLO(cuGreenCtxCreate, "null-description", (&green, NULL, 0, CU_GREEN_CTX_DEFAULT_STREAM),
          OUT_C(green));
    CALLO(cuGreenCtxCreate, "bad-device", (&green, desc, 99, CU_GREEN_CTX_DEFAULT_STREAM),
          OUT_C(green));
    CALL(cuGreenCtxCreate, "null-out", (NULL, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    green = green_of(8);
    CALL(cuCtxFromGreenCtx, "null-out", (NULL, green));
    CALLO(cuCtxFromGreenCtx, "null-green", (&ctx, NULL), OUT_C(ctx));
    CALL(cuGreenCtxGetDevResource, "null-out", (green, NULL, CU_DEV_RESOURCE_TYPE_SM));
    CALL(cuGreenCtxGetDevResource, "bad-type", (green, &r, (CUdevResourceType)7));
    CALL(cuGreenCtxGetDevResource, "null-green", (NULL, &r, CU_DEV_RESOURCE_TYPE_SM));
    CALL(cuGreenCtxGetId, "null-out", (green, NULL));
    CALLO(cuGreenCtxGetId, "null-green", (NULL, &id), OUT_C(id));
    CALL(cuGreenCtxDestroy, "null", (NULL));
}

SCENARIO(streams, "green/streams", par_context) {
    static const unsigned flags[] = {0, 1, 2, 3};
    CUstream stream, plain;
    CUcontext ctx, of_stream;
    CUgreenCtx got;
    int priority;
    unsigned got_flags;
    CUgreenCtx green = green_of(16);
    SETUP(cuCtxFromGreenCtx, (&ctx, green));
    NAME(ctx);
    for (unsigned i = 0; i < COUNT(flags); i++) {
        par_note("flags=%u", flags[i]);
        CALLO(cuGreenCtxStreamCreate, "flags", (&stream, green, flags[i], 0), OUT_C(stream));
    }
    for (int p = -7; p <= 2; p += 3) {
        par_note("priority=%d", p);
        CALLO(cuGreenCtxStreamCreate, "priority", (&stream, green, CU_STREAM_NON_BLOCKING, p),
              OUT_C(stream));
        CALLO(cuStreamGetPriority, "green", (stream, &priority), OUT_I(priority));
    }
    CALLO(cuStreamGetFlags, "green", (stream, &got_flags), OUT_U(got_flags));
    CALLO(cuStreamGetGreenCtx, "green", (stream, &got), OUT_H(got));
    CALLO(cuStreamGetCtx, "green", (stream, &of_stream), OUT_H(of_stream));
    CALLO(cuStreamGetCtx_v2, "green", (stream, &of_stream, &got), OUT_H(of_stream), OUT_H(got));
    CALL(cuGreenCtxStreamCreate, "null-out", (NULL, green, CU_STREAM_NON_BLOCKING, 0));
    CALLO(cuGreenCtxStreamCreate, "null-green", (&plain, NULL, CU_STREAM_NON_BLOCKING, 0),
          OUT_C(plain));
    CUdeviceptr p = par_alloc(4096);
    CALL(cuMemsetD8Async, "green", (p, 7, 4096, stream));
    CALL(cuStreamSynchronize, "green", (stream));
    plain = par_stream();
    CALLO(cuStreamGetGreenCtx, "plain", (plain, &got), OUT_C(got));
    CALLO(cuStreamGetGreenCtx, "legacy", (CU_STREAM_LEGACY, &got), OUT_C(got));
    SETUP(cuCtxSetCurrent, (ctx));
    CALLO(cuStreamGetGreenCtx, "legacy-of-green", (CU_STREAM_LEGACY, &got), OUT_H(got));
    CALLO(cuStreamCreate, "green-current", (&plain, CU_STREAM_NON_BLOCKING), OUT_C(plain));
    if (par_last() == CUDA_SUCCESS)
        CALLO(cuStreamGetGreenCtx, "created-in-green", (plain, &got), OUT_H(got));
    CALLO(cuMemAlloc_v2, "green-current", (&p, 4096), OUT_C(p));
    CALL(cuMemsetD8Async, "legacy-of-green", (p, 7, 4096, NULL));
    CALL(cuCtxSynchronize, "green-current", ());
    CUcontext p_ctx;
    CALLO(cuPointerGetAttribute, "allocated-in-green", (&p_ctx, CU_POINTER_ATTRIBUTE_CONTEXT, p),
          OUT_H(p_ctx));
    CALL(cuMemFree_v2, "green-current", (p));
    CALL(cuGreenCtxDestroy, "streams-alive", (green));
    CALL(cuStreamSynchronize, "green-destroyed", (stream));
    CALL(cuStreamDestroy_v2, "green-destroyed", (stream));
}

SCENARIO(events, "green/events", par_context) {
    CUgreenCtx green = green_of(16);
    CUevent event = par_event(CU_EVENT_DISABLE_TIMING);
    CUevent timed = par_event(CU_EVENT_DEFAULT);
    CUstream stream = PAR_MADE(CUstream, cuGreenCtxStreamCreate, green, CU_STREAM_NON_BLOCKING, 0);
    CALL(cuGreenCtxRecordEvent, "idle", (green, event));
    CALL(cuEventQuery, "idle", (event));
    par_hold(stream);
    CALL(cuGreenCtxRecordEvent, "busy", (green, event));
    CALL(cuEventQuery, "busy", (event));
    CALL(cuGreenCtxRecordEvent, "timed", (green, timed));
    CALL(cuGreenCtxWaitEvent, "busy", (green, event));
    par_release();
    CALL(cuEventSynchronize, "released", (event));
    CALL(cuEventQuery, "released", (event));
    CALL(cuGreenCtxRecordEvent, "null-event", (green, NULL));
    CALL(cuGreenCtxRecordEvent, "null-green", (NULL, event));
    CALL(cuGreenCtxWaitEvent, "null-event", (green, NULL));
    CALL(cuGreenCtxWaitEvent, "null-green", (NULL, event));
}

SCENARIO(without_context, "green/without-context", par_init) {
    CUgreenCtx green;
    CUcontext ctx;
    unsigned flags;
    int active;
    CUdevResource part, rest;
    unsigned groups = 1;
    CUdevResource all = whole();
    CALLO(cuDevSmResourceSplitByCount, "no-context", (&part, &groups, &all, &rest, 0, 16),
          IO_U(groups));
    CUdevResourceDesc desc;
    CALLO(cuDevResourceGenerateDesc, "no-context", (&desc, &part, 1), OUT_C(desc));
    CALLO(cuGreenCtxCreate, "no-context", (&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM),
          OUT_H(green));
    CALLO(cuDevicePrimaryCtxGetState, "green-created", (0, &flags, &active), OUT_U(flags),
          OUT_I(active));
    CALLO(cuCtxFromGreenCtx, "no-context", (&ctx, green), OUT_H(ctx));
    CALL(cuGreenCtxDestroy, "no-context", (green));
    CALLO(cuDevicePrimaryCtxGetState, "green-destroyed", (0, &flags, &active), OUT_U(flags),
          OUT_I(active));
}

SCENARIO(affinity, "green/affinity", par_init) {
    static const unsigned counts[] = {0, 1, 2, 8, 66, 131, 132, 133, 1000};
    CUcontext ctx;
    int supported;
    for (int type = -1; type <= 2; type++) {
        par_note("type=%d", type);
        CALLO(cuDeviceGetExecAffinitySupport, "type", (&supported, (CUexecAffinityType)type, 0),
              OUT_I(supported));
    }
    for (unsigned i = 0; i < COUNT(counts); i++) {
        CUexecAffinityParam param = {CU_EXEC_AFFINITY_TYPE_SM_COUNT, {{counts[i]}}}, got;
        par_note("count=%u", counts[i]);
        CALLO(cuCtxCreate_v3, "affinity-count", (&ctx, &param, 1, 0, 0), OUT_C(ctx));
        if (par_last() != CUDA_SUCCESS)
            continue;
        par_note("count=%u", counts[i]);
        CALLO(cuCtxGetExecAffinity, "created-with", (&got, CU_EXEC_AFFINITY_TYPE_SM_COUNT),
              OUT_U(got.param.smCount.val));
        SETUP(cuCtxDestroy_v2, (ctx));
    }
    CUexecAffinityParam two[2] = {{CU_EXEC_AFFINITY_TYPE_SM_COUNT, {{8}}},
                                  {CU_EXEC_AFFINITY_TYPE_SM_COUNT, {{16}}}};
    CALLO(cuCtxCreate_v3, "affinity-twice", (&ctx, two, 2, 0, 0), OUT_C(ctx));
    CUctxCreateParams params = {two, 1, NULL};
    CALLO(cuCtxCreate_v4, "affinity", (&ctx, &params, 0, 0), OUT_C(ctx));
}
