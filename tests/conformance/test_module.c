/* Modules: images in memory and in files, their functions, their variables as memory. */
#include "harness.h"
#include "images.h"
#include "temporary.h"

#define HEAD ".version 7.8\n.target sm_70\n.address_size 64\n"
#define TEXT                                                                                       \
    HEAD ".visible .global .align 4 .u32 counter = 7;\n"                                           \
         ".visible .global .align 8 .u64 to_counter = generic(counter);\n"                         \
         ".visible .global .align 4 .b8 large[3000000];\n"                                         \
         ".visible .const .align 4 .u32 factors[2] = {3, 4};\n"                                    \
         ".visible .global .texref picture;\n.visible .global .surfref board;\n"                   \
         ".visible .entry first()\n{\nret;\n}\n"                                                   \
         ".visible .entry second(.param .u64 p, .param .u16 v)\n{\nret;\n}\n"

static CUmodule load(const void *image) {
    CUmodule module = MADE_CU(CUmodule, cuModuleLoadData, image);
    assert_non_null(module);
    return module;
}

static void check_counter(CUmodule module) {
    CUdeviceptr address = 0;
    size_t size = 0;
    OK_CU(cu.cuModuleGetGlobal_v2(&address, &size, module, "counter"));
    assert_int_equal(size, 4);
    assert_int_equal(word_at(address), 7);
}

TEST(ptx_and_cubins_are_loaded) {
    CUmodule text = load(TEXT), machine = load(image_kernels_cubin);
    check_counter(text);
    check_counter(machine);
    OK_CU(cu.cuModuleUnload(text));
    check_counter(machine);
    OK_CU(cu.cuModuleUnload(machine));
    FAILS_CU(INVALID_IMAGE, cu.cuModuleLoadData(&text, "no program"));
    FAILS_CU(NO_BINARY_FOR_GPU, cu.cuModuleLoadData(&text, image_other_cubin));
}

TEST(every_load_call_finds_the_function) {
    CUmodule module = MADE_CU(CUmodule, cuModuleLoadFatBinary, image_small_fatbin);
    CUfunction function = MADE_CU(CUfunction, cuModuleGetFunction, module, "small");
    OK_CU(cu.cuModuleUnload(module));
    module = NULL;
    OK_CU(cu.cuModuleLoadDataEx(&module, image_small_cubin, 0, NULL, NULL));
    OK_CU(cu.cuModuleGetFunction(&function, module, "small"));
    OK_CU(cu.cuModuleUnload(module));
    char path[TEMPORARY_ROOM];
    int fd = temporary_file(path, "gpumem-module");
    assert_true(fd >= 0);
    assert_int_equal(write(fd, TEXT, sizeof TEXT - 1), sizeof TEXT - 1);
    module = NULL;
    OK_CU(cu.cuModuleLoad(&module, path));
    check_counter(module);
    OK_CU(cu.cuModuleUnload(module));
    close(fd);
    unlink(path);
    FAILS_CU(FILE_NOT_FOUND, cu.cuModuleLoad(&module, path));
}

/* Words of pairs: the option, its value. */
TEST(jit_logs_report_how_much_was_written) {
    CUmodule module = NULL;
    char error[256] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                              CU_JIT_WALL_TIME};
    void *values[] = {error, (void *)sizeof error, NULL};
    FAILS_CU(INVALID_PTX, cu.cuModuleLoadDataEx(&module, HEAD ".visible .entry a()\n{\nfrob;\n}\n",
                                                3, options, values));
    assert_true(strlen(error) > 0);
    assert_int_equal((uintptr_t)values[1], strlen(error));
    values[0] = error;
    values[1] = (void *)sizeof error;
    OK_CU(cu.cuModuleLoadDataEx(&module, TEXT, 3, options, values));
    assert_int_equal((uintptr_t)values[1], 0);
    check_counter(module);
    OK_CU(cu.cuModuleUnload(module));
    CUjit_option alone = CU_JIT_ERROR_LOG_BUFFER;
    FAILS_CU(INVALID_VALUE, cu.cuModuleLoadDataEx(&module, TEXT, 1, &alone, values));
}

TEST(functions_are_found_and_listed) {
    CUmodule module = load(TEXT), back = NULL;
    CUfunction list[3] = {NULL};
    CUfunction first = function_of(module, "first");
    CUfunction second = function_of(module, "second");
    assert_ptr_not_equal(first, second);
    assert_int_equal(MADE_CU(unsigned, cuModuleGetFunctionCount, module), 2);
    OK_CU(cu.cuModuleEnumerateFunctions(list, 3, module));
    assert_ptr_equal(list[0], first);
    assert_ptr_equal(list[1], second);
    assert_null(list[2]);
    const char *name = MADE_CU(const char *, cuFuncGetName, second);
    assert_string_equal(name, "second");
    OK_CU(cu.cuFuncGetModule(&back, second));
    assert_ptr_equal(back, module);
    FAILS_CU(NOT_FOUND, cu.cuModuleGetFunction(&first, module, "third"));
    assert_null(first);
    OK_CU(cu.cuModuleUnload(module));
}

TEST(variables_are_device_memory) {
    CUmodule module = load(TEXT);
    CUdeviceptr counter, pointer, large, factors, word = 0, base = 0;
    size_t size = 0;
    uint32_t both[2] = {0}, value = 99;
    OK_CU(cu.cuModuleGetGlobal_v2(&counter, NULL, module, "counter"));
    OK_CU(cu.cuModuleGetGlobal_v2(&pointer, NULL, module, "to_counter"));
    OK_CU(cu.cuModuleGetGlobal_v2(&factors, &size, module, "factors"));
    assert_int_equal(size, 8);
    OK_CU(cu.cuMemcpyDtoH_v2(both, factors, 8));
    assert_int_equal(both[0], 3);
    assert_int_equal(both[1], 4);
    OK_CU(cu.cuMemcpyDtoH_v2(&word, pointer, 8));
    assert_int_equal(word, counter);
    OK_CU(cu.cuModuleGetGlobal_v2(&large, &size, module, "large"));
    assert_int_equal(word_at(large + size - 4), 0);
    OK_CU(cu.cuMemGetAddressRange_v2(&base, &size, large + 1000));
    assert_int_equal(base, large);
    assert_int_equal(size, 3000000);
    FAILS_CU(INVALID_VALUE, cu.cuMemFree_v2(large));
    FAILS_CU(INVALID_VALUE, cu.cuMemFreeAsync(large, NULL));
    FAILS_CU(INVALID_VALUE, cu.cuMemsetD8_v2(large, 0, 3000001));
    OK_CU(cu.cuModuleUnload(module));
    FAILS_CU(INVALID_VALUE, cu.cuMemcpyDtoH_v2(&value, counter, 4));
}

static CUdeviceptr place_of(CUmodule module, const char *name, CUdeviceptr *base, size_t *bytes) {
    CUdeviceptr address = MADE_CU(CUdeviceptr, cuModuleGetGlobal_v2, NULL, module, name);
    OK_CU(cu.cuMemGetAddressRange_v2(base, bytes, address));
    return address;
}

/* Constants lie in one bank, whose range is theirs; other variables have a range each. */
TEST(constants_share_one_range) {
    static const char text[] =
        HEAD ".visible .const .align 8 .b8 first[12] = {1, 2, 3};\n.const .u32 second = 7;\n"
             ".visible .global .align 4 .u32 third = 5;\n.visible .global .align 4 .u32 fourth;\n"
             ".visible .entry empty()\n{\nret;\n}\n";
    CUmodule module = load(text);
    CUdeviceptr bank, base;
    size_t whole, bytes;
    uint32_t words[4] = {0};
    CUdeviceptr first = place_of(module, "first", &bank, &whole);
    assert_int_equal(bank, first);
    assert_in_range(whole, 16, SIZE_MAX);
    CUdeviceptr second = place_of(module, "second", &base, &bytes);
    assert_int_equal(base, bank);
    assert_int_equal(second, first + 12);
    OK_CU(cu.cuMemcpyDtoH_v2(words, first, sizeof words));
    assert_int_equal(words[0], 0x030201);
    assert_int_equal(words[3], 7);
    CUdeviceptr third = place_of(module, "third", &base, &bytes);
    assert_int_equal(base, third);
    assert_int_equal(bytes, 4);
    CUdeviceptr fourth = place_of(module, "fourth", &base, &bytes);
    assert_int_equal(base, fourth);
    assert_int_equal(third % 256, 0);
    assert_int_equal(fourth % 256, 0);
    FAILS_CU(INVALID_VALUE, cu.cuMemcpyDtoH_v2(words, third, 5));
    FAILS_CU(INVALID_VALUE, cu.cuMemFree_v2(first));
    OK_CU(cu.cuModuleUnload(module));
    FAILS_CU(INVALID_VALUE, cu.cuMemcpyDtoH_v2(words, first, 4));
}

/* Whatever lies between them. An H200 put `far` at an odd multiple of 512. */
TEST(variables_have_their_declared_alignment) {
    NEEDS_SOFTGPU("hardware keeps no alignment beyond 512 bytes");
    static const char text[] =
        HEAD ".visible .global .align 4 .u32 before = 5;\n"
             ".visible .global .align 4096 .b8 far[8];\n.visible .const .b8 one = 1;\n"
             ".visible .const .align 1024 .b8 distant[8];\n.visible .entry empty()\n{\nret;\n}\n";
    CUmodule module = load(text);
    CUdeviceptr address = MADE_CU(CUdeviceptr, cuModuleGetGlobal_v2, NULL, module, "far");
    assert_int_equal(address % 4096, 0);
    OK_CU(cu.cuModuleGetGlobal_v2(&address, NULL, module, "distant"));
    assert_int_equal(address % 1024, 0);
    OK_CU(cu.cuModuleUnload(module));
}

TEST(each_module_has_its_own_variables) {
    CUmodule one = load(TEXT), two = load(TEXT);
    uint32_t value = 99;
    CUdeviceptr a = MADE_CU(CUdeviceptr, cuModuleGetGlobal_v2, NULL, one, "counter");
    CUdeviceptr b = MADE_CU(CUdeviceptr, cuModuleGetGlobal_v2, NULL, two, "counter");
    assert_int_not_equal(a, b);
    OK_CU(cu.cuMemcpyHtoD_v2(a, &value, 4));
    check_counter(two);
    DESTROY_CU(one, two);
}

TEST(a_current_context_refuses_32_bit_variable_addresses) {
    CUmodule module = load(TEXT);
    CUdeviceptr_v1 address = 5;
    unsigned bytes = 5;
    FAILS_CU(INVALID_CONTEXT, cu.cuModuleGetGlobal(&address, &bytes, module, "counter"));
    assert_int_equal(address, 0);
    assert_int_equal(bytes, 0);
    OK_CU(cu.cuModuleUnload(module));
}

/* A context of that time does not go together with one of today: a process of its own. */
CHILD_TEST(a_32_bit_context_returns_32_bit_variable_addresses) {
    CUdeviceptr_v1 address = 0, again = 0, constant = 0;
    unsigned bytes = 0;
    uint32_t value = 0, factors[2] = {0, 0};
    OK_CU(cu.cuInit(0));
    CUcontext old = MADE_CU(CUcontext, cuCtxCreate, 0, 0);
    CUmodule module = load(TEXT);
    OK_CU(cu.cuModuleGetGlobal(&address, &bytes, module, "counter"));
    assert_int_equal(bytes, 4);
    OK_CU(cu.cuMemcpyDtoH(&value, address, 4));
    assert_int_equal(value, 7);
    value = 8;
    OK_CU(cu.cuMemcpyHtoD(address, &value, 4));
    OK_CU(cu.cuModuleGetGlobal(&again, NULL, module, "counter"));
    assert_int_equal(again, address);
    value = 0;
    OK_CU(cu.cuMemcpyDtoH(&value, again, 4));
    assert_int_equal(value, 8);
    OK_CU(cu.cuModuleGetGlobal(&constant, &bytes, module, "factors"));
    assert_int_equal(bytes, 8);
    OK_CU(cu.cuMemcpyDtoH(factors, constant, 8));
    assert_true(factors[0] == 3 && factors[1] == 4);
    OK_CU(cu.cuModuleGetGlobal(NULL, &bytes, module, "large"));
    assert_int_equal(bytes, 3000000);
    FAILS_CU(NOT_FOUND, cu.cuModuleGetGlobal(&address, &bytes, module, "nothing"));
    assert_true(address == 0 && bytes == 0);
    FAILS_CU(INVALID_VALUE, cu.cuModuleGetGlobal(NULL, NULL, module, "counter"));
    FAILS_CU(INVALID_VALUE, cu.cuModuleGetGlobal(&address, &bytes, module, NULL));
    FAILS_CU(INVALID_HANDLE, cu.cuModuleGetGlobal(&address, &bytes, NULL, "counter"));
    OK_CU(cu.cuModuleUnload(module));
    OK_CU(cu.cuCtxDestroy(old));
    return 0;
}

TEST(an_unloaded_module_is_an_invalid_handle) {
    NEEDS_SOFTGPU("hardware may have the next object where the last one was");
    CUmodule module = load(TEXT);
    const char *name;
    CUfunction function = MADE_CU(CUfunction, cuModuleGetFunction, module, "first");
    OK_CU(cu.cuModuleUnload(module));
    FAILS_CU(INVALID_HANDLE, cu.cuModuleUnload(module));
    FAILS_CU(INVALID_HANDLE, cu.cuModuleGetFunction(&function, module, "first"));
    module = load(TEXT);
    OK_CU(cu.cuModuleGetFunction(&function, module, "first"));
    OK_CU(cu.cuModuleUnload(module));
    FAILS_CU(INVALID_HANDLE, cu.cuFuncGetName(&name, function));
}

/* What a context had loaded goes with it. */
TEST(destroying_a_context_unloads_its_modules) {
    NEEDS_SOFTGPU("stale handles of a destroyed context are not looked at by hardware");
    const char *name;
    CUcontext other = MADE_CU(CUcontext, cuCtxCreate_v2, 0, dev);
    CUmodule module = load(TEXT);
    CUfunction function = function_of(module, "first");
    OK_CU(cu.cuCtxDestroy_v2(other));
    FAILS_CU(INVALID_HANDLE, cu.cuModuleUnload(module));
    FAILS_CU(INVALID_HANDLE, cu.cuFuncGetName(&name, function));
}

TEST(unknown_texture_and_surface_references_are_not_found) {
    CUmodule module = load(TEXT);
    CUtexref texture;
    CUsurfref surface;
    FAILS_CU(NOT_FOUND, cu.cuModuleGetTexRef(&texture, module, "board"));
    FAILS_CU(NOT_FOUND, cu.cuModuleGetSurfRef(&surface, module, "picture"));
    OK_CU(cu.cuModuleUnload(module));
}

TEST(managed_variables_are_visible_to_host_and_device) {
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
    CUmodule module =
        load(HEAD ".visible .global .attribute(.managed) .align 4 .u32 shared_one = 9;\n"
                  ".visible .entry a()\n{\nret;\n}\n");
    CUdeviceptr address = MADE_CU(CUdeviceptr, cuModuleGetGlobal_v2, NULL, module, "shared_one");
    assert_int_equal(*(uint32_t *)(uintptr_t)address, 9);
    assert_int_equal(word_at(address), 9);
    FAILS_CU(INVALID_VALUE, cu.cuMemFree_v2(address));
    OK_CU(cu.cuModuleUnload(module));
}

/* ---- Loading modes: read by the driver when it begins ---------------------------------------- */

CHILD(look_at_mode) {
    CUmoduleLoadingMode mode = 0;
    CUfunctionLoadingState before = CU_FUNCTION_LOADING_STATE_MAX, after = before;
    init_driver();
    OK_CU(cu.cuModuleGetLoadingMode(&mode));
    CUmodule module = load(image_kernels_cubin);
    CUfunction function = MADE_CU(CUfunction, cuModuleEnumerateFunctions, 1, module);
    OK_CU(cu.cuFuncIsLoaded(&before, function));
    OK_CU(cu.cuFuncLoad(function));
    OK_CU(cu.cuFuncIsLoaded(&after, function));
    OK_CU(cu.cuModuleUnload(module));
    return (int)mode * 16 + (int)before * 4 + (int)after;
}

TEST(the_environment_selects_lazy_or_eager_loading) {
    setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    assert_int_equal(run_child("look_at_mode", NULL), CU_MODULE_EAGER_LOADING * 16 + 4 + 1);
    setenv("CUDA_MODULE_LOADING", "LAZY", 1);
    assert_int_equal(run_child("look_at_mode", NULL), CU_MODULE_LAZY_LOADING * 16 + 1);
    unsetenv("CUDA_MODULE_LOADING");
    assert_int_equal(run_child("look_at_mode", NULL), CU_MODULE_LAZY_LOADING * 16 + 1);
}

CHILD(load_each) {
    CUmodule text = NULL, machine = NULL;
    init_driver();
    CUresult of_text = cu.cuModuleLoadData(&text, TEXT);
    CUresult of_machine = cu.cuModuleLoadData(&machine, image_small_cubin);
    return (of_text != CUDA_SUCCESS) + 2 * (of_machine != CUDA_SUCCESS);
}

/* NVIDIA documents that these forbid the one or the other; driver 580 loads both. */
TEST(environment_variables_for_ptx_compilation_have_no_effect) {
    assert_int_equal(run_child("load_each", NULL), 0);
    setenv("CUDA_DISABLE_PTX_JIT", "1", 1);
    assert_int_equal(run_child("load_each", NULL), 0);
    unsetenv("CUDA_DISABLE_PTX_JIT");
    setenv("CUDA_FORCE_PTX_JIT", "1", 1);
    assert_int_equal(run_child("load_each", NULL), 0);
    unsetenv("CUDA_FORCE_PTX_JIT");
}

/* The environment is looked at once, as the driver begins. */
CHILD(change_mode) {
    CUmoduleLoadingMode mode = CU_MODULE_EAGER_LOADING;
    init_driver();
    setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    OK_CU(cu.cuModuleGetLoadingMode(&mode));
    return (int)mode;
}

TEST_IS(a_loading_mode_set_after_initialization_has_no_effect,
        assert_int_equal(run_child("change_mode", NULL), CU_MODULE_LAZY_LOADING));

/* Some attributes are known once a function is loaded, as it is when it is told something. */
TEST(some_attributes_need_a_loaded_function) {
    CUmodule module = load(image_kernels_cubin);
    CUfunctionLoadingState loaded = CU_FUNCTION_LOADING_STATE_LOADED;
    int value = 77;
    CUfunction function = MADE_CU(CUfunction, cuModuleEnumerateFunctions, 1, module);
    FAILS_CU(
        FUNCTION_NOT_LOADED,
        cu.cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function));
    FAILS_CU(FUNCTION_NOT_LOADED,
             cu.cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
    OK_CU(cu.cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_CACHE_MODE_CA, function));
    assert_int_equal(value, 0);
    OK_CU(cu.cuFuncIsLoaded(&loaded, function));
    assert_int_equal(loaded, CU_FUNCTION_LOADING_STATE_UNLOADED);
    OK_CU(cu.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024));
    OK_CU(cu.cuFuncIsLoaded(&loaded, function));
    assert_int_equal(loaded, CU_FUNCTION_LOADING_STATE_LOADED);
    OK_CU(cu.cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function));
    assert_int_equal(value, 1024);
    OK_CU(cu.cuModuleUnload(module));
}

/* What a linker is to be given first loads, and gives what needs nothing from elsewhere, and no
 * address of a variable: those have none yet. */
TEST(relocatable_code_gives_the_functions_that_need_no_others) {
    CUmodule module = load(image_part_cubin);
    CUfunction function = NULL;
    CUdeviceptr p = 0;
    assert_int_equal(MADE_CU(unsigned, cuModuleGetFunctionCount, module), 1);
    FAILS_CU(NOT_FOUND, cu.cuModuleGetFunction(&function, module, "caller"));
    FAILS_CU(INVALID_VALUE, cu.cuModuleGetGlobal_v2(&p, NULL, module, "shared_value"));
    OK_CU(cu.cuModuleUnload(module));
    CUlibrary library =
        MADE_CU(CUlibrary, cuLibraryLoadData, image_partly_cubin, NULL, NULL, 0, NULL, NULL, 0);
    module = load(image_partly_cubin);
    static const struct {
        const char *name;
        CUresult answer;
    } rows[] = {{"alone", CUDA_SUCCESS},
                {"through", CUDA_SUCCESS},
                {"given", CUDA_SUCCESS},
                {"lacking", CUDA_ERROR_NOT_FOUND},
                {"lacking_further", CUDA_ERROR_NOT_FOUND},
                {"lacking_outside", CUDA_ERROR_NOT_FOUND},
                {"lacking_dynamic", CUDA_ERROR_NOT_FOUND},
                {"placing", CUDA_ERROR_INVALID_IMAGE},
                {"placing_further", CUDA_ERROR_INVALID_IMAGE},
                {"placing_constant", CUDA_ERROR_INVALID_IMAGE},
                {"placing_shared", CUDA_ERROR_INVALID_IMAGE}};
    assert_int_equal(MADE_CU(unsigned, cuModuleGetFunctionCount, module), COUNT(rows));
    for (size_t i = 0; i < COUNT(rows); i++) {
        CUkernel kernel = MADE_CU(CUkernel, cuLibraryGetKernel, library, rows[i].name);
        ANSWERS_CU(rows[i].answer, cu.cuModuleGetFunction(&function, module, rows[i].name));
        ANSWERS_CU(rows[i].answer, cu.cuKernelGetFunction(&function, kernel));
    }
    FAILS_CU(NOT_FOUND, cu.cuModuleGetGlobal_v2(&p, NULL, module, "stored"));
    FAILS_CU(INVALID_VALUE, cu.cuModuleGetGlobal_v2(&p, NULL, module, "outside"));
    /* They are listed all the same, and cannot be launched. */
    CUfunction all[COUNT(rows)];
    OK_CU(cu.cuModuleEnumerateFunctions(all, COUNT(rows), module));
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *name = NULL;
        OK_CU(cu.cuFuncGetName(&name, all[i]));
        if (strcmp(name, "lacking") == 0)
            FAILS_CU(NOT_FOUND, cu.cuFuncLoad(all[i]));
        if (strncmp(name, "lacking", 7) == 0 || strncmp(name, "placing", 7) == 0)
            ANSWERS_CU(strcmp(name, "lacking") != 0 ? CUDA_ERROR_UNKNOWN : CUDA_ERROR_NOT_FOUND,
                       cu.cuLaunchKernel(all[i], 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&p}, NULL));
    }
    OK_CU(cu.cuModuleUnload(module));
    OK_CU(cu.cuLibraryUnload(library));
    FAILS_CU(INVALID_IMAGE, cu.cuModuleLoadData(&module, image_pointing_cubin));
}
