/* Streams, events, callbacks, captures and graphs, occupancy, attributes and other ways to launch. */
#include <cooperative_groups.h>
#include <cstdio>

static void say(const char *what, cudaError_t error) {
    printf("%s: %s\n", what, cudaGetErrorName(error));
}

__global__ void add(int *value, int what) {
    atomicAdd(value, what);
}

__global__ void add_after_all(int *value) {
    atomicAdd(value, 1);
    cooperative_groups::this_grid().sync();
    if (blockIdx.x == 0 && threadIdx.x == 0)
        value[1] = value[0];
}

template <typename T> __global__ void fill(T *out, T what) {
    extern __shared__ char room[];
    T *shared = (T *)room;
    shared[threadIdx.x] = what;
    out[threadIdx.x] = shared[threadIdx.x];
}

static void CUDART_CB called(cudaStream_t, cudaError_t status, void *data) {
    *(int *)data += status == cudaSuccess ? 1 : 100;
}

static void CUDART_CB host_function(void *data) {
    *(int *)data *= 2;
}

static void graphs(cudaStream_t stream, int *value) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaStreamCaptureStatus status;
    size_t nodes = 0;
    int host = 0;
    say("begin", cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    add<<<1, 1, 0, stream>>>(value, 10);
    say("set in it", cudaMemsetAsync(value + 1, 0, sizeof *value, stream));
    say("capturing", cudaStreamIsCapturing(stream, &status));
    say("end", cudaStreamEndCapture(stream, &graph));
    say("nodes", cudaGraphGetNodes(graph, nullptr, &nodes));
    say("instantiate", cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 3; i++)
        cudaGraphLaunch(exec, stream);
    say("synchronize", cudaStreamSynchronize(stream));
    say("copy", cudaMemcpy(&host, value, sizeof host, cudaMemcpyDeviceToHost));
    printf("capturing %d, %zu nodes, value %d\n", (int)status, nodes, host);
    say("destroy", cudaGraphExecDestroy(exec));
    say("destroy", cudaGraphDestroy(graph));

    int more = 5;
    void *arguments[] = {&value, &more};
    cudaKernelNodeParams kernel = {};
    kernel.func = (void *)add;
    kernel.gridDim = kernel.blockDim = dim3(1);
    kernel.kernelParams = arguments;
    cudaGraphNode_t first, second, third;
    cudaMemsetParams set = {};
    set.dst = value;
    set.elementSize = 4;
    set.width = set.height = 1;
    say("create", cudaGraphCreate(&graph, 0));
    say("memset node", cudaGraphAddMemsetNode(&first, graph, nullptr, 0, &set));
    say("kernel node", cudaGraphAddKernelNode(&second, graph, &first, 1, &kernel));
    say("copy node", cudaGraphAddMemcpyNode1D(&third, graph, &second, 1, &host, value, sizeof host, cudaMemcpyDeviceToHost));
    say("instantiate", cudaGraphInstantiateWithFlags(&exec, graph, 0));
    more = 6;
    say("other arguments", cudaGraphExecKernelNodeSetParams(exec, second, &kernel));
    say("launch", cudaGraphLaunch(exec, stream));
    say("synchronize", cudaStreamSynchronize(stream));
    printf("value %d\n", host);
    say("destroy", cudaGraphExecDestroy(exec));
    say("destroy", cudaGraphDestroy(graph));
}

static void launches(cudaStream_t stream, int *value) {
    int what = 3, blocks = 0, host[2] = {};
    void *arguments[] = {&value, &what}, *one[] = {&value};
    cudaLaunchConfig_t config = {};
    config.gridDim = config.blockDim = dim3(2);
    config.stream = stream;
    say("set", cudaMemset(value, 0, 8));
    cudaDeviceSynchronize(); // the stream does not wait for it
    say("by name", cudaLaunchKernel((const void *)add, dim3(1), dim3(4), arguments, 0, stream));
    say("extended", cudaLaunchKernelExC(&config, (const void *)add, arguments));
    say("cooperative", cudaLaunchCooperativeKernel((const void *)add_after_all, dim3(4), dim3(8), one, 0, stream));
    say("synchronize", cudaStreamSynchronize(stream));
    say("copy", cudaMemcpy(host, value, 8, cudaMemcpyDeviceToHost));
    printf("%d %d\n", host[0], host[1]);
    say("not a kernel", cudaLaunchKernel((const void *)graphs, dim3(1), dim3(1), one, 0, stream));
    say("nothing", cudaLaunchKernel(nullptr, dim3(1), dim3(1), one, 0, stream));
    say("last", cudaGetLastError());
    cudaFunction_t function = nullptr;
    say("function by symbol", cudaGetFuncBySymbol(&function, (const void *)add));
    say("launch it", cudaLaunchKernel((const void *)function, dim3(1), dim3(1), arguments, 0, stream));
    cudaFuncAttributes attributes;
    say("attributes", cudaFuncGetAttributes(&attributes, (const void *)add));
    printf("shared %zu, at least one thread: %d\n", attributes.sharedSizeBytes, attributes.maxThreadsPerBlock > 0);
    say("occupancy", cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, (const void *)add, 128, 0));
    printf("some blocks: %d\n", blocks > 0);
    say("more shared memory", cudaFuncSetAttribute((const void *)fill<double>, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536));
    fill<double><<<1, 8, 65536, stream>>>((double *)(value + 4), 0.5);
    say("template", cudaGetLastError());
    fill<float><<<1, 8, 1 << 20, stream>>>((float *)(value + 4), 0.5f);
    say("too much shared memory", cudaGetLastError());
}

int main() {
    cudaStream_t stream;
    cudaEvent_t start, end;
    int *value, data = 42, least = 0, greatest = 0;
    float ms = -1;
    say("flags", cudaSetDeviceFlags(cudaDeviceScheduleYield));
    say("stream", cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    say("priorities", cudaDeviceGetStreamPriorityRange(&least, &greatest));
    printf("in order: %d\n", greatest <= least);
    say("event", cudaEventCreate(&start));
    say("event", cudaEventCreateWithFlags(&end, cudaEventDefault));
    say("malloc", cudaMalloc(&value, 256));
    say("set", cudaMemset(value, 0, 256));
    cudaDeviceSynchronize(); // the stream does not wait for it
    say("record", cudaEventRecord(start, stream));
    add<<<3, 32, 0, stream>>>(value, 1);
    say("callback", cudaStreamAddCallback(stream, called, &data, 0));
    say("host function", cudaLaunchHostFunc(stream, host_function, &data));
    say("record", cudaEventRecord(end, stream));
    say("wait", cudaStreamWaitEvent(nullptr, end, 0));
    say("synchronize", cudaEventSynchronize(end));
    say("query", cudaEventQuery(end));
    say("query", cudaStreamQuery(stream));
    say("time", cudaEventElapsedTime(&ms, start, end));
    printf("it took time: %d; callbacks made %d\n", ms >= 0, data);
    graphs(stream, value);
    launches(stream, value);
    say("synchronize", cudaDeviceSynchronize());
    say("destroy", cudaEventDestroy(start));
    say("destroy", cudaEventDestroy(end));
    say("destroy", cudaStreamDestroy(stream));
    say("free", cudaFree(value));
    return 0;
}
