/* Functions: attributes, parameters, settings, and what the first API keeps in them. */
#include "harness.h"
#include "images.h"

static CUmodule module;

static CUfunction function(const char *name) {
    OK_CU(cu.cuModuleLoadData(&module, image_kernels_cubin));
    CUfunction found = function_of(module, name);
    return found;
}

static int attribute(CUfunction f, CUfunction_attribute which) {
    int value = -99;
    OK_CU(cu.cuFuncGetAttribute(&value, which, f));
    return value;
}

TEST(functions_of_machine_code_have_attributes) {
    CUfunction f = function("static_shared");
    CUfunction heavy = function_of(module, "heavy");
    assert_int_equal(attribute(f, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES), 4096);
    assert_int_equal(attribute(f, CU_FUNC_ATTRIBUTE_NUM_REGS), 10);
    assert_int_equal(attribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES), 49152 - 4096);
    assert_int_equal(attribute(f, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT), -1);
    assert_int_equal(attribute(heavy, CU_FUNC_ATTRIBUTE_NUM_REGS), 72);
    assert_int_equal(attribute(heavy, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 896);
    int value = -99;
    FAILS_CU(INVALID_VALUE, cu.cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX, heavy));
    FAILS_CU(INVALID_HANDLE, cu.cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, NULL));
    assert_int_equal(value, -99);
    OK_CU(cu.cuModuleUnload(module));
}

TEST(some_function_attributes_can_be_set) {
    CUfunction f = function("empty");
    OK_CU(cu.cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000));
    assert_int_equal(attribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES), 100000);
    FAILS_CU(INVALID_VALUE,
             cu.cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232449));
    OK_CU(cu.cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 4));
    assert_int_equal(attribute(f, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH), 4);
    FAILS_CU(INVALID_VALUE, cu.cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_NUM_REGS, 1));
    CUfunction clustered = function_of(module, "clustered");
    FAILS_CU(INVALID_VALUE,
             cu.cuFuncSetAttribute(clustered, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 4));
    OK_CU(cu.cuModuleUnload(module));
}

TEST(parameters_have_the_offsets_of_their_types) {
    static const size_t offsets[] = {0, 2, 4, 8, 16, 24, 32, 40, 64};
    static const size_t sizes[] = {1, 2, 4, 8, 4, 8, 8, 24, 1};
    CUfunction f = function("types");
    for (size_t i = 0; i < COUNT(sizes); i++) {
        size_t offset = 99, size = 99;
        OK_CU(cu.cuFuncGetParamInfo(f, i, &offset, &size));
        assert_int_equal(offset, offsets[i]);
        assert_int_equal(size, sizes[i]);
    }
    size_t offset;
    FAILS_CU(INVALID_VALUE, cu.cuFuncGetParamInfo(f, COUNT(sizes), &offset, NULL));
    OK_CU(cu.cuModuleUnload(module));
}

/* A preference for cache leaves less shared memory. */
TEST(the_cache_preference_changes_occupancy) {
    CUfunction f = function("dynamic_shared");
    int blocks = MADE_CU(int, cuOccupancyMaxActiveBlocksPerMultiprocessor, f, 32, 0);
    assert_int_equal(blocks, 32);
    OK_CU(cu.cuFuncSetCacheConfig(f, CU_FUNC_CACHE_PREFER_L1));
    OK_CU(cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 32, 0));
    assert_int_equal(blocks, 8);
    FAILS_CU(INVALID_VALUE, cu.cuFuncSetCacheConfig(f, (CUfunc_cache)9));
    OK_CU(cu.cuModuleUnload(module));
}

TEST(invalid_shared_memory_bank_sizes_are_refused) {
    CUfunction f = function("empty");
    OK_CU(cu.cuFuncSetSharedMemConfig(f, CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE));
    FAILS_CU(INVALID_VALUE, cu.cuFuncSetSharedMemConfig(f, (CUsharedconfig)9));
    OK_CU(cu.cuModuleUnload(module));
}

TEST(invalid_arguments_of_the_first_launch_api_are_refused) {
    CUfunction f = function("bounded");
    char bytes[8] = {0};
    CUfunction heavy = function_of(module, "heavy");
    OK_CU(cu.cuFuncSetBlockShape(f, 128, 1, 1));
    FAILS_CU(INVALID_VALUE, cu.cuFuncSetBlockShape(f, 129, 1, 1));
    /* More than its registers allow: the launch's business. */
    OK_CU(cu.cuFuncSetBlockShape(heavy, 1024, 1, 1));
    OK_CU(cu.cuFuncSetSharedSize(f, 49152));
    FAILS_CU(INVALID_VALUE, cu.cuFuncSetSharedSize(f, 49153));
    OK_CU(cu.cuParamSetSize(f, 8));
    FAILS_CU(INVALID_VALUE, cu.cuParamSetSize(f, 40000));
    OK_CU(cu.cuParamSetv(f, 0, bytes, 8));
    FAILS_CU(INVALID_VALUE, cu.cuParamSeti(f, 1 << 20, 0));
    FAILS_CU(INVALID_VALUE, cu.cuParamSetf(f, 1 << 20, 0.0F));
    FAILS_CU(INVALID_HANDLE, cu.cuLaunch(NULL));
    FAILS_CU(INVALID_VALUE, cu.cuLaunchGridAsync(f, 1, 65536, NULL));
    OK_CU(cu.cuModuleUnload(module));
}

#define TEXTURES                                                                                   \
    ".version 7.8\n.target sm_70\n.address_size 64\n"                                              \
    ".visible .global .texref picture;\n.visible .global .texref other;\n"                         \
    ".visible .entry look()\n{\nret;\n}\n"

static CUfunction look(CUtexref *picture) {
    OK_CU(cu.cuModuleLoadData(&module, TEXTURES));
    CUfunction f = function_of(module, "look");
    OK_CU(cu.cuModuleGetTexRef(picture, module, "picture"));
    OK_CU(cu.cuTexRefSetFormat(*picture, CU_AD_FORMAT_FLOAT, 1));
    return f;
}

TEST(a_texture_parameter_must_be_bound_first) {
    CUtexref picture, made;
    size_t offset;
    CUfunction f = look(&picture);
    CUdeviceptr memory = new_memory(4096);
    OK_CU(cu.cuTexRefCreate(&made));
    FAILS_CU(INVALID_VALUE, cu.cuParamSetTexRef(f, CU_PARAM_TR_DEFAULT, picture));
    FAILS_CU(INVALID_VALUE, cu.cuParamSetTexRef(f, 0, picture));
    FAILS_CU(INVALID_VALUE, cu.cuParamSetTexRef(f, CU_PARAM_TR_DEFAULT, made));
    OK_CU(cu.cuTexRefSetAddress_v2(&offset, picture, memory, 4096));
    OK_CU(cu.cuParamSetTexRef(f, CU_PARAM_TR_DEFAULT, picture));
    OK_CU(cu.cuTexRefDestroy(made));
    OK_CU(cu.cuModuleUnload(module));
}

static void check_dump(const char *line) {
    char *text = soft->state_dump();
    assert_non_null(text);
    if (!strstr(text, line))
        fail_msg("the state lacks '%s':\n%s", line, text);
    soft->free_text(text);
}

/* What only a launch that runs would show. */
TEST_WHERE(functions_keep_their_launch_settings, NEEDS_SOFTGPU("reads its state")) {
    CUfunction f = function("types");
    unsigned char bytes[] = {0xaa, 0xbb};
    CUlibrary library;
    OK_CU(cu.cuFuncSetBlockShape(f, 32, 2, 1));
    OK_CU(cu.cuFuncSetSharedSize(f, 1024));
    OK_CU(cu.cuParamSetSize(f, 12));
    OK_CU(cu.cuParamSeti(f, 0, 0x04030201));
    OK_CU(cu.cuParamSetf(f, 4, 1.0F));
    OK_CU(cu.cuParamSetv(f, 8, bytes, 2));
    check_dump("function types: block 32,2,1, shared 1024, arguments 12 bytes "
               "010203040000803faabb0000\n");
    OK_CU(cu.cuFuncSetSharedMemConfig(f, CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE));
    check_dump("function types: cache 0, banks 2\n");
    OK_CU(cu.cuModuleUnload(module));
    OK_CU(cu.cuLibraryLoadData(&library, image_kernels_cubin, NULL, NULL, 0, NULL, NULL, 0));
    CUkernel kernel = MADE_CU(CUkernel, cuLibraryGetKernel, library, "types");
    OK_CU(cu.cuKernelSetCacheConfig(kernel, CU_FUNC_CACHE_PREFER_L1, dev));
    check_dump("kernel types: cache 2 on device 0\n");
    OK_CU(cu.cuLibraryUnload(library));
}

TEST(functions_keep_their_texture_parameters) {
    NEEDS_SOFTGPU("reads its state, and asks for what no hardware was asked for");
    CUtexref picture, strange, made;
    const CUDA_ARRAY_DESCRIPTOR line = {.Width = 64, TEXELS(CU_AD_FORMAT_FLOAT, 1)};
    size_t offset;
    CUfunction f = look(&picture);
    CUmodule second = new_module(TEXTURES);
    OK_CU(cu.cuModuleGetTexRef(&strange, second, "picture"));
    OK_CU(cu.cuTexRefCreate(&made));
    OK_CU(cu.cuTexRefSetAddress_v2(&offset, strange, 0, 0));
    OK_CU(cu.cuTexRefSetAddress_v2(&offset, made, 0, 0));
    FAILS_CU(INVALID_VALUE, cu.cuParamSetTexRef(f, CU_PARAM_TR_DEFAULT, strange));
    FAILS_CU(INVALID_VALUE, cu.cuParamSetTexRef(f, CU_PARAM_TR_DEFAULT, made));
    CUarray array = MADE_CU(CUarray, cuArrayCreate_v2, &line);
    OK_CU(cu.cuTexRefSetArray(picture, array, CU_TRSA_OVERRIDE_FORMAT));
    FAILS_CU(INVALID_VALUE, cu.cuParamSetTexRef(f, 0, picture));
    OK_CU(cu.cuParamSetTexRef(f, CU_PARAM_TR_DEFAULT, picture));
    check_dump("function look: texture picture\n");
    OK_CU(cu.cuArrayDestroy(array));
    FAILS_CU(INVALID_VALUE, cu.cuParamSetTexRef(f, CU_PARAM_TR_DEFAULT, picture));
    OK_CU(cu.cuTexRefDestroy(made));
    OK_CU(cu.cuModuleUnload(module));
}
