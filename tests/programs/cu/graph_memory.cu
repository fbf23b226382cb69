/* Memory that graphs allocate and free: by nodes, by capture, and one that the stream frees after the graph. */
#include "check.h"

__global__ void fill(int *memory, int count, int from) {
    for (int i = (int)threadIdx.x; i < count; i += (int)blockDim.x)
        memory[i] = from + i;
}

__global__ void sum(const int *memory, int count, int *out) {
    __shared__ int total;
    if (threadIdx.x == 0)
        total = 0;
    __syncthreads();
    int mine = 0;
    for (int i = (int)threadIdx.x; i < count; i += (int)blockDim.x)
        mine += memory[i];
    atomicAdd(&total, mine);
    __syncthreads();
    if (threadIdx.x == 0)
        *out = total;
}

const int count = 10000;

static cudaGraphNode_t kernel_node(cudaGraph_t graph, cudaGraphNode_t after, const void *kernel, void **arguments) {
    cudaGraphNode_t node;
    cudaKernelNodeParams params = {};
    params.func = (void *)kernel;
    params.gridDim = dim3(1);
    params.blockDim = dim3(128);
    params.kernelParams = arguments;
    MUST(cudaGraphAddKernelNode(&node, graph, &after, 1, &params));
    return node;
}

static unsigned long long graph_memory(cudaGraphMemAttributeType which) {
    unsigned long long bytes = 0;
    MUST(cudaDeviceGetGraphMemAttribute(0, which, &bytes));
    return bytes;
}

static void by_nodes(cudaStream_t stream, int *out) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaGraphNode_t allocate, node;
    cudaMemAllocNodeParams params = {};
    int length = count, from = 7, host = 0;
    params.poolProps.allocType = cudaMemAllocationTypePinned;
    params.poolProps.location.type = cudaMemLocationTypeDevice;
    params.bytesize = count * sizeof(int);
    MUST(cudaGraphCreate(&graph, 0));
    MUST(cudaGraphAddMemAllocNode(&allocate, graph, nullptr, 0, &params));
    right("the address is known", params.dptr != nullptr);
    void *filling[] = {&params.dptr, &length, &from}, *summing[] = {&params.dptr, &length, &out};
    node = kernel_node(graph, allocate, (const void *)fill, filling);
    node = kernel_node(graph, node, (const void *)sum, summing);
    MUST(cudaGraphAddMemFreeNode(&node, graph, &node, 1, params.dptr));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 3; i++)
        MUST(cudaGraphLaunch(exec, stream));
    MUST(cudaStreamSynchronize(stream));
    to_host(&host, out, 1);
    printf("sum %d\n", host);
    right("the sum", host == count * from + count * (count - 1) / 2);
    right("memory is kept for the next launch", graph_memory(cudaGraphMemAttrReservedMemCurrent) >= params.bytesize);
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaGraphDestroy(graph));
    MUST(cudaDeviceGraphMemTrim(0));
    printf("after a trim: %llu\n", graph_memory(cudaGraphMemAttrReservedMemCurrent));
}

/* One is allocated and freed inside; the other lives on behind the graph. */
static void by_capture(cudaStream_t stream, int *out) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    int *inside, *left, host = 0;
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    MUST(cudaMallocAsync((void **)&inside, count * sizeof(int), stream));
    MUST(cudaMallocAsync((void **)&left, count * sizeof(int), stream));
    fill<<<1, 128, 0, stream>>>(inside, count, 1);
    MUST(cudaMemcpyAsync(left, inside, count * sizeof(int), cudaMemcpyDeviceToDevice, stream));
    MUST(cudaFreeAsync(inside, stream));
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    MUST(cudaGraphLaunch(exec, stream));
    sum<<<1, 128, 0, stream>>>(left, count, out);
    say("a launch while its memory is not freed", cudaGraphLaunch(exec, stream));
    cudaGetLastError();
    MUST(cudaFreeAsync(left, stream));
    MUST(cudaStreamSynchronize(stream));
    to_host(&host, out, 1);
    printf("sum %d\n", host);
    right("the sum", host == count + count * (count - 1) / 2);
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaGraphInstantiate(&exec, graph, cudaGraphInstantiateFlagAutoFreeOnLaunch));
    for (int i = 0; i < 3; i++) // each frees what the one before it has left
        MUST(cudaGraphLaunch(exec, stream));
    MUST(cudaFreeAsync(left, stream));
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaGraphDestroy(graph));
}

int main() {
    int *out = to_device<int>(nullptr, 1);
    cudaStream_t stream;
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    by_nodes(stream, out);
    by_capture(stream, out);
    MUST(cudaStreamDestroy(stream));
    MUST(cudaFree(out));
    return 0;
}
