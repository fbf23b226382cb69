/* Libraries and kernels: images that belong to no context, with a module in each that asks. */
#include "harness.h"
#include "images.h"
#include "temporary.h"

static CUlibrary load(const void *image) {
    CUlibrary library = MADE_CU(CUlibrary, cuLibraryLoadData, image, NULL, NULL, 0, NULL, NULL, 0);
    assert_non_null(library);
    return library;
}

static CUkernel kernel(CUlibrary library, const char *name) {
    return MADE_CU(CUkernel, cuLibraryGetKernel, library, name);
}

TEST(kernels_are_found_and_listed) {
    CUlibrary library = load(image_kernels_cubin), back = NULL;
    CUkernel types = kernel(library, "types"), list[20] = {NULL};
    unsigned count = 0, seen = 0;
    OK_CU(cu.cuLibraryGetKernelCount(&count, library));
    assert_int_equal(count, 9);
    OK_CU(cu.cuLibraryEnumerateKernels(list, 20, library));
    for (unsigned i = 0; i < count; i++)
        seen += list[i] == types;
    assert_int_equal(seen, 1);
    assert_null(list[count]);
    const char *name = MADE_CU(const char *, cuKernelGetName, types);
    assert_string_equal(name, "types");
    OK_CU(cu.cuKernelGetLibrary(&back, types));
    assert_ptr_equal(back, library);
    size_t offset = 99, size = 99;
    OK_CU(cu.cuKernelGetParamInfo(types, 7, &offset, &size));
    assert_int_equal(offset, 40);
    assert_int_equal(size, 24);
    FAILS_CU(NOT_FOUND, cu.cuLibraryGetKernel(&types, library, "nothing"));
    OK_CU(cu.cuLibraryUnload(library));
}

/* A kernel belongs to no context; how its parameters lie is told in one all the same. */
TEST(kernel_parameter_layout_needs_a_context) {
    CUlibrary library = load(image_kernels_cubin);
    CUkernel types = kernel(library, "types");
    size_t offset = 99, size = 99;
    OK_CU(cu.cuCtxSetCurrent(NULL));
    CUresult both = cu.cuKernelGetParamInfo(types, 7, &offset, &size);
    CUresult one = cu.cuKernelGetParamInfo(types, 7, &offset, NULL);
    CUresult none = cu.cuKernelGetParamInfo(types, 7, NULL, &size);
    OK_CU(cu.cuCtxSetCurrent(ctx));
    assert_int_equal(both, CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(one, CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(none, CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(offset, 99);
    assert_int_equal(size, 99);
    OK_CU(cu.cuKernelGetParamInfo(types, 7, &offset, NULL));
    assert_int_equal(offset, 40);
    OK_CU(cu.cuLibraryUnload(library));
}

/* nvcc's host programs hand over a wrapper that points to the fatbin. */
TEST(fatbin_wrappers_are_loaded) {
    struct {
        unsigned magic, version;
        const void *data;
        void *unused;
    } wrapper = {0x466243b1, 1, image_small_fatbin, NULL};
    CUlibrary library = load(&wrapper);
    kernel(library, "small");
    assert_int_equal(MADE_CU(unsigned, cuLibraryGetKernelCount, library), 1);
    OK_CU(cu.cuLibraryUnload(library));
}

/* An image that cannot be read makes a library without kernels; asking for one says why. */
TEST(an_unreadable_image_makes_an_empty_library) {
    CUlibrary library = load("no program");
    unsigned count = 9;
    OK_CU(cu.cuLibraryGetKernelCount(&count, library));
    assert_int_equal(count, 0);
    CUkernel found = NULL;
    OK_CU(cu.cuLibraryEnumerateKernels(&found, 1, library));
    assert_null(found);
    FAILS_CU(INVALID_IMAGE, cu.cuLibraryGetKernel(&found, library, "small"));
    OK_CU(cu.cuLibraryUnload(library));
}

TEST(a_library_is_loaded_from_a_file) {
    CUlibrary library = NULL;
    char path[TEMPORARY_ROOM];
    int fd = temporary_file(path, "gpumem-library");
    assert_true(fd >= 0);
    assert_int_equal(write(fd, image_small_fatbin, sizeof image_small_fatbin),
                     sizeof image_small_fatbin);
    OK_CU(cu.cuLibraryLoadFromFile(&library, path, NULL, NULL, 0, NULL, NULL, 0));
    kernel(library, "small");
    OK_CU(cu.cuLibraryUnload(library));
    close(fd);
    unlink(path);
    FAILS_CU(FILE_NOT_FOUND,
             cu.cuLibraryLoadFromFile(&library, path, NULL, NULL, 0, NULL, NULL, 0));
}

TEST(each_context_has_its_own_module_of_a_library) {
    CUlibrary library = load(image_kernels_cubin);
    CUkernel empty = kernel(library, "empty");
    CUdeviceptr p = 0, q = 0;
    uint32_t value = 0;
    size_t size = 0;
    CUmodule here = MADE_CU(CUmodule, cuLibraryGetModule, library);
    CUfunction f = MADE_CU(CUfunction, cuKernelGetFunction, empty);
    assert_ptr_equal(MADE_CU(CUmodule, cuFuncGetModule, f), here);
    OK_CU(cu.cuLibraryGetGlobal(&p, &size, library, "counter"));
    assert_int_equal(word_at(p), 7);
    assert_int_equal(size, 4);
    CUcontext other = MADE_CU(CUcontext, cuCtxCreate_v2, 0, dev);
    CUmodule there = MADE_CU(CUmodule, cuLibraryGetModule, library);
    CUfunction g = MADE_CU(CUfunction, cuKernelGetFunction, empty);
    OK_CU(cu.cuLibraryGetGlobal(&q, NULL, library, "counter"));
    assert_ptr_not_equal(here, there);
    assert_ptr_not_equal(f, g);
    assert_int_not_equal(p, q);
    OK_CU(cu.cuCtxDestroy_v2(other));
    FAILS_CU(NOT_PERMITTED, cu.cuModuleUnload(here));
    OK_CU(cu.cuLibraryUnload(library));
    FAILS_CU(INVALID_VALUE, cu.cuMemcpyDtoH_v2(&value, p, 4));
}

static int of_kernel(CUkernel k, CUfunction_attribute which) {
    int value = -99;
    OK_CU(cu.cuKernelGetAttribute(&value, which, k, dev));
    return value;
}

/* A function's own setting comes before its kernel's. */
TEST(a_function_attribute_overrides_the_kernel_attribute) {
    const CUfunction_attribute shared = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    CUlibrary library = load(image_kernels_cubin);
    CUkernel k = kernel(library, "empty");
    assert_int_equal(of_kernel(k, shared), 49152);
    OK_CU(cu.cuKernelSetAttribute(shared, 1024, k, dev));
    assert_int_equal(of_kernel(k, shared), 1024);
    CUfunction f = MADE_CU(CUfunction, cuKernelGetFunction, k);
    int value = MADE_CU(int, cuFuncGetAttribute, shared, f);
    assert_int_equal(value, 1024);
    OK_CU(cu.cuFuncSetAttribute(f, shared, 2048));
    OK_CU(cu.cuKernelSetAttribute(shared, 4096, k, dev));
    OK_CU(cu.cuFuncGetAttribute(&value, shared, f));
    assert_int_equal(value, 2048);
    assert_int_equal(of_kernel(k, shared), 4096);
    FAILS_CU(INVALID_DEVICE, cu.cuKernelSetAttribute(shared, 0, k, 99));
    OK_CU(cu.cuKernelSetCacheConfig(k, CU_FUNC_CACHE_PREFER_L1, dev));
    FAILS_CU(INVALID_VALUE, cu.cuKernelSetCacheConfig(k, (CUfunc_cache)9, dev));
    OK_CU(cu.cuLibraryUnload(library));
}

#define MANAGED                                                                                    \
    ".version 7.8\n.target sm_70\n.address_size 64\n"                                              \
    ".visible .global .attribute(.managed) .align 4 .u32 shared_one = 9;\n"                        \
    ".visible .global .align 4 .u32 plain_one = 8;\n"                                              \
    ".visible .entry a()\n{\nret;\n}\n"

TEST(managed_variables_are_found_with_their_initial_values) {
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
    CUlibrary library = load(MANAGED);
    CUdeviceptr p = 0, q = 0;
    size_t size = 0;
    OK_CU(cu.cuLibraryGetManaged(&p, &size, library, "shared_one"));
    assert_int_equal(size, 4);
    assert_int_equal(*(uint32_t *)(uintptr_t)p, 9);
    FAILS_CU(NOT_FOUND, cu.cuLibraryGetManaged(&q, NULL, library, "plain_one"));
    *(uint32_t *)(uintptr_t)p = 10;
    new_context(dev);
    OK_CU(cu.cuLibraryGetManaged(&q, NULL, library, "shared_one"));
    assert_int_equal(p, q);
    assert_int_equal(*(uint32_t *)(uintptr_t)q, 10);
    OK_CU(cu.cuLibraryUnload(library));
}

/* Managed variables belong to the library alone: they are there before any context. */
CHILD_TEST_WHERE(managed_variables_need_no_context,
                 NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY)) {
    CUdeviceptr p = 0, q = 0;
    size_t size = 0, of_both = 0;
    CUcontext primary, context = (CUcontext)&p;
    OK_CU(cu.cuInit(0));
    CUlibrary library = load(MANAGED);
    OK_CU(cu.cuCtxGetCurrent(&context));
    assert_null(context);
    OK_CU(cu.cuLibraryGetManaged(NULL, &size, library, "shared_one"));
    assert_int_equal(size, 4);
    OK_CU(cu.cuLibraryGetManaged(&p, &of_both, library, "shared_one"));
    assert_int_equal(of_both, 4);
    FAILS_CU(NOT_FOUND, cu.cuLibraryGetManaged(&q, NULL, library, "plain_one"));
    FAILS_CU(INVALID_CONTEXT, cu.cuLibraryGetGlobal(&q, NULL, library, "plain_one"));
    OK_CU(cu.cuDeviceGet(&dev, 0));
    OK_CU(cu.cuDevicePrimaryCtxRetain(&primary, dev));
    OK_CU(cu.cuCtxSetCurrent(primary));
    assert_int_equal(word_at(p), 9);
    OK_CU(cu.cuMemsetD32_v2(p, 10, 1));
    OK_CU(cu.cuLibraryGetManaged(&q, NULL, library, "shared_one"));
    assert_int_equal(p, q);
    assert_int_equal(word_at(q), 10);
    OK_CU(cu.cuLibraryUnload(library));
    OK_CU(cu.cuDevicePrimaryCtxRelease_v2(dev));
    return 0;
}

/* The first context comes when the variables are there, and goes before them. */
TEST(managed_variables_outlive_contexts) {
    NEEDS_SOFTGPU("what a context takes with it was not asked of hardware");
    CUlibrary library = load(MANAGED);
    OK_CU(cu.cuCtxSetCurrent(NULL));
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuLibraryGetManaged, NULL, library, "shared_one");
    CUcontext other = MADE_CU(CUcontext, cuCtxCreate_v2, 0, dev);
    CUdeviceptr q = MADE_CU(CUdeviceptr, cuLibraryGetGlobal, NULL, library, "plain_one");
    OK_CU(cu.cuMemsetD32_v2(p, 11, 1));
    OK_CU(cu.cuCtxDestroy_v2(other));
    OK_CU(cu.cuCtxSetCurrent(NULL));
    OK_CU(cu.cuLibraryGetManaged(&q, NULL, library, "shared_one"));
    OK_CU(cu.cuCtxSetCurrent(ctx));
    assert_int_equal(p, q);
    assert_int_equal(word_at(p), 11);
    OK_CU(cu.cuLibraryUnload(library));
}

/* Work that was queued before reads the variable as it was. */
TEST_WHERE(unloading_a_library_waits_for_queued_work, NEEDS_SOFTGPU("chooses a schedule")) {
    CUlibrary library = load(image_kernels_cubin);
    uint32_t *seen;
    CUmodule module = MADE_CU(CUmodule, cuModuleLoadData, image_kernels_cubin);
    OK_CU(cu.cuMemHostAlloc((void **)&seen, 8, 0));
    CUstream stream = MADE_CU(CUstream, cuStreamCreate, CU_STREAM_NON_BLOCKING);
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuLibraryGetGlobal, NULL, library, "counter");
    CUdeviceptr q = MADE_CU(CUdeviceptr, cuModuleGetGlobal_v2, NULL, module, "counter");
    seen[0] = seen[1] = 0;
    soft->schedule_set(SOFTGPU_SCHEDULE_LATE, 0);
    OK_CU(cu.cuMemcpyDtoHAsync_v2(&seen[0], p, 4, stream));
    OK_CU(cu.cuLibraryUnload(library));
    OK_CU(cu.cuMemcpyDtoHAsync_v2(&seen[1], q, 4, stream));
    OK_CU(cu.cuModuleUnload(module));
    OK_CU(cu.cuStreamSynchronize(stream));
    soft->schedule_set(SOFTGPU_SCHEDULE_EAGER, 0);
    assert_int_equal(seen[0], 7);
    assert_int_equal(seen[1], 7);
    OK_CU(cu.cuStreamDestroy_v2(stream));
    OK_CU(cu.cuMemFreeHost(seen));
}

TEST(unified_functions_are_not_found) {
    CUlibrary library = load(image_kernels_cubin);
    void *address = NULL;
    FAILS_CU(INVALID_VALUE, cu.cuLibraryGetUnifiedFunction(&address, library, "empty"));
    FAILS_CU(INVALID_HANDLE, cu.cuLibraryGetUnifiedFunction(&address, NULL, "empty"));
    OK_CU(cu.cuLibraryUnload(library));
}

CHILD_TEST(a_library_needs_no_context) {
    CUfunction f;
    CUmodule m;
    OK_CU(cu.cuInit(0));
    dev = 0;
    CUlibrary library = load(image_kernels_cubin);
    CUkernel k = kernel(library, "bounded");
    assert_int_equal(of_kernel(k, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 128);
    FAILS_CU(INVALID_CONTEXT, cu.cuKernelGetFunction(&f, k));
    FAILS_CU(INVALID_CONTEXT, cu.cuLibraryGetModule(&m, library));
    OK_CU(cu.cuLibraryUnload(library));
    return 0;
}
