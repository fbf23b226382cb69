/* Green contexts and their resources; logs, core dump settings, notifications, the profiler. */
#include "world.h"

#define GREEN() OF(CUgreenCtx, GREEN_CONTEXTS)

/* What questions and splits gave; programs carry them around, and may change them. */
static CUdevResource resources[6];

static CUdevResource *draw_resource(void) {
    return &resources[byte() % (sizeof resources / sizeof resources[0])];
}

static CUdevResourceType draw_type(void) {
    return (CUdevResourceType)(byte() < 0xf0 ? CU_DEV_RESOURCE_TYPE_SM : byte() & 7);
}

static void ask_resource(void) {
    switch (byte() % 3) {
    case 0:
        cuDeviceGetDevResource(draw_device(), maybe(draw_resource()), draw_type());
        break;
    case 1:
        cuCtxGetDevResource(CTX(), maybe(draw_resource()), draw_type());
        break;
    default:
        cuGreenCtxGetDevResource(GREEN(), maybe(draw_resource()), draw_type());
        break;
    }
}

static void split(void) {
    unsigned groups = byte() & 3;
    CUdevResource parts[3], input = *draw_resource();
    memset(parts, 0, sizeof parts);
    unsigned room = groups;
    if (cuDevSmResourceSplitByCount(byte() < 0xe0 ? parts : NULL, maybe(&groups), &input,
                                    byte() & 1 ? draw_resource() : NULL,
                                    byte() < 0xc0 ? 0 : byte() & 7, byte()) != CUDA_SUCCESS)
        return;
    for (unsigned i = 0; i < groups && i < room; i++)
        *draw_resource() = parts[i];
}

static void damage(void) {
    ((unsigned char *)draw_resource())[byte() % sizeof *resources] ^= byte();
}

static void describe(void) {
    CUdevResourceDesc made = NULL;
    CUdevResource list[2] = {*draw_resource(), *draw_resource()};
    cuDevResourceGenerateDesc(maybe(&made), maybe(list), byte() % 3);
    remember(RESOURCE_DESCRIPTIONS, (uintptr_t)made);
}

static void green_create(void) {
    CUgreenCtx made = NULL;
    CUcontext context = NULL;
    cuGreenCtxCreate(maybe(&made), OF(CUdevResourceDesc, RESOURCE_DESCRIPTIONS), draw_device(),
                     byte() < 0xf0 ? CU_GREEN_CTX_DEFAULT_STREAM : byte());
    remember(GREEN_CONTEXTS, (uintptr_t)made);
    cuCtxFromGreenCtx(maybe(&context), byte() & 1 ? made : GREEN());
    remember(CONTEXTS, (uintptr_t)context);
}

static void green_destroy(void) {
    cuGreenCtxDestroy(GREEN());
}

static void green_use(void) {
    CUstream made = NULL;
    CUgreenCtx owner;
    unsigned long long id;
    switch (byte() % 5) {
    case 0:
        cuGreenCtxStreamCreate(maybe(&made), GREEN(),
                               byte() < 0xf0 ? CU_STREAM_NON_BLOCKING : byte(), (int)byte() - 8);
        remember(STREAMS, (uintptr_t)made);
        break;
    case 1:
        cuStreamGetGreenCtx(STREAM(), maybe(&owner));
        break;
    case 2:
        cuGreenCtxGetId(GREEN(), maybe(&id));
        break;
    case 3:
        cuGreenCtxRecordEvent(GREEN(), EVENT());
        cuCtxRecordEvent(CTX(), EVENT());
        break;
    default:
        cuGreenCtxWaitEvent(GREEN(), EVENT());
        cuCtxWaitEvent(CTX(), EVENT());
        break;
    }
}

/* Of one context only, and nothing that has a file written. */
static void core_dump(void) {
    unsigned char value[64] = {0};
    size_t size = byte() < 0xc0 ? sizeof value : draw_little(sizeof value);
    CUcoredumpSettings setting = (CUcoredumpSettings)(byte() % 9);
    unsigned pick = byte();
    if (pick & 1)
        cuCoredumpGetAttribute(setting, maybe(value), maybe(&size));
    else if (pick & 2)
        cuCoredumpGetAttributeGlobal(setting, maybe(value), maybe(&size));
    else if (setting == CU_COREDUMP_LIGHTWEIGHT || setting == CU_COREDUMP_TRIGGER_HOST ||
             setting == CU_COREDUMP_GENERATION_FLAGS)
        cuCoredumpSetAttribute(setting, maybe(value), maybe(&size));
}

static void logs(void) {
    static CUlogIterator at;
    char text[200];
    size_t size = draw_little(sizeof text + 1);
    if (byte() & 1)
        cuLogsCurrent(maybe(&at), byte() < 0xf8 ? 0 : 1);
    else if (byte() & 1)
        cuLogsDumpToMemory(maybe(&at), maybe(text), maybe(&size), byte() < 0xf8 ? 0 : 1);
    else
        cuLogsDumpToFile(maybe(&at), "/dev/null", byte() < 0xf8 ? 0 : 1);
}

static void CUDA_CB heard(void *data, CUlogLevel level, char *message, size_t length) {
    (void)level;
    *(volatile unsigned char *)data ^= length && message ? 1 : 0;
}

static void CUDA_CB noticed(CUasyncNotificationInfo *info, void *data,
                            CUasyncCallbackHandle callback) {
    (void)info;
    (void)data;
    (void)callback;
}

/* Registered without an output, nobody could end it. */
static void log_callback(void) {
    static unsigned char word;
    CUlogsCallbackHandle made = NULL;
    if (byte() & 1)
        cuLogsRegisterCallback(byte() < 0xf8 ? heard : NULL, &word, &made);
    else
        cuLogsUnregisterCallback(OF(CUlogsCallbackHandle, LOG_CALLBACKS));
    remember(LOG_CALLBACKS, (uintptr_t)made);
}

static void notification(void) {
    CUasyncCallbackHandle made = NULL;
    if (byte() & 1)
        cuDeviceRegisterAsyncNotification(draw_device(), byte() < 0xf8 ? noticed : NULL, NULL,
                                          maybe(&made));
    else
        cuDeviceUnregisterAsyncNotification(draw_device(),
                                            OF(CUasyncCallbackHandle, NOTIFICATIONS));
    remember(NOTIFICATIONS, (uintptr_t)made);
}

static void profiler(void) {
    if (byte() & 1)
        cuProfilerStart();
    else
        cuProfilerStop();
}

static const call_fn list[] = {
    ask_resource, ask_resource, split,        split,     damage,        describe,
    describe,     green_create, green_create, green_use, green_use,     logs,
    core_dump,    log_callback, notification, profiler,  green_destroy,
};
const struct calls report_calls = {list, sizeof list / sizeof list[0]};
