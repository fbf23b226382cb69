/* A graph built node by node: kernels, sets, copies, host functions, events and another graph in it; asked about, cloned,
 * switched off in part, and taken apart. */
#include "check.h"

#include <vector>

__global__ void add(int *value, int what) {
    *value += what;
}

__global__ void times(int *value, int what) {
    *value *= what;
}

static void CUDART_CB minus(void *data) {
    *(int *)data -= 1;
}

typedef std::vector<cudaGraphNode_t> nodes;

static cudaGraphNode_t kernel_node(cudaGraph_t graph, const nodes &after, void (*kernel)(int *, int), int *value, int what) {
    cudaGraphNode_t node;
    void *arguments[] = {&value, &what};
    cudaKernelNodeParams params = {};
    params.func = (void *)kernel;
    params.gridDim = params.blockDim = dim3(1);
    params.kernelParams = arguments;
    MUST(cudaGraphAddKernelNode(&node, graph, after.data(), after.size(), &params));
    return node;
}

static int launched(cudaGraphExec_t exec, int *host) {
    *host = -1;
    MUST(cudaGraphLaunch(exec, nullptr));
    MUST(cudaDeviceSynchronize());
    return *host;
}

int main() {
    int *value = to_device<int>(nullptr, 1), *host;
    cudaGraph_t graph, inner, clone, found;
    cudaGraphExec_t exec;
    cudaGraphNode_t set, child, copy, call, record, empty, twin;
    cudaGraphNodeType type;
    cudaEvent_t event;
    MUST(cudaMallocHost(&host, sizeof *host));
    MUST(cudaEventCreate(&event));

    MUST(cudaGraphCreate(&inner, 0)); // + 3, then * 5
    kernel_node(inner, {kernel_node(inner, {}, add, value, 3)}, times, value, 5);

    MUST(cudaGraphCreate(&graph, 0));
    cudaMemsetParams to_zero = {};
    to_zero.dst = value;
    to_zero.elementSize = 4;
    to_zero.width = to_zero.height = 1;
    MUST(cudaGraphAddMemsetNode(&set, graph, nullptr, 0, &to_zero));
    cudaGraphNode_t plus = kernel_node(graph, {set}, add, value, 4);
    MUST(cudaGraphAddChildGraphNode(&child, graph, &plus, 1, inner));
    MUST(cudaGraphAddEmptyNode(&empty, graph, &child, 1));
    cudaGraphNode_t last = kernel_node(graph, {empty}, times, value, 2);
    MUST(cudaGraphAddMemcpyNode1D(&copy, graph, &last, 1, host, value, sizeof *host, cudaMemcpyDeviceToHost));
    cudaHostNodeParams function = {minus, host};
    MUST(cudaGraphAddHostNode(&call, graph, &copy, 1, &function));
    MUST(cudaGraphAddEventRecordNode(&record, graph, &call, 1, event));

    cudaGraphNode_t list[16];
    size_t count = 16;
    MUST(cudaGraphGetNodes(graph, list, &count));
    printf("%zu nodes:", count);
    for (cudaGraphNode_t node : {set, plus, child, empty, last, copy, call, record}) {
        MUST(cudaGraphNodeGetType(node, &type));
        printf(" %d", (int)type);
    }
    count = 16;
    MUST(cudaGraphGetRootNodes(graph, list, &count));
    printf("; %zu root\n", count);
    right("it is the set", count == 1 && list[0] == set);
    MUST(cudaGraphChildGraphNodeGetGraph(child, &found));
    MUST(cudaGraphGetNodes(found, nullptr, &count));
    printf("%zu nodes in the graph in it\n", count);
    cudaMemsetParams told;
    MUST(cudaGraphMemsetNodeGetParams(set, &told));
    right("what the set sets", told.dst == value && told.width == 1 && told.elementSize == 4);
    cudaKernelNodeParams kernel;
    MUST(cudaGraphKernelNodeGetParams(plus, &kernel));
    right("what the kernel is, and gets", kernel.func == (void *)add && *(int *)kernel.kernelParams[1] == 4);

    MUST(cudaGraphInstantiate(&exec, graph, 0));
    int result = launched(exec, host);
    printf("result %d\n", result);
    right("(0 + 4 + 3) * 5 * 2 - 1", result == (0 + 4 + 3) * 5 * 2 - 1);
    say("the event was recorded", cudaEventQuery(event));
    unsigned enabled = 9;
    MUST(cudaGraphNodeSetEnabled(exec, plus, 0));
    MUST(cudaGraphNodeGetEnabled(exec, plus, &enabled));
    result = launched(exec, host);
    printf("enabled %u, result %d\n", enabled, result);
    right("3 * 5 * 2 - 1", result == 3 * 5 * 2 - 1);
    MUST(cudaGraphExecDestroy(exec));

    MUST(cudaGraphClone(&clone, graph));
    MUST(cudaGraphNodeFindInClone(&twin, last, clone));
    MUST(cudaGraphDestroyNode(twin)); // with its edges: copy and call come when they like
    MUST(cudaGraphGetNodes(clone, nullptr, &count));
    printf("%zu nodes in the clone,", count);
    MUST(cudaGraphGetNodes(graph, nullptr, &count));
    printf(" %zu in the original\n", count);
    MUST(cudaGraphDestroy(clone));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    right("the original is as it was", launched(exec, host) == 69);
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaGraphDestroy(graph));
    MUST(cudaGraphDestroy(inner));
    MUST(cudaEventDestroy(event));
    MUST(cudaFreeHost(host));
    MUST(cudaFree(value));
    return 0;
}
