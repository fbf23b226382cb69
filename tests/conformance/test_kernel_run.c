/* Kernels that run: what they compute, in which order, and what their faults do. */
#include "harness.h"

#define COUNT_OF 100000u

static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    /* y[i] += a * x[i] */
    ".visible .entry saxpy(.param .u64 y, .param .u64 x, .param .f32 a, .param .u32 n) {\n"
    ".reg .pred %p; .reg .b32 %r<6>; .reg .f32 %f<4>; .reg .b64 %d<6>;\n"
    "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;\n"
    "mad.lo.s32 %r4, %r1, %r2, %r3; ld.param.u32 %r5, [n]; setp.ge.u32 %p, %r4, %r5;\n"
    "@%p bra END;\n"
    "ld.param.u64 %d1, [y]; ld.param.u64 %d2, [x]; ld.param.f32 %f1, [a];\n"
    "mul.wide.u32 %d3, %r4, 4; add.s64 %d4, %d1, %d3; add.s64 %d5, %d2, %d3;\n"
    "ld.global.f32 %f2, [%d5]; ld.global.f32 %f3, [%d4];\n"
    "fma.rn.f32 %f3, %f1, %f2, %f3; st.global.f32 [%d4], %f3;\n"
    "END: ret; }\n"
    /* *sum += every x[i], by shared memory and barriers */
    ".visible .entry total(.param .u64 sum, .param .u64 x, .param .u32 n) {\n"
    ".shared .align 4 .b8 part[1024];\n"
    ".reg .pred %p; .reg .b32 %r<12>; .reg .b64 %d<6>;\n"
    "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; shl.b32 %r3, %r1, 8; add.u32 %r3, %r3, %r2;\n"
    "ld.param.u32 %r4, [n]; mov.u32 %r5, 0; setp.ge.u32 %p, %r3, %r4; @%p bra STORE;\n"
    "ld.param.u64 %d1, [x]; mul.wide.u32 %d2, %r3, 4; add.s64 %d1, %d1, %d2;\n"
    "ld.global.u32 %r5, [%d1];\n"
    "STORE: shl.b32 %r6, %r2, 2; mov.u32 %r7, part; add.u32 %r6, %r6, %r7;\n"
    "st.shared.u32 [%r6], %r5; mov.u32 %r8, 128;\n"
    "LOOP: bar.sync 0; setp.ge.u32 %p, %r2, %r8; @%p bra NEXT;\n"
    "shl.b32 %r9, %r8, 2; add.u32 %r9, %r9, %r6; ld.shared.u32 %r10, [%r9];\n"
    "ld.shared.u32 %r11, [%r6]; add.u32 %r11, %r11, %r10; st.shared.u32 [%r6], %r11;\n"
    "NEXT: shr.u32 %r8, %r8, 1; setp.ne.u32 %p, %r8, 0; @%p bra LOOP;\n"
    "bar.sync 0; setp.ne.u32 %p, %r2, 0; @%p bra END;\n"
    "ld.shared.u32 %r5, [%r6]; ld.param.u64 %d3, [sum]; red.global.add.u32 [%d3], %r5;\n"
    "END: ret; }\n"
    /* Waits until *flag is not 0, and then adds 1 to it. */
    ".visible .entry wait_for(.param .u64 flag) {\n"
    ".reg .pred %p; .reg .b32 %r<3>; .reg .b64 %d<2>;\n"
    "ld.param.u64 %d1, [flag];\n"
    "AGAIN: ld.acquire.sys.global.u32 %r1, [%d1]; setp.eq.u32 %p, %r1, 0; @%p bra AGAIN;\n"
    "add.u32 %r2, %r1, 1; st.release.sys.global.u32 [%d1], %r2; ret; }\n"
    ".visible .global .u32 counter;\n"
    ".visible .entry count() {\n"
    ".reg .b32 %r<2>; mov.u32 %r1, 1; red.global.add.u32 [counter], %r1; ret; }\n"
    ".visible .entry beyond(.param .u64 p) {\n"
    ".reg .b32 %r<2>; .reg .b64 %d<2>; ld.param.u64 %d1, [p]; ld.global.u32 %r1, [%d1];\n"
    "st.global.u32 [%d1], %r1; ret; }\n";

static CUmodule module;

static CUfunction kernel(const char *name) {
    return function_of(module, name);
}

/* Skips where the driver runs no kernels. */
static void open_module(void) {
    module = new_module(ptx);
    CUresult result = cu.cuLaunchKernel(kernel("count"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
    OK_CU(cu.cuCtxSynchronize());
    if (no_kernels(result))
        SKIP("the driver runs no kernels: SOFTGPU_KERNELS=0");
    assert_int_equal(result, CUDA_SUCCESS);
}

TEST(saxpy_computes_each_element) {
    static float x[COUNT_OF], y[COUNT_OF], got[COUNT_OF];
    open_module();
    float a = 2.5f;
    unsigned n = COUNT_OF;
    for (unsigned i = 0; i < n; i++) {
        x[i] = (float)i * 0.25f;
        y[i] = (float)(n - i);
    }
    CUdeviceptr px = MADE_CU(CUdeviceptr, cuMemAlloc_v2, sizeof x);
    CUdeviceptr py = MADE_CU(CUdeviceptr, cuMemAlloc_v2, sizeof y);
    OK_CU(cu.cuMemcpyHtoD_v2(px, x, sizeof x));
    OK_CU(cu.cuMemcpyHtoD_v2(py, y, sizeof y));
    void *params[] = {&py, &px, &a, &n};
    OK_CU(cu.cuLaunchKernel(kernel("saxpy"), (n + 255) / 256, 1, 1, 256, 1, 1, 0, NULL, params,
                            NULL));
    OK_CU(cu.cuMemcpyDtoH_v2(got, py, sizeof got));
    for (unsigned i = 0; i < n; i++)
        if (got[i] != a * x[i] + y[i]) /* exact: all products fit */
            fail_msg("element %u is %g", i, (double)got[i]);
    DESTROY_CU(px, py);
}

TEST(blocks_add_up_through_shared_memory) {
    static unsigned x[COUNT_OF];
    open_module();
    unsigned n = COUNT_OF, want = 0;
    for (unsigned i = 0; i < n; i++)
        want += x[i] = i * 2654435761u;
    CUdeviceptr px = new_memory(sizeof x), sum = new_memory(sizeof want);
    OK_CU(cu.cuMemcpyHtoD_v2(px, x, sizeof x));
    OK_CU(cu.cuMemsetD32_v2(sum, 0, 1));
    void *params[] = {&sum, &px, &n};
    OK_CU(cu.cuLaunchKernel(kernel("total"), (n + 255) / 256, 1, 1, 256, 1, 1, 0, NULL, params,
                            NULL));
    assert_int_equal(word_at(sum), want);
}

TEST(launches_in_a_stream_run_in_order) {
    open_module();
    CUdeviceptr counter;
    size_t size;
    OK_CU(cu.cuModuleGetGlobal_v2(&counter, &size, module, "counter"));
    set_words(counter, 0, 1);
    CUstream stream = new_stream();
    for (unsigned i = 1; i <= 50; i++)
        OK_CU(cu.cuLaunchKernel(kernel("count"), i, 1, 1, 32, 1, 1, 0, stream, NULL, NULL));
    OK_CU(cu.cuStreamSynchronize(stream));
    assert_int_equal(word_at(counter), 50 * 51 / 2 * 32);
}

/* One kernel waits for what the other writes, and the other way round for the host. */
TEST(a_waiting_kernel_lets_other_kernels_run) {
    open_module();
    unsigned *flag;
    void *host = new_pinned(sizeof *flag, CU_MEMHOSTALLOC_DEVICEMAP);
    CUdeviceptr p = device_address(host);
    flag = host;
    *flag = 0;
    CUstream first = new_stream(), second = new_stream();
    void *params[] = {&p};
    OK_CU(cu.cuLaunchKernel(kernel("wait_for"), 1, 1, 1, 1, 1, 1, 0, first, params, NULL));
    OK_CU(cu.cuLaunchKernel(kernel("count"), 1, 1, 1, 1, 1, 1, 0, second, NULL, NULL));
    OK_CU(cu.cuStreamSynchronize(second));
    assert_int_equal(cu.cuStreamQuery(first), CUDA_ERROR_NOT_READY);
    __atomic_store_n(flag, 41, __ATOMIC_RELEASE);
    OK_CU(cu.cuStreamSynchronize(first));
    assert_int_equal(*flag, 42);
}

/* In a process of its own: the fault stays with the device. */
CHILD(fault) {
    CUcontext context;
    CUdevice device;
    CUfunction function;
    uint64_t nowhere = 16;
    void *params[] = {&nowhere};
    if (cu.cuInit(0) != CUDA_SUCCESS || cu.cuDeviceGet(&device, 0) != CUDA_SUCCESS ||
        cu.cuCtxCreate_v2(&context, 0, device) != CUDA_SUCCESS ||
        cu.cuModuleLoadData(&module, ptx) != CUDA_SUCCESS ||
        cu.cuModuleGetFunction(&function, module, "beyond") != CUDA_SUCCESS)
        return 2;
    if (cu.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL) != CUDA_SUCCESS)
        return 3;
    if (cu.cuCtxSynchronize() != CUDA_ERROR_ILLEGAL_ADDRESS)
        return 4;
    return cu.cuMemAlloc_v2(&(CUdeviceptr){0}, 4096) == CUDA_ERROR_ILLEGAL_ADDRESS ? 0 : 5;
}

TEST(an_illegal_address_poisons_the_context) {
    open_module();
    assert_int_equal(run_child("fault", NULL), 0);
}
