/* Each driver call below a function of the runtime fails in turn: the function reports it, keeps it
 * as the last error, and leaves nothing behind. */
#include "runtime_test.h"

#include "images.h"

static const softgpu_control *soft;

BEFORE_TESTS {
    soft = open_softgpu();
    return 0;
}

/* ---- What is tried, and what gives back what it made -------------------------------------- */

static void *made;
static void *target;
static uint64_t fired; /* by an operation that ended the fault itself */
static char host[4096];
static cudaArray_t array;
static const char stub;
static const struct {
    unsigned magic, version;
    const void *image, *parts;
} wrapper = {0x466243b1, 1, image_ptx_fatbin, NULL};

static cudaError_t free_memory(void) {
    return cudaFree(made);
}
static cudaError_t free_host(void) {
    return cudaFreeHost(made);
}
static cudaError_t nothing(void) {
    return cudaSuccess;
}

static cudaError_t plain(void) {
    return cudaMalloc(&made, 1000);
}
static cudaError_t pitched(void) {
    size_t pitch;
    return cudaMallocPitch(&made, &pitch, 100, 10);
}
static cudaError_t box(void) {
    cudaPitchedPtr place = {0};
    cudaError_t error = cudaMalloc3D(&place, (cudaExtent){10, 10, 10});
    made = place.ptr;
    return error;
}
static cudaError_t pinned(void) {
    return cudaMallocHost(&made, 1000);
}
static cudaError_t managed(void) {
    return cudaMallocManaged(&made, 1000, 1);
}
static cudaError_t ordered(void) {
    return cudaMallocAsync(&made, 1000, NULL);
}
static cudaError_t stream(void) {
    return cudaStreamCreate((cudaStream_t *)&made);
}
static cudaError_t end_stream(void) {
    return cudaStreamDestroy(made);
}
static cudaError_t event(void) {
    return cudaEventCreate((cudaEvent_t *)&made);
}
static cudaError_t end_event(void) {
    return cudaEventDestroy(made);
}
static cudaError_t new_array(void) {
    cudaChannelFormatDesc desc = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
    return cudaMallocArray((cudaArray_t *)&made, &desc, 8, 8, 0);
}
static cudaError_t end_array(void) {
    return cudaFreeArray(made);
}
static cudaError_t texture(void) {
    cudaResourceDesc resource = {.resType = cudaResourceTypeArray, .res.array.array = array};
    cudaTextureDesc sampling = {0};
    cudaTextureObject_t object = 0;
    cudaError_t error = cudaCreateTextureObject(&object, &resource, &sampling, NULL);
    made = (void *)(uintptr_t)object;
    return error;
}
static cudaError_t end_texture(void) {
    return cudaDestroyTextureObject((cudaTextureObject_t)(uintptr_t)made);
}
static cudaError_t graph_of_a_copy(void) {
    cudaGraphNode_t node;
    cudaError_t error = cudaGraphCreate((cudaGraph_t *)&made, 0);
    if (error != cudaSuccess)
        return error;
    error = cudaGraphAddMemcpyNode1D(&node, made, NULL, 0, host, host + 100, 10, cudaMemcpyDefault);
    if (error != cudaSuccess)
        fired = soft->fault_disarm(), cudaGraphDestroy(made);
    return error;
}
static cudaError_t end_graph(void) {
    return cudaGraphDestroy(made);
}
static cudaError_t copies_into_an_array(void) {
    return cudaMemcpyToArray(array, 8, 1, host, 100, cudaMemcpyHostToDevice);
}
static cudaError_t registered(void) {
    return cudaHostRegister(host, sizeof host, 0);
}
static cudaError_t end_registered(void) {
    return cudaHostUnregister(host);
}
static void called(cudaStream_t on, cudaError_t status, void *data) {
}
static cudaError_t callback(void) {
    return cudaStreamAddCallback(NULL, called, NULL, 0);
}
static cudaError_t end_callback(void) {
    return cudaStreamSynchronize(NULL);
}
static cudaError_t properties(void) {
    cudaDeviceProp found;
    return cudaGetDeviceProperties(&found, 0);
}
/* The fat binary is loaded by it. */
static cudaError_t first_launch(void) {
    void **binary = __cudaRegisterFatBinary((void *)(uintptr_t)&wrapper);
    int more = 1;
    void *arguments[] = {&target, &more};
    __cudaRegisterFunction(binary, &stub, NULL, "small", -1, NULL, NULL, NULL, NULL, NULL);
    cudaError_t error =
        cudaLaunchKernel(&stub, (dim3){1, 1, 1}, (dim3){1, 1, 1}, arguments, 0, NULL);
    fired = soft->fault_disarm();
    if (error == cudaSuccess)
        OK_RT(cudaDeviceSynchronize());
    __cudaUnregisterFatBinary(binary);
    return error;
}

static const struct {
    const char *name;
    cudaError_t (*run)(void), (*end)(void);
    bool some_may_fail; /* a driver's call that may do so is not looked at */
} tried[] = {
    {"cudaMalloc", plain, free_memory, false},
    {"cudaMallocPitch", pitched, free_memory, false},
    {"cudaMalloc3D", box, free_memory, false},
    {"cudaMallocHost", pinned, free_host, false},
    {"cudaMallocManaged", managed, free_memory, false},
    {"cudaMallocAsync", ordered, free_memory, false},
    {"cudaStreamCreate", stream, end_stream, false},
    {"cudaEventCreate", event, end_event, false},
    {"cudaMallocArray", new_array, end_array, false},
    {"cudaCreateTextureObject", texture, end_texture, false},
    {"cudaGraphAddMemcpyNode1D", graph_of_a_copy, end_graph, true},
    {"cudaMemcpyToArray", copies_into_an_array, nothing, false},
    {"cudaHostRegister", registered, end_registered, false},
    {"cudaStreamAddCallback", callback, end_callback, false},
    {"cudaGetDeviceProperties", properties, nothing, true},
    {"cudaLaunchKernel, the first", first_launch, nothing, false},
};

static void sweep_one(size_t i, int error) {
    for (uint64_t n = 1;; n++) {
        made = NULL;
        fired = 0;
        char *before = soft->state_dump();
        assert_int_equal(soft->fault_arm("*", n, error, SOFTGPU_FAULT_BEFORE), 0);
        cudaError_t got = tried[i].run();
        fired += soft->fault_disarm();
        if (!fired && got == cudaSuccess) {
            answers(tried[i].end(), cudaSuccess, tried[i].name, __LINE__);
            soft->free_text(before);
            return;
        }
        if (got == cudaSuccess) {
            assert_true(tried[i].some_may_fail);
            OK_RT(tried[i].end());
        } else {
            answers(got, (cudaError_t)error, tried[i].name, __LINE__);
            answers(cudaPeekAtLastError(), got, tried[i].name, __LINE__);
            answers(cudaGetLastError(), got, tried[i].name, __LINE__);
        }
        char *after = soft->state_dump();
        if (strcmp(before, after) != 0)
            fail_msg("%s, call %d: was\n%s\nis\n%s", tried[i].name, (int)n, before, after);
        soft->free_text(before);
        soft->free_text(after);
    }
}

TEST(a_driver_call_that_fails_is_reported_and_leaves_nothing) {
    cudaChannelFormatDesc desc = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
    OK_RT(cudaMallocArray(&array, &desc, 8, 8, 0));
    OK_RT(cudaMalloc(&target, 4));
    for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
        /* Once without a fault: what is made once and kept is there then. */
        answers(tried[i].run(), cudaSuccess, tried[i].name, __LINE__);
        answers(tried[i].end(), cudaSuccess, tried[i].name, __LINE__);
        sweep_one(i, CUDA_ERROR_OUT_OF_MEMORY);
    }
    OK_RT(cudaFree(target));
    OK_RT(cudaFreeArray(array));
}
