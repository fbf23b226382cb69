/* The profile of kernels where memory ends: a launch is whole or nothing, and so is a text. */
#include "refused_memory.h"

#include <gpumem/cuda_api.h>
#include <gpumem/softgpu.h>

#include "test.h"

#define CU_FN(symbol, name, version, kind, params, args) CUresult CUDAAPI symbol params;
#include <gpumem/functions.def>

extern const softgpu_control *softgpu_get_control(int version);

static const softgpu_control *soft;

static void ok(CUresult result) {
    assert_int_equal(result, CUDA_SUCCESS);
}

/* Two source files, so that there are several names to copy. Each number is a kernel of its own. */
static CUmodule load(unsigned number, CUfunction *function) {
    char text[512];
    CUmodule module;
    snprintf(text, sizeof text,
             ".version 8.0\n.target sm_90\n.address_size 64\n"
             ".file 1 \"one.cu\"\n.file 2 \"two.cu\"\n"
             ".visible .entry k%u(.param .u64 p) { .reg .b64 %%d;\n.loc 1 5 1\n"
             "ld.param.u64 %%d, [p];\n.loc 2 6 1\nred.global.add.u32 [%%d], 1; ret; }\n",
             number);
    ok(cuModuleLoadData(&module, text));
    snprintf(text, sizeof text, "k%u", number);
    ok(cuModuleGetFunction(function, module, text));
    return module;
}

static bool has(const char *name) {
    char wanted[32];
    snprintf(wanted, sizeof wanted, "\"name\":\"%s\"", name);
    char *text = soft->kernel_profile(1);
    assert_non_null(text);
    bool found = strstr(text, wanted) != NULL;
    soft->free_text(text);
    return found;
}

TEST(a_profiled_launch_without_memory_queues_nothing) {
    CUdeviceptr sum;
    unsigned refusals = 0;
    uint32_t wanted = 0, got;
    ok(cuMemAlloc_v2(&sum, 4));
    ok(cuMemsetD32_v2(sum, 0, 1));
    for (bool done = false; !done;) {
        CUfunction function;
        char name[16];
        void *params[] = {&sum};
        CUmodule module = load(refusals, &function);
        refuse_memory((long)refusals + 1);
        CUresult result = cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL);
        end_refusal();
        done = !memory_was_refused();
        ok(cuCtxSynchronize());
        snprintf(name, sizeof name, "k%u", refusals);
        assert_true(result == CUDA_SUCCESS ||
                    (memory_was_refused() && result == CUDA_ERROR_OUT_OF_MEMORY));
        wanted += result == CUDA_SUCCESS ? 32 : 0;
        ok(cuMemcpyDtoH_v2(&got, sum, 4));
        assert_int_equal(got, wanted);
        assert_int_equal(has(name), result == CUDA_SUCCESS);
        ok(cuModuleUnload(module));
        refusals += !done;
        assert_in_range(refusals, 0, 1000);
    }
    assert_true(refusals > 20);
    ok(cuMemFree_v2(sum));
}

TEST(a_profile_text_without_memory_is_null_not_truncated) {
    for (int json = 0; json < 2; json++) {
        char *whole = soft->kernel_profile(json);
        size_t refusals = 0;
        assert_non_null(whole);
        for (bool done = false; !done; refusals += !done) {
            refuse_memory((long)refusals + 1);
            char *text = soft->kernel_profile(json);
            end_refusal();
            done = !memory_was_refused();
            if (text)
                assert_string_equal(text, whole);
            assert_true(text || memory_was_refused());
            soft->free_text(text);
            assert_in_range(refusals, 0, 10000);
        }
        assert_true(refusals > 1);
        soft->free_text(whole);
    }
}

static int setup(void **state) {
    CUcontext context;
    ok(cuInit(0));
    soft = softgpu_get_control(SOFTGPU_CONTROL_VERSION);
    ok(cuDevicePrimaryCtxRetain(&context, 0));
    ok(cuCtxSetCurrent(context));
    return 0;
}

static int teardown(void **state) {
    end_refusal();
    ok(cuDevicePrimaryCtxRelease_v2(0));
    return 0;
}

ALL_TESTS(setup, teardown);

BEFORE_TESTS {
    setenv("SOFTGPU_KERNELS", "1", 1);
    setenv("SOFTGPU_PROFILE_KERNELS", "/dev/null", 1);
    return 0;
}
