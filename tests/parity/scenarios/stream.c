/* Streams: creation, queries, host functions, callbacks, attributes, handles that are not valid. */
#include "../parity.h"

SCENARIO(creates, "stream/creates", par_context) {
    static const unsigned flags[] = {0, 1, 2, 3, 4, 0x80, ~0u};
    static const int priorities[] = {-100, -6, -5, -4, -1, 0, 1, 5, 100};
    CUstream s;
    unsigned got;
    int priority;
    CALL(cuStreamCreate, "null-out", (NULL, 0));
    CALL(cuStreamCreateWithPriority, "null-out", (NULL, 0, 0));
    for (size_t i = 0; i < COUNT(flags); i++) {
        par_note("flags=0x%x", flags[i]);
        CALLO(cuStreamCreate, flags[i] < 2 ? "flags" : "bad-flags", (&s, flags[i]), OUT_H(s));
        if (par_last() == CUDA_SUCCESS) {
            CALLO(cuStreamGetFlags, "created", (s, &got), OUT_U(got));
            CALLO(cuStreamGetPriority, "created", (s, &priority), OUT_I(priority));
            SETUP(cuStreamDestroy_v2, (s));
            FORGET(s);
        }
    }
    for (size_t i = 0; i < COUNT(priorities); i++) {
        par_note("priority=%d", priorities[i]);
        CALLO(cuStreamCreateWithPriority, "priority", (&s, 1, priorities[i]), OUT_H(s));
        par_note("priority=%d", priorities[i]);
        CALLO(cuStreamGetPriority, "after-create", (s, &priority), OUT_I(priority));
        FORGET(s);
    }
    CALLO(cuStreamCreateWithPriority, "bad-flags", (&s, 2, 0), OUT_H(s));
    SETUP(cuCtxSetCurrent, (NULL));
    CALLO(cuStreamCreate, "no-context", (&s, 0), OUT_H(s));
}

static void queries_of(const char *cls, CUstream s) {
    unsigned flags;
    int priority;
    CUcontext ctx;
    CUgreenCtx green;
    CUdevice dev;
    unsigned long long id;
    CUstreamCaptureStatus status;
    CALLO(cuStreamGetFlags, cls, (s, &flags), OUT_U(flags));
    CALLO(cuStreamGetPriority, cls, (s, &priority), OUT_I(priority));
    CALLO(cuStreamGetCtx, cls, (s, &ctx), OUT_H(ctx));
    CALLO(cuStreamGetCtx_v2, cls, (s, &ctx, &green), OUT_H(ctx), OUT_H(green));
    CALLO(cuStreamGetDevice, cls, (s, &dev), OUT_I(dev));
    CALLO(cuStreamGetId, cls, (s, &id), OUT_C(id));
    CALLO(cuStreamGetGreenCtx, cls, (s, &green), OUT_H(green));
    CALLO(cuStreamIsCapturing, cls, (s, &status), OUT_I(status));
    CALL(cuStreamQuery, cls, (s));
    CALL(cuStreamSynchronize, cls, (s));
}

static void queries_of_twins(const char *cls, CUstream s) {
    unsigned flags;
    int priority;
    CUcontext ctx;
    CUgreenCtx green;
    CUdevice dev;
    unsigned long long id;
    CUstreamCaptureStatus status;
    CALLO(cuStreamGetFlags_ptsz, cls, (s, &flags), OUT_U(flags));
    CALLO(cuStreamGetPriority_ptsz, cls, (s, &priority), OUT_I(priority));
    CALLO(cuStreamGetCtx_ptsz, cls, (s, &ctx), OUT_H(ctx));
    CALLO(cuStreamGetCtx_v2_ptsz, cls, (s, &ctx, &green), OUT_H(ctx), OUT_H(green));
    CALLO(cuStreamGetDevice_ptsz, cls, (s, &dev), OUT_I(dev));
    CALLO(cuStreamGetId_ptsz, cls, (s, &id), OUT_C(id));
    CALLO(cuStreamIsCapturing_ptsz, cls, (s, &status), OUT_I(status));
    CALL(cuStreamQuery_ptsz, cls, (s));
    CALL(cuStreamSynchronize_ptsz, cls, (s));
}

SCENARIO(queries, "stream/queries", par_context) {
    CUstream s = par_blocking_stream();
    queries_of("created", s);
    queries_of("null-stream", NULL);
    queries_of("legacy-stream", CU_STREAM_LEGACY);
    queries_of("per-thread-stream", CU_STREAM_PER_THREAD);
    queries_of_twins("created", s);
    queries_of_twins("null-stream", NULL);
    queries_of_twins("legacy-stream", CU_STREAM_LEGACY);
    CALL(cuStreamGetFlags, "null-out", (s, NULL));
    CALL(cuStreamGetPriority, "null-out", (s, NULL));
    CALL(cuStreamGetCtx, "null-out", (s, NULL));
    CALL(cuStreamGetDevice, "null-out", (s, NULL));
    CALL(cuStreamGetId, "null-out", (s, NULL));
    CALL(cuStreamIsCapturing, "null-out", (s, NULL));
}

SCENARIO(ids, "stream/ids", par_context) {
    CUstream a = par_stream();
    CUstream b = par_stream();
    unsigned long long ia = PAR_GOT(unsigned long long, cuStreamGetId, a);
    unsigned long long ib = PAR_GOT(unsigned long long, cuStreamGetId, b);
    unsigned long long in = PAR_GOT(unsigned long long, cuStreamGetId, NULL);
    unsigned long long il = PAR_GOT(unsigned long long, cuStreamGetId, CU_STREAM_LEGACY);
    unsigned long long ip = PAR_GOT(unsigned long long, cuStreamGetId, CU_STREAM_PER_THREAD);
    par_see("ids", "a=%llu b-a=%lld null=%llu legacy=%llu per-thread=%llu", ia,
            (long long)(ib - ia), in, il, ip);
}

SCENARIO(without_context, "stream/without-context", par_context) {
    CUstream s = par_blocking_stream();
    CUevent e = par_event(0);
    SETUP(cuCtxSetCurrent, (NULL));
    queries_of("no-context", s);
    queries_of("no-context-null-stream", NULL);
    CALL(cuStreamWaitEvent, "no-context", (s, e, 0));
    CALL(cuEventRecord, "no-context", (e, s));
    CALL(cuEventRecord, "no-context-null-stream", (e, NULL));
    CALL(cuStreamDestroy_v2, "no-context", (s));
}

/* Each use of a handle that is not valid is alone: some drivers follow the pointer. */
#define BAD_STREAM(function, title, how, call)                                                     \
    SCENARIO(function, title) {                                                                    \
        CUstream s;                                                                                \
        par_context();                                                                             \
        how;                                                                                       \
        call;                                                                                      \
    }
#define STALE                                                                                      \
    do {                                                                                           \
        SETUP(cuStreamCreate, (&s, 0));                                                            \
        SETUP(cuStreamDestroy_v2, (s));                                                            \
    } while (0)
static uint64_t words[1024];
#define FOREIGN s = (CUstream)(void *)words
#define RANDOM  s = (CUstream)(uintptr_t)0x5005
BAD_STREAM(stale_query, "stream/stale-query", STALE, CALL(cuStreamQuery, "stale-handle", (s)))
BAD_STREAM(stale_sync, "stream/stale-synchronize", STALE,
           CALL(cuStreamSynchronize, "stale-handle", (s)))
BAD_STREAM(stale_destroy, "stream/stale-destroy", STALE,
           CALL(cuStreamDestroy_v2, "stale-handle", (s)))
BAD_STREAM(stale_copy, "stream/stale-work", STALE,
           CALL(cuMemsetD8Async, "stale-handle", (par_alloc(16), 1, 16, s)))
BAD_STREAM(foreign_query, "stream/foreign-query", FOREIGN,
           CALL(cuStreamQuery, "foreign-pointer", (s)))
BAD_STREAM(foreign_destroy, "stream/foreign-destroy", FOREIGN,
           CALL(cuStreamDestroy_v2, "foreign-pointer", (s)))
BAD_STREAM(random_query, "stream/random-query", RANDOM, CALL(cuStreamQuery, "random-handle", (s)))

SCENARIO(destroys, "stream/destroys", par_context) {
    CUstream s = par_blocking_stream();
    CALL(cuStreamDestroy_v2, "ok", (s));
    CALL(cuStreamDestroy_v2, "null-stream", (NULL));
    CALL(cuStreamDestroy_v2, "legacy-stream", (CU_STREAM_LEGACY));
    CALL(cuStreamDestroy_v2, "per-thread-stream", (CU_STREAM_PER_THREAD));
    SETUP(cuStreamCreate, (&s, 0));
    CALL(cuStreamDestroy, "v1", (s));
}

SCENARIO(destroy_held, "stream/destroy-held", par_context) {
    CUstream s = par_stream();
    CUevent e = par_event(0);
    par_hold(s);
    SETUP(cuEventRecord, (e, s));
    CALL(cuStreamDestroy_v2, "held", (s));
    CALL(cuEventQuery, "stream-destroyed-held", (e));
    par_release();
    CALL(cuEventSynchronize, "stream-destroyed-released", (e));
}

SCENARIO(held_queries, "stream/held-queries", par_context) {
    CUstream s = par_stream();
    CUevent e = par_event(0);
    par_hold(s);
    CALL(cuStreamQuery, "held", (s));
    CALL(cuEventRecord, "held", (e, s));
    CALL(cuEventQuery, "held", (e));
    CALL(cuStreamQuery, "other-stream", (par_stream()));
    CALL(cuStreamQuery, "null-stream", (NULL));
    PAR_DRAIN("released", s);
    CALL(cuEventQuery, "released", (e));
    CALL(cuStreamQuery, "released", (s));
}

typedef struct inside {
    int calls;
    CUresult results[16];
    CUstream stream;
    CUevent event;
    CUdeviceptr memory;
} inside;

static void CUDAAPI do_nothing(void *unused) {
}

static void CUDAAPI call_api(void *data) {
    inside *in = data;
    CUcontext ctx;
    CUdeviceptr p;
    CUdevice dev;
    int n;
    void *host;
    CUresult *r = in->results;
    r[0] = par.api->cuMemAlloc_v2(&p, 64);
    r[1] = par.api->cuCtxGetCurrent(&ctx);
    r[2] = par.api->cuStreamQuery(in->stream);
    r[3] = par.api->cuEventQuery(in->event);
    r[4] = par.api->cuCtxGetDevice(&dev);
    r[5] = par.api->cuDriverGetVersion(&n);
    r[6] = par.api->cuDeviceGetCount(&n);
    r[7] = par.api->cuInit(0);
    r[8] = par.api->cuMemFree_v2(0);
    r[9] = par.api->cuEventRecord(in->event, in->stream);
    r[10] = par.api->cuMemHostAlloc(&host, 64, 0);
    r[11] = par.api->cuPointerGetAttribute(&n, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, in->memory);
    r[12] = par.api->cuCtxSetCurrent(par.primary);
    r[13] = par.api->cuMemAddressReserve(&p, PAR_2M, 0, 0, 0);
    r[14] = par.api->cuDeviceGetAttribute(&n, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0);
    r[15] = par.api->cuLaunchHostFunc(in->stream, do_nothing, NULL);
    __atomic_add_fetch(&in->calls, 1, __ATOMIC_SEQ_CST);
}

static void see_inside(const inside *in) {
    static const char *const names[16] = {
        "cuMemAlloc",      "cuCtxGetCurrent",     "cuStreamQuery",        "cuEventQuery",
        "cuCtxGetDevice",  "cuDriverGetVersion",  "cuDeviceGetCount",     "cuInit",
        "cuMemFree",       "cuEventRecord",       "cuMemHostAlloc",       "cuPointerGetAttribute",
        "cuCtxSetCurrent", "cuMemAddressReserve", "cuDeviceGetAttribute", "cuLaunchHostFunc"};
    par_see("host-function-calls", "%d", in->calls);
    for (int i = 0; i < 16; i++) {
        const char *name = par_result_name(in->results[i]);
        par_note("%s", names[i]);
        par_see("inside-host-function", "%s", name != NULL ? name : "?");
    }
}

SCENARIO(host_function, "stream/host-function", par_context) {
    inside in;
    memset(&in, 0, sizeof(in));
    in.stream = par_stream();
    in.memory = par_alloc(64);
    SETUP(cuEventCreate, (&in.event, 0));
    CALL(cuLaunchHostFunc, "ok", (in.stream, call_api, &in));
    CALL(cuStreamSynchronize, "ok", (in.stream));
    see_inside(&in);
    CALL(cuLaunchHostFunc, "null-function", (in.stream, NULL, &in));
}

static int order_seen[4];
static int order_count;

static void CUDAAPI note_order(void *data) {
    order_seen[order_count++] = *(int *)data;
}

static void CUDAAPI note_callback(CUstream stream, CUresult status, void *data) {
    order_seen[order_count++] = *(int *)data + (int)status * 100;
}

SCENARIO(host_function_order, "stream/host-function-order", par_context) {
    static int one = 1, two = 2, three = 3;
    CUstream s = par_stream();
    par_hold(s);
    CALL(cuLaunchHostFunc, "held", (s, note_order, &one));
    CALL(cuStreamAddCallback, "held", (s, note_callback, &two, 0));
    CALL(cuLaunchHostFunc_ptsz, "held", (s, note_order, &three));
    par_see("ran-while-held", "%d", order_count);
    CALL(cuStreamQuery, "held", (s));
    PAR_DRAIN("released", s);
    par_see("order", "%d: %d %d %d", order_count, order_seen[0], order_seen[1], order_seen[2]);
}

SCENARIO(callback_bad, "stream/callback-bad", par_context) {
    static int one = 1;
    CUstream s = par_stream();
    CALL(cuStreamAddCallback, "bad-flags", (s, note_callback, &one, 1));
    CALL(cuStreamAddCallback, "null-stream", (NULL, note_callback, &one, 0));
    CALL(cuStreamAddCallback, "legacy-stream", (CU_STREAM_LEGACY, note_callback, &one, 0));
    CALL(cuStreamAddCallback_ptsz, "null-stream", (NULL, note_callback, &one, 0));
    CALL(cuCtxSynchronize, "after", ());
    par_see("callbacks", "%d", order_count);
}

SCENARIO_IN(callback_null, "stream/callback-null", par_context,
            CALL(cuStreamAddCallback, "null-function", (par_stream(), NULL, NULL, 0)));

SCENARIO(attributes, "stream/attributes", par_context) {
    CUstreamAttrValue value;
    CUstream s = par_stream();
    CUstream t = par_stream();
    for (int a = 0; a <= 18; a++) {
        memset(&value, 0, sizeof(value));
        par_note("attribute=%d", a);
        CALLO(cuStreamGetAttribute, "fresh", (s, (CUstreamAttrID)a, &value), OUT_I(value.priority),
              OUT_C(value.pad));
        memset(&value, 0, sizeof(value));
        par_note("attribute=%d", a);
        CALL(cuStreamSetAttribute, "zero", (s, (CUstreamAttrID)a, &value));
    }
    CALL(cuStreamGetAttribute, "null-out", (s, CU_LAUNCH_ATTRIBUTE_PRIORITY, NULL));
    CALL(cuStreamSetAttribute, "null-value", (s, CU_LAUNCH_ATTRIBUTE_PRIORITY, NULL));
    memset(&value, 0, sizeof(value));
    value.syncPolicy = CU_SYNC_POLICY_SPIN;
    CALL(cuStreamSetAttribute, "sync-policy",
         (s, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
    CALL(cuStreamCopyAttributes, "ok", (t, s));
    CALLO(cuStreamGetAttribute, "copied", (t, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value),
          OUT_I(value.syncPolicy));
    CALL(cuStreamCopyAttributes, "itself", (s, s));
    CALL(cuStreamCopyAttributes, "from-null-stream", (s, NULL));
    CALL(cuStreamCopyAttributes_ptsz, "ok", (t, s));
    value.syncPolicy = (CUsynchronizationPolicy)9;
    CALL(cuStreamSetAttribute, "bad-sync-policy",
         (s, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
    value.priority = -3;
    CALL(cuStreamSetAttribute_ptsz, "priority", (s, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    CALLO(cuStreamGetAttribute_ptsz, "priority", (s, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value),
          OUT_I(value.priority));
}

SCENARIO(attach_memory, "stream/attach-memory", par_context) {
    CUstream s = par_stream();
    CUdeviceptr m = par_managed(4096);
    CALL(cuStreamAttachMemAsync, "single", (s, m, 0, CU_MEM_ATTACH_SINGLE));
    CALL(cuStreamAttachMemAsync, "global", (s, m, 0, CU_MEM_ATTACH_GLOBAL));
    CALL(cuStreamAttachMemAsync, "host", (s, m, 4096, CU_MEM_ATTACH_HOST));
    CALL(cuStreamAttachMemAsync, "part", (s, m, 100, CU_MEM_ATTACH_SINGLE));
    CALL(cuStreamAttachMemAsync, "bad-flags", (s, m, 0, 8));
    CALL(cuStreamAttachMemAsync, "null-stream-single", (NULL, m, 0, CU_MEM_ATTACH_SINGLE));
    CALL(cuStreamAttachMemAsync, "device-memory", (s, par_alloc(4096), 0, CU_MEM_ATTACH_SINGLE));
    CALL(cuStreamAttachMemAsync, "null", (s, 0, 0, CU_MEM_ATTACH_SINGLE));
    CALL(cuStreamAttachMemAsync_ptsz, "global", (s, m, 0, CU_MEM_ATTACH_GLOBAL));
    CALL(cuStreamSynchronize, "after", (s));
}

SCENARIO(capture, "stream/capture", par_context) {
    CUgraph g;
    CUdeviceptr p;
    CUstreamCaptureStatus status;
    cuuint64_t id;
    CUstream s = par_stream();
    CALL(cuStreamBeginCapture_v2, "null-stream", (NULL, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CALL(cuStreamBeginCapture_v2, "bad-mode", (s, (CUstreamCaptureMode)9));
    CALLO(cuStreamEndCapture, "not-capturing", (s, &g), OUT_H(g));
    CALLO(cuStreamGetCaptureInfo, "not-capturing", (s, &status, &id), OUT_I(status), OUT_C(id));
    CALL(cuStreamBeginCapture_v2, "ok", (s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CALLO(cuStreamIsCapturing, "capturing", (s, &status), OUT_I(status));
    CALLO(cuStreamGetCaptureInfo, "capturing", (s, &status, &id), OUT_I(status), OUT_C(id));
    CALL(cuStreamBeginCapture_v2, "capturing", (s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CALLO(cuMemAlloc_v2, "while-capturing", (&p, 64), OUT_P(p));
    CALL(cuStreamQuery, "capturing", (s));
    CALLO(cuStreamIsCapturing, "after-query", (s, &status), OUT_I(status));
    CALLO(cuStreamEndCapture, "invalidated", (s, &g), OUT_H(g));
}

static void see_window(const CUstreamAttrValue *value) {
    const CUaccessPolicyWindow *w = &value->accessPolicyWindow;
    par_see("window", "base %s bytes %zu ratio %.2f hit %d miss %d",
            w->base_ptr == NULL ? "null" : "set", w->num_bytes, (double)w->hitRatio,
            (int)w->hitProp, (int)w->missProp);
}

static void set_window(CUstream s, const char *cls, CUdeviceptr at, size_t bytes, float ratio,
                       int hit, int miss) {
    CUstreamAttrValue value, got;
    memset(&value, 0, sizeof(value));
    memset(&got, 0, sizeof(got));
    value.accessPolicyWindow.base_ptr = (void *)(uintptr_t)at;
    value.accessPolicyWindow.num_bytes = bytes;
    value.accessPolicyWindow.hitRatio = ratio;
    value.accessPolicyWindow.hitProp = (CUaccessProperty)hit;
    value.accessPolicyWindow.missProp = (CUaccessProperty)miss;
    CALL(cuStreamSetAttribute, cls, (s, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value));
    SETUP(cuStreamGetAttribute, (s, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &got));
    see_window(&got);
}

SCENARIO(windows, "stream/windows", par_context) {
    CUstream s = par_stream();
    CUdeviceptr d = par_alloc(1 << 20);
    int max = 0;
    SETUP(cuDeviceGetAttribute, (&max, CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE, par.dev));
    set_window(s, "ok", d, 1 << 20, 0.5f, 2, 1);
    set_window(s, "hit-streaming", d, 1 << 20, 1.0f, 1, 0);
    set_window(s, "ratio-above", d, 4096, 1.5f, 2, 1);
    set_window(s, "ratio-below", d, 4096, -0.5f, 2, 1);
    set_window(s, "miss-persisting", d, 4096, 0.5f, 2, 2);
    set_window(s, "bad-hit", d, 4096, 0.5f, 7, 1);
    set_window(s, "bad-miss", d, 4096, 0.5f, 2, 7);
    set_window(s, "too-large", d, (size_t)max + 1, 0.5f, 2, 1);
    set_window(s, "largest", d, (size_t)max, 0.5f, 2, 1);
    set_window(s, "random-base", 0x1000, 4096, 0.5f, 2, 1);
    set_window(s, "null-base", 0, 4096, 0.5f, 2, 1);
    set_window(s, "zero-bytes", d, 0, 0.5f, 2, 1);
    set_window(CU_STREAM_PER_THREAD, "per-thread", d, 4096, 0.5f, 2, 1);
    set_window(CU_STREAM_LEGACY, "legacy", d, 4096, 0.5f, 2, 1);
}

static void attribute_values(const char *cls, CUstream s) {
    CUstreamAttrValue value;
    for (int policy = -1; policy <= 5; policy++) {
        memset(&value, 0, sizeof(value));
        value.syncPolicy = (CUsynchronizationPolicy)policy;
        par_note("%s policy=%d", cls, policy);
        CALL(cuStreamSetAttribute, "policy",
             (s, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
        par_note("%s policy=%d", cls, policy);
        CALLO(cuStreamGetAttribute, "policy",
              (s, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value), OUT_I(value.syncPolicy));
    }
    for (int priority = -7; priority <= 1; priority++) {
        memset(&value, 0, sizeof(value));
        value.priority = priority;
        par_note("%s priority=%d", cls, priority);
        CALL(cuStreamSetAttribute, "priority", (s, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
        par_note("%s priority=%d", cls, priority);
        CALLO(cuStreamGetAttribute, "priority", (s, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value),
              OUT_I(value.priority));
        par_note("%s priority=%d", cls, priority);
        CALLO(cuStreamGetPriority, "attribute", (s, &value.priority), OUT_I(value.priority));
    }
    for (int domain = -1; domain <= 2; domain++) {
        memset(&value, 0, sizeof(value));
        value.memSyncDomain = (CUlaunchMemSyncDomain)domain;
        par_note("%s domain=%d", cls, domain);
        CALL(cuStreamSetAttribute, "domain", (s, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &value));
        par_note("%s domain=%d", cls, domain);
        CALLO(cuStreamGetAttribute, "domain", (s, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &value),
              OUT_I(value.memSyncDomain));
    }
    static const unsigned char maps[][2] = {{0, 0}, {0, 1}, {1, 0},  {3, 3},
                                            {0, 4}, {4, 0}, {255, 1}};
    for (size_t i = 0; i < COUNT(maps); i++) {
        memset(&value, 0, sizeof(value));
        value.memSyncDomainMap.default_ = maps[i][0];
        value.memSyncDomainMap.remote = maps[i][1];
        par_note("%s map=%d,%d", cls, maps[i][0], maps[i][1]);
        CALL(cuStreamSetAttribute, "map", (s, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, &value));
        par_note("%s map=%d,%d", cls, maps[i][0], maps[i][1]);
        CALLO(cuStreamGetAttribute, "map", (s, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, &value),
              OUT_U(value.memSyncDomainMap.default_), OUT_U(value.memSyncDomainMap.remote));
    }
}

SCENARIO(attributes_of, "stream/attributes-of", par_context) {
    CUstream blocking = par_blocking_stream();
    attribute_values("created", par_stream());
    attribute_values("blocking", blocking);
    attribute_values("per-thread", CU_STREAM_PER_THREAD);
    attribute_values("legacy", CU_STREAM_LEGACY);
}

SCENARIO(attributes_copied, "stream/attributes-copied", par_context) {
    CUstream s, t, elsewhere;
    CUstreamAttrValue value;
    SETUP(cuStreamCreateWithPriority, (&s, 1, -3));
    t = par_stream();
    CUdeviceptr d = par_alloc(4096);
    set_window(s, "ok", d, 4096, 0.5f, 2, 1);
    memset(&value, 0, sizeof(value));
    value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
    SETUP(cuStreamSetAttribute, (s, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &value));
    value.memSyncDomainMap.default_ = 2;
    value.memSyncDomainMap.remote = 3;
    SETUP(cuStreamSetAttribute, (s, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, &value));
    CALL(cuStreamCopyAttributes, "all", (t, s));
    memset(&value, 0, sizeof(value));
    SETUP(cuStreamGetAttribute, (t, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value));
    see_window(&value);
    CALLO(cuStreamGetAttribute, "copied", (t, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value),
          OUT_I(value.priority));
    CALLO(cuStreamGetAttribute, "copied", (t, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &value),
          OUT_I(value.memSyncDomain));
    CALLO(cuStreamGetAttribute, "copied", (t, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, &value),
          OUT_U(value.memSyncDomainMap.default_), OUT_U(value.memSyncDomainMap.remote));
    CALL(cuStreamCopyAttributes, "to-null-stream", (NULL, s));
    CALL(cuStreamCopyAttributes, "to-legacy", (CU_STREAM_LEGACY, s));
    CALL(cuStreamCopyAttributes, "to-per-thread", (CU_STREAM_PER_THREAD, s));
    par_new_context();
    SETUP(cuStreamCreate, (&elsewhere, 1));
    CALL(cuStreamCopyAttributes, "to-other-context", (elsewhere, s));
    CALL(cuStreamCopyAttributes, "from-other-context", (s, elsewhere));
}
