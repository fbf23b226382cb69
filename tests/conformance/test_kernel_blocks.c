/*
 * Kernels of many blocks, which several threads of softgpu run at one time: blocks that wait for
 * earlier ones, global atomics, and a fault in one of them.
 */
#include "harness.h"

/* An atomic operation takes ThreadSanitizer a hundred times as long. */
#ifdef __SANITIZE_THREAD__
enum { BLOCKS = 300, THREADS = 128 };
#else
enum { BLOCKS = 3000, THREADS = 128 };
#endif
enum { FEWER = BLOCKS / 4 };

static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    /* sums[i] = 0 + 1 + ... + i: block i waits for block i - 1 */
    ".visible .entry chain(.param .u64 sums, .param .u64 flags) {\n"
    ".reg .pred %p; .reg .b32 %r<6>; .reg .b64 %d<4>;\n"
    "ld.param.u64 %d1, [sums]; ld.param.u64 %d2, [flags];\n"
    "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; setp.ne.u32 %p, %r2, 0; @%p bra END;\n"
    "mul.wide.u32 %d3, %r1, 4; add.u64 %d1, %d1, %d3; add.u64 %d2, %d2, %d3;\n"
    "mov.u32 %r4, 0; setp.eq.u32 %p, %r1, 0; @%p bra FIRST;\n"
    "WAIT: ld.volatile.global.u32 %r3, [%d2+-4]; setp.eq.u32 %p, %r3, 0; @%p bra WAIT;\n"
    "membar.gl; ld.global.u32 %r4, [%d1+-4];\n"
    "FIRST: add.u32 %r4, %r4, %r1; st.global.u32 [%d1], %r4; membar.gl;\n"
    "st.volatile.global.u32 [%d2], 1;\nEND: bar.sync 0; ret; }\n"
    /* bins[tid] += 1 a hundred times; block `bad` reads what is not there */
    ".visible .entry count(.param .u64 bins, .param .u32 bad) {\n"
    ".reg .pred %p; .reg .b32 %r<6>; .reg .b64 %d<4>;\n"
    "ld.param.u64 %d1, [bins]; ld.param.u32 %r1, [bad]; mov.u32 %r2, %ctaid.x;\n"
    "setp.ne.u32 %p, %r1, %r2; @%p bra GOOD; mov.u64 %d2, 16;\n"
    "ld.volatile.global.u32 %r3, [%d2];\n"
    "GOOD: mov.u32 %r3, %tid.x; mul.wide.u32 %d3, %r3, 4; add.u64 %d1, %d1, %d3; mov.u32 %r4, 0;\n"
    "MORE: red.global.add.u32 [%d1], 1; add.u32 %r4, %r4, 1; setp.lt.u32 %p, %r4, 100;\n"
    "@%p bra MORE; ret; }\n";

static CUmodule module;

static CUfunction kernel(const char *name) {
    return function_of(module, name);
}

/* Skips where the driver runs no kernels. */
static CUdeviceptr open_module(void) {
    OK_CU(cu.cuModuleLoadData(&module, ptx));
    CUdeviceptr memory = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 2 * BLOCKS * 4);
    OK_CU(cu.cuMemsetD32_v2(memory, 0, 2 * BLOCKS));
    unsigned none = UINT32_MAX;
    void *params[] = {&memory, &none};
    CUresult result = cu.cuLaunchKernel(kernel("count"), 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
    if (no_kernels(result)) {
        DESTROY_CU(memory, module);
        SKIP("the driver runs no kernels: SOFTGPU_KERNELS=0");
    }
    assert_int_equal(result, CUDA_SUCCESS);
    OK_CU(cu.cuMemsetD32_v2(memory, 0, 2 * BLOCKS));
    return memory;
}

static void close_module(CUdeviceptr memory) {
    DESTROY_CU(memory, module);
}

TEST(blocks_may_wait_for_earlier_blocks) {
    static unsigned got[BLOCKS];
    CUdeviceptr sums = open_module(), flags = sums + BLOCKS * sizeof *got;
    void *params[] = {&sums, &flags};
    OK_CU(cu.cuLaunchKernel(kernel("chain"), BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL));
    OK_CU(cu.cuMemcpyDtoH_v2(got, sums, sizeof got));
    for (unsigned i = 0; i < BLOCKS; i++)
        if (got[i] != i * (i + 1) / 2)
            fail_msg("the sum up to block %u is %u", i, got[i]);
    close_module(sums);
}

TEST(global_atomics_of_many_blocks_add_up) {
    unsigned got[THREADS], none = UINT32_MAX;
    CUdeviceptr bins = open_module();
    void *params[] = {&bins, &none};
    OK_CU(cu.cuLaunchKernel(kernel("count"), BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL));
    OK_CU(cu.cuMemcpyDtoH_v2(got, bins, sizeof got));
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(got[i], 100 * BLOCKS);
    close_module(bins);
}

/* Two streams with kernels of many blocks, and copies between them. */
TEST(two_kernels_of_many_blocks_run_concurrently) {
    unsigned got[THREADS], none = UINT32_MAX;
    CUstream streams[2];
    CUdeviceptr bins = open_module();
    for (int i = 0; i < 2; i++)
        OK_CU(cu.cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
    OK_CU(cu.cuCtxSynchronize());
    void *params[] = {&bins, &none};
    for (int i = 0; i < 4; i++)
        OK_CU(cu.cuLaunchKernel(kernel("count"), FEWER, 1, 1, THREADS, 1, 1, 0, streams[i % 2],
                                params, NULL));
    for (int i = 0; i < 2; i++) {
        OK_CU(cu.cuStreamSynchronize(streams[i]));
        OK_CU(cu.cuStreamDestroy_v2(streams[i]));
    }
    OK_CU(cu.cuMemcpyDtoH_v2(got, bins, sizeof got));
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(got[i], 4 * FEWER * 100);
    close_module(bins);
}

/* In a child: such an error ends all work of the process with the device. */
CHILD(fault) {
    CUdevice device;
    CUcontext context;
    CUfunction function;
    CUdeviceptr bins;
    unsigned bad = BLOCKS / 3 * 2;
    void *params[] = {&bins, &bad};
    if (cu.cuInit(0) != CUDA_SUCCESS || cu.cuDeviceGet(&device, 0) != CUDA_SUCCESS ||
        cu.cuCtxCreate_v2(&context, 0, device) != CUDA_SUCCESS ||
        cu.cuModuleLoadData(&module, ptx) != CUDA_SUCCESS ||
        cu.cuModuleGetFunction(&function, module, "count") != CUDA_SUCCESS ||
        cu.cuMemAlloc_v2(&bins, THREADS * 4) != CUDA_SUCCESS)
        return 2;
    if (cu.cuLaunchKernel(function, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL) !=
        CUDA_SUCCESS)
        return 3;
    CUresult result = cu.cuCtxSynchronize();
    if (result != CUDA_ERROR_ILLEGAL_ADDRESS)
        print_message("cuCtxSynchronize: %d\n", (int)result);
    return result == CUDA_ERROR_ILLEGAL_ADDRESS ? 0 : 4;
}

TEST(a_fault_in_one_block_ends_the_kernel) {
    close_module(open_module());
    assert_int_equal(run_child("fault", NULL), 0);
}
