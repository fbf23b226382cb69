/* Each driver call below a function of the runtime fails in turn: the function reports it, keeps it
 * as the last error, and leaves nothing behind. All functions of tiers 1 and 2 are tried. */
#include "runtime_test.h"

#include "images.h"

#include <fcntl.h>
#include <sys/mman.h>

static const softgpu_control *soft;

BEFORE_TESTS {
    setenv("SOFTGPU_DEVICES", "2", 1);
    soft = open_softgpu();
    return 0;
}

/* ---- What scenes use ------------------------------------------------------------------------ */

enum { SHARED = 65536 };
static void *made, *memory;
static char host[8192];
static cudaStream_t stream;
static cudaEvent_t event;
static cudaArray_t array, other_array;
static cudaMipmappedArray_t levels;
static cudaTextureObject_t texture, object;
static cudaGraph_t graph;
static cudaGraphExec_t executable;
static cudaGraphNode_t kernel_node;
static cudaMemPool_t pool;
static cudaExternalMemory_t external;
static cudaKernel_t kernel;
static cudaGraphConditionalHandle condition;

static int number, more = 1;
static unsigned flags;
static size_t size;
static uint64_t numbers[8];
static float milliseconds;
static dim3 shape;
static void *arguments[] = {&memory, &more};
static cudaPitchedPtr place;
static cudaStreamCaptureStatus status;
static cudaDeviceProp properties;
static cudaFuncAttributes of_function;
static cudaPointerAttributes of_pointer;
static cudaChannelFormatDesc channels, floats = {32, 0, 0, 0, cudaChannelFormatKindFloat};
static cudaResourceDesc resource = {.resType = cudaResourceTypeArray}, surface;
static cudaTextureDesc sampling, sampling_got;
static cudaMemcpy3DParms box = {.extent = {16, 2, 2}, .kind = cudaMemcpyDeviceToDevice};
static cudaMemcpy3DPeerParms between = {.extent = {16, 2, 2}};
static cudaMemsetParams set = {.elementSize = 1, .width = 16, .height = 1};
static cudaGraphNodeParams any_node = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};
static cudaMemAccessDesc access_of_0 = {{.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
                                        CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

static const char stub, first_stub;
static char variable;
static cudaKernelNodeParams launch = {
    (void *)(uintptr_t)&stub, {1, 1, 1}, {1, 1, 1}, .kernelParams = arguments};
static const struct {
    unsigned magic, version;
    const void *image, *parts;
} wrapper = {0x466243b1, 1, image_ptx_fatbin, NULL},
  wrapper_of_all = {0x466243b1, 1, image_kernels_cubin, NULL};

#define OK       cudaSuccess
#define ONE      ((dim3){1, 1, 1})
#define DRAIN    cudaDeviceSynchronize()
#define ELEMENTS ((cudaPitchedPtr){memory, 64, 64, 8})
#define SHARED_DESC(descriptor)                                                                    \
    ((cudaExternalMemoryHandleDesc){.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,              \
                                    .handle.fd = (descriptor),                                     \
                                    .size = SHARED})

static void CUDAAPI host_function(void *data) {
}
static void CUDAAPI called(cudaStream_t on, cudaError_t error, void *data) {
}

static int shared_file(void) {
    int made_here = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(ftruncate(made_here, SHARED), 0);
    assert_int_equal(fcntl(made_here, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
    return made_here;
}

static void prepare(void) {
    cudaMemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                              .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                              .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    OK_RT(cudaMalloc(&memory, 8192));
    OK_RT(cudaStreamCreate(&stream));
    OK_RT(cudaEventCreate(&event));
    OK_RT(cudaEventRecord(event, NULL));
    OK_RT(cudaMallocArray(&array, &floats, 8, 8, 2));
    OK_RT(cudaMallocArray(&other_array, &floats, 8, 8, 0));
    OK_RT(cudaMallocMipmappedArray(&levels, &floats, (cudaExtent){8, 8, 0}, 2, 0));
    resource.res.array.array = array;
    surface = resource;
    OK_RT(cudaCreateTextureObject(&texture, &resource, &sampling, NULL));
    OK_RT(cudaMemPoolCreate(&pool, &props));
    OK_RT(cudaImportExternalMemory(&external, &SHARED_DESC(shared_file())));
    OK_RT(cudaGetKernel(&kernel, &stub));
    OK_RT(cudaGraphCreate(&graph, 0));
    OK_RT(cudaGraphAddKernelNode(&kernel_node, graph, NULL, 0, &launch));
    OK_RT(cudaGraphInstantiate(&executable, graph, 0));
    box.srcPtr = box.dstPtr = between.srcPtr = between.dstPtr = ELEMENTS;
    any_node.memcpy.copyParams = box;
    set.dst = memory;
    OK_RT(cudaDeviceSynchronize());
}

/* ---- Scenes --------------------------------------------------------------------------------- */

#define SCENE(name, before, call, after, after_refused)                                            \
    static cudaError_t before_##name(void) {                                                       \
        return before;                                                                             \
    }                                                                                              \
    static cudaError_t call_##name(void) {                                                         \
        return call;                                                                               \
    }                                                                                              \
    static cudaError_t after_##name(void) {                                                        \
        return after;                                                                              \
    }                                                                                              \
    static cudaError_t refused_##name(void) {                                                      \
        return after_refused;                                                                      \
    }
#include "fault_scenes.def"
#undef SCENE

/* Those that are one call of the driver are called with zeros. */
typedef cudaError_t (*with_zeros)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
                                  uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

static const struct scene {
    const char *name;
    cudaError_t (*before)(void), (*call)(void), (*after)(void), (*refused)(void);
} scenes[] = {
#define SCENE(name, ...) {#name, before_##name, call_##name, after_##name, refused_##name},
#include "fault_scenes.def"
#undef SCENE
};

enum { TIER_1 = 1, TIER_2, TIER_3, TIER_REFUSED };
static const struct row {
    const char *name;
    int tier;
    bool plain;
} rows[] = {
#define ROW(name, tier, plain) {#name, TIER_##tier, plain},
#undef RT_PLAIN
#undef RT_FN
#undef RT_RAW
#undef RT_LATER
#define RT_PLAIN(name, abi, tier, ...) IN_##abi(ROW(name, tier, true))
#define RT_FN(name, abi, tier, ...)    IN_##abi(ROW(name, tier, false))
#define RT_RAW(...)
#define RT_LATER(...)
#include "runtime/runtime.def"
};

static cudaError_t call_with_zeros(const char *name) {
    union {
        void *address;
        with_zeros call;
    } function = {dlsym(RTLD_DEFAULT, name)};
    assert_non_null(function.address);
    return function.call(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
}

static const struct scene *scene_of(const char *name) {
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++)
        if (strcmp(scenes[i].name, name) == 0)
            return &scenes[i];
    return NULL;
}

/* These go on without what the driver does not say. */
static bool some_may_fail(const char *name) {
    static const char *const names[] = {"cudaGetDeviceProperties", "cudaFuncGetAttributes",
                                        "cudaGetDriverEntryPoint", "cudaGetDevice",
                                        "cudaDeviceReset",         "cudaSetDeviceFlags"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* Of the n-th call: false when there is none, and all is done. */
static bool refuse(const struct scene *scene, const char *name, uint64_t n) {
    const cudaError_t wanted = (cudaError_t)CUDA_ERROR_OUT_OF_MEMORY;
    if (scene)
        answers(scene->before(), cudaSuccess, name, __LINE__);
    char *before = soft->state_dump();
    assert_int_equal(soft->fault_arm("*", n, (int)wanted, SOFTGPU_FAULT_BEFORE), 0);
    cudaError_t got = scene ? scene->call() : call_with_zeros(name);
    bool fired = soft->fault_disarm() != 0;
    cudaError_t peek = cudaPeekAtLastError(), last = cudaGetLastError();
    char *after = soft->state_dump();
    if (fired && got != cudaSuccess) {
        answers(got, wanted, name, __LINE__);
        answers(peek, wanted, name, __LINE__);
        answers(last, wanted, name, __LINE__);
    } else if (fired) {
        assert_true(some_may_fail(name));
    } else if (scene) {
        answers(got, cudaSuccess, name, __LINE__);
    }
    if (got != cudaSuccess && strcmp(before, after) != 0)
        fail_msg("%s, call %d: was\n%s\nis\n%s", name, (int)n, before, after);
    soft->free_text(before);
    soft->free_text(after);
    if (scene)
        answers(got == cudaSuccess ? scene->after() : scene->refused(), cudaSuccess, name,
                __LINE__);
    return fired;
}

TEST(a_driver_call_that_fails_is_reported_and_leaves_nothing) {
    void **binary = __cudaRegisterFatBinary((void *)(uintptr_t)&wrapper);
    void **all = __cudaRegisterFatBinary((void *)(uintptr_t)&wrapper_of_all);
    size_t tried = 0;
    __cudaRegisterFunction(binary, &stub, NULL, "small", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterVar(all, &variable, NULL, "counter", 0, 4, 0, 0);
    prepare();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *row = &rows[i];
        const struct scene *scene = scene_of(row->name);
        if (row->tier > TIER_2 || strcmp(row->name, "cudaDeviceReset") == 0)
            continue;
        if (!row->plain && !scene)
            fail_msg("%s has no scene in fault_scenes.def", row->name);
        /* Once without a fault: what is made once and kept is there then. */
        refuse(scene, row->name, UINT64_MAX);
        for (uint64_t n = 1; refuse(scene, row->name, n); n++)
            continue;
        tried++;
    }
    assert_true(tried > 180);
    const struct scene *reset = scene_of("cudaDeviceReset"); /* ends what the others use */
    for (uint64_t n = 1; refuse(reset, reset->name, n); n++)
        continue;
    __cudaUnregisterFatBinary(binary);
    __cudaUnregisterFatBinary(all);
}

/* The fat binary is loaded by it. */
TEST(a_first_launch_that_fails_leaves_nothing) {
    void *target;
    OK_RT(cudaMalloc(&target, 4));
    memory = target;
    for (uint64_t n = 1, fired = 1; fired; n++) {
        char *before = soft->state_dump();
        void **binary = __cudaRegisterFatBinary((void *)(uintptr_t)&wrapper);
        __cudaRegisterFunction(binary, &first_stub, NULL, "small", -1, NULL, NULL, NULL, NULL,
                               NULL);
        assert_int_equal(soft->fault_arm("*", n, CUDA_ERROR_OUT_OF_MEMORY, SOFTGPU_FAULT_BEFORE),
                         0);
        cudaError_t error = cudaLaunchKernel(&first_stub, ONE, ONE, arguments, 0, NULL);
        fired = soft->fault_disarm();
        answers(error, fired ? cudaErrorMemoryAllocation : cudaSuccess, "first launch", __LINE__);
        answers(cudaGetLastError(), error, "first launch", __LINE__);
        OK_RT(cudaDeviceSynchronize());
        __cudaUnregisterFatBinary(binary);
        char *after = soft->state_dump();
        assert_string_equal(before, after);
        soft->free_text(before);
        soft->free_text(after);
    }
    OK_RT(cudaFree(target));
}
