/* Loads a fat binary into the driver, when something in it is first needed. */
#include "runtime/code/code.h"
#include "runtime/memory/reach.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Relocatable code: the linked image has machine code alone, the PTX is in the parts. */
static cudaError_t link_parts(struct rt_binary *binary, CUlibrary *library) {
    CUlinkState linker = NULL;
    void *image = NULL;
    size_t size = 0;
    CUresult result = CU(cuLinkCreate_v2)(0, NULL, NULL, &linker);
    if (result != CUDA_SUCCESS)
        return rt_error(result);
    const void *const *part = binary->wrapper->parts;
    for (; part && *part && result == CUDA_SUCCESS; part++) {
        result = CU(cuLinkAddData_v2)(linker, CU_JIT_INPUT_FATBINARY, (void *)(uintptr_t)*part,
                                      rt_image_size(*part), NULL, 0, NULL, NULL);
    }
    if (result == CUDA_SUCCESS)
        result = CU(cuLinkComplete)(linker, &image, &size);
    if (result == CUDA_SUCCESS && !(binary->linked = malloc(size)))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS) {
        memcpy(binary->linked, image, size);
        result = CU(cuLibraryLoadData)(library, binary->linked, NULL, NULL, 0, NULL, NULL, 0);
    }
    if (result != CUDA_SUCCESS) {
        free(binary->linked);
        binary->linked = NULL;
    }
    CU(cuLinkDestroy)(linker);
    return rt_error(result);
}

/*
 * Whether the linked image will not do: the driver finds no code for the device in it, or would
 * interpret code and there is no PTX. cuLibraryLoadData takes anything; what it holds shows when it
 * is used.
 */
static bool needs_parts(const struct rt_wrapper *wrapper, CUlibrary library) {
    CUmodule module;
    if (wrapper->version != 2 || !wrapper->parts || !*wrapper->parts)
        return false;
    if (rt_driver_interprets)
        return !rt_image_has_ptx(wrapper->image);
    return CU(cuLibraryGetModule)(&module, library) != CUDA_SUCCESS;
}

static cudaError_t load(struct rt_binary *binary, CUlibrary *library) {
    CUlibrary loaded = NULL;
    cudaError_t error =
        rt_error(CU(cuLibraryLoadData)(&loaded, binary->wrapper, NULL, NULL, 0, NULL, NULL, 0));
    if (error == cudaSuccess && needs_parts(binary->wrapper, loaded)) {
        CU(cuLibraryUnload)(loaded);
        error = link_parts(binary, &loaded);
    }
    if (error == cudaSuccess)
        *library = loaded;
    return error;
}

cudaError_t rt_load_binary(struct rt_binary *binary, CUlibrary *library) {
    *library = atomic_load_explicit(&binary->library, memory_order_acquire);
    if (*library)
        return cudaSuccess;
    pthread_mutex_lock(&lock);
    cudaError_t error = cudaSuccess;
    *library = atomic_load(&binary->library);
    if (!*library) {
        error = load(binary, library);
        if (error == cudaSuccess)
            atomic_store_explicit(&binary->library, *library, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
    return error;
}

void rt_unload_binary(struct rt_binary *binary) {
    CUlibrary library = atomic_load(&binary->library);
    if (library && atomic_load(&rt_phase) == RT_READY)
        CU(cuLibraryUnload)(library); /* at exit the driver may have gone before */
    free(binary->linked);
}

cudaError_t rt_cudaLibraryLoadData(cudaLibrary_t *library, const void *code,
                                   cudaJitOption *jitOptions, void **jitOptionsValues,
                                   unsigned int numJitOptions, cudaLibraryOption *libraryOptions,
                                   void **libraryOptionValues, unsigned int numLibraryOptions) {
    if (!rt_cpu_reads(code, sizeof(uint32_t)))
        return cudaErrorInvalidValue;
    return rt_error(CU(cuLibraryLoadData)(library, code, jitOptions, jitOptionsValues,
                                          numJitOptions, libraryOptions, libraryOptionValues,
                                          numLibraryOptions));
}
