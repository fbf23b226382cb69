/*
 * CUDA_LAUNCH_BLOCKING: each call that launches returns when its kernel has ended, and with its
 * error. In processes of their own, as the driver reads the variable once.
 */
#include "kernels.h"

/* slow: counts for a while, then p[0] += 1 for each block. */
static const char text[] = KERNELS_HEAD
    ".visible .entry probe() { ret; }\n"
    ".visible .entry slow(.param .u64 p) { .reg .b32 %r<3>; .reg .b64 %d; .reg .pred %q;\n"
    "ld.param.u64 %d, [p]; mov.u32 %r0, 0; AGAIN: ld.volatile.global.u32 %r1, [%d+4];\n"
    "add.u32 %r0, %r0, 1; add.u32 %r1, %r1, %r0; setp.lt.u32 %q, %r1, 100000; @%q bra AGAIN;\n"
    "mov.u32 %r2, 1; red.release.sys.global.add.u32 [%d], %r2; ret; }\n"
    ".visible .entry trap(.param .u64 p) { trap; ret; }\n";

static struct shared_words words;
static CUstream stream;

static CUresult plainly(const char *name, void **params) {
    return cu.cuLaunchKernel(kernel(name), 2, 1, 1, 1, 1, 1, 0, stream, params, NULL);
}

static CUresult by_configuration(const char *name, void **params) {
    CUlaunchConfig config = {2, 1, 1, 1, 1, 1, 0, stream, NULL, 0};
    return cu.cuLaunchKernelEx(&config, kernel(name), params, NULL);
}

static CUresult cooperatively(const char *name, void **params) {
    return cu.cuLaunchCooperativeKernel(kernel(name), 2, 1, 1, 1, 1, 1, 0, stream, params);
}

static CUresult on_devices(const char *name, void **params) {
    CUDA_LAUNCH_PARAMS one = {kernel(name), 2, 1, 1, 1, 1, 1, 0, stream, params};
    return cu.cuLaunchCooperativeKernelMultiDevice(&one, 1, 0);
}

static CUfunction set_by_parts(const char *name) {
    CUfunction f = kernel(name);
    OK_CU(cu.cuFuncSetBlockShape(f, 1, 1, 1));
    OK_CU(cu.cuParamSetv(f, 0, &words.device, sizeof words.device));
    OK_CU(cu.cuParamSetSize(f, sizeof words.device));
    return f;
}

static CUresult by_parts(const char *name, void **params) {
    return cu.cuLaunchGrid(set_by_parts(name), 2, 1);
}

static CUresult by_parts_in_a_stream(const char *name, void **params) {
    return cu.cuLaunchGridAsync(set_by_parts(name), 2, 1, stream);
}

static const struct way {
    const char *name;
    CUresult (*launch)(const char *name, void **params);
} ways[] = {
    {"cuLaunchKernel", plainly},
    {"cuLaunchKernelEx", by_configuration},
    {"cuLaunchCooperativeKernel", cooperatively},
    {"cuLaunchCooperativeKernelMultiDevice", on_devices},
    {"cuLaunchGrid", by_parts},
    {"cuLaunchGridAsync", by_parts_in_a_stream},
};

/* argv: the way */
CHILD_THAT_ENDS(launches) {
    const struct way *way = &ways[atoi(argv[1])];
    assert_int_equal(argc, 2);
    init_driver();
    OK_CU(cu.cuModuleLoadData(&kernels_module, text));
    kernels_load_all();
    words = words_make(2);
    OK_CU(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    void *params[] = {&words.device};
    for (unsigned i = 1; i <= 3; i++) {
        OK_CU(way->launch("slow", params));
        assert_int_equal(__atomic_load_n(&words.host[0], __ATOMIC_ACQUIRE), 2 * i);
    }
    FAILS_CU(LAUNCH_FAILED, way->launch("trap", params));
    FAILS_CU(LAUNCH_FAILED, cu.cuCtxSynchronize());
}

TEST(with_launch_blocking_each_call_waits_for_its_kernel) {
    bool good = true;
    kernels_open(text);
    bool several = device_attribute(CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH) == 1;
    assert_int_equal(setenv("CUDA_LAUNCH_BLOCKING", "1", 1), 0);
    for (size_t i = 0; i < COUNT(ways); i++) {
        char number[16];
        snprintf(number, sizeof number, "%zu", i);
        if ((ways[i].launch == on_devices && !several) || run_child("launches", number, NULL) == 0)
            continue;
        print_error("%s\n", ways[i].name);
        good = false;
    }
    unsetenv("CUDA_LAUNCH_BLOCKING");
    assert_true(good);
}
