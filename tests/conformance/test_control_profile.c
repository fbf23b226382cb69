/* What softgpu's control tells of kernels that were counted: after each launch, in graphs too. */
#include "harness.h"

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                          ".visible .entry fill(.param .u64 at) {\n"
                          ".reg .b64 %d<3>; .reg .b32 %r;\n"
                          "ld.param.u64 %d1, [at]; mov.u32 %r, %tid.x; mul.wide.u32 %d2, %r, 4;\n"
                          "add.u64 %d1, %d1, %d2; st.global.u32 [%d1], %r; ret; }\n";

static void expect_part(int json, const char *part) {
    char *text = soft->kernel_profile(json);
    assert_non_null(text);
    if (!strstr(text, part))
        fail_msg("'%s' is not in\n%s", part, text);
    soft->free_text(text);
}

static void expect_nothing(void) {
    for (int json = 0; json < 2; json++) {
        char *text = soft->kernel_profile(json);
        assert_string_equal(text, "");
        soft->free_text(text);
    }
}

static CUmodule load(CUfunction *function) {
    CUmodule module = MADE_CU(CUmodule, cuModuleLoadData, ptx);
    OK_CU(cu.cuModuleGetFunction(function, module, "fill"));
    return module;
}

/* Two texts of one kernel, of which one is unloaded; then the same in a graph, launched twice. */
TEST(kernel_profiles_add_up_over_launches_and_graphs) {
    NEEDS_SOFTGPU("counts what kernels do");
    CUfunction function;
    CUdeviceptr memory;
    void *params[] = {&memory};
    memory = new_memory(4096);
    CUmodule module = load(&function);
    expect_nothing();
    OK_CU(cu.cuLaunchKernel(function, 2, 1, 1, 40, 1, 1, 0, NULL, params, NULL));
    OK_CU(cu.cuCtxSynchronize());
    expect_part(1, "\"launches\":1,");
    expect_part(1, "\"warp_instructions\":24,\"thread_instructions\":480,");
    expect_part(1, "\"bytes_written\":320,");
    OK_CU(cu.cuModuleUnload(module));
    module = load(&function);
    CUgraph graph = new_graph();
    const CUDA_KERNEL_NODE_PARAMS_v2 what = kernel_node(function, 2, 40, params);
    (void)MADE_CU(CUgraphNode, cuGraphAddKernelNode_v2, graph, NULL, 0, &what);
    CUgraphExec executable = instantiate(graph);
    for (int i = 0; i < 2; i++) {
        OK_CU(cu.cuGraphLaunch(executable, NULL));
        OK_CU(cu.cuCtxSynchronize());
    }
    expect_part(1, "\"launches\":3,\"failed\":0,");
    expect_part(1, "\"warp_instructions\":72,\"thread_instructions\":1440,");
    expect_part(0, "kernel fill\n  instructions: 72 of warps, 1440 of threads; 20.00 threads each");
    OK_CU(cu.cuModuleUnload(module));
}

BEFORE_TESTS {
    setenv("SOFTGPU_KERNELS", "1", 1);
    setenv("SOFTGPU_PROFILE_KERNELS", "/dev/null", 1);
    return 0;
}
