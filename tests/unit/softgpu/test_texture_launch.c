/* Launches that sample: with too little memory for what they sample, with rebound references, and
 * with textures that end before the launch. */
#include "refused_memory.h"
#include "softgpu/texture/texture.h"
#include "texture_texts.h"

#include <gpumem/cuda_api.h>

#include "test.h"

#define CU_FN(symbol, name, version, kind, params, args) CUresult CUDAAPI symbol params;
#include <gpumem/functions.def>

static CUcontext primary;
static CUmodule module;
static CUdeviceptr input, output;
static float places[8], got[4];

static void ok(CUresult result) {
    assert_int_equal(result, CUDA_SUCCESS);
}

static int setup(void **state) {
    ok(cuInit(0));
    ok(cuDevicePrimaryCtxRetain(&primary, 0));
    ok(cuCtxSetCurrent(primary));
    ok(cuMemAlloc_v2(&input, sizeof places));
    ok(cuMemAlloc_v2(&output, sizeof got));
    return 0;
}

static int teardown(void **state) {
    ok(cuMemFree_v2(input));
    ok(cuMemFree_v2(output));
    ok(cuCtxSetCurrent(NULL));
    ok(cuDevicePrimaryCtxRelease_v2(0));
    return 0;
}

/* A row of four texels: value, value + 1, … */
static CUarray row_of(float value) {
    CUarray array;
    float texels[4] = {value, value + 1, value + 2, value + 3};
    CUDA_ARRAY_DESCRIPTOR form = {4, 1, CU_AD_FORMAT_FLOAT, 1};
    ok(cuArrayCreate_v2(&array, &form));
    ok(cuMemcpyHtoA_v2(array, 0, texels, sizeof texels));
    return array;
}

static CUresult launch(const char *name, CUtexObject handle, CUstream stream) {
    CUfunction function;
    unsigned count = 1;
    void *params[] = {&output, &input, &handle, &count};
    ok(cuModuleGetFunction(&function, module, name));
    return cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL);
}

static float result(void) {
    ok(cuMemcpyDtoH_v2(got, output, sizeof got));
    return got[0];
}

TEST(rebinding_a_texture_affects_only_later_launches) {
    CUtexref reference;
    CUarray first = row_of(10), second = row_of(20);
    ok(cuModuleLoadData(&module, texture_text()));
    ok(cuModuleGetTexRef(&reference, module, "TX"));
    ok(cuTexRefSetArray(reference, first, CU_TRSA_OVERRIDE_FORMAT));
    places[0] = 2.5f;
    ok(cuMemcpyHtoD_v2(input, places, sizeof places));
    ok(launch("t_named", 0, NULL));
    ok(cuTexRefSetArray(reference, second, CU_TRSA_OVERRIDE_FORMAT));
    assert_true(result() == 12);
    ok(launch("t_named", 0, NULL));
    assert_true(result() == 22);
    ok(cuModuleUnload(module));
    ok(cuArrayDestroy(first));
    ok(cuArrayDestroy(second));
}

TEST(a_texture_launch_without_memory_fails_cleanly) {
    CUtexref reference;
    CUarray array = row_of(30);
    bool refused = true;
    int n = 1;
    for (; refused; n++) {
        /* Each time a new module, so that making the kernel ready is refused too. */
        ok(cuModuleLoadData(&module, texture_text()));
        CUfunction function;
        ok(cuModuleGetFunction(&function, module, "t_named"));
        ok(cuModuleGetTexRef(&reference, module, "TX"));
        ok(cuTexRefSetArray(reference, array, CU_TRSA_OVERRIDE_FORMAT));
        refuse_memory_of_threads(n);
        CUresult launched = launch("t_named", 0, NULL);
        refused = end_refusal();
        assert_int_equal(launched, refused ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS);
        ok(launch("t_named", 0, NULL)); /* it is not spoiled */
        assert_true(result() == 32);
        ok(cuModuleUnload(module));
    }
    assert_true(n > 8);
    ok(cuArrayDestroy(array));
}

static CUtexObject texture_of(CUarray array) {
    CUtexObject object;
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY};
    CUDA_TEXTURE_DESC texture = {.filterMode = CU_TR_FILTER_MODE_POINT};
    resource.res.array.hArray = array;
    ok(cuTexObjectCreate(&object, &resource, &texture, NULL));
    return object;
}

static bool is_known(CUtexObject object) {
    sg_lock();
    bool known = sg_sampler_find(sg_context_peek(), object) != NULL;
    sg_unlock();
    return known;
}

/* Programs that make and destroy an object for each launch do not fill the host's memory. */
TEST(destroyed_objects_are_kept_up_to_a_number_and_while_a_launch_may_need_them) {
    CUarray array = row_of(10);
    CUstream stream;
    void *word;
    ok(cuModuleLoadData(&module, texture_text()));
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ok(cuMemHostAlloc(&word, sizeof(uint32_t), 0));
    *(volatile uint32_t *)word = 0;
    ok(cuStreamWaitValue32_v2(stream, (CUdeviceptr)(uintptr_t)word, 1, CU_STREAM_WAIT_VALUE_EQ));
    CUtexObject object = texture_of(array), last = 0;
    ok(launch("t_2d", object, stream));
    ok(cuTexObjectDestroy(object));
    for (unsigned i = 0; i < SG_SAMPLERS_KEPT; i++)
        ok(cuTexObjectDestroy(last = texture_of(array)));
    assert_true(is_known(object));
    __atomic_store_n((uint32_t *)word, 1, __ATOMIC_RELEASE);
    ok(cuStreamSynchronize(stream));
    assert_true(result() >= 10 && result() < 14);
    ok(cuTexObjectDestroy(texture_of(array)));
    assert_false(is_known(object));
    assert_true(is_known(last));
    ok(cuStreamDestroy_v2(stream));
    ok(cuMemFreeHost(word));
    ok(cuModuleUnload(module));
    ok(cuArrayDestroy(array));
}

ALL_TESTS(setup, teardown);

BEFORE_TESTS {
    return setenv("SOFTGPU_SCHEDULE", "late", 1);
}
