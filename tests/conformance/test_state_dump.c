/*
 * The state dump is of the whole state: whatever a program makes or sets shows in it, and what it
 * undoes is gone from it. Tests elsewhere compare dumps, and would not see what this one does not
 * ask for.
 */
#include "harness.h"

static char *dump(void) {
    char *text = soft->state_dump();
    assert_non_null(text);
    return text;
}

struct thing {
    const char *name;
    void (*make)(void);
    void (*undo)(void);
};

/* What is made at a time. */
static union {
    CUdeviceptr memory;
    void *host;
    CUcontext context;
    CUstream stream;
    CUevent event;
    CUarray array;
    CUmipmappedArray mipmap;
    CUmemoryPool pool;
    CUmemGenericAllocationHandle handle;
    CUgraph graph;
    CUuserObject object;
    CUlinkState link;
    CUmodule module;
    CUlibrary library;
    CUtexref texture;
    CUexternalMemory external;
    CUexternalSemaphore semaphore;
    CUasyncCallbackHandle notification;
    CUlogsCallbackHandle log;
    unsigned long long number;
    unsigned flags;
    size_t size;
} it;
/* What it stands on, made before the first dump. */
static CUdeviceptr base;
static CUarray array_base;
static CUgraph graph_base;
static CUmemoryPool pool_base;
static CUmodule module_base;

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                          ".visible .entry k(.param .u64 p) { ret; }\n";

/* ---- Contexts and what is set in them -------------------------------------------------------- */

static void make_context(void) {
    OK_CU(cu.cuCtxCreate_v2(&it.context, 0, dev));
}
static void undo_context(void) {
    OK_CU(cu.cuCtxDestroy_v2(it.context));
}
static void push_context(void) {
    OK_CU(cu.cuCtxPushCurrent_v2(ctx));
}
static void pop_context(void) {
    OK_CU(cu.cuCtxPopCurrent_v2(&it.context));
}
static void retain_primary(void) {
    OK_CU(cu.cuDevicePrimaryCtxRetain(&it.context, dev));
}
static void release_primary(void) {
    OK_CU(cu.cuDevicePrimaryCtxRelease_v2(dev));
}
static void set_limit(void) {
    OK_CU(cu.cuCtxGetLimit(&it.size, CU_LIMIT_STACK_SIZE));
    OK_CU(cu.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, it.size + 4096));
}
static void undo_limit(void) {
    OK_CU(cu.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, it.size));
}
static void set_flags(void) {
    OK_CU(cu.cuCtxGetFlags(&it.flags));
    OK_CU(cu.cuCtxSetFlags((it.flags & ~7u) | CU_CTX_SCHED_YIELD));
}
static void undo_flags(void) {
    OK_CU(cu.cuCtxSetFlags(it.flags & ~(unsigned)CU_CTX_MAP_HOST));
}
static void set_cache(void) {
    OK_CU(cu.cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1));
}
static void undo_cache(void) {
    OK_CU(cu.cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_NONE));
}
static void set_coredump(void) {
    bool on = true;
    size_t size = sizeof on;
    OK_CU(cu.cuCoredumpSetAttribute(CU_COREDUMP_ENABLE_ON_EXCEPTION, &on, &size));
}
static void undo_coredump(void) {
    bool on = false;
    size_t size = sizeof on;
    OK_CU(cu.cuCoredumpSetAttribute(CU_COREDUMP_ENABLE_ON_EXCEPTION, &on, &size));
}
static void start_profiler(void) {
    OK_CU(cu.cuProfilerStart());
}
static void stop_profiler(void) {
    OK_CU(cu.cuProfilerStop());
}

/* ---- Streams and events ---------------------------------------------------------------------- */

static void make_stream(void) {
    OK_CU(cu.cuStreamCreate(&it.stream, CU_STREAM_NON_BLOCKING));
}
static void undo_stream(void) {
    OK_CU(cu.cuStreamDestroy_v2(it.stream));
}
static void make_capture(void) {
    make_stream();
    OK_CU(cu.cuStreamBeginCapture_v2(it.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
}
static void undo_capture(void) {
    CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, it.stream);
    OK_CU(cu.cuGraphDestroy(graph));
    undo_stream();
}
static void make_event(void) {
    OK_CU(cu.cuEventCreate(&it.event, CU_EVENT_DISABLE_TIMING));
}
static void undo_event(void) {
    OK_CU(cu.cuEventDestroy_v2(it.event));
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static void make_memory(void) {
    OK_CU(cu.cuMemAlloc_v2(&it.memory, 4096));
}
static void undo_memory(void) {
    OK_CU(cu.cuMemFree_v2(it.memory));
}
static void make_host(void) {
    OK_CU(cu.cuMemHostAlloc(&it.host, 4096, 0));
}
static void undo_host(void) {
    OK_CU(cu.cuMemFreeHost(it.host));
}
static char page[2 * 4096] __attribute__((aligned(4096)));
static void make_registered(void) {
    OK_CU(cu.cuMemHostRegister_v2(page, sizeof page, 0));
}
static void undo_registered(void) {
    OK_CU(cu.cuMemHostUnregister(page));
}
static void make_managed(void) {
    OK_CU(cu.cuMemAllocManaged(&it.memory, 2 * MIB, CU_MEM_ATTACH_GLOBAL));
}
static CUdeviceptr managed_base;
static void set_advice(void) {
    OK_CU(cu.cuMemAdvise(managed_base, 2 * MIB, CU_MEM_ADVISE_SET_READ_MOSTLY, dev));
}
static void undo_advice(void) {
    OK_CU(cu.cuMemAdvise(managed_base, 2 * MIB, CU_MEM_ADVISE_UNSET_READ_MOSTLY, dev));
}
static void make_reservation(void) {
    OK_CU(cu.cuMemAddressReserve(&it.memory, 2 * MIB, 0, 0, 0));
}
static void undo_reservation(void) {
    OK_CU(cu.cuMemAddressFree(it.memory, 2 * MIB));
}
static const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                         .location.type = CU_MEM_LOCATION_TYPE_DEVICE};
static void make_handle(void) {
    OK_CU(cu.cuMemCreate(&it.handle, 2 * MIB, &prop, 0));
}
static void undo_handle(void) {
    OK_CU(cu.cuMemRelease(it.handle));
}
static CUdeviceptr reserved_base;
static CUmemGenericAllocationHandle handle_base;
static void make_mapping(void) {
    OK_CU(cu.cuMemMap(reserved_base, 2 * MIB, 0, handle_base, 0));
}
static void undo_mapping(void) {
    OK_CU(cu.cuMemUnmap(reserved_base, 2 * MIB));
}
static CUdeviceptr mapped_base;
static void give_access(CUmemAccess_flags flags) {
    CUmemAccessDesc access = {.location.type = CU_MEM_LOCATION_TYPE_DEVICE, .flags = flags};
    OK_CU(cu.cuMemSetAccess(mapped_base, 2 * MIB, &access, 1));
}
static void set_access(void) {
    give_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}
static void undo_access(void) {
    give_access(CU_MEM_ACCESS_FLAGS_PROT_NONE);
}
static void set_sync_memops(void) {
    unsigned on = 1;
    OK_CU(cu.cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, base));
}
static void undo_sync_memops(void) {
    unsigned off = 0;
    OK_CU(cu.cuPointerSetAttribute(&off, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, base));
}

/* ---- Pools ----------------------------------------------------------------------------------- */

static void make_pool(void) {
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location.type = CU_MEM_LOCATION_TYPE_DEVICE};
    OK_CU(cu.cuMemPoolCreate(&it.pool, &props));
}
static void undo_pool(void) {
    OK_CU(cu.cuMemPoolDestroy(it.pool));
}
static void make_pool_memory(void) {
    OK_CU(cu.cuMemAllocFromPoolAsync(&it.memory, 4096, pool_base, NULL));
    OK_CU(cu.cuStreamSynchronize(NULL));
}
static void undo_pool_memory(void) {
    OK_CU(cu.cuMemFreeAsync(it.memory, NULL));
    OK_CU(cu.cuStreamSynchronize(NULL));
}
static void set_threshold(void) {
    cuuint64_t bytes = 64 * MIB;
    OK_CU(cu.cuMemPoolSetAttribute(pool_base, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes));
}
static void undo_threshold(void) {
    cuuint64_t bytes = 0;
    OK_CU(cu.cuMemPoolSetAttribute(pool_base, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes));
}
static void set_reuse(void) {
    int off = 0;
    OK_CU(cu.cuMemPoolSetAttribute(pool_base, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &off));
}
static void undo_reuse(void) {
    int on = 1;
    OK_CU(cu.cuMemPoolSetAttribute(pool_base, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &on));
}
static void set_current_pool(void) {
    OK_CU(cu.cuDeviceGetMemPool(&it.pool, dev));
    OK_CU(cu.cuDeviceSetMemPool(dev, pool_base));
}
static void undo_current_pool(void) {
    OK_CU(cu.cuDeviceSetMemPool(dev, it.pool));
}

/* ---- Arrays and textures --------------------------------------------------------------------- */

static const CUDA_ARRAY3D_DESCRIPTOR shape = {TEXELS(CU_AD_FORMAT_FLOAT, 1), .Width = 64,
                                              .Height = 32, .Flags = 2};
static void make_array(void) {
    OK_CU(cu.cuArray3DCreate_v2(&it.array, &shape));
}
static void undo_array(void) {
    OK_CU(cu.cuArrayDestroy(it.array));
}
static void make_mipmap(void) {
    OK_CU(cu.cuMipmappedArrayCreate(&it.mipmap, &shape, 3));
}
static void undo_mipmap(void) {
    OK_CU(cu.cuMipmappedArrayDestroy(it.mipmap));
}
static CUDA_RESOURCE_DESC resource(void) {
    CUDA_RESOURCE_DESC desc;
    memset(&desc, 0, sizeof desc);
    desc.resType = CU_RESOURCE_TYPE_ARRAY;
    desc.res.array.hArray = array_base;
    return desc;
}
static void make_texture_object(void) {
    CUDA_RESOURCE_DESC of = resource();
    CUDA_TEXTURE_DESC texture = {0};
    OK_CU(cu.cuTexObjectCreate(&it.number, &of, &texture, NULL));
}
static void undo_texture_object(void) {
    OK_CU(cu.cuTexObjectDestroy(it.number));
}
static void make_surface_object(void) {
    CUDA_RESOURCE_DESC of = resource();
    OK_CU(cu.cuSurfObjectCreate(&it.number, &of));
}
static void undo_surface_object(void) {
    OK_CU(cu.cuSurfObjectDestroy(it.number));
}
static void make_texture_reference(void) {
    OK_CU(cu.cuTexRefCreate(&it.texture));
}
static void undo_texture_reference(void) {
    OK_CU(cu.cuTexRefDestroy(it.texture));
}

/* ---- Graphs ---------------------------------------------------------------------------------- */

static void make_graph(void) {
    OK_CU(cu.cuGraphCreate(&it.graph, 0));
}
static void undo_graph(void) {
    OK_CU(cu.cuGraphDestroy(it.graph));
}
static CUgraphNode node;
static void make_node(void) {
    OK_CU(cu.cuGraphAddEmptyNode(&node, graph_base, NULL, 0));
}
static void undo_node(void) {
    OK_CU(cu.cuGraphDestroyNode(node));
}
static CUgraphExec exec;
static void make_exec(void) {
    OK_CU(cu.cuGraphInstantiateWithFlags(&exec, graph_base, 0));
}
static void undo_exec(void) {
    OK_CU(cu.cuGraphExecDestroy(exec));
}
static void no_destructor(void *data) {
}
static void make_user_object(void) {
    OK_CU(cu.cuUserObjectCreate(&it.object, NULL, no_destructor, 1,
                                CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
}
static void undo_user_object(void) {
    OK_CU(cu.cuUserObjectRelease(it.object, 1));
}

/* ---- Code ------------------------------------------------------------------------------------ */

static void make_module(void) {
    OK_CU(cu.cuModuleLoadData(&it.module, ptx));
}
static void undo_module(void) {
    OK_CU(cu.cuModuleUnload(it.module));
}
static void make_library(void) {
    OK_CU(cu.cuLibraryLoadData(&it.library, ptx, NULL, NULL, 0, NULL, NULL, 0));
}
static void undo_library(void) {
    OK_CU(cu.cuLibraryUnload(it.library));
}
static void make_link(void) {
    OK_CU(cu.cuLinkCreate_v2(0, NULL, NULL, &it.link));
}
static void undo_link(void) {
    OK_CU(cu.cuLinkDestroy(it.link));
}
static CUfunction kernel;
static void set_function(void) {
    OK_CU(cu.cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024));
}
static void set_function_cache(void) {
    OK_CU(cu.cuFuncSetCacheConfig(kernel, CU_FUNC_CACHE_PREFER_L1));
}
static void undo_function_cache(void) {
    OK_CU(cu.cuFuncSetCacheConfig(kernel, CU_FUNC_CACHE_PREFER_NONE));
}

/* ---- Listeners ------------------------------------------------------------------------------- */

static void hear(CUasyncNotificationInfo *info, void *data, CUasyncCallbackHandle handle) {
}
static void make_notification(void) {
    OK_CU(cu.cuDeviceRegisterAsyncNotification(dev, hear, NULL, &it.notification));
}
static void undo_notification(void) {
    OK_CU(cu.cuDeviceUnregisterAsyncNotification(dev, it.notification));
}
static void read_log(void *data, CUlogLevel level, char *text, size_t length) {
}
static void make_log_callback(void) {
    OK_CU(cu.cuLogsRegisterCallback(read_log, NULL, &it.log));
}
static void undo_log_callback(void) {
    OK_CU(cu.cuLogsUnregisterCallback(it.log));
}

/* ---- Within other things --------------------------------------------------------------------- */

static CUstream stream_base;
static void set_stream_attribute(CUsynchronizationPolicy policy) {
    CUstreamAttrValue value;
    memset(&value, 0, sizeof value);
    value.syncPolicy = policy;
    OK_CU(cu.cuStreamSetAttribute(stream_base, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
}
static void set_stream_policy(void) {
    set_stream_attribute(CU_SYNC_POLICY_YIELD);
}
static void undo_stream_policy(void) {
    set_stream_attribute(CU_SYNC_POLICY_AUTO);
}
static void exchange_mode(void) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    OK_CU(cu.cuThreadExchangeStreamCaptureMode(&mode));
}
static void undo_exchange(void) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    OK_CU(cu.cuThreadExchangeStreamCaptureMode(&mode));
}
static CUgraphNode set_node;
static CUgraphExec exec_base;
static void set_node_value(unsigned value) {
    CUDA_MEMSET_NODE_PARAMS params = {
        .dst = base, .value = value, .elementSize = 1, .width = 64, .height = 1};
    OK_CU(cu.cuGraphMemsetNodeSetParams(set_node, &params));
}
static void set_node_params(void) {
    set_node_value(7);
}
static void undo_node_params(void) {
    set_node_value(0);
}
static void disable_node(void) {
    OK_CU(cu.cuGraphNodeSetEnabled(exec_base, set_node, 0));
}
static void enable_node(void) {
    OK_CU(cu.cuGraphNodeSetEnabled(exec_base, set_node, 1));
}
static void make_condition(void) {
    CUgraphConditionalHandle handle;
    OK_CU(cu.cuGraphConditionalHandleCreate(&handle, graph_base, ctx, 0, 0));
}
static void set_primary_flags(void) {
    (void)GOT_CU(int, cuDevicePrimaryCtxGetState, dev, &it.flags);
    OK_CU(cu.cuDevicePrimaryCtxSetFlags_v2(dev, CU_CTX_SCHED_YIELD));
}
static void undo_primary_flags(void) {
    OK_CU(cu.cuDevicePrimaryCtxSetFlags_v2(dev, it.flags & 7u));
}
static void make_edge(void) {
    OK_CU(cu.cuGraphAddEmptyNode(&node, graph_base, &set_node, 1));
}

/* ---- From elsewhere -------------------------------------------------------------------------- */

static int exported(void) {
    CUmemAllocationProp shared = prop;
    CUmemGenericAllocationHandle handle;
    int fd = -1;
    shared.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    OK_CU(cu.cuMemCreate(&handle, 2 * MIB, &shared, 0));
    OK_CU(
        cu.cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    OK_CU(cu.cuMemRelease(handle));
    return fd;
}
static void make_external(void) {
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc;
    memset(&desc, 0, sizeof desc);
    desc.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
    desc.handle.fd = exported();
    desc.size = 2 * MIB;
    OK_CU(cu.cuImportExternalMemory(&it.external, &desc));
}
static void undo_external(void) {
    OK_CU(cu.cuDestroyExternalMemory(it.external));
}
static CUexternalMemory external_base;
static void make_external_buffer(void) {
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC desc = {.size = 2 * MIB};
    OK_CU(cu.cuExternalMemoryGetMappedBuffer(&it.memory, external_base, &desc));
}

static void make_semaphore(void) {
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC desc;
    memset(&desc, 0, sizeof desc);
    desc.type = CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD;
    desc.handle.fd = soft->semaphore_create(SOFTGPU_SEMAPHORE_BINARY, 0);
    OK_CU(cu.cuImportExternalSemaphore(&it.semaphore, &desc));
}
static void undo_semaphore(void) {
    OK_CU(cu.cuDestroyExternalSemaphore(it.semaphore));
}
static CUgreenCtx green;
static void make_green(void) {
    CUdevResource all, part;
    unsigned groups = 1;
    OK_CU(cu.cuDeviceGetDevResource(dev, &all, CU_DEV_RESOURCE_TYPE_SM));
    OK_CU(cu.cuDevSmResourceSplitByCount(&part, &groups, &all, NULL, 0, 0));
    CUdevResourceDesc desc = MADE_CU(CUdevResourceDesc, cuDevResourceGenerateDesc, &part, 1);
    OK_CU(cu.cuGreenCtxCreate(&green, desc, dev, CU_GREEN_CTX_DEFAULT_STREAM));
}
static void undo_green(void) {
    OK_CU(cu.cuGreenCtxDestroy(green));
}
static void make_multicast(void) {
    CUmulticastObjectProp team;
    memset(&team, 0, sizeof team);
    team.numDevices = 2;
    team.size = 2 * MIB;
    OK_CU(cu.cuMulticastCreate(&it.handle, &team));
}

#define THING(make, undo)                                                                          \
    { #make, make, undo }
static const struct thing things[] = {
    THING(make_context, undo_context),
    THING(push_context, pop_context),
    THING(retain_primary, release_primary),
    THING(set_limit, undo_limit),
    THING(set_flags, undo_flags),
    THING(set_cache, undo_cache),
    THING(set_coredump, undo_coredump),
    THING(start_profiler, stop_profiler),
    THING(make_stream, undo_stream),
    THING(make_capture, undo_capture),
    THING(make_event, undo_event),
    THING(make_memory, undo_memory),
    THING(make_host, undo_host),
    THING(make_registered, undo_registered),
    THING(make_managed, undo_memory),
    THING(set_advice, undo_advice),
    THING(make_reservation, undo_reservation),
    THING(make_handle, undo_handle),
    THING(make_mapping, undo_mapping),
    THING(set_access, undo_access),
    THING(set_sync_memops, undo_sync_memops),
    THING(make_pool, undo_pool),
    THING(make_pool_memory, undo_pool_memory),
    THING(set_threshold, undo_threshold),
    THING(set_reuse, undo_reuse),
    THING(set_current_pool, undo_current_pool),
    THING(make_array, undo_array),
    THING(make_mipmap, undo_mipmap),
    THING(make_texture_object, undo_texture_object),
    THING(make_surface_object, undo_surface_object),
    THING(make_texture_reference, undo_texture_reference),
    THING(make_graph, undo_graph),
    THING(make_node, undo_node),
    THING(make_exec, undo_exec),
    THING(make_user_object, undo_user_object),
    THING(make_module, undo_module),
    THING(make_library, undo_library),
    THING(make_link, undo_link),
    THING(set_function_cache, undo_function_cache),
    THING(set_function, NULL),
    THING(make_notification, undo_notification),
    THING(make_log_callback, undo_log_callback),
    THING(set_stream_policy, undo_stream_policy),
    THING(exchange_mode, undo_exchange),
    THING(set_node_params, undo_node_params),
    THING(disable_node, enable_node),
    THING(make_edge, undo_node),
    THING(set_primary_flags, undo_primary_flags),
    THING(make_condition, NULL),
    THING(make_external, undo_external),
    THING(make_external_buffer, undo_memory),
    THING(make_semaphore, undo_semaphore),
    THING(make_green, undo_green),
    THING(make_multicast, undo_handle),
};

static void make_bases(void) {
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc;
    memset(&desc, 0, sizeof desc);
    OK_CU(cu.cuMemAlloc_v2(&base, 4096));
    undo_sync_memops(); /* it reads 1 before it is set at all */
    OK_CU(cu.cuArray3DCreate_v2(&array_base, &shape));
    OK_CU(cu.cuGraphCreate(&graph_base, 0));
    OK_CU(cu.cuMemAllocManaged(&managed_base, 2 * MIB, CU_MEM_ATTACH_GLOBAL));
    OK_CU(cu.cuMemAddressReserve(&reserved_base, 2 * MIB, 0, 0, 0));
    OK_CU(cu.cuMemAddressReserve(&mapped_base, 2 * MIB, 0, 0, 0));
    OK_CU(cu.cuMemCreate(&handle_base, 2 * MIB, &prop, 0));
    OK_CU(cu.cuMemMap(mapped_base, 2 * MIB, 0, handle_base, 0));
    OK_CU(cu.cuModuleLoadData(&module_base, ptx));
    OK_CU(cu.cuModuleGetFunction(&kernel, module_base, "k"));
    CUDA_MEMSET_NODE_PARAMS set = {.dst = base, .elementSize = 1, .width = 64, .height = 1};
    OK_CU(cu.cuGraphAddMemsetNode(&set_node, graph_base, NULL, 0, &set, ctx));
    OK_CU(cu.cuGraphInstantiateWithFlags(&exec_base, graph_base, 0));
    make_stream();
    stream_base = it.stream;
    set_stream_attribute(CU_SYNC_POLICY_AUTO); /* what it is before cannot be set */
    make_pool();
    pool_base = it.pool;
    make_pool_memory();
    undo_pool_memory();
    desc.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
    desc.handle.fd = exported();
    desc.size = 2 * MIB;
    OK_CU(cu.cuImportExternalMemory(&external_base, &desc));
}

static void end_bases(void) {
    DESTROY_CU(external_base, exec_base, stream_base, pool_base);
    OK_CU(cu.cuModuleUnload(module_base));
    unmap_and_free(mapped_base, 2 * MIB, handle_base);
    OK_CU(cu.cuMemAddressFree(reserved_base, 2 * MIB));
    DESTROY_CU(managed_base, graph_base, array_base, base);
}

static void try_one(const struct thing *thing, char *report, size_t size) {
    char *before = dump();
    thing->make();
    char *with = dump();
    size_t used = strlen(report);
    if (strcmp(before, with) == 0)
        snprintf(report + used, size - used, "%s does not show\n", thing->name);
    if (thing->undo) {
        thing->undo();
        char *after = dump();
        used = strlen(report);
        if (strcmp(before, after) != 0)
            snprintf(report + used, size - used, "%s shows after its end:\n%s---\n%s", thing->name,
                     before, after);
        soft->free_text(after);
    }
    soft->free_text(with);
    soft->free_text(before);
}

TEST_WHERE(every_object_is_in_the_state_dump_while_it_exists, NEEDS_SOFTGPU("reads its state")) {
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED);
    static char report[16384];
    make_bases();
    for (size_t i = 0; i < COUNT(things); i++)
        try_one(&things[i], report, sizeof report);
    end_bases();
    if (report[0])
        fail_msg("%s", report);
}
