/*
 * Kernels that print, allocate and set conditions, where the host's memory ends: each allocation of
 * a launch fails in turn. The launch then says so, and leaves all as it was.
 */
#include "driver_calls.h"
#include "members.h"

static CUmodule module;

static const char text[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".global .align 1 .b8 s[5] = {35, 37, 37, 10, 0};\n" /* a comment among the results: "#%\n" */
    ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n"
    ".extern .func (.param .b64 r) malloc (.param .b64 size);\n"
    ".extern .func free (.param .b64 p);\n"
    ".extern .func cudaGraphSetConditional (.param .b64 h, .param .b32 v);\n"
    ".visible .entry heap() { .reg .b64 %d<4>; mov.u64 %d0, 100; mov.u64 %d1, s;\n"
    "cvta.global.u64 %d1, %d1; mov.u64 %d2, 0;\n"
    "{ .param .b64 a; .param .b64 b; .param .b64 c; .param .b32 d; st.param.b64 [a], %d0;\n"
    "call.uni (b), malloc, (a); ld.param.b64 %d3, [b]; st.param.b64 [c], %d3;\n"
    "call.uni free, (c); st.param.b64 [a], %d1; st.param.b64 [c], %d2;\n"
    "call.uni (d), vprintf, (a, c); } ret; }\n"
    ".visible .entry stop(.param .u64 handle) { .reg .b64 %d; ld.param.u64 %d, [handle];\n"
    "{ .param .b64 h; .param .b32 v; st.param.b64 [h], %d; st.param.b32 [v], 0;\n"
    "call.uni cudaGraphSetConditional, (h, v); } ret; }\n";

static int begin(void **state) {
    return open_softgpu(state) || cu.cuModuleLoadData(&module, text) != CUDA_SUCCESS ? -1 : 0;
}

ALL_TESTS(begin, NULL);

static CUfunction kernel(CUmodule of, const char *name) {
    CUfunction function = NULL;
    OK_CU(cu.cuModuleGetFunction(&function, of, name));
    return function;
}

/* ---- Allocations ----------------------------------------------------------------------------- */

static int launch_heap(void *user) {
    return (int)cu.cuLaunchKernel(kernel(module, "heap"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}

static void wait(void *user) {
    OK_CU(cu.cuCtxSynchronize());
}

TEST(launching_a_printing_and_allocating_kernel_is_all_or_nothing) {
    NEEDS_ALLOCATIONS_THAT_FAIL();
    OK_CU(launch_heap(NULL)); /* the context has its heap */
    wait(NULL);
    starve("launch", launch_heap, wait, NULL);
}

/* In a new context each time: its heap, and its function's code, are made by the launch. */
TEST_WHERE(the_first_launch_of_a_context_is_all_or_nothing, NEEDS_ALLOCATIONS_THAT_FAIL()) {
    for (long n = 1;; n++) {
        char *before = state_now();
        CUcontext own;
        CUmodule loaded;
        OK_CU(cu.cuCtxCreate_v2(&own, 0, 0));
        OK_CU(cu.cuModuleLoadData(&loaded, text));
        CUfunction function = kernel(loaded, "heap");
        refuse_memory_in_libraries(n);
        CUresult result = cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
        end_refusal();
        assert_int_equal(result, memory_was_refused() ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS);
        result = cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
        OK_CU(result);
        OK_CU(cu.cuCtxSynchronize());
        OK_CU(cu.cuCtxDestroy_v2(own));
        OK_CU(cu.cuCtxSetCurrent(context));
        same_state(before, "first launch", n);
        if (!memory_was_refused())
            break;
        assert_in_range(n, 1, 10000);
    }
}

/* ---- conditions ------------------------------------------------------------------------------ */

struct scene {
    CUgraph graph;
    CUgraphExec exec;
};

static CUgraph add_condition(CUgraph graph, CUgraph owner, CUgraphConditionalHandle *handle) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
    CUgraphNode node;
    OK_CU(
        cu.cuGraphConditionalHandleCreate(handle, owner, context, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
    params.conditional.handle = *handle;
    params.conditional.type = CU_GRAPH_COND_TYPE_WHILE;
    params.conditional.size = 1;
    params.conditional.ctx = context;
    OK_CU(cu.cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params));
    return params.conditional.phGraph_out[0];
}

/* A loop that its kernel ends, and in it another. */
static void build(struct scene *scene) {
    CUgraphConditionalHandle outer, inner;
    CUgraphNode node;
    OK_CU(cu.cuGraphCreate(&scene->graph, 0));
    CUgraph body = add_condition(scene->graph, scene->graph, &outer);
    CUgraph within = add_condition(body, scene->graph, &inner);
    void *stop_outer[] = {&outer}, *stop_inner[] = {&inner};
    CUDA_KERNEL_NODE_PARAMS params = {GRID(1), .func = kernel(module, "stop"), BLOCK(1),
                                      .kernelParams = stop_outer};
    OK_CU(cu.cuGraphAddKernelNode_v2(&node, body, NULL, 0, &params));
    params.kernelParams = stop_inner;
    OK_CU(cu.cuGraphAddKernelNode_v2(&node, within, NULL, 0, &params));
}

static int instantiate(void *user) {
    struct scene *scene = user;
    return (int)cu.cuGraphInstantiateWithFlags(&scene->exec, scene->graph, 0);
}

static void uninstantiate(void *user) {
    struct scene *scene = user;
    cu.cuGraphExecDestroy(scene->exec);
    scene->exec = NULL;
}

static int launch_graph(void *user) {
    struct scene *scene = user;
    return (int)cu.cuGraphLaunch(scene->exec, NULL);
}

TEST_WHERE(launching_a_conditional_graph_is_all_or_nothing, NEEDS_ALLOCATIONS_THAT_FAIL()) {
    struct scene scene = {0};
    build(&scene);
    starve("instantiation", instantiate, uninstantiate, &scene);
    assert_int_equal(instantiate(&scene), 0);
    assert_int_equal(launch_graph(&scene), 0);
    wait(NULL);
    starve("launch of a graph", launch_graph, wait, &scene);
    uninstantiate(&scene);
    OK_CU(cu.cuGraphDestroy(scene.graph));
}
