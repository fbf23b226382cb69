/* Contexts and devices. */
#include "world.h"

static void got_context(CUcontext context) {
    remember(CONTEXTS, (uintptr_t)context);
}

static void context_create(void) {
    CUcontext made = NULL;
    cuCtxCreate_v2(maybe(&made), draw_flags(), draw_device());
    got_context(made);
}

static void context_create_v4(void) {
    CUcontext made = NULL;
    CUctxCreateParams params = {0};
    cuCtxCreate_v4(&made, maybe(&params), draw_flags(), draw_device());
    got_context(made);
}

static void context_destroy(void) {
    cuCtxDestroy_v2(CTX());
}

static void context_push(void) {
    cuCtxPushCurrent_v2(CTX());
}

static void context_pop(void) {
    CUcontext popped = NULL;
    cuCtxPopCurrent_v2(maybe(&popped));
}

static void context_set(void) {
    cuCtxSetCurrent(CTX());
}

static void context_attach(void) {
    CUcontext same = NULL;
    if (byte() & 1)
        cuCtxAttach(maybe(&same), draw_flags());
    else
        cuCtxDetach(CTX());
}

static void context_questions(void) {
    CUcontext current;
    CUdevice device;
    unsigned number;
    unsigned long long id;
    size_t limit;
    int least, greatest;
    CUfunc_cache cache;
    cuCtxGetCurrent(maybe(&current));
    cuCtxGetDevice(maybe(&device));
    cuCtxGetFlags(maybe(&number));
    cuCtxGetApiVersion(CTX(), maybe(&number));
    cuCtxGetId(CTX(), maybe(&id));
    cuCtxGetLimit(maybe(&limit), (CUlimit)byte());
    cuCtxGetStreamPriorityRange(maybe(&least), maybe(&greatest));
    cuCtxGetCacheConfig(maybe(&cache));
}

static void context_settings(void) {
    cuCtxSetFlags(draw_flags());
    cuCtxSetLimit((CUlimit)(byte() % 12), draw_size());
    cuCtxSetCacheConfig((CUfunc_cache)byte());
}

static void context_synchronize(void) {
    cuCtxSynchronize();
}

static void context_event(void) {
    if (byte() & 1)
        cuCtxRecordEvent(CTX(), EVENT());
    else
        cuCtxWaitEvent(CTX(), EVENT());
}

static void primary_retain(void) {
    CUcontext primary = NULL;
    cuDevicePrimaryCtxRetain(maybe(&primary), draw_device());
    got_context(primary);
    if (byte() & 1)
        cuCtxSetCurrent(primary);
}

static void primary_release(void) {
    cuDevicePrimaryCtxRelease_v2(draw_device());
}

static void primary_reset(void) {
    unsigned pick = byte();
    unsigned flags;
    int active;
    if (pick < 0x60)
        cuDevicePrimaryCtxReset_v2(draw_device());
    else if (pick < 0xb0)
        cuDevicePrimaryCtxSetFlags_v2(draw_device(), draw_flags());
    else
        cuDevicePrimaryCtxGetState(draw_device(), maybe(&flags), maybe(&active));
}

static void peers(void) {
    int can;
    unsigned pick = byte();
    if (pick < 0x60)
        cuCtxEnablePeerAccess(CTX(), draw_flags());
    else if (pick < 0xb0)
        cuCtxDisablePeerAccess(CTX());
    else
        cuDeviceCanAccessPeer(maybe(&can), draw_device(), draw_device());
}

static void device_questions(void) {
    char name[64];
    int number;
    size_t total, free;
    CUdevice device;
    cuDeviceGet(maybe(&device), (int)byte() - 2);
    cuDeviceGetName(maybe(name), (int)byte() % (int)sizeof name, draw_device());
    cuDeviceGetAttribute(maybe(&number), (CUdevice_attribute)byte(), draw_device());
    cuDeviceTotalMem_v2(maybe(&total), draw_device());
    cuDeviceGetPCIBusId(name, (int)byte() % (int)sizeof name, draw_device());
    char id[16];
    draw_bytes(&world.input, id, sizeof id - 1);
    id[sizeof id - 1] = '\0';
    cuDeviceGetByPCIBusId(maybe(&device), id);
    cuMemGetInfo_v2(maybe(&free), maybe(&total));
}

static const call_fn list[] = {
    context_create,   context_create_v4,   context_destroy, context_push,
    context_pop,      context_set,         context_attach,  context_questions,
    context_settings, context_synchronize, context_event,   primary_retain,
    primary_release,  primary_reset,       peers,           device_questions,
};
const struct calls context_calls = {list, sizeof list / sizeof list[0]};
