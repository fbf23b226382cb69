/*
 * What may be called while a stream captures: each call alone, during a capture of its own on a
 * stream that the call does not name, in each mode, from the capturing thread and from another one.
 */
#include "capture_seen.h"

#include <pthread.h>
#include <semaphore.h>

static struct ground {
    CUstream captured; /* captures while an attempt is made */
    CUstream other;    /* non-blocking, not captured */
    CUstream blocking; /* not captured, and it orders with the legacy stream */
    CUevent event, timed, spent;
    CUdeviceptr a, b, reserved, spare;
    CUmemGenericAllocationHandle memory;
    CUmemoryPool pool;
    char *pinned, *registered;
    CUgraph graph;
    CUgraphExec exec;
    CUmodule module;
    CUfunction function;
} g;

static char plain[4096] __attribute__((aligned(4096)));
static char registrable[4096] __attribute__((aligned(4096)));

static const char ptx[] = ".version 7.0\n.target sm_52\n.address_size 64\n"
                          ".visible .global .u32 word = 7;\n"
                          ".visible .entry empty()\n{\n  ret;\n}\n";

static void CUDAAPI nothing(void *unused) {
}

static void CUDAAPI no_callback(CUstream stream, CUresult status, void *unused) {
}

static CUdeviceptr p, q;
static size_t size, total;
static void *host;
static CUstream s;
static CUevent e;
static int number;
static unsigned flags;

#define ATTEMPT(name, ...)                                                                         \
    static void name(void) {                                                                       \
        __VA_ARGS__;                                                                               \
    }

/* ---- Memory --------------------------------------------------------------------------------- */

ATTEMPT(alloc, CALLO(cuMemAlloc_v2, "other", (&p, 64), OUT_C(p)))
ATTEMPT(alloc_bad, CALLO(cuMemAlloc_v2, "zero-size", (&p, 0), OUT_C(p)))
ATTEMPT(alloc_null, CALL(cuMemAlloc_v2, "null-out", (NULL, 64)))
ATTEMPT(alloc_pitch, CALLO(cuMemAllocPitch_v2, "other", (&p, &size, 64, 4, 4), OUT_C(p)))
ATTEMPT(alloc_managed,
        CALLO(cuMemAllocManaged, "other", (&p, 4096, CU_MEM_ATTACH_GLOBAL), OUT_C(p)))
ATTEMPT(host_alloc, CALLO(cuMemHostAlloc, "other", (&host, 4096, 0), OUT_C(host)))
ATTEMPT(alloc_host, CALLO(cuMemAllocHost_v2, "other", (&host, 4096), OUT_C(host)))
ATTEMPT(host_register, CALL(cuMemHostRegister_v2, "other", (plain, 4096, 0));
        par.api->cuMemHostUnregister(plain))
ATTEMPT(host_unregister, CALL(cuMemHostUnregister, "other", (g.registered));
        par.api->cuMemHostRegister_v2(registrable, 4096, 0))
ATTEMPT(free_null, CALL(cuMemFree_v2, "null", (0)))
ATTEMPT(free_bad, CALL(cuMemFree_v2, "random", (0x1000)))
ATTEMPT(free_host_bad, CALL(cuMemFreeHost, "random", ((void *)0x1000)))
ATTEMPT(copy, CALL(cuMemcpy, "device-device", (g.a, g.b, 16)))
ATTEMPT(copy_htod, CALL(cuMemcpyHtoD_v2, "other", (g.a, plain, 16)))
ATTEMPT(copy_htod_pinned, CALL(cuMemcpyHtoD_v2, "pinned", (g.a, g.pinned, 16)))
ATTEMPT(copy_dtoh, CALL(cuMemcpyDtoH_v2, "other", (plain, g.a, 16)))
ATTEMPT(copy_dtod, CALL(cuMemcpyDtoD_v2, "other", (g.a, g.b, 16)))
ATTEMPT(copy_zero, CALL(cuMemcpyHtoD_v2, "zero-size", (g.a, plain, 0)))
ATTEMPT(copy_bad, CALL(cuMemcpyHtoD_v2, "random", (0x1000, plain, 16)))
ATTEMPT(copy_ptds, CALL(cuMemcpyHtoD_v2_ptds, "other", (g.a, plain, 16)))
ATTEMPT(copy_2d, CUDA_MEMCPY2D c; memset(&c, 0, sizeof(c)); c.srcMemoryType = CU_MEMORYTYPE_DEVICE;
        c.srcDevice = g.a; c.dstMemoryType = CU_MEMORYTYPE_DEVICE; c.dstDevice = g.b;
        c.WidthInBytes = 16; c.Height = 1; CALL(cuMemcpy2D_v2, "other", (&c)))
ATTEMPT(copy_async, CALL(cuMemcpyHtoDAsync_v2, "other", (g.a, g.pinned, 16, g.other)))
ATTEMPT(copy_async_plain, CALL(cuMemcpyHtoDAsync_v2, "pageable", (g.a, plain, 16, g.other)))
ATTEMPT(set, CALL(cuMemsetD8_v2, "other", (g.a, 1, 16)))
ATTEMPT(set_2d, CALL(cuMemsetD2D32_v2, "other", (g.a, 64, 1, 4, 2)))
ATTEMPT(set_async, CALL(cuMemsetD8Async, "other", (g.a, 1, 16, g.other)))
ATTEMPT(set_blocking, CALL(cuMemsetD8Async, "blocking", (g.a, 1, 16, g.blocking)))
ATTEMPT(set_legacy, CALL(cuMemsetD8Async, "legacy", (g.a, 1, 16, CU_STREAM_LEGACY)))
ATTEMPT(get_info, CALL(cuMemGetInfo_v2, "other", (&size, &total)))
ATTEMPT(get_range, CALL(cuMemGetAddressRange_v2, "other", (&p, &size, g.a)))
ATTEMPT(pointer_attribute,
        CALL(cuPointerGetAttribute, "other", (&number, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, g.a)))
ATTEMPT(pointer_set, flags = 1;
        CALL(cuPointerSetAttribute, "other", (&flags, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, g.b)))
ATTEMPT(host_pointer, CALL(cuMemHostGetDevicePointer_v2, "other", (&p, g.pinned, 0)))
ATTEMPT(host_flags, CALL(cuMemHostGetFlags, "other", (&flags, g.pinned)))
ATTEMPT(ipc_memory, CUipcMemHandle h; CALL(cuIpcGetMemHandle, "other", (&h, g.a)))
ATTEMPT(reserve, CALLO(cuMemAddressReserve, "other", (&p, PAR_2M, 0, 0, 0), OUT_C(p));
        if (p != 0) par.api->cuMemAddressFree(p, PAR_2M))
ATTEMPT(create, CUmemGenericAllocationHandle h = 0; CUmemAllocationProp prop = par_device_prop();
        CALLO(cuMemCreate, "other", (&h, PAR_2M, &prop, 0), OUT_C(h));
        if (h != 0) par.api->cuMemRelease(h))
ATTEMPT(map, CALL(cuMemMap, "other", (g.reserved, PAR_2M, 0, g.memory, 0)))
ATTEMPT(set_access, CUmemAccessDesc access = par_device_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        CALL(cuMemSetAccess, "other", (g.reserved, PAR_2M, &access, 1)))
ATTEMPT(unmap, CALL(cuMemUnmap, "other", (g.reserved, PAR_2M)))
ATTEMPT(pool_create, CUmemoryPool pool = NULL; CUmemPoolProps props;
        memset(&props, 0, sizeof(props)); props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
        props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        CALLO(cuMemPoolCreate, "other", (&pool, &props), OUT_C(pool));
        CALL(cuMemPoolDestroy, "other", (pool)))
ATTEMPT(pool_trim, CALL(cuMemPoolTrimTo, "other", (g.pool, 0)))
ATTEMPT(pool_set, cuuint64_t zero = 0;
        CALL(cuMemPoolSetAttribute, "other", (g.pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &zero)))
ATTEMPT(pool_alloc, CALLO(cuMemAllocAsync, "other", (&p, 64, g.other), OUT_C(p));
        if (p != 0) CALL(cuMemFreeAsync, "other", (p, g.other)))
ATTEMPT(free_async_alloc, CALL(cuMemFreeAsync, "of-alloc", (g.spare, g.other)))

/* ---- Streams and events --------------------------------------------------------------------- */

ATTEMPT(stream_create, s = NULL; CALL(cuStreamCreate, "other", (&s, 1));
        if (s != NULL) CALL(cuStreamDestroy_v2, "other", (s)))
ATTEMPT(stream_query, CALL(cuStreamQuery, "other", (g.other)))
ATTEMPT(stream_query_blocking, CALL(cuStreamQuery, "blocking", (g.blocking)))
ATTEMPT(stream_query_legacy, CALL(cuStreamQuery, "legacy", (CU_STREAM_LEGACY)))
ATTEMPT(stream_sync, CALL(cuStreamSynchronize, "other", (g.other)))
ATTEMPT(stream_sync_blocking, CALL(cuStreamSynchronize, "blocking", (g.blocking)))
ATTEMPT(stream_sync_legacy, CALL(cuStreamSynchronize, "legacy", (CU_STREAM_LEGACY)))
ATTEMPT(stream_flags, CALL(cuStreamGetFlags, "other", (g.other, &flags)))
ATTEMPT(stream_wait, CALL(cuStreamWaitEvent, "other", (g.other, g.event, 0)))
ATTEMPT(stream_callback, CALL(cuStreamAddCallback, "other", (g.other, no_callback, NULL, 0)))
ATTEMPT(host_function, CALL(cuLaunchHostFunc, "other", (g.other, nothing, NULL)))
ATTEMPT(stream_set, CUstreamAttrValue value; memset(&value, 0, sizeof(value));
        CALL(cuStreamSetAttribute, "other", (g.other, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value)))
ATTEMPT(event_create, e = NULL; CALL(cuEventCreate, "other", (&e, 0));
        if (e != NULL) CALL(cuEventDestroy_v2, "other", (e)))
ATTEMPT(event_query, CALL(cuEventQuery, "other", (g.event)))
ATTEMPT(event_query_never, CALL(cuEventQuery, "never-recorded", (g.spent)))
ATTEMPT(event_sync, CALL(cuEventSynchronize, "other", (g.event)))
ATTEMPT(event_elapsed, float ms; CALL(cuEventElapsedTime, "other", (&ms, g.event, g.timed)))
ATTEMPT(event_record, CALL(cuEventRecord, "other", (g.event, g.other)))
ATTEMPT(event_record_legacy, CALL(cuEventRecord, "legacy", (g.event, CU_STREAM_LEGACY)))
ATTEMPT(context_record, CALL(cuCtxRecordEvent, "other", (par.primary, g.event)))
ATTEMPT(context_wait, CALL(cuCtxWaitEvent, "other", (par.primary, g.event)))

/* ---- Contexts and devices ------------------------------------------------------------------- */

ATTEMPT(context_sync, CALL(cuCtxSynchronize, "other", ()))
ATTEMPT(context_limit, CALL(cuCtxSetLimit, "stack", (CU_LIMIT_STACK_SIZE, 1024)))
ATTEMPT(context_limit_heap, CALL(cuCtxSetLimit, "heap", (CU_LIMIT_MALLOC_HEAP_SIZE, 16 << 20)))
ATTEMPT(context_get_limit, CALL(cuCtxGetLimit, "stack", (&size, CU_LIMIT_STACK_SIZE)))
ATTEMPT(context_cache, CALL(cuCtxSetCacheConfig, "other", (CU_FUNC_CACHE_PREFER_NONE)))
ATTEMPT(context_range, int least; CALL(cuCtxGetStreamPriorityRange, "other", (&least, &number)))
ATTEMPT(context_reset_l2, CALL(cuCtxResetPersistingL2Cache, "other", ()))
ATTEMPT(context_stack, CUcontext c; CALL(cuCtxPopCurrent_v2, "other", (&c));
        CALL(cuCtxPushCurrent_v2, "other", (c)))
ATTEMPT(context_primary, CUcontext c; CALL(cuDevicePrimaryCtxRetain, "other", (&c, 0));
        CALL(cuDevicePrimaryCtxRelease_v2, "other", (0)))
ATTEMPT(graph_memory, cuuint64_t used;
        CALL(cuDeviceGetGraphMemAttribute, "other", (0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used));
        CALL(cuDeviceGraphMemTrim, "other", (0)))
ATTEMPT(profiler, CALL(cuProfilerStart, "other", ()); CALL(cuProfilerStop, "other", ()))

/* ---- What needs other chapters' ground ------------------------------------------------------ */

ATTEMPT(graph_create, CUgraph made = NULL; CALL(cuGraphCreate, "other", (&made, 0));
        if (made != NULL) CALL(cuGraphDestroy, "other", (made)))
ATTEMPT(graph_instantiate, CUgraphExec made = NULL;
        CALL(cuGraphInstantiateWithFlags, "other", (&made, g.graph, 0));
        if (made != NULL) CALL(cuGraphExecDestroy, "other", (made)))
ATTEMPT(graph_launch, CALL(cuGraphLaunch, "other", (g.exec, g.other)))
ATTEMPT(graph_upload, CALL(cuGraphUpload, "other", (g.exec, g.other)))
ATTEMPT(graph_update, CUgraphExecUpdateResultInfo info;
        CALL(cuGraphExecUpdate_v2, "other", (g.exec, g.graph, &info)))
ATTEMPT(module_load, CUmodule made = NULL; CALL(cuModuleLoadData, "other", (&made, ptx));
        if (made != NULL) CALL(cuModuleUnload, "other", (made)))
ATTEMPT(module_function, CUfunction f; CALL(cuModuleGetFunction, "other", (&f, g.module, "empty")))
ATTEMPT(module_global, CALL(cuModuleGetGlobal_v2, "other", (&p, &size, g.module, "word")))
ATTEMPT(function_attribute,
        CALL(cuFuncGetAttribute, "other", (&number, CU_FUNC_ATTRIBUTE_NUM_REGS, g.function)))
ATTEMPT(function_set, CALL(cuFuncSetAttribute, "other",
                           (g.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024)))
ATTEMPT(function_load, CALL(cuFuncLoad, "other", (g.function)))
ATTEMPT(occupancy,
        CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, "other", (&number, g.function, 32, 0)))
ATTEMPT(library_load, CUlibrary made = NULL;
        CALL(cuLibraryLoadData, "other", (&made, ptx, NULL, NULL, 0, NULL, NULL, 0));
        if (made != NULL) CALL(cuLibraryUnload, "other", (made)))
ATTEMPT(array_create, CUarray made = NULL; CUDA_ARRAY_DESCRIPTOR d = {4, 4, CU_AD_FORMAT_FLOAT, 1};
        CALL(cuArrayCreate_v2, "other", (&made, &d));
        if (made != NULL) CALL(cuArrayDestroy, "other", (made)))

/* ---- More of the same kinds ------------------------------------------------------------------ */

ATTEMPT(pool_access, CUmemAccessDesc access = par_device_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        CALL(cuMemPoolSetAccess, "other", (g.pool, &access, 1)))
ATTEMPT(pool_get, cuuint64_t value;
        CALL(cuMemPoolGetAttribute, "other", (g.pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value)))
ATTEMPT(pool_get_access, CUmemLocation where = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
        CUmemAccess_flags got; CALL(cuMemPoolGetAccess, "other", (&got, g.pool, &where)))
ATTEMPT(pool_current, CUmemoryPool pool; CALL(cuDeviceGetMemPool, "other", (&pool, 0));
        CALL(cuDeviceSetMemPool, "other", (0, g.pool)))
ATTEMPT(pool_create_bad, CALL(cuMemPoolCreate, "null-both", (NULL, NULL)))
ATTEMPT(pool_export, int fd = -1; CALL(cuMemPoolExportToShareableHandle, "other",
                                       (&fd, g.pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0)))
ATTEMPT(pool_alloc_from,
        CALLO(cuMemAllocFromPoolAsync, "other", (&p, 64, g.pool, g.other), OUT_C(p)))
ATTEMPT(free_async_null, CALL(cuMemFreeAsync, "null", (0, g.other)))
ATTEMPT(free_async_random, CALL(cuMemFreeAsync, "random", (0x1000, g.other)))
ATTEMPT(alloc_async_null, CALL(cuMemAllocAsync, "null-out", (NULL, 64, g.other)))
ATTEMPT(alloc_async_zero, CALLO(cuMemAllocAsync, "zero-size", (&p, 0, g.other), OUT_C(p)))
ATTEMPT(ctx_flags, CALL(cuCtxSetFlags, "other", (CU_CTX_SCHED_AUTO)))
ATTEMPT(ctx_shared,
        CALL(cuCtxSetSharedMemConfig, "other", (CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE)))
ATTEMPT(ctx_get_cache, CUfunc_cache got; CALL(cuCtxGetCacheConfig, "other", (&got)))
ATTEMPT(ctx_peer, CALL(cuCtxEnablePeerAccess, "itself", (par.primary, 0)))
ATTEMPT(ctx_limit_bad, CALL(cuCtxSetLimit, "bad-limit", ((CUlimit)99, 0)))
ATTEMPT(memory_release, CUmemGenericAllocationHandle h;
        CUmemAllocationProp prop = par_device_prop(); SETUP(cuMemCreate, (&h, PAR_2M, &prop, 0));
        CALL(cuMemRelease, "other", (h)))
ATTEMPT(address_free, CUdeviceptr r = par_reserve(PAR_2M);
        CALL(cuMemAddressFree, "other", (r, PAR_2M)))
ATTEMPT(copy_peer, CALL(cuMemcpyPeer, "other", (g.a, par.primary, g.b, par.primary, 16)))
ATTEMPT(copy_3d, CUDA_MEMCPY3D c; memset(&c, 0, sizeof(c)); CALL(cuMemcpy3D_v2, "empty", (&c)))
ATTEMPT(managed_advice, CALL(cuMemAdvise, "random", (0x1000, 16, CU_MEM_ADVISE_SET_READ_MOSTLY, 0)))
ATTEMPT(array_3d, CUarray made = NULL; CUDA_ARRAY3D_DESCRIPTOR d; memset(&d, 0, sizeof(d));
        d.Width = d.Height = 4; d.Format = CU_AD_FORMAT_FLOAT; d.NumChannels = 1;
        CALL(cuArray3DCreate_v2, "other", (&made, &d));
        if (made != NULL) CALL(cuArrayDestroy, "other", (made)))
ATTEMPT(array_mipmap, CUmipmappedArray made = NULL; CUDA_ARRAY3D_DESCRIPTOR d;
        memset(&d, 0, sizeof(d)); d.Width = d.Height = 4; d.Format = CU_AD_FORMAT_FLOAT;
        d.NumChannels = 1; CALL(cuMipmappedArrayCreate, "other", (&made, &d, 2));
        if (made != NULL) CALL(cuMipmappedArrayDestroy, "other", (made)))
ATTEMPT(array_destroy, CALL(cuArrayDestroy, "null", (NULL)))
ATTEMPT(mipmap_destroy, CALL(cuMipmappedArrayDestroy, "null", (NULL)))
ATTEMPT(texture, CUtexObject made; CALL(cuTexObjectCreate, "null-all", (&made, NULL, NULL, NULL)))
ATTEMPT(exec_destroy, CALL(cuGraphExecDestroy, "null", (NULL)))
ATTEMPT(instantiate_params, CUgraphExec made = NULL; CUDA_GRAPH_INSTANTIATE_PARAMS params;
        memset(&params, 0, sizeof(params));
        CALL(cuGraphInstantiateWithParams, "null-graph", (&made, NULL, &params)))
ATTEMPT(import_memory, CUexternalMemory made; CUDA_EXTERNAL_MEMORY_HANDLE_DESC d;
        memset(&d, 0, sizeof(d)); CALL(cuImportExternalMemory, "empty", (&made, &d)))
ATTEMPT(import_semaphore, CUexternalSemaphore made; CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC d;
        memset(&d, 0, sizeof(d)); CALL(cuImportExternalSemaphore, "empty", (&made, &d)))
ATTEMPT(destroy_memory, CALL(cuDestroyExternalMemory, "null", (NULL)))
ATTEMPT(destroy_semaphore, CALL(cuDestroyExternalSemaphore, "null", (NULL)))
ATTEMPT(ipc_open, CUipcMemHandle h; memset(&h, 0, sizeof(h));
        CALL(cuIpcOpenMemHandle_v2, "empty", (&p, h, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)))
ATTEMPT(ipc_close, CALL(cuIpcCloseMemHandle, "random", (0x1000)))
ATTEMPT(ipc_event, CUipcEventHandle h; memset(&h, 0, sizeof(h));
        CALL(cuIpcOpenEventHandle, "empty", (&e, h)))
ATTEMPT(green_resource, CUdevResource r;
        CALL(cuDeviceGetDevResource, "other", (0, &r, CU_DEV_RESOURCE_TYPE_SM)))
ATTEMPT(core_dump, bool on = false; size = sizeof(on);
        CALL(cuCoredumpGetAttribute, "other", (CU_COREDUMP_ENABLE_ON_EXCEPTION, &on, &size)))
ATTEMPT(link_create, CUlinkState made = NULL;
        CALL(cuLinkCreate_v2, "other", (0, NULL, NULL, &made));
        if (made != NULL) CALL(cuLinkDestroy, "other", (made)))
ATTEMPT(module_unload, CALL(cuModuleUnload, "null", (NULL)))
ATTEMPT(library_unload, CALL(cuLibraryUnload, "null", (NULL)))
ATTEMPT(module_load_bad, CUmodule made; CALL(cuModuleLoadData, "garbage", (&made, "garbage")))

typedef void (*attempt)(void);

static const attempt more[] = {
    pool_access,      pool_get,          pool_get_access,    pool_current,      pool_create_bad,
    pool_export,      pool_alloc_from,   free_async_null,    free_async_random, alloc_async_null,
    alloc_async_zero, ctx_flags,         ctx_shared,         ctx_get_cache,     ctx_peer,
    ctx_limit_bad,    memory_release,    address_free,       copy_peer,         copy_3d,
    managed_advice,   array_3d,          array_mipmap,       array_destroy,     mipmap_destroy,
    texture,          exec_destroy,      instantiate_params, import_memory,     import_semaphore,
    destroy_memory,   destroy_semaphore, ipc_open,           ipc_close,         ipc_event,
    green_resource,   core_dump,         link_create,        module_unload,     library_unload,
    module_load_bad,
};

static const attempt core[] = {
    alloc,
    alloc_bad,
    alloc_null,
    alloc_pitch,
    alloc_managed,
    host_alloc,
    alloc_host,
    host_register,
    host_unregister,
    free_null,
    free_bad,
    free_host_bad,
    copy,
    copy_htod,
    copy_htod_pinned,
    copy_dtoh,
    copy_dtod,
    copy_zero,
    copy_bad,
    copy_ptds,
    copy_2d,
    copy_async,
    copy_async_plain,
    set,
    set_2d,
    set_async,
    set_blocking,
    set_legacy,
    get_info,
    get_range,
    pointer_attribute,
    pointer_set,
    host_pointer,
    host_flags,
    ipc_memory,
    reserve,
    create,
    map,
    set_access,
    unmap,
    pool_create,
    pool_trim,
    pool_set,
    pool_alloc,
    free_async_alloc,
    stream_create,
    stream_query,
    stream_query_blocking,
    stream_query_legacy,
    stream_sync,
    stream_sync_blocking,
    stream_sync_legacy,
    stream_flags,
    stream_wait,
    stream_callback,
    host_function,
    stream_set,
    event_create,
    event_query,
    event_query_never,
    event_sync,
    event_elapsed,
    event_record,
    event_record_legacy,
    context_record,
    context_wait,
    context_sync,
    context_limit,
    context_limit_heap,
    context_get_limit,
    context_cache,
    context_range,
    context_reset_l2,
    context_stack,
    context_primary,
    graph_memory,
    profiler,
};
static const attempt graphs[] = {graph_create, graph_instantiate, graph_launch, graph_upload,
                                 graph_update};
static const attempt modules[] = {module_load,  module_function, module_global, function_attribute,
                                  function_set, function_load,   occupancy,     library_load};
static const attempt arrays[] = {array_create};

/* ---- The capture around an attempt ---------------------------------------------------------- */

enum where { HERE, ELSEWHERE };

static struct {
    CUstreamCaptureMode mode;
    bool blocking, leave;
    sem_t go, done;
    CUresult began, ended;
} capturing;

static void begin_capture(void) {
    CUresult made = par.api->cuStreamCreate(&g.captured, capturing.blocking ? 0 : 1);
    capturing.began =
        made == CUDA_SUCCESS ? par.api->cuStreamBeginCapture_v2(g.captured, capturing.mode) : made;
}

static void end_capture(void) {
    CUgraph made = NULL;
    capturing.ended = par.api->cuStreamEndCapture(g.captured, &made);
    if (made != NULL)
        par.api->cuGraphDestroy(made);
    par.api->cuStreamDestroy_v2(g.captured);
}

/* The thread that captures while the main thread makes the attempts. */
static void *capturer(void *unused) {
    par.api->cuCtxSetCurrent(par.primary);
    for (;;) {
        sem_wait(&capturing.go);
        if (capturing.leave)
            return NULL;
        begin_capture();
        sem_post(&capturing.done);
        sem_wait(&capturing.go);
        end_capture();
        sem_post(&capturing.done);
    }
}

static void step(enum where where, void (*function)(void)) {
    if (where == HERE) {
        function();
        return;
    }
    sem_post(&capturing.go);
    sem_wait(&capturing.done);
}

static void attempts(enum where where, const attempt *list, size_t count) {
    pthread_t thread;
    sem_init(&capturing.go, 0, 0);
    sem_init(&capturing.done, 0, 0);
    if (where == ELSEWHERE)
        pthread_create(&thread, NULL, capturer, NULL);
    for (size_t i = 0; i < count; i++) {
        CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
        step(where, begin_capture);
        list[i]();
        CUresult asked = par.api->cuStreamIsCapturing(g.captured, &status);
        step(where, end_capture);
        par_see("capture", "began %s asked %s status %d ended %s", result_text(capturing.began),
                result_text(asked), (int)status, result_text(capturing.ended));
    }
    if (where == ELSEWHERE) {
        capturing.leave = true;
        sem_post(&capturing.go);
        pthread_join(thread, NULL);
    }
}

static void make_ground(void) {
    par_context();
    g.other = par_stream();
    SETUP(cuStreamCreate, (&g.blocking, 0));
    SETUP(cuEventCreate, (&g.event, 0));
    SETUP(cuEventCreate, (&g.timed, 0));
    SETUP(cuEventCreate, (&g.spent, 0));
    SETUP(cuEventRecord, (g.event, g.other));
    SETUP(cuEventRecord, (g.timed, g.other));
    g.a = par_alloc(4096);
    g.b = par_alloc(4096);
    g.spare = par_alloc(64);
    g.pinned = par_pinned(4096);
    g.registered = registrable;
    SETUP(cuMemHostRegister_v2, (registrable, 4096, 0));
    g.reserved = par_reserve(PAR_2M);
    g.memory = par_create(PAR_2M, CU_MEM_HANDLE_TYPE_NONE);
    SETUP(cuDeviceGetDefaultMemPool, (&g.pool, par.dev));
    SETUP(cuCtxSynchronize, ());
}

#define SWEEP(name, title, where, captured, is_blocking, own)                                      \
    SCENARIO(name, title) {                                                                        \
        CUstreamCaptureMode mode = own;                                                            \
        make_ground();                                                                             \
        capturing.mode = captured;                                                                 \
        capturing.blocking = is_blocking;                                                          \
        SETUP(cuThreadExchangeStreamCaptureMode, (&mode));                                         \
        attempts(where, core, COUNT(core));                                                        \
    }
#define GLOBAL_MODE  CU_STREAM_CAPTURE_MODE_GLOBAL
#define THREAD_MODE  CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
#define RELAXED_MODE CU_STREAM_CAPTURE_MODE_RELAXED
SWEEP(global_here, "capture/unsafe-global", HERE, GLOBAL_MODE, false, GLOBAL_MODE)
SWEEP(local_here, "capture/unsafe-thread-local", HERE, THREAD_MODE, false, GLOBAL_MODE)
SWEEP(relaxed_here, "capture/unsafe-relaxed", HERE, RELAXED_MODE, false, GLOBAL_MODE)
SWEEP(global_blocking_here, "capture/unsafe-global-blocking", HERE, GLOBAL_MODE, true, GLOBAL_MODE)
SWEEP(relaxed_blocking_here, "capture/unsafe-relaxed-blocking", HERE, RELAXED_MODE, true,
      GLOBAL_MODE)
SWEEP(global_here_local, "capture/unsafe-global-own-thread-local", HERE, GLOBAL_MODE, false,
      THREAD_MODE)
SWEEP(global_here_relaxed, "capture/unsafe-global-own-relaxed", HERE, GLOBAL_MODE, false,
      RELAXED_MODE)
SWEEP(local_here_local, "capture/unsafe-thread-local-own-thread-local", HERE, THREAD_MODE, false,
      THREAD_MODE)
SWEEP(global_elsewhere, "capture/unsafe-elsewhere-global", ELSEWHERE, GLOBAL_MODE, false,
      GLOBAL_MODE)
SWEEP(local_elsewhere, "capture/unsafe-elsewhere-thread-local", ELSEWHERE, THREAD_MODE, false,
      GLOBAL_MODE)
SWEEP(relaxed_elsewhere, "capture/unsafe-elsewhere-relaxed", ELSEWHERE, RELAXED_MODE, false,
      GLOBAL_MODE)
SWEEP(global_elsewhere_local, "capture/unsafe-elsewhere-global-own-thread-local", ELSEWHERE,
      GLOBAL_MODE, false, THREAD_MODE)
SWEEP(global_elsewhere_relaxed, "capture/unsafe-elsewhere-global-own-relaxed", ELSEWHERE,
      GLOBAL_MODE, false, RELAXED_MODE)

SCENARIO(of_graphs, "capture/unsafe-graphs", make_ground) {
    SETUP(cuGraphCreate, (&g.graph, 0));
    (void)PAR_MADE(CUgraphNode, cuGraphAddEmptyNode, g.graph, NULL, 0);
    SETUP(cuGraphInstantiateWithFlags, (&g.exec, g.graph, 0));
    capturing.mode = GLOBAL_MODE;
    attempts(HERE, graphs, COUNT(graphs));
    capturing.mode = RELAXED_MODE;
    attempts(HERE, graphs, COUNT(graphs));
}

SCENARIO(of_modules, "capture/unsafe-modules", make_ground) {
    SETUP(cuModuleLoadData, (&g.module, ptx));
    SETUP(cuModuleGetFunction, (&g.function, g.module, "empty"));
    capturing.mode = GLOBAL_MODE;
    attempts(HERE, modules, COUNT(modules));
    capturing.mode = RELAXED_MODE;
    attempts(HERE, modules, COUNT(modules));
}

SCENARIO(of_arrays, "capture/unsafe-arrays", make_ground) {
    capturing.mode = GLOBAL_MODE;
    attempts(HERE, arrays, COUNT(arrays));
    capturing.mode = RELAXED_MODE;
    attempts(HERE, arrays, COUNT(arrays));
}

SCENARIO(more_global, "capture/unsafe-more-global", make_ground) {
    capturing.mode = GLOBAL_MODE;
    attempts(HERE, more, COUNT(more));
}

SCENARIO(more_relaxed, "capture/unsafe-more-relaxed", make_ground) {
    capturing.mode = RELAXED_MODE;
    attempts(HERE, more, COUNT(more));
}

/* These take something from the ground, so each has its own. */
SCENARIO(frees, "capture/unsafe-frees", make_ground) {
    for (int mode = 0; mode < 3; mode++) {
        CUdeviceptr device = par_alloc(64);
        void *pinned = par_pinned(64);
        CUstream stream = par_stream();
        capturing.mode = (CUstreamCaptureMode)mode;
        begin_capture();
        par_note("mode=%d", mode);
        CALL(cuMemFree_v2, "captured", (device));
        par_note("mode=%d", mode);
        CALL(cuMemFreeHost, "captured", (pinned));
        par_note("mode=%d", mode);
        CALL(cuStreamDestroy_v2, "captured", (stream));
        par_note("mode=%d", mode);
        CALL(cuMemAllocAsync, "captured", (&q, 64, g.captured));
        end_capture();
        par_see("capture", "ended %s", result_text(capturing.ended));
    }
}

SCENARIO(contexts, "capture/unsafe-contexts", make_ground) {
    CUcontext made = NULL;
    capturing.mode = GLOBAL_MODE;
    begin_capture();
    CALLO(cuCtxCreate_v2, "captured", (&made, 0, 0), OUT_C(made));
    if (par_last() == CUDA_SUCCESS) {
        CALL(cuStreamIsCapturing, "other-context-current", (g.captured, (void *)&number));
        CALLO(cuMemAlloc_v2, "other-context-current", (&p, 64), OUT_C(p));
        CALL(cuCtxSynchronize, "other-context-current", ());
        CALL(cuMemsetD8Async, "other-context-legacy", (0, 0, 0, NULL));
        CALL(cuCtxDestroy_v2, "captured", (made));
    }
    end_capture();
    par_see("capture", "ended %s", result_text(capturing.ended));
}
