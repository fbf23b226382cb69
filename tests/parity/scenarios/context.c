/* Contexts: primary and created, the stack of each thread, flags and limits. */
#include "../parity.h"

#include <pthread.h>

static void primary_state(const char *when) {
    unsigned flags;
    int active;
    CALLO(cuDevicePrimaryCtxGetState, when, (0, &flags, &active), OUT_U(flags), OUT_I(active));
}

SCENARIO(primary_life, "context/primary-life", par_init) {
    CUcontext ctx, again, current;
    primary_state("never-retained");
    CALL(cuDevicePrimaryCtxRelease_v2, "not-retained", (0));
    CALL(cuDevicePrimaryCtxReset_v2, "not-retained", (0));
    CALL(cuDevicePrimaryCtxSetFlags_v2, "inactive", (0, CU_CTX_SCHED_BLOCKING_SYNC));
    primary_state("flags-set");
    CALLO(cuDevicePrimaryCtxRetain, "ok", (&ctx, 0), OUT_H(ctx));
    primary_state("retained");
    CALLO(cuCtxGetCurrent, "not-made-current", (&current), OUT_H(current));
    CALLO(cuDevicePrimaryCtxRetain, "again", (&again, 0), OUT_H(again));
    CALL(cuDevicePrimaryCtxSetFlags_v2, "active", (0, CU_CTX_SCHED_SPIN));
    primary_state("flags-set-active");
    CALL(cuDevicePrimaryCtxRelease_v2, "ok", (0));
    primary_state("one-reference");
    CALL(cuDevicePrimaryCtxRelease_v2, "last", (0));
    primary_state("released");
    CALL(cuDevicePrimaryCtxRelease_v2, "too-often", (0));
    CALLO(cuDevicePrimaryCtxRetain, "after-release", (&again, 0), OUT_H(again));
    primary_state("retained-again");
}

SCENARIO(primary_bad, "context/primary-bad", par_init) {
    static const unsigned flags[] = {1, 2, 3, 4, 5, 6, 7, 8, 16, 24, 32, 64, 128, 256, 512, ~0u};
    CUcontext ctx;
    unsigned f;
    int active;
    CALL(cuDevicePrimaryCtxRetain, "null-out", (NULL, 0));
    CALLO(cuDevicePrimaryCtxRetain, "bad-device", (&ctx, 99), OUT_H(ctx));
    CALLO(cuDevicePrimaryCtxRetain, "bad-device", (&ctx, -1), OUT_H(ctx));
    CALL(cuDevicePrimaryCtxRelease_v2, "bad-device", (99));
    CALL(cuDevicePrimaryCtxReset_v2, "bad-device", (99));
    CALL(cuDevicePrimaryCtxSetFlags_v2, "bad-device", (99, 0));
    CALLO(cuDevicePrimaryCtxGetState, "bad-device", (99, &f, &active), OUT_U(f), OUT_I(active));
    CALLO(cuDevicePrimaryCtxGetState, "null-out", (0, NULL, &active), OUT_I(active));
    CALLO(cuDevicePrimaryCtxGetState, "null-out", (0, &f, NULL), OUT_U(f));
    for (size_t i = 0; i < COUNT(flags); i++) {
        par_note("flags=0x%x", flags[i]);
        CALL(cuDevicePrimaryCtxSetFlags_v2, "flags", (0, flags[i]));
        par_note("flags=0x%x", flags[i]);
        primary_state("after-flags");
    }
}

SCENARIO(primary_reset, "context/primary-reset", par_context) {
    CUdeviceptr p;
    CUcontext current, ctx;
    unsigned flags;
    CALLO(cuMemAlloc_v2, "ok", (&p, 4096), OUT_P(p));
    CALL(cuDevicePrimaryCtxReset_v2, "current", (0));
    primary_state("after-reset");
    CALLO(cuCtxGetCurrent, "after-reset", (&current), OUT_H(current));
    CALL(cuCtxSynchronize, "after-reset", ());
    CALL(cuMemFree_v2, "after-reset", (p));
    CALLO(cuMemAlloc_v2, "after-reset", (&p, 4096), OUT_C(p));
    CALLO(cuCtxGetFlags, "after-reset", (&flags), OUT_U(flags));
    CALLO(cuDevicePrimaryCtxRetain, "after-reset", (&ctx, 0), OUT_H(ctx));
    primary_state("retained-after-reset");
    CALL(cuCtxSynchronize, "retained-after-reset", ());
    CALLO(cuMemAlloc_v2, "retained-after-reset", (&p, 4096), OUT_C(p));
}

SCENARIO(primary_released_current, "context/primary-released-current", par_context) {
    CUdeviceptr p;
    CUcontext current;
    CUdevice dev;
    unsigned version;
    unsigned long long id;
    CALL(cuDevicePrimaryCtxRelease_v2, "last-while-current", (0));
    primary_state("released-while-current");
    CALLO(cuCtxGetCurrent, "released", (&current), OUT_H(current));
    CALLO(cuCtxGetDevice, "released", (&dev), OUT_I(dev));
    CALLO(cuCtxGetApiVersion, "released", (par.primary, &version), OUT_U(version));
    CALLO(cuCtxGetId, "released", (par.primary, &id), OUT_C(id));
    CALL(cuCtxSynchronize, "released", ());
    CALLO(cuMemAlloc_v2, "released", (&p, 4096), OUT_C(p));
    CALL(cuCtxSetCurrent, "released", (par.primary));
    CALL(cuCtxPushCurrent_v2, "released", (par.primary));
    CALL(cuCtxDestroy_v2, "released", (par.primary));
}

SCENARIO(primary_destroyed, "context/primary-destroyed", par_context) {
    CUcontext current;
    CALL(cuCtxDestroy_v2, "primary", (par.primary));
    primary_state("after-destroy");
    CALLO(cuCtxGetCurrent, "after-destroy", (&current), OUT_H(current));
    CALL(cuCtxSynchronize, "after-destroy", ());
}

SCENARIO(primary_old_versions, "context/primary-old-versions", par_init) {
    CUcontext ctx;
    CALL(cuDevicePrimaryCtxSetFlags, "ok", (0, CU_CTX_SCHED_YIELD));
    CALLO(cuDevicePrimaryCtxRetain, "ok", (&ctx, 0), OUT_H(ctx));
    CALL(cuDevicePrimaryCtxSetFlags, "active", (0, CU_CTX_SCHED_SPIN));
    primary_state("flags-set-active");
    CALL(cuDevicePrimaryCtxReset, "ok", (0));
    CALL(cuDevicePrimaryCtxRelease, "after-reset", (0));
    CALL(cuDevicePrimaryCtxRelease, "not-retained", (0));
}

SCENARIO(create_flags, "context/create-flags", par_init) {
    static const unsigned flags[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64, 128, 256, ~0u};
    CUcontext ctx;
    unsigned got;
    for (size_t i = 0; i < COUNT(flags); i++) {
        par_note("flags=0x%x", flags[i]);
        CALLO(cuCtxCreate_v2, "flags", (&ctx, flags[i], 0), OUT_H(ctx));
        if (par_last() == CUDA_SUCCESS) {
            par_note("flags=0x%x", flags[i]);
            CALLO(cuCtxGetFlags, "created", (&got), OUT_U(got));
            SETUP(cuCtxDestroy_v2, (ctx));
            FORGET(ctx);
        }
    }
}

SCENARIO(create_bad, "context/create-bad", par_init) {
    CUcontext ctx;
    CUexecAffinityParam affinity = {CU_EXEC_AFFINITY_TYPE_SM_COUNT, {{1}}};
    CUctxCreateParams params = {&affinity, 1, NULL};
    CALL(cuCtxCreate_v2, "null-out", (NULL, 0, 0));
    CALLO(cuCtxCreate_v2, "bad-device", (&ctx, 0, 99), OUT_H(ctx));
    CALLO(cuCtxCreate_v2, "bad-device", (&ctx, 0, -1), OUT_H(ctx));
    CALLO(cuCtxCreate_v3, "affinity", (&ctx, &affinity, 1, 0, 0), OUT_H(ctx));
    CALLO(cuCtxCreate_v3, "null-affinity", (&ctx, NULL, 1, 0, 0), OUT_H(ctx));
    CALLO(cuCtxCreate_v3, "negative-count", (&ctx, &affinity, -1, 0, 0), OUT_H(ctx));
    CALL(cuCtxCreate_v3, "null-out", (NULL, NULL, 0, 0, 0));
    CALLO(cuCtxCreate_v4, "affinity", (&ctx, &params, 0, 0), OUT_H(ctx));
    CALL(cuCtxCreate_v4, "null-out", (NULL, NULL, 0, 0));
    CALLO(cuCtxCreate_v4, "bad-device", (&ctx, NULL, 0, 99), OUT_H(ctx));
    CALL(cuCtxDestroy_v2, "null", (NULL));
}

/* Beside a context of the first version no other one is made. */
SCENARIO(create_first_version, "context/create-first-version", par_init) {
    CUcontext v1, v2, again, current;
    CUdevice dev;
    unsigned version;
    CALL(cuCtxCreate, "null-out", (NULL, 0, 0));
    CALLO(cuCtxCreate, "bad-device", (&v1, 0, 99), OUT_H(v1));
    CALLO(cuCtxCreate, "bad-flags", (&v1, ~0u, 0), OUT_H(v1));
    CALLO(cuCtxCreate, "ok", (&v1, 0, 0), OUT_H(v1));
    CALLO(cuCtxGetApiVersion, "created-v1", (v1, &version), OUT_U(version));
    CALLO(cuCtxGetCurrent, "created-v1", (&current), OUT_H(current));
    CALLO(cuCtxGetDevice, "created-v1", (&dev), OUT_I(dev));
    CALLO(cuCtxCreate_v2, "beside-v1", (&v2, 0, 0), OUT_H(v2));
    CALLO(cuCtxCreate, "beside-v1", (&again, 0, 0), OUT_H(again));
    CALLO(cuDevicePrimaryCtxRetain, "beside-v1", (&again, 0), OUT_H(again));
    CALL(cuCtxDestroy, "v1", (v1));
    CALL(cuCtxDestroy, "null", (NULL));
    CALLO(cuCtxCreate_v2, "after-v1", (&v2, 0, 0), OUT_H(v2));
}

SCENARIO(create_versions, "context/create-versions", par_init) {
    CUcontext v2, v3, v4;
    CUctxCreateParams params = {NULL, 0, NULL};
    unsigned version;
    CALLO(cuCtxCreate_v2, "ok", (&v2, 0, 0), OUT_H(v2));
    CALLO(cuCtxGetApiVersion, "created-v2", (v2, &version), OUT_U(version));
    CALLO(cuCtxCreate_v3, "ok", (&v3, NULL, 0, 0, 0), OUT_H(v3));
    CALLO(cuCtxGetApiVersion, "created-v3", (v3, &version), OUT_U(version));
    CALLO(cuCtxCreate_v4, "ok", (&v4, NULL, 0, 0), OUT_H(v4));
    CALLO(cuCtxGetApiVersion, "created-v4", (v4, &version), OUT_U(version));
    CALL(cuCtxDestroy_v2, "ok", (v4));
    FORGET(v4);
    CALLO(cuCtxCreate_v4, "empty-params", (&v4, &params, 0, 0), OUT_H(v4));
    CALL(cuCtxDestroy, "v2", (v2));
}

SCENARIO(stack, "context/stack", par_init) {
    CUcontext a, b, popped, current;
    CALLO(cuCtxGetCurrent, "empty", (&current), OUT_H(current));
    CALLO(cuCtxPopCurrent_v2, "empty", (&popped), OUT_H(popped));
    CALL(cuCtxGetCurrent, "null-out", (NULL));
    CALLO(cuCtxCreate_v2, "ok", (&a, 0, 0), OUT_H(a));
    CALLO(cuCtxCreate_v2, "ok", (&b, 0, 0), OUT_H(b));
    CALLO(cuCtxGetCurrent, "last-created", (&current), OUT_H(current));
    CALLO(cuCtxPopCurrent_v2, "ok", (&popped), OUT_H(popped));
    CALLO(cuCtxGetCurrent, "below", (&current), OUT_H(current));
    CALL(cuCtxPushCurrent_v2, "same-again", (a));
    CALL(cuCtxPushCurrent_v2, "null", (NULL));
    CALL(cuCtxSetCurrent, "replaces-top", (b));
    CALLO(cuCtxPopCurrent_v2, "ok", (&popped), OUT_H(popped));
    CALLO(cuCtxGetCurrent, "below", (&current), OUT_H(current));
    CALL(cuCtxSetCurrent, "null-pops", (NULL));
    CALLO(cuCtxGetCurrent, "after-null", (&current), OUT_H(current));
    CALL(cuCtxSetCurrent, "null-on-empty", (NULL));
    CALL(cuCtxSetCurrent, "ok", (a));
    CALL(cuCtxPopCurrent_v2, "null-out", (NULL));
    CALLO(cuCtxGetCurrent, "after-pop", (&current), OUT_H(current));
    CALL(cuCtxPushCurrent, "v1", (b));
    CALLO(cuCtxPopCurrent, "v1", (&popped), OUT_H(popped));
    CALL(cuCtxPushCurrent, "v1-null", (NULL));
    CALL(cuCtxSetCurrent, "null-pops", (NULL));
    CALLO(cuCtxPopCurrent, "v1-empty", (&popped), OUT_H(popped));
}

SCENARIO(destroy, "context/destroy", par_init) {
    CUcontext a, b, current, popped;
    CUdevice dev;
    CUdeviceptr p;
    SETUP(cuCtxCreate_v2, (&a, 0, 0));
    NAME(a);
    SETUP(cuCtxCreate_v2, (&b, 0, 0));
    NAME(b);
    CALL(cuCtxDestroy_v2, "current", (b));
    CALLO(cuCtxGetCurrent, "after-destroy-current", (&current), OUT_H(current));
    CALLO(cuCtxGetDevice, "after-destroy-current", (&dev), OUT_I(dev));
    SETUP(cuCtxCreate_v2, (&b, 0, 0));
    NAME(b);
    CALL(cuCtxDestroy_v2, "not-current", (a));
    CALLO(cuCtxPopCurrent_v2, "above-destroyed", (&popped), OUT_H(popped));
    CALLO(cuCtxGetCurrent, "destroyed-on-top", (&current), OUT_H(current));
    CALLO(cuMemAlloc_v2, "destroyed-current", (&p, 4096), OUT_C(p));
    CALL(cuCtxSynchronize, "destroyed-current", ());
}

SCENARIO(stale_set, "context/stale-set", par_init) {
    CUcontext a = par_new_context();
    SETUP(cuCtxDestroy_v2, (a));
    CALL(cuCtxSetCurrent, "stale-handle", (a));
}

SCENARIO(stale_push, "context/stale-push", par_init) {
    CUcontext a = par_new_context();
    SETUP(cuCtxDestroy_v2, (a));
    CALL(cuCtxPushCurrent_v2, "stale-handle", (a));
}

SCENARIO(stale_destroy, "context/stale-destroy", par_init) {
    CUcontext a = par_new_context();
    SETUP(cuCtxDestroy_v2, (a));
    CALL(cuCtxDestroy_v2, "stale-handle", (a));
}

SCENARIO(stale_query, "context/stale-query", par_context) {
    unsigned version;
    unsigned long long id;
    CUcontext a = par_new_context();
    SETUP(cuCtxDestroy_v2, (a));
    CALLO(cuCtxGetApiVersion, "stale-handle", (a, &version), OUT_U(version));
    CALLO(cuCtxGetId, "stale-handle", (a, &id), OUT_C(id));
    CALL(cuCtxSynchronize_v2, "stale-handle", (a));
}

SCENARIO_IN(random_set, "context/random-set", par_init,
            CALL(cuCtxSetCurrent, "random-handle", ((CUcontext)(uintptr_t)0x12345678)));

SCENARIO(random_pointer_set, "context/random-pointer-set", par_init) {
    static uint64_t words[512];
    CALL(cuCtxSetCurrent, "foreign-pointer", ((CUcontext)(void *)words));
}

static void *destroyed_elsewhere_thread(void *ctx) {
    SETUP(cuCtxDestroy_v2, ((CUcontext)ctx));
    return NULL;
}

SCENARIO(destroyed_elsewhere, "context/destroyed-elsewhere", par_init) {
    CUcontext a, current;
    CUdevice dev;
    CUdeviceptr p;
    unsigned version, flags;
    pthread_t thread;
    SETUP(cuCtxCreate_v2, (&a, 0, 0));
    NAME(a);
    pthread_create(&thread, NULL, destroyed_elsewhere_thread, a);
    pthread_join(thread, NULL);
    CALLO(cuCtxGetCurrent, "destroyed-by-other-thread", (&current), OUT_H(current));
    CALLO(cuCtxGetDevice, "destroyed-by-other-thread", (&dev), OUT_I(dev));
    CALLO(cuCtxGetFlags, "destroyed-by-other-thread", (&flags), OUT_U(flags));
    CALLO(cuCtxGetApiVersion, "destroyed-by-other-thread", (NULL, &version), OUT_U(version));
    CALL(cuCtxSynchronize, "destroyed-by-other-thread", ());
    CALLO(cuMemAlloc_v2, "destroyed-by-other-thread", (&p, 4096), OUT_C(p));
    CALLO(cuCtxPopCurrent_v2, "destroyed-by-other-thread", (&current), OUT_H(current));
}

SCENARIO(queries, "context/queries", par_context) {
    CUdevice dev;
    unsigned flags, version;
    unsigned long long id, id2;
    int least, greatest;
    CUcontext other;
    CALLO(cuCtxGetDevice, "ok", (&dev), OUT_I(dev));
    CALL(cuCtxGetDevice, "null-out", (NULL));
    CALLO(cuCtxGetDevice_v2, "ok", (&dev, par.primary), OUT_I(dev));
    CALLO(cuCtxGetDevice_v2, "null-context", (&dev, NULL), OUT_I(dev));
    CALL(cuCtxGetDevice_v2, "null-out", (NULL, par.primary));
    CALLO(cuCtxGetFlags, "ok", (&flags), OUT_U(flags));
    CALL(cuCtxGetFlags, "null-out", (NULL));
    CALLO(cuCtxGetApiVersion, "ok", (par.primary, &version), OUT_U(version));
    CALLO(cuCtxGetApiVersion, "null-context", (NULL, &version), OUT_U(version));
    CALL(cuCtxGetApiVersion, "null-out", (par.primary, NULL));
    CALLO(cuCtxGetId, "ok", (par.primary, &id), OUT_U(id));
    CALLO(cuCtxGetId, "null-context", (NULL, &id2), OUT_U(id2));
    CALL(cuCtxGetId, "null-out", (par.primary, NULL));
    CALLO(cuCtxGetStreamPriorityRange, "ok", (&least, &greatest), OUT_I(least), OUT_I(greatest));
    CALLO(cuCtxGetStreamPriorityRange, "null-out", (NULL, &greatest), OUT_I(greatest));
    CALLO(cuCtxGetStreamPriorityRange, "null-out", (&least, NULL), OUT_I(least));
    CALL(cuCtxGetStreamPriorityRange, "null-both", (NULL, NULL));
    CALLO(cuCtxCreate_v2, "second", (&other, 0, 0), OUT_H(other));
    CALLO(cuCtxGetId, "second", (other, &id), OUT_U(id));
    CALL(cuCtxSynchronize_v2, "other", (par.primary));
    CALL(cuCtxSynchronize_v2, "null-context", (NULL));
    CALL(cuCtxSynchronize, "ok", ());
    CALL(cuCtxResetPersistingL2Cache, "ok", ());
}

SCENARIO(queries_without, "context/queries-without", par_init) {
    CUdevice dev;
    unsigned flags, version;
    unsigned long long id;
    int least, greatest;
    size_t value;
    CUfunc_cache cache;
    CUsharedconfig shared;
    CALLO(cuCtxGetDevice, "no-context", (&dev), OUT_I(dev));
    CALLO(cuCtxGetFlags, "no-context", (&flags), OUT_U(flags));
    CALLO(cuCtxGetApiVersion, "no-context", (NULL, &version), OUT_U(version));
    CALLO(cuCtxGetId, "no-context", (NULL, &id), OUT_U(id));
    CALLO(cuCtxGetStreamPriorityRange, "no-context", (&least, &greatest), OUT_I(least),
          OUT_I(greatest));
    CALLO(cuCtxGetLimit, "no-context", (&value, CU_LIMIT_STACK_SIZE), OUT_U(value));
    CALL(cuCtxSetLimit, "no-context", (CU_LIMIT_STACK_SIZE, 1024));
    CALLO(cuCtxGetCacheConfig, "no-context", (&cache), OUT_I(cache));
    CALL(cuCtxSetCacheConfig, "no-context", (CU_FUNC_CACHE_PREFER_NONE));
    CALLO(cuCtxGetSharedMemConfig, "no-context", (&shared), OUT_I(shared));
    CALL(cuCtxSetSharedMemConfig, "no-context", (CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE));
    CALL(cuCtxSynchronize, "no-context", ());
    CALL(cuCtxSynchronize_v2, "no-context", (NULL));
    CALL(cuCtxSetFlags, "no-context", (0));
    CALL(cuCtxResetPersistingL2Cache, "no-context", ());
}

SCENARIO(limits, "context/limits", par_context) {
    static const size_t values[] = {0, 1, 1024, 1 << 20, (size_t)1 << 62};
    size_t value;
    for (int l = -1; l <= 12; l++) {
        bool known = l >= 0 && l < CU_LIMIT_MAX;
        par_note("limit=%d", l);
        CALLO(cuCtxGetLimit, known ? "limit" : "unknown", (&value, (CUlimit)l), OUT_U(value));
        for (size_t i = 0; i < COUNT(values); i++) {
            par_note("limit=%d value=%zu", l, values[i]);
            CALL(cuCtxSetLimit, known ? "limit" : "unknown", ((CUlimit)l, values[i]));
            par_note("limit=%d value=%zu", l, values[i]);
            CALLO(cuCtxGetLimit, "after-set", (&value, (CUlimit)l), OUT_U(value));
        }
    }
    CALL(cuCtxGetLimit, "null-out", (NULL, CU_LIMIT_STACK_SIZE));
}

SCENARIO(configs, "context/configs", par_context) {
    CUfunc_cache cache;
    CUsharedconfig shared;
    unsigned got;
    static const unsigned flags[] = {0, 1, 2, 3, 4, 8, 16, 32, 64, 128, 256, ~0u};
    for (int c = -1; c <= 5; c++) {
        par_note("%d", c);
        CALL(cuCtxSetCacheConfig, "value", ((CUfunc_cache)c));
        CALLO(cuCtxGetCacheConfig, "after-set", (&cache), OUT_I(cache));
        par_note("%d", c);
        CALL(cuCtxSetSharedMemConfig, "value", ((CUsharedconfig)c));
        CALLO(cuCtxGetSharedMemConfig, "after-set", (&shared), OUT_I(shared));
    }
    CALL(cuCtxGetCacheConfig, "null-out", (NULL));
    CALL(cuCtxGetSharedMemConfig, "null-out", (NULL));
    for (size_t i = 0; i < COUNT(flags); i++) {
        par_note("flags=0x%x", flags[i]);
        CALL(cuCtxSetFlags, "flags", (flags[i]));
        CALLO(cuCtxGetFlags, "after-set", (&got), OUT_U(got));
    }
}

SCENARIO(affinity, "context/affinity", par_context) {
    CUexecAffinityParam param;
    CALLO(cuCtxGetExecAffinity, "ok", (&param, CU_EXEC_AFFINITY_TYPE_SM_COUNT), OUT_I(param.type),
          OUT_U(param.param.smCount.val));
    CALLO(cuCtxGetExecAffinity, "bad-type", (&param, CU_EXEC_AFFINITY_TYPE_MAX), OUT_I(param.type));
    CALL(cuCtxGetExecAffinity, "null-out", (NULL, CU_EXEC_AFFINITY_TYPE_SM_COUNT));
}

SCENARIO(attach, "context/attach", par_init) {
    CUcontext a, attached;
    CALLO(cuCtxAttach, "no-context", (&attached, 0), OUT_H(attached));
    SETUP(cuCtxCreate_v2, (&a, 0, 0));
    NAME(a);
    CALLO(cuCtxAttach, "ok", (&attached, 0), OUT_H(attached));
    CALLO(cuCtxAttach, "bad-flags", (&attached, 1), OUT_H(attached));
    CALL(cuCtxAttach, "null-out", (NULL, 0));
    CALL(cuCtxDetach, "null", (NULL));
    CALL(cuCtxDetach, "ok", (a));
    CALL(cuCtxDetach, "last", (a));
    CALLO(cuCtxGetCurrent, "after-detach", (&attached), OUT_H(attached));
}

static void *other_thread(void *unused) {
    CUcontext current;
    CALLO(cuCtxGetCurrent, "new-thread", (&current), OUT_H(current));
    CALL(cuCtxSetCurrent, "new-thread", (par.primary));
    CALL(cuCtxSynchronize, "new-thread", ());
    return unused;
}

SCENARIO(threads, "context/threads", par_context) {
    pthread_t thread;
    CUcontext current;
    pthread_create(&thread, NULL, other_thread, NULL);
    pthread_join(thread, NULL);
    CALLO(cuCtxGetCurrent, "after-thread", (&current), OUT_H(current));
}

SCENARIO(peer_access, "context/peer-access", par_context) {
    CUcontext other = par_new_context();
    NAME(other);
    CALL(cuCtxEnablePeerAccess, "itself", (other, 0));
    CALL(cuCtxEnablePeerAccess, "same-device", (par.primary, 0));
    CALL(cuCtxEnablePeerAccess, "bad-flags", (par.primary, 1));
    CALL(cuCtxEnablePeerAccess, "null", (NULL, 0));
    CALL(cuCtxDisablePeerAccess, "not-enabled", (par.primary));
    CALL(cuCtxDisablePeerAccess, "null", (NULL));
}
