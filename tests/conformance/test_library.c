/* Libraries and kernels: images that belong to no context, with a module in each that asks. */
#include "harness.h"
#include "images.h"
#include "temporary.h"

static CUlibrary load(const void *image) {
    CUlibrary library = NULL;
    OK(cu.cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
    assert_non_null(library);
    return library;
}

static CUkernel kernel(CUlibrary library, const char *name) {
    CUkernel found = NULL;
    OK(cu.cuLibraryGetKernel(&found, library, name));
    return found;
}

TEST(kernels_are_found_and_listed) {
    CUlibrary library = load(image_kernels_cubin), back = NULL;
    CUkernel types = kernel(library, "types"), list[20] = {NULL};
    unsigned count = 0, seen = 0;
    const char *name = NULL;
    OK(cu.cuLibraryGetKernelCount(&count, library));
    assert_int_equal(count, 9);
    OK(cu.cuLibraryEnumerateKernels(list, 20, library));
    for (unsigned i = 0; i < count; i++)
        seen += list[i] == types;
    assert_int_equal(seen, 1);
    assert_null(list[count]);
    OK(cu.cuKernelGetName(&name, types));
    assert_string_equal(name, "types");
    OK(cu.cuKernelGetLibrary(&back, types));
    assert_ptr_equal(back, library);
    size_t offset = 99, size = 99;
    OK(cu.cuKernelGetParamInfo(types, 7, &offset, &size));
    assert_int_equal(offset, 40);
    assert_int_equal(size, 24);
    FAILS(CUDA_ERROR_NOT_FOUND, cu.cuLibraryGetKernel(&types, library, "nothing"));
    OK(cu.cuLibraryUnload(library));
}

/* A kernel belongs to no context; how its parameters lie is told in one all the same. */
TEST(kernel_parameter_layout_needs_a_context) {
    CUlibrary library = load(image_kernels_cubin);
    CUkernel types = kernel(library, "types");
    size_t offset = 99, size = 99;
    OK(cu.cuCtxSetCurrent(NULL));
    CUresult both = cu.cuKernelGetParamInfo(types, 7, &offset, &size);
    CUresult one = cu.cuKernelGetParamInfo(types, 7, &offset, NULL);
    CUresult none = cu.cuKernelGetParamInfo(types, 7, NULL, &size);
    OK(cu.cuCtxSetCurrent(ctx));
    assert_int_equal(both, CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(one, CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(none, CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(offset, 99);
    assert_int_equal(size, 99);
    OK(cu.cuKernelGetParamInfo(types, 7, &offset, NULL));
    assert_int_equal(offset, 40);
    OK(cu.cuLibraryUnload(library));
}

/* nvcc's host programs hand over a wrapper that points to the fatbin. */
TEST(fatbin_wrappers_are_loaded) {
    struct {
        unsigned magic, version;
        const void *data;
        void *unused;
    } wrapper = {0x466243b1, 1, image_small_fatbin, NULL};
    CUlibrary library = load(&wrapper);
    unsigned count = 0;
    kernel(library, "small");
    OK(cu.cuLibraryGetKernelCount(&count, library));
    assert_int_equal(count, 1);
    OK(cu.cuLibraryUnload(library));
}

/* An image that cannot be read makes a library without kernels; asking for one says why. */
TEST(an_unreadable_image_makes_an_empty_library) {
    CUlibrary library = load("no program");
    CUkernel found = NULL;
    unsigned count = 9;
    OK(cu.cuLibraryGetKernelCount(&count, library));
    assert_int_equal(count, 0);
    OK(cu.cuLibraryEnumerateKernels(&found, 1, library));
    assert_null(found);
    FAILS(CUDA_ERROR_INVALID_IMAGE, cu.cuLibraryGetKernel(&found, library, "small"));
    OK(cu.cuLibraryUnload(library));
}

TEST(a_library_is_loaded_from_a_file) {
    CUlibrary library = NULL;
    char path[TEMPORARY_ROOM];
    int fd = temporary_file(path, "gpumem-library");
    assert_true(fd >= 0);
    assert_int_equal(write(fd, image_small_fatbin, sizeof image_small_fatbin),
                     sizeof image_small_fatbin);
    OK(cu.cuLibraryLoadFromFile(&library, path, NULL, NULL, 0, NULL, NULL, 0));
    kernel(library, "small");
    OK(cu.cuLibraryUnload(library));
    close(fd);
    unlink(path);
    FAILS(CUDA_ERROR_FILE_NOT_FOUND,
          cu.cuLibraryLoadFromFile(&library, path, NULL, NULL, 0, NULL, NULL, 0));
}

TEST(each_context_has_its_own_module_of_a_library) {
    CUlibrary library = load(image_kernels_cubin);
    CUkernel empty = kernel(library, "empty");
    CUcontext other;
    CUmodule here = NULL, there = NULL, of_function = NULL;
    CUfunction f = NULL, g = NULL;
    CUdeviceptr p = 0, q = 0;
    uint32_t value = 0;
    size_t size = 0;
    OK(cu.cuLibraryGetModule(&here, library));
    OK(cu.cuKernelGetFunction(&f, empty));
    OK(cu.cuFuncGetModule(&of_function, f));
    assert_ptr_equal(of_function, here);
    OK(cu.cuLibraryGetGlobal(&p, &size, library, "counter"));
    OK(cu.cuMemcpyDtoH_v2(&value, p, 4));
    assert_int_equal(value, 7);
    assert_int_equal(size, 4);
    OK(cu.cuCtxCreate_v2(&other, 0, dev));
    OK(cu.cuLibraryGetModule(&there, library));
    OK(cu.cuKernelGetFunction(&g, empty));
    OK(cu.cuLibraryGetGlobal(&q, NULL, library, "counter"));
    assert_ptr_not_equal(here, there);
    assert_ptr_not_equal(f, g);
    assert_int_not_equal(p, q);
    OK(cu.cuCtxDestroy_v2(other));
    FAILS(CUDA_ERROR_NOT_PERMITTED, cu.cuModuleUnload(here));
    OK(cu.cuLibraryUnload(library));
    FAILS(CUDA_ERROR_INVALID_VALUE, cu.cuMemcpyDtoH_v2(&value, p, 4));
}

static int of_kernel(CUkernel k, CUfunction_attribute which) {
    int value = -99;
    OK(cu.cuKernelGetAttribute(&value, which, k, dev));
    return value;
}

/* A function's own setting comes before its kernel's. */
TEST(a_function_attribute_overrides_the_kernel_attribute) {
    const CUfunction_attribute shared = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    CUlibrary library = load(image_kernels_cubin);
    CUkernel k = kernel(library, "empty");
    CUfunction f;
    int value = 0;
    assert_int_equal(of_kernel(k, shared), 49152);
    OK(cu.cuKernelSetAttribute(shared, 1024, k, dev));
    assert_int_equal(of_kernel(k, shared), 1024);
    OK(cu.cuKernelGetFunction(&f, k));
    OK(cu.cuFuncGetAttribute(&value, shared, f));
    assert_int_equal(value, 1024);
    OK(cu.cuFuncSetAttribute(f, shared, 2048));
    OK(cu.cuKernelSetAttribute(shared, 4096, k, dev));
    OK(cu.cuFuncGetAttribute(&value, shared, f));
    assert_int_equal(value, 2048);
    assert_int_equal(of_kernel(k, shared), 4096);
    FAILS(CUDA_ERROR_INVALID_DEVICE, cu.cuKernelSetAttribute(shared, 0, k, 99));
    OK(cu.cuKernelSetCacheConfig(k, CU_FUNC_CACHE_PREFER_L1, dev));
    FAILS(CUDA_ERROR_INVALID_VALUE, cu.cuKernelSetCacheConfig(k, (CUfunc_cache)9, dev));
    OK(cu.cuLibraryUnload(library));
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
    OK(cu.cuLibraryGetManaged(&p, &size, library, "shared_one"));
    assert_int_equal(size, 4);
    assert_int_equal(*(uint32_t *)(uintptr_t)p, 9);
    FAILS(CUDA_ERROR_NOT_FOUND, cu.cuLibraryGetManaged(&q, NULL, library, "plain_one"));
    *(uint32_t *)(uintptr_t)p = 10;
    new_context(dev);
    OK(cu.cuLibraryGetManaged(&q, NULL, library, "shared_one"));
    assert_int_equal(p, q);
    assert_int_equal(*(uint32_t *)(uintptr_t)q, 10);
    OK(cu.cuLibraryUnload(library));
}

/* Managed variables belong to the library alone: they are there before any context. */
CHILD_TEST_WHERE(managed_variables_need_no_context,
                 NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY)) {
    CUdeviceptr p = 0, q = 0;
    size_t size = 0, of_both = 0;
    CUcontext primary, context = (CUcontext)&p;
    OK(cu.cuInit(0));
    CUlibrary library = load(MANAGED);
    OK(cu.cuCtxGetCurrent(&context));
    assert_null(context);
    OK(cu.cuLibraryGetManaged(NULL, &size, library, "shared_one"));
    assert_int_equal(size, 4);
    OK(cu.cuLibraryGetManaged(&p, &of_both, library, "shared_one"));
    assert_int_equal(of_both, 4);
    FAILS(CUDA_ERROR_NOT_FOUND, cu.cuLibraryGetManaged(&q, NULL, library, "plain_one"));
    FAILS(CUDA_ERROR_INVALID_CONTEXT, cu.cuLibraryGetGlobal(&q, NULL, library, "plain_one"));
    OK(cu.cuDeviceGet(&dev, 0));
    OK(cu.cuDevicePrimaryCtxRetain(&primary, dev));
    OK(cu.cuCtxSetCurrent(primary));
    assert_int_equal(word_at(p), 9);
    OK(cu.cuMemsetD32_v2(p, 10, 1));
    OK(cu.cuLibraryGetManaged(&q, NULL, library, "shared_one"));
    assert_int_equal(p, q);
    assert_int_equal(word_at(q), 10);
    OK(cu.cuLibraryUnload(library));
    OK(cu.cuDevicePrimaryCtxRelease_v2(dev));
    return 0;
}

/* The first context comes when the variables are there, and goes before them. */
TEST(managed_variables_outlive_contexts) {
    NEEDS_SOFTGPU("what a context takes with it was not asked of hardware");
    CUlibrary library = load(MANAGED);
    CUcontext other;
    CUdeviceptr p = 0, q = 0;
    OK(cu.cuCtxSetCurrent(NULL));
    OK(cu.cuLibraryGetManaged(&p, NULL, library, "shared_one"));
    OK(cu.cuCtxCreate_v2(&other, 0, dev));
    OK(cu.cuLibraryGetGlobal(&q, NULL, library, "plain_one"));
    OK(cu.cuMemsetD32_v2(p, 11, 1));
    OK(cu.cuCtxDestroy_v2(other));
    OK(cu.cuCtxSetCurrent(NULL));
    OK(cu.cuLibraryGetManaged(&q, NULL, library, "shared_one"));
    OK(cu.cuCtxSetCurrent(ctx));
    assert_int_equal(p, q);
    assert_int_equal(word_at(p), 11);
    OK(cu.cuLibraryUnload(library));
}

/* Work that was queued before reads the variable as it was. */
TEST(unloading_a_library_waits_for_queued_work) {
    NEEDS_SOFTGPU("chooses a schedule");
    CUlibrary library = load(image_kernels_cubin);
    CUmodule module;
    CUdeviceptr p, q;
    CUstream stream;
    uint32_t *seen;
    OK(cu.cuModuleLoadData(&module, image_kernels_cubin));
    OK(cu.cuMemHostAlloc((void **)&seen, 8, 0));
    OK(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cu.cuLibraryGetGlobal(&p, NULL, library, "counter"));
    OK(cu.cuModuleGetGlobal_v2(&q, NULL, module, "counter"));
    seen[0] = seen[1] = 0;
    soft->schedule_set(SOFTGPU_SCHEDULE_LATE, 0);
    OK(cu.cuMemcpyDtoHAsync_v2(&seen[0], p, 4, stream));
    OK(cu.cuLibraryUnload(library));
    OK(cu.cuMemcpyDtoHAsync_v2(&seen[1], q, 4, stream));
    OK(cu.cuModuleUnload(module));
    OK(cu.cuStreamSynchronize(stream));
    soft->schedule_set(SOFTGPU_SCHEDULE_EAGER, 0);
    assert_int_equal(seen[0], 7);
    assert_int_equal(seen[1], 7);
    OK(cu.cuStreamDestroy_v2(stream));
    OK(cu.cuMemFreeHost(seen));
}

TEST(unified_functions_are_not_found) {
    CUlibrary library = load(image_kernels_cubin);
    void *address = NULL;
    FAILS(CUDA_ERROR_INVALID_VALUE, cu.cuLibraryGetUnifiedFunction(&address, library, "empty"));
    FAILS(CUDA_ERROR_INVALID_HANDLE, cu.cuLibraryGetUnifiedFunction(&address, NULL, "empty"));
    OK(cu.cuLibraryUnload(library));
}

CHILD_TEST(a_library_needs_no_context) {
    CUlibrary library = NULL;
    CUfunction f;
    CUmodule m;
    OK(cu.cuInit(0));
    dev = 0;
    library = load(image_kernels_cubin);
    CUkernel k = kernel(library, "bounded");
    assert_int_equal(of_kernel(k, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 128);
    FAILS(CUDA_ERROR_INVALID_CONTEXT, cu.cuKernelGetFunction(&f, k));
    FAILS(CUDA_ERROR_INVALID_CONTEXT, cu.cuLibraryGetModule(&m, library));
    OK(cu.cuLibraryUnload(library));
    return 0;
}
