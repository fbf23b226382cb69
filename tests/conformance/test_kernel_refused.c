/*
 * Instructions that softgpu does not run: their module loads, its other kernels run, and they are
 * refused at the first launch and each later one, in streams and in graphs, with one line in the
 * log. Hardware runs them.
 */
#include "kernel_module.h"
#include "kernels.h"

static const char text[] =
    ".version 8.1\n.target sm_90a\n.address_size 64\n"
    ".visible .entry probe() { ret; }\n"
    ".visible .entry fence() { wgmma.fence.sync.aligned; ret; }\n"
    ".visible .entry registers() .maxntid 128 { setmaxnreg.inc.sync.aligned.u32 80; ret; }\n"
    ".visible .entry ok(.param .u64 p) { .reg .b64 %d; ld.param.u64 %d, [p];\n"
    "st.global.u32 [%d], 7; ret; }\n";

static const char launching[] =
    ".version 8.1\n.target sm_90\n.address_size 64\n"
    ".extern .func (.param .b64 r) cudaGetParameterBufferV2(.param .b64 f, .param .align 4 .b8 "
    "g[12],\n.param .align 4 .b8 b[12], .param .b32 s);\n"
    ".extern .func (.param .b32 r) cudaLaunchDeviceV2(.param .b64 b, .param .b64 s);\n"
    ".visible .entry probe() { ret; }\n"
    ".visible .entry child() { .param .b64 b; .param .b64 s; .param .b32 r; .reg .b64 %d;\n"
    "mov.u64 %d, 0; st.param.b64 [b], %d; st.param.b64 [s], %d;\n"
    "call.uni (r), cudaLaunchDeviceV2, (b, s); ret; }\n"
    ".visible .entry ok(.param .u64 p) { .reg .b64 %d; ld.param.u64 %d, [p];\n"
    "st.global.u32 [%d], 7; ret; }\n";

static CUresult run(const char *name, void **params) {
    return cu.cuLaunchKernel(kernel(name), 1, 1, 1, 128, 1, 1, 0, NULL, params, NULL);
}

static void ok_runs(void) {
    struct shared_words words = words_make(1);
    void *params[] = {&words.device};
    OK_CU(run("ok", params));
    OK_CU(cu.cuCtxSynchronize());
    assert_int_equal(words.host[0], 7);
}

static void graphs_refuse(const char *name) {
    CUgraphNode node;
    CUgraphExec exec = NULL;
    CUDA_KERNEL_NODE_PARAMS params = kernel_node(kernel(name), 1, 128, NULL);
    CUgraph graph = new_graph();
    CUresult result = cu.cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &params);
    if (result == CUDA_SUCCESS)
        result = cu.cuGraphInstantiateWithFlags(&exec, graph, 0);
    if (result == CUDA_SUCCESS)
        result = cu.cuGraphLaunch(exec, NULL);
    FAILS_CU(NOT_SUPPORTED, result);
    if (exec)
        OK_CU(cu.cuGraphExecDestroy(exec));
}

static size_t lines_of(const char *said) {
    size_t lines = 0;
    for (; *said; said++)
        lines += *said == '\n';
    return lines;
}

/* `wanted` are in the one line. */
static void is_refused(const char *name, const char *const wanted[2]) {
    int threads, error = dup(STDERR_FILENO), file = output_begin(STDERR_FILENO);
    CUresult first = run(name, NULL), second = run(name, NULL);
    graphs_refuse(name);
    char *said = output_so_far(file);
    assert_true(dup2(error, STDERR_FILENO) >= 0);
    close(error);
    close(file);
    FAILS_CU(NOT_SUPPORTED, first);
    FAILS_CU(NOT_SUPPORTED, second);
    for (int i = 0; i < 2; i++)
        if (lines_of(said) != 1 || !strstr(said, "was not launched") || !strstr(said, wanted[i]))
            fail_msg("%s: not one line with \"%s\": %s", name, wanted[i], said);
    free(said);
    OK_CU(cu.cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel(name)));
    assert_true(threads >= 128);
    OK_CU(cu.cuCtxSynchronize()); /* the context is none the worse */
    ok_runs();
}

TEST(unsupported_instructions_are_refused_at_launch) {
    if (device_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) != 9)
        SKIP("these instructions are of compute capability 9.0 alone");
    kernels_open(text);
    ok_runs();
    if (soft) {
        is_refused("fence", (const char *[]){"wgmma.fence.sync.aligned", "SOFTGPU_PROFILE=a100"});
        is_refused("registers", (const char *[]){"setmaxnreg.inc", "SOFTGPU_PROFILE=a100"});
    } else {
        OK_CU(run("fence", NULL));
        OK_CU(run("registers", NULL));
        OK_CU(cu.cuCtxSynchronize());
    }
}

TEST(a_kernel_launch_from_a_kernel_is_refused_by_name) {
    NEEDS_SOFTGPU("hardware needs the device runtime's library for it");
    CUlinkState link;
    CUmodule module;
    void *image;
    size_t size;
    FAILS_CU(INVALID_PTX, cu.cuModuleLoadData(&module, launching)); /* nothing defines it */
    OK_CU(cu.cuLinkCreate_v2(0, NULL, NULL, &link));
    OK_CU(cu.cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, (void *)(uintptr_t)launching,
                              sizeof launching, "launching", 0, NULL, NULL));
    OK_CU(cu.cuLinkComplete(link, &image, &size));
    kernels_open(image);
    ok_runs();
    is_refused("child", (const char *[]){"cudaLaunchDeviceV2", "device runtime"});
    OK_CU(cu.cuLinkDestroy(link));
}
