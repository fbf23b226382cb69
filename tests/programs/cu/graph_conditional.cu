/* Graphs that decide for themselves: a loop whose kernel says whether to go on, and a branch. */
// flags: -rdc=true
// runtime: 13
#include "check.h"

__global__ void collatz(unsigned *value, int *steps, cudaGraphConditionalHandle again) {
    *value = *value % 2 ? 3 * *value + 1 : *value / 2;
    ++*steps;
    cudaGraphSetConditional(again, *value != 1);
}

__global__ void is_even(const int *steps, cudaGraphConditionalHandle branch) {
    cudaGraphSetConditional(branch, *steps % 2 == 0);
}

__global__ void mark(int *out) {
    ++*out;
}

static cudaGraphNode_t kernel_node(cudaGraph_t graph, cudaGraphNode_t *after, const void *kernel, void **arguments) {
    cudaGraphNode_t node;
    cudaKernelNodeParams params = {};
    params.func = (void *)kernel;
    params.gridDim = params.blockDim = dim3(1);
    params.kernelParams = arguments;
    MUST(cudaGraphAddKernelNode(&node, graph, after, after ? 1 : 0, &params));
    return node;
}

static cudaGraph_t conditional(cudaGraph_t graph, cudaGraphNode_t after, cudaGraphConditionalHandle handle, cudaGraphConditionalNodeType type,
                               cudaGraphNode_t *node) {
    cudaGraphNodeParams params = {};
    params.type = cudaGraphNodeTypeConditional;
    params.conditional.handle = handle;
    params.conditional.type = type;
    params.conditional.size = 1;
    MUST(cudaGraphAddNode(node, graph, after ? &after : nullptr, nullptr, after ? 1 : 0, &params));
    return params.conditional.phGraph_out[0];
}

int main() {
    unsigned *value = to_device<unsigned>(nullptr, 1);
    int *steps = to_device<int>(nullptr, 1), *even = to_device<int>(nullptr, 1), evens = 0, marks = 0;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaGraphNode_t loop, branch;
    cudaGraphConditionalHandle again, decide;
    MUST(cudaGraphCreate(&graph, 0));
    MUST(cudaGraphConditionalHandleCreate(&again, graph, 1, cudaGraphCondAssignDefault));
    MUST(cudaGraphConditionalHandleCreate(&decide, graph, 0, cudaGraphCondAssignDefault));
    cudaGraph_t body = conditional(graph, nullptr, again, cudaGraphCondTypeWhile, &loop);
    void *collatzing[] = {&value, &steps, &again}, *asking[] = {&steps, &decide}, *marking[] = {&even};
    kernel_node(body, nullptr, (const void *)collatz, collatzing);
    cudaGraphNode_t asked = kernel_node(graph, &loop, (const void *)is_even, asking);
    cudaGraph_t then = conditional(graph, asked, decide, cudaGraphCondTypeIf, &branch);
    kernel_node(then, nullptr, (const void *)mark, marking);
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    for (unsigned first : {6u, 7u, 27u, 1u}) {
        unsigned now = first;
        int host = 0, zero = 0, number = 0;
        MUST(cudaMemcpy(value, &first, sizeof first, cudaMemcpyHostToDevice));
        MUST(cudaMemcpy(steps, &zero, sizeof zero, cudaMemcpyHostToDevice));
        MUST(cudaGraphLaunch(exec, nullptr));
        to_host(&host, steps, 1);
        do {
            now = now % 2 ? 3 * now + 1 : now / 2;
            number++;
        } while (now != 1);
        evens += number % 2 == 0;
        printf("%u takes %d steps\n", first, host);
        right("as many", host == number);
    }
    to_host(&marks, even, 1);
    printf("even numbers of steps: %d\n", marks);
    right("as often", marks == evens);
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaGraphDestroy(graph));
    MUST(cudaFree(value));
    MUST(cudaFree(steps));
    MUST(cudaFree(even));
    return 0;
}
