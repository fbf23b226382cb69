/* A copy between contexts that is in no stream comes after all that both have queued, and before
 * all that they queue later: in non-blocking streams, too, and however little memory there is. */
#include "refused_memory.h"

#include <gpumem/cuda_api.h>
#include <gpumem/softgpu.h>

#include "test.h"

#define CU_FN(symbol, name, version, kind, params, args) CUresult CUDAAPI symbol params;
#include <gpumem/functions.def>

extern const softgpu_control *softgpu_get_control(int version);

#define WORDS 100000 /* too many to be copied at once */

static const softgpu_control *soft;
static struct device {
    CUcontext context;
    CUstream stream;
    CUdeviceptr memory, copy;
} devices[2];

static void ok(CUresult result) {
    assert_int_equal(result, CUDA_SUCCESS);
}

static int setup(void **state) {
    ok(cuInit(0));
    soft = softgpu_get_control(SOFTGPU_CONTROL_VERSION);
    for (int i = 1; i >= 0; i--) {
        ok(cuDevicePrimaryCtxRetain(&devices[i].context, i));
        ok(cuCtxSetCurrent(devices[i].context));
        ok(cuStreamCreate(&devices[i].stream, CU_STREAM_NON_BLOCKING));
        ok(cuMemAlloc_v2(&devices[i].memory, 4 * WORDS));
        ok(cuMemAlloc_v2(&devices[i].copy, 4 * WORDS));
    }
    soft->schedule_set(SOFTGPU_SCHEDULE_LATE, 1);
    return 0;
}

static int teardown(void **state) {
    end_refusal();
    soft->schedule_set(SOFTGPU_SCHEDULE_EAGER, 0);
    for (int i = 0; i < 2; i++) {
        ok(cuCtxSetCurrent(devices[i].context));
        ok(cuStreamDestroy_v2(devices[i].stream));
        ok(cuMemFree_v2(devices[i].memory));
        ok(cuMemFree_v2(devices[i].copy));
        ok(cuDevicePrimaryCtxRelease_v2(i));
    }
    return 0;
}

ALL_TESTS(setup, teardown);

static CUresult linear(void) {
    return cuMemcpyPeer(devices[1].memory, devices[1].context, devices[0].memory,
                        devices[0].context, 4 * WORDS);
}

static CUresult box(void) {
    CUDA_MEMCPY3D_PEER copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                               .srcDevice = devices[0].memory,
                               .srcContext = devices[0].context,
                               .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                               .dstDevice = devices[1].memory,
                               .dstContext = devices[1].context,
                               .WidthInBytes = 4 * WORDS,
                               .Height = 1,
                               .Depth = 1};
    return cuMemcpy3DPeer(&copy);
}

/* What a copy of the second device's memory has, that was queued after `call`. */
static unsigned around(CUresult (*call)(void), CUresult *result, long refused) {
    unsigned words[2] = {0, 0};
    for (int i = 1; i >= 0; i--) {
        ok(cuCtxSetCurrent(devices[i].context));
        ok(cuMemsetD32Async(devices[i].memory, i ? 1 : 7, WORDS, devices[i].stream));
    }
    refuse_memory(refused);
    *result = call();
    end_refusal();
    ok(cuMemsetD32Async(devices[0].memory, 9, WORDS, devices[0].stream)); /* nor is this copied */
    ok(cuCtxSetCurrent(devices[1].context));
    ok(cuMemcpyDtoDAsync_v2(devices[1].copy, devices[1].memory, 4 * WORDS, devices[1].stream));
    ok(cuStreamSynchronize(devices[1].stream));
    ok(cuMemcpyDtoH_v2(&words[0], devices[1].copy, 4));
    ok(cuMemcpyDtoH_v2(&words[1], devices[1].copy + 4 * (WORDS - 1), 4));
    ok(cuCtxSetCurrent(devices[0].context));
    ok(cuCtxSynchronize());
    assert_int_equal(words[0], words[1]);
    return words[0];
}

TEST(a_copy_between_contexts_comes_between_what_both_queue) {
    CUresult result;
    assert_int_equal(around(linear, &result, 0), 7);
    ok(result);
    assert_int_equal(around(box, &result, 0), 7);
    ok(result);
}

TEST(a_copy_between_contexts_without_memory_is_done_in_order_or_not_at_all) {
    unsigned refusals = 0;
    CUresult result;
    for (long n = 1;; n++) {
        unsigned word = around(linear, &result, n);
        assert_int_equal(word, result == CUDA_SUCCESS ? 7 : 1);
        if (!memory_was_refused())
            break;
        refusals++;
        assert_true(result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY);
        assert_in_range(n, 1, 100);
    }
    assert_true(refusals >= 3);
}

BEFORE_TESTS_DO(setenv("SOFTGPU_DEVICES", "2", 1));
