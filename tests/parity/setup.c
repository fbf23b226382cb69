/* What scenarios stand on: a driver, a context, memory of each kind, a gate that holds a stream. */
#include "parity.h"

par_state par = {.peer_fd = -1, .shards = 1, .position = -1};

static volatile uint32_t *gate_flag;
static CUdeviceptr gate_address;
static uint32_t gate_turn;
static size_t free_before;

void par_init(void) {
    SETUP(cuInit, (0));
    SETUP(cuDeviceGet, (&par.dev, 0));
}

void par_context(void) {
    par_init();
    SETUP(cuDevicePrimaryCtxRetain, (&par.primary, par.dev));
    SETUP(cuCtxSetCurrent, (par.primary));
    par_name((uint64_t)(uintptr_t)par.primary, 0, "primary");
}

/* A function that makes one object. */
#define MAKES(type, function, parameters, fn, args)                                                \
    type function parameters {                                                                     \
        type made = 0;                                                                             \
        SETUP(fn, args);                                                                           \
        return made;                                                                               \
    }
MAKES(CUcontext, par_new_context, (void), cuCtxCreate_v2, (&made, 0, 0))
MAKES(CUstream, par_stream, (void), cuStreamCreate, (&made, CU_STREAM_NON_BLOCKING))
MAKES(CUstream, par_blocking_stream, (void), cuStreamCreate, (&made, 0))
MAKES(CUevent, par_event, (unsigned flags), cuEventCreate, (&made, flags))
MAKES(CUdeviceptr, par_alloc, (size_t size), cuMemAlloc_v2, (&made, size))
MAKES(CUdeviceptr, par_managed, (size_t size), cuMemAllocManaged,
      (&made, size, CU_MEM_ATTACH_GLOBAL))
MAKES(CUdeviceptr, par_reserve, (size_t size), cuMemAddressReserve, (&made, size, 0, 0, 0))
MAKES(CUmemoryPool, par_pool, (const CUmemPoolProps *props), cuMemPoolCreate, (&made, props))
MAKES(CUarray, par_array, (const CUDA_ARRAY3D_DESCRIPTOR *form), cuArray3DCreate_v2, (&made, form))
MAKES(CUmipmappedArray, par_mipmap, (const CUDA_ARRAY3D_DESCRIPTOR *form, unsigned levels),
      cuMipmappedArrayCreate, (&made, form, levels))
MAKES(CUmodule, par_module, (const void *image), cuModuleLoadData, (&made, image))
MAKES(CUfunction, par_function, (CUmodule module, const char *name), cuModuleGetFunction,
      (&made, module, name))
MAKES(CUgraph, par_graph, (void), cuGraphCreate, (&made, 0))
MAKES(CUgraphExec, par_instantiate, (CUgraph graph), cuGraphInstantiateWithFlags, (&made, graph, 0))
MAKES(CUmemGenericAllocationHandle, par_create_as, (size_t size, const CUmemAllocationProp *prop),
      cuMemCreate, (&made, size, prop, 0))

void *par_pinned(size_t size) {
    void *p = PAR_MADE(void *, cuMemHostAlloc, size, CU_MEMHOSTALLOC_DEVICEMAP);
    memset(p, 0, size);
    return p;
}

CUmemAllocationProp par_device_prop(void) {
    CUmemAllocationProp prop = {0};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = par.dev;
    return prop;
}

CUmemAccessDesc par_device_access(CUmemAccess_flags flags) {
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, par.dev}, flags};
    return access;
}

CUmemGenericAllocationHandle par_create(size_t size, CUmemAllocationHandleType type) {
    CUmemAllocationProp prop = par_device_prop();
    prop.requestedHandleTypes = type;
    return par_create_as(size, &prop);
}

CUdeviceptr par_mapped(size_t size) {
    CUmemAccessDesc access = par_device_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    CUdeviceptr p = par_reserve(size);
    CUmemGenericAllocationHandle handle = par_create(size, CU_MEM_HANDLE_TYPE_NONE);
    SETUP(cuMemMap, (p, size, 0, handle, 0));
    SETUP(cuMemSetAccess, (p, size, &access, 1));
    SETUP(cuMemRelease, (handle));
    return p;
}

static void gate_make(void) {
    if (gate_flag == NULL) {
        gate_flag = par_pinned(4096);
        SETUP(cuMemHostGetDevicePointer_v2, (&gate_address, (void *)(uintptr_t)gate_flag, 0));
    }
    gate_turn++;
}

bool par_try_hold(CUstream stream) {
    gate_make();
    return par.api->cuStreamWaitValue32_v2(stream, gate_address, gate_turn,
                                           CU_STREAM_WAIT_VALUE_GEQ) == CUDA_SUCCESS;
}

void par_hold(CUstream stream) {
    gate_make();
    SETUP(cuStreamWaitValue32_v2, (stream, gate_address, gate_turn, CU_STREAM_WAIT_VALUE_GEQ));
}

void par_release(void) {
    __atomic_store_n(gate_flag, gate_turn, __ATOMIC_SEQ_CST);
}

void par_free_mark(void) {
    size_t total;
    SETUP(cuMemGetInfo_v2, (&free_before, &total));
}

void par_free_delta(const char *what) {
    size_t before = free_before, total;
    SETUP(cuMemGetInfo_v2, (&free_before, &total));
    par_see("free-delta", "%s %lld", what, (long long)free_before - (long long)before);
}
