/* The runtime and the driver in one program: entry points by name, contexts, memory, modules and streams of either used by
 * the other. */
#include "check.h"

#include <cuda.h>

static const char text[] = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry add_one(.param .u64 values) {
    .reg .u64 %at, %to;
    .reg .u32 %i, %v;
    mov.u32 %i, %tid.x;
    ld.param.u64 %at, [values];
    cvta.to.global.u64 %to, %at;
    mad.wide.u32 %to, %i, 4, %to;
    ld.global.u32 %v, [%to];
    add.u32 %v, %v, 1;
    st.global.u32 [%to], %v;
    ret;
}
)";

__global__ void twice(int *values) {
    values[threadIdx.x] *= 2;
}

/* The driver's function of that name, as the runtime gives it. */
template <typename F> static F *entry(const char *name) {
    void *found = nullptr;
    cudaDriverEntryPointQueryResult result;
    MUST(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result));
    if (result != cudaDriverEntryPointSuccess) {
        printf("%s: result %d\n", name, (int)result);
        exit(1);
    }
    return (F *)found;
}
#define DRIVER(name) entry<decltype(name)>(#name)
#define DO(call) must((call) == CUDA_SUCCESS ? cudaSuccess : cudaErrorUnknown, #call, __LINE__)

int main() {
    const int count = 32;
    int values[count], want[count], version = 0;
    void *none;
    cudaDriverEntryPointQueryResult result;
    MUST(cudaFree(nullptr)); // makes the context
    MUST(cudaDriverGetVersion(&version));
    right("a driver of 12 or later", version >= 12000);
    CUcontext current = nullptr, own = nullptr;
    CUdevice device = -1;
    auto get_current = DRIVER(cuCtxGetCurrent);
    DO(get_current(&current));
    DO(DRIVER(cuCtxGetDevice)(&device));
    auto retain = DRIVER(cuDevicePrimaryCtxRetain);
    DO(retain(&own, device));
    right("the runtime's context is the primary one", own == current);

    CUdeviceptr memory;
    auto allocate = entry<CUresult(CUdeviceptr *, size_t)>("cuMemAlloc");
    DO(allocate(&memory, sizeof values));
    for (int i = 0; i < count; i++)
        values[i] = i * 3;
    MUST(cudaMemcpy((void *)memory, values, sizeof values, cudaMemcpyHostToDevice));
    cudaStream_t stream;
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUmodule module;
    CUfunction function;
    void *arguments[] = {&memory};
    DO(DRIVER(cuModuleLoadData)(&module, text));
    DO(DRIVER(cuModuleGetFunction)(&function, module, "add_one"));
    DO(DRIVER(cuLaunchKernel)(function, 1, 1, 1, count, 1, 1, 0, stream, arguments, nullptr));
    twice<<<1, count, 0, stream>>>((int *)memory);
    CUstream theirs;
    DO(DRIVER(cuStreamCreate)(&theirs, CU_STREAM_NON_BLOCKING));
    CUevent event;
    DO(DRIVER(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING));
    MUST(cudaEventRecord(event, stream));
    MUST(cudaStreamWaitEvent(theirs, event, 0));
    twice<<<1, count, 0, theirs>>>((int *)memory);
    MUST(cudaMemcpyAsync(values, (void *)memory, sizeof values, cudaMemcpyDeviceToHost, theirs));
    MUST(cudaStreamSynchronize(theirs));
    for (int i = 0; i < count; i++)
        want[i] = (i * 3 + 1) * 4;
    same("by kernels of both", values, want, count);
    cudaFunction_t of_stub;
    MUST(cudaGetFuncBySymbol(&of_stub, (const void *)twice));
    DO(DRIVER(cuLaunchKernel)(of_stub, 1, 1, 1, count, 1, 1, 0, nullptr, arguments, nullptr));
    to_host(values, (int *)memory, count);
    for (int &each : want)
        each *= 2;
    same("the runtime's kernel by the driver", values, want, count);
    MUST(cudaFree((void *)memory)); // what the driver has allocated

    CUcontext popped; // a program's own current context: none
    DO(entry<CUresult(CUcontext *)>("cuCtxPopCurrent")(&popped));
    int *again = to_device<int>(nullptr, 1);
    DO(get_current(&current));
    right("the runtime makes its own current again", current == own);
    MUST(cudaFree(again));
    MUST(cudaGetDriverEntryPointByVersion("cuNothingOfTheKind", &none, 12000, cudaEnableDefault, &result));
    printf("a name that there is not: result %d, %s\n", (int)result, none ? "an address" : "NULL");
    MUST(cudaEventDestroy(event));
    MUST(cudaStreamDestroy(theirs));
    MUST(cudaStreamDestroy(stream));
    DO(DRIVER(cuModuleUnload)(module));
    DO(entry<CUresult(CUdevice)>("cuDevicePrimaryCtxRelease")(device));
    return 0;
}
