/* An instantiated graph gets new parameters, node by node and from another graph; another shape is refused. */
#include "check.h"

__global__ void power(const int *in, int *out, int count, int exponent) {
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x), result = 1;
    if (i >= count)
        return;
    for (int e = 0; e < exponent; e++)
        result *= in[i];
    out[i] = result;
}

__global__ void negate(const int *in, int *out, int count, int) {
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count)
        out[i] = -in[i];
}

const int count = 100;

static cudaGraph_t captured(cudaStream_t stream, int *in, int *out, int *host, int exponent, int launches) {
    cudaGraph_t graph;
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < launches; i++)
        power<<<4, 32, 0, stream>>>(in, out, count, exponent);
    MUST(cudaMemcpyAsync(host, out, count * sizeof *host, cudaMemcpyDeviceToHost, stream));
    MUST(cudaStreamEndCapture(stream, &graph));
    return graph;
}

static void expect(const char *what, cudaGraphExec_t exec, cudaStream_t stream, const int *host, int (*of)(int)) {
    int want[count];
    for (int i = 0; i < count; i++)
        want[i] = of(i % 11 - 5);
    MUST(cudaGraphLaunch(exec, stream));
    MUST(cudaStreamSynchronize(stream));
    same(what, host, want, count);
}

int main() {
    int values[count], *host, *other;
    cudaStream_t stream;
    cudaGraphExec_t exec;
    cudaGraphExecUpdateResultInfo info = {};
    cudaGraphNode_t nodes[2];
    size_t number = 2;
    for (int i = 0; i < count; i++)
        values[i] = i % 11 - 5;
    int *in = to_device(values, count), *out = to_device<int>(nullptr, count);
    MUST(cudaMallocHost(&host, sizeof values));
    MUST(cudaMallocHost(&other, sizeof values));
    MUST(cudaStreamCreate(&stream));
    cudaGraph_t graph = captured(stream, in, out, host, 2, 1);
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    expect("squares", exec, stream, host, [](int x) { return x * x; });

    cudaGraph_t cubes = captured(stream, in, out, host, 3, 1);
    MUST(cudaGraphExecUpdate(exec, cubes, &info));
    printf("update: %d\n", (int)info.result);
    expect("cubes", exec, stream, host, [](int x) { return x * x * x; });

    MUST(cudaGraphGetRootNodes(graph, nodes, &(number = 1)));
    cudaKernelNodeParams params = {};
    MUST(cudaGraphKernelNodeGetParams(nodes[0], &params));
    int length = count, exponent = 4;
    void *arguments[] = {&in, &out, &length, &exponent};
    params.kernelParams = arguments;
    params.gridDim = dim3(25);
    params.blockDim = dim3(4);
    MUST(cudaGraphExecKernelNodeSetParams(exec, nodes[0], &params));
    expect("fourth powers, by another grid", exec, stream, host, [](int x) { return x * x * x * x; });
    params.func = (void *)negate;
    MUST(cudaGraphExecKernelNodeSetParams(exec, nodes[0], &params));
    expect("another function", exec, stream, host, [](int x) { return -x; });

    MUST(cudaGraphGetNodes(graph, nodes, &(number = 2)));
    cudaGraphNodeType type;
    MUST(cudaGraphNodeGetType(nodes[0], &type));
    cudaGraphNode_t copy = type == cudaGraphNodeTypeMemcpy ? nodes[0] : nodes[1];
    MUST(cudaGraphExecMemcpyNodeSetParams1D(exec, copy, other, out, count * sizeof *other, cudaMemcpyDeviceToHost));
    expect("copied elsewhere", exec, stream, other, [](int x) { return -x; });

    cudaGraph_t longer = captured(stream, in, out, host, 2, 2);
    say("another shape", cudaGraphExecUpdate(exec, longer, &info));
    printf("result: %d\n", (int)info.result);
    say("which is the last error", cudaGetLastError());
    expect("as before", exec, stream, other, [](int x) { return -x; });
    MUST(cudaGraphExecDestroy(exec));
    for (cudaGraph_t each : {graph, cubes, longer})
        MUST(cudaGraphDestroy(each));
    MUST(cudaStreamDestroy(stream));
    MUST(cudaFreeHost(host));
    MUST(cudaFreeHost(other));
    MUST(cudaFree(in));
    MUST(cudaFree(out));
    return 0;
}
