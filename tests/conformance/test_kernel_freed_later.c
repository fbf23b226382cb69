/* Kernels that use memory whose free stands behind them in their stream, or in their graph. */
#include "kernels.h"

#define WORDS 1000u

static const char text[] =
    KERNELS_HEAD ".visible .entry probe() { ret; }\n"
                 /* p[i] = i + 1 */
                 ".visible .entry fill(.param .u64 p, .param .u32 n) {\n"
                 ".reg .pred %q; .reg .b32 %r<4>; .reg .b64 %d<4>;\n"
                 "mov.u32 %r1, %tid.x; ld.param.u32 %r2, [n]; ld.param.u64 %d1, [p];\n"
                 "AGAIN: setp.ge.u32 %q, %r1, %r2; @%q bra END;\n"
                 "mul.wide.u32 %d2, %r1, 4; add.u64 %d2, %d2, %d1; add.u32 %r3, %r1, 1;\n"
                 "st.global.u32 [%d2], %r3; add.u32 %r1, %r1, 128; bra AGAIN;\n"
                 "END: ret; }\n"
                 /* *to += every p[i] */
                 ".visible .entry total(.param .u64 p, .param .u32 n, .param .u64 to) {\n"
                 ".reg .pred %q; .reg .b32 %r<4>; .reg .b64 %d<4>;\n"
                 "mov.u32 %r1, %tid.x; ld.param.u32 %r2, [n]; ld.param.u64 %d1, [p];\n"
                 "ld.param.u64 %d3, [to];\n"
                 "AGAIN: setp.ge.u32 %q, %r1, %r2; @%q bra END;\n"
                 "mul.wide.u32 %d2, %r1, 4; add.u64 %d2, %d2, %d1; ld.global.u32 %r3, [%d2];\n"
                 "red.global.add.u32 [%d3], %r3; add.u32 %r1, %r1, 128; bra AGAIN;\n"
                 "END: ret; }\n";

static CUstream stream;
static struct shared_words sum;

static void launch(CUdeviceptr p, unsigned words) {
    CUdeviceptr to = sum.device;
    void *params[] = {&p, &words, &to};
    OK_CU(cu.cuLaunchKernel(kernel("fill"), 1, 1, 1, 128, 1, 1, 0, stream, params, NULL));
    OK_CU(cu.cuLaunchKernel(kernel("total"), 1, 1, 1, 128, 1, 1, 0, stream, params, NULL));
}

static unsigned expected(unsigned words) {
    return words * (words + 1) / 2;
}

static void begin(void) {
    kernels_open(text);
    stream = new_stream();
    sum = words_make(1);
}

TEST(pool_memory_lives_until_its_queued_free) {
    begin();
    struct gate gate = hold(stream);
    CUdeviceptr memory = MADE_CU(CUdeviceptr, cuMemAllocAsync, WORDS * 4, stream);
    launch(memory, WORDS);
    OK_CU(cu.cuMemFreeAsync(memory, stream));
    gate_drain(&gate, stream);
    assert_int_equal(*sum.host, expected(WORDS));
}

/* A smaller allocation has the addresses before the kernels have run. */
TEST(reused_addresses_do_not_affect_earlier_kernels) {
    begin();
    struct gate gate = hold(stream);
    CUdeviceptr memory = MADE_CU(CUdeviceptr, cuMemAllocAsync, WORDS * 4, stream);
    launch(memory, WORDS);
    OK_CU(cu.cuMemFreeAsync(memory, stream));
    CUdeviceptr smaller = MADE_CU(CUdeviceptr, cuMemAllocAsync, 100, stream);
    launch(smaller, 25);
    OK_CU(cu.cuMemFreeAsync(smaller, stream));
    gate_drain(&gate, stream);
    assert_int_equal(*sum.host, expected(WORDS) + expected(25));
}

TEST(plain_memory_freed_in_stream_order_lives_until_its_queued_free) {
    begin();
    CUdeviceptr memory = MADE_CU(CUdeviceptr, cuMemAlloc_v2, WORDS * 4);
    struct gate gate = hold(stream);
    launch(memory, WORDS);
    OK_CU(cu.cuMemFreeAsync(memory, stream));
    gate_drain(&gate, stream);
    assert_int_equal(*sum.host, expected(WORDS));
}

/* `inside`: the graph frees it, too; else its launch leaves it. */
static void in_a_graph(bool inside) {
    begin();
    OK_CU(cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    CUdeviceptr memory = MADE_CU(CUdeviceptr, cuMemAllocAsync, WORDS * 4, stream);
    launch(memory, WORDS);
    if (inside)
        OK_CU(cu.cuMemFreeAsync(memory, stream));
    CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, stream);
    CUgraphExec exec = MADE_CU(CUgraphExec, cuGraphInstantiateWithFlags, graph, 0);
    OK_CU(cu.cuGraphLaunch(exec, stream));
    if (inside)
        OK_CU(cu.cuGraphLaunch(exec, stream));
    else
        launch(memory, WORDS);
    if (!inside)
        OK_CU(cu.cuMemFreeAsync(memory, stream));
    OK_CU(cu.cuStreamSynchronize(stream));
    assert_int_equal(*sum.host, 2 * expected(WORDS));
    DESTROY_CU(exec, graph);
    CUdevice device;
    OK_CU(cu.cuCtxGetDevice(&device));
    OK_CU(cu.cuDeviceGraphMemTrim(device));
}

TEST_IS(kernels_use_memory_that_their_graph_frees, in_a_graph(true));
TEST_IS(kernels_use_memory_that_their_graph_leaves, in_a_graph(false));

/* In a process of its own: the fault stays with the device. */
CHILD(behind) {
    CUcontext context;
    CUdevice device;
    if (cu.cuInit(0) != CUDA_SUCCESS || cu.cuDeviceGet(&device, 0) != CUDA_SUCCESS ||
        cu.cuCtxCreate_v2(&context, 0, device) != CUDA_SUCCESS)
        return 2;
    begin();
    CUdeviceptr memory = MADE_CU(CUdeviceptr, cuMemAlloc_v2, WORDS * 4);
    struct gate gate = hold(stream); /* both kernels are queued before the first one faults */
    OK_CU(cu.cuMemFreeAsync(memory, stream));
    launch(memory, WORDS);
    gate_release(&gate);
    return cu.cuStreamSynchronize(stream) == CUDA_ERROR_ILLEGAL_ADDRESS ? 0 : 3;
}

TEST(a_kernel_after_the_free_of_its_memory_faults) {
    if (!soft)
        SKIP("hardware may still have the pages");
    begin();
    assert_int_equal(run_child("behind", NULL), 0);
}
