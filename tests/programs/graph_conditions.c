/*
 * A graph that repeats a body until a kernel ends the loop; in the body another condition chooses
 * between two kernels. Hardware needs the device runtime's library for this, and refuses to load
 * the text without it.
 */
#include "base/program.h"

PROGRAM_KERNELS("graph_conditions");

static CUgraphNode add_kernel(CUgraph graph, const char *name, void **params, CUgraphNode after) {
    CUgraphNode node;
    CUDA_KERNEL_NODE_PARAMS how = {.func = program_kernel(name),
                                   .gridDimX = 1,
                                   .gridDimY = 1,
                                   .gridDimZ = 1,
                                   .blockDimX = 1,
                                   .blockDimY = 1,
                                   .blockDimZ = 1,
                                   .kernelParams = params};
    OK(cu.cuGraphAddKernelNode_v2(&node, graph, after ? &after : NULL, after ? 1 : 0, &how));
    return node;
}

static CUgraphNode add_condition(CUgraph graph, CUgraphConditionalNodeType type, unsigned size,
                                 CUgraphConditionalHandle handle, CUgraphNode after,
                                 CUgraph *bodies) {
    CUgraphNode node;
    CUgraphNodeParams params;
    memset(&params, 0, sizeof params);
    params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    params.conditional = (CUDA_CONDITIONAL_NODE_PARAMS){
        .handle = handle, .type = type, .size = size, .ctx = program_context};
    OK(cu.cuGraphAddNode_v2(&node, graph, after ? &after : NULL, NULL, after ? 1 : 0, &params));
    memcpy(bodies, params.conditional.phGraph_out, size * sizeof *bodies);
    return node;
}

static unsigned collatz(uint64_t value) {
    unsigned steps = 0;
    for (; value != 1; steps++)
        value = value % 2 ? 3 * value + 1 : value / 2;
    return steps;
}

static CUgraph make_graph(CUdeviceptr *value, CUdeviceptr *steps) {
    CUgraph graph, loop, bodies[2];
    CUgraphConditionalHandle again, odd;
    OK(cu.cuGraphCreate(&graph, 0));
    OK(cu.cuGraphConditionalHandleCreate(&again, graph, program_context, 1,
                                         CU_GRAPH_COND_ASSIGN_DEFAULT));
    OK(cu.cuGraphConditionalHandleCreate(&odd, graph, program_context, 0, 0));
    void *decide[] = {value, &again, &odd}, *step[] = {value, steps};
    CUgraphNode first = add_kernel(graph, "decide", decide, NULL);
    add_condition(graph, CU_GRAPH_COND_TYPE_WHILE, 1, again, first, &loop);
    CUgraphNode chosen = add_condition(loop, CU_GRAPH_COND_TYPE_IF, 2, odd, NULL, bodies);
    add_kernel(bodies[0], "triple", step, NULL);
    add_kernel(bodies[1], "halve", step, NULL);
    add_kernel(loop, "decide", decide, chosen);
    return graph;
}

int main(void) {
    program_begin_empty("graph_conditions");
    if (cu.cuModuleLoadData(&program_module, program_kernels) != CUDA_SUCCESS)
        program_cannot_run("the driver does not link the device runtime");
    CUdeviceptr value = device_new(8), steps = device_new(4);
    LAUNCH("halve", SHAPE(1, 1), &value, &steps); /* does this driver run? */
    CUgraph graph = make_graph(&value, &steps);
    CUgraphExec exec;
    OK(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
    for (uint64_t number = 1; number < 12 * program_scale(10); number++) {
        unsigned got = 0;
        device_write(value, &number, sizeof number);
        device_write(steps, &got, sizeof got);
        OK(cu.cuGraphLaunch(exec, NULL));
        device_read(&got, steps, sizeof got);
        expect(got == collatz(number), "%llu: %u steps", (unsigned long long)number, got);
    }
    OK(cu.cuGraphExecDestroy(exec));
    OK(cu.cuGraphDestroy(graph));
    return program_end();
}
