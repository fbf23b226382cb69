/*
 * Graphs with kernel nodes: built by hand as a diamond with copies and a memset, updated and
 * launched again, cloned, captured from streams, and with conditional nodes.
 */
#include "base/program.h"

#define COUNT_OF 3001u
#define THREADS  128u

static const unsigned count = COUNT_OF;
static const size_t bytes = COUNT_OF * sizeof(uint32_t);
static uint32_t in[COUNT_OF], want[COUNT_OF], got[COUNT_OF];
static CUdeviceptr a, b, out;

static CUDA_KERNEL_NODE_PARAMS node_of(const char *name, void **params) {
    return (CUDA_KERNEL_NODE_PARAMS){.func = program_kernel(name),
                                     .gridDimX = (COUNT_OF + THREADS - 1) / THREADS,
                                     .gridDimY = 1,
                                     .gridDimZ = 1,
                                     .blockDimX = THREADS,
                                     .blockDimY = 1,
                                     .blockDimZ = 1,
                                     .kernelParams = params};
}

static CUgraphNode add_kernel(CUgraph graph, const char *name, void **params,
                              const CUgraphNode *after, size_t afters) {
    CUgraphNode node;
    CUDA_KERNEL_NODE_PARAMS how = node_of(name, params);
    OK(cu.cuGraphAddKernelNode_v2(&node, graph, after, afters, &how));
    return node;
}

static CUgraphNode add_copy(CUgraph graph, void *to_host, CUdeviceptr to, const void *from_host,
                            CUdeviceptr from, const CUgraphNode *after, size_t afters) {
    CUgraphNode node;
    CUDA_MEMCPY3D copy = {.srcMemoryType = from_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
                          .srcHost = from_host,
                          .srcDevice = from,
                          .dstMemoryType = to_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
                          .dstHost = to_host,
                          .dstDevice = to,
                          .WidthInBytes = bytes,
                          .Height = 1,
                          .Depth = 1};
    OK(cu.cuGraphAddMemcpyNode(&node, graph, after, afters, &copy, program_context));
    return node;
}

static void result(const char *what, unsigned factor, unsigned by) {
    for (unsigned i = 0; i < COUNT_OF; i++)
        want[i] = in[i] * factor + ((in[i] + by) ^ i);
    expect_equal(what, got, want, bytes);
    checksum(what, got, bytes);
    memset(got, 0, bytes);
}

static void launch(CUgraphExec exec, CUstream stream, unsigned times) {
    for (unsigned i = 0; i < times; i++)
        OK(cu.cuGraphLaunch(exec, stream));
    OK(cu.cuStreamSynchronize(stream));
}

/* in -> a -> times 3 -\
 *    \-> b -> plus 7 --> added -> got */
static void by_hand(CUstream stream) {
    CUgraph graph, clone;
    CUgraphExec exec, other;
    CUgraphNode nodes[2], ends[2], sum;
    unsigned factor = 3, by = 7;
    OK(cu.cuGraphCreate(&graph, 0));
    nodes[0] = add_copy(graph, NULL, a, in, 0, NULL, 0);
    nodes[1] = add_copy(graph, NULL, b, in, 0, NULL, 0);
    void *scale[] = {&a, (void *)&count, &factor}, *shift[] = {&b, (void *)&count, &by};
    void *add[] = {&out, &a, &b, (void *)&count};
    ends[0] = add_kernel(graph, "scale", scale, &nodes[0], 1);
    ends[1] = add_kernel(graph, "shift", shift, &nodes[1], 1);
    sum = add_kernel(graph, "add", add, ends, 2);
    add_copy(graph, got, 0, NULL, out, &sum, 1);
    OK(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
    launch(exec, stream, 3);
    result("a diamond", 3, 7);
    factor = 11;
    CUDA_KERNEL_NODE_PARAMS changed = node_of("scale", scale);
    OK(cu.cuGraphExecKernelNodeSetParams_v2(exec, ends[0], &changed));
    OK(cu.cuGraphNodeSetEnabled(exec, ends[1], 0));
    launch(exec, stream, 2);
    result("another factor, and nothing added", 11, 0);
    OK(cu.cuGraphClone(&clone, graph));
    OK(cu.cuGraphInstantiateWithFlags(&other, clone, 0));
    launch(other, stream, 1);
    result("a clone of the first", 3, 7);
    OK(cu.cuGraphExecDestroy(exec));
    OK(cu.cuGraphExecDestroy(other));
    OK(cu.cuGraphDestroy(clone));
    OK(cu.cuGraphDestroy(graph));
}

/* The same work on two streams, captured. */
static void captured(CUstream first, CUstream second) {
    CUgraph graph;
    CUgraphExec exec;
    CUevent fork, join;
    unsigned factor = 5, by = 9;
    struct shape shape = SHAPE((COUNT_OF + THREADS - 1) / THREADS, THREADS, .stream = first);
    struct shape beside = shape;
    beside.stream = second;
    OK(cu.cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
    OK(cu.cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
    OK(cu.cuStreamBeginCapture_v2(first, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    OK(cu.cuEventRecord(fork, first));
    OK(cu.cuStreamWaitEvent(second, fork, 0));
    OK(cu.cuMemcpyHtoDAsync_v2(a, in, bytes, first));
    LAUNCH("scale", shape, &a, (void *)&count, &factor);
    OK(cu.cuMemcpyHtoDAsync_v2(b, in, bytes, second));
    LAUNCH("shift", beside, &b, (void *)&count, &by);
    OK(cu.cuEventRecord(join, second));
    OK(cu.cuStreamWaitEvent(first, join, 0));
    LAUNCH("add", shape, &out, &a, &b, (void *)&count);
    OK(cu.cuMemcpyDtoHAsync_v2(got, out, bytes, first));
    OK(cu.cuStreamEndCapture(first, &graph));
    OK(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
    launch(exec, first, 2 * program_scale(100));
    result("captured from two streams", 5, 9);
    OK(cu.cuGraphExecDestroy(exec));
    OK(cu.cuGraphDestroy(graph));
    OK(cu.cuEventDestroy_v2(fork));
    OK(cu.cuEventDestroy_v2(join));
}

/* Two conditional bodies with default values 1 and 0: one of the two shifts happens. */
static void conditional(CUstream stream) {
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode before = NULL;
    unsigned by = 1000;
    void *shift[] = {&out, (void *)&count, &by};
    device_write(out, in, bytes);
    OK(cu.cuGraphCreate(&graph, 0));
    for (unsigned value = 0; value < 2; value++) {
        CUgraphConditionalHandle handle;
        CUgraphNodeParams params;
        CUgraphNode node;
        memset(&params, 0, sizeof params);
        OK(cu.cuGraphConditionalHandleCreate(&handle, graph, program_context, value,
                                             CU_GRAPH_COND_ASSIGN_DEFAULT));
        params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
        params.conditional = (CUDA_CONDITIONAL_NODE_PARAMS){
            .handle = handle, .type = CU_GRAPH_COND_TYPE_IF, .size = 1, .ctx = program_context};
        OK(cu.cuGraphAddNode_v2(&node, graph, before ? &before : NULL, NULL, before ? 1 : 0,
                                &params));
        add_kernel(params.conditional.phGraph_out[0], "shift", shift, NULL, 0);
        before = node;
    }
    OK(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
    launch(exec, stream, 3);
    device_read(got, out, bytes);
    for (unsigned i = 0; i < COUNT_OF; i++)
        want[i] = in[i] + 3 * by;
    expect_equal("one body of two, three times", got, want, bytes);
    OK(cu.cuGraphExecDestroy(exec));
    OK(cu.cuGraphDestroy(graph));
}

PROGRAM("graph") {
    CUstream first, second;
    for (unsigned i = 0; i < COUNT_OF; i++)
        in[i] = random_bits();
    a = device_new(bytes);
    b = device_new(bytes);
    out = device_new(bytes);
    LAUNCH("shift", SHAPE(1, 1), &out, (void *)&count, (void *)&count); /* does this driver run? */
    OK(cu.cuCtxSynchronize()); /* the streams below do not wait for the default one */
    OK(cu.cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
    OK(cu.cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    by_hand(first);
    captured(first, second);
    conditional(first);
    OK(cu.cuStreamDestroy_v2(first));
    OK(cu.cuStreamDestroy_v2(second));
}
