/* Looking up what is in a library. */
#include "softgpu/core/calls.h"
#include "softgpu/module/module.h"

CUresult sg_cuLibraryGetKernel(CUkernel *pKernel, CUlibrary handle, const char *name) {
    struct sg_library *library;
    if (!pKernel || !name)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sg_library_from_handle(handle, &library);
    if (result != CUDA_SUCCESS)
        return result;
    const struct sg_image *image = library->program->image;
    const struct sg_image_function *found = sg_image_find_function(image, name);
    if (!found)
        return CUDA_ERROR_NOT_FOUND;
    *pKernel = SG_HANDLE_POINTER(CUkernel, library->kernels[found - image->functions].handle);
    return CUDA_SUCCESS;
}

CUresult sg_cuLibraryGetKernelCount(unsigned int *count, CUlibrary lib) {
    struct sg_library *library;
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sg_library_from_handle(lib, &library);
    /* An image that cannot be read has none: asking for kernels by name says why. */
    if (!library)
        return result;
    *count = library->program ? (unsigned)library->program->image->function_count : 0;
    return CUDA_SUCCESS;
}

CUresult sg_cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int numKernels, CUlibrary lib) {
    struct sg_library *library;
    if (!kernels)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sg_library_from_handle(lib, &library);
    if (!library)
        return result;
    if (!library->program)
        return CUDA_SUCCESS;
    const struct sg_image *image = library->program->image;
    for (size_t i = 0; i < image->function_count && i < numKernels; i++)
        kernels[i] =
            SG_HANDLE_POINTER(CUkernel, library->kernels[sg_program_order(image, i, true)].handle);
    return CUDA_SUCCESS;
}

static CUresult current_module(CUlibrary handle, struct sg_module **module) {
    struct sg_library *library;
    struct sg_context *context;
    CUresult result = sg_library_from_handle(handle, &library);
    if (result == CUDA_SUCCESS)
        result = sg_context_current(&context);
    return result == CUDA_SUCCESS ? sg_library_module(library, context, module) : result;
}

CUresult sg_cuLibraryGetModule(CUmodule *pMod, CUlibrary library) {
    struct sg_module *module;
    if (!pMod)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = current_module(library, &module);
    if (result == CUDA_SUCCESS)
        *pMod = SG_HANDLE_POINTER(CUmodule, module->handle);
    return result;
}

CUresult sg_cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary library,
                               const char *name) {
    struct sg_module *module;
    CUdeviceptr address;
    size_t size;
    if (!name || !*name || (!dptr && !bytes))
        return CUDA_ERROR_INVALID_VALUE;
    if (!atomic_load(&sg_initialized))
        return CUDA_ERROR_NOT_INITIALIZED;
    CUresult result = current_module(library, &module);
    if (result == CUDA_SUCCESS)
        result = sg_module_variable(module, name, &address, &size);
    if (result != CUDA_SUCCESS)
        return result;
    if (dptr)
        *dptr = address;
    if (bytes)
        *bytes = size;
    return CUDA_SUCCESS;
}

/* They belong to the library: in a context they come with its module, otherwise on their own. */
static CUresult make_managed(struct sg_library *library, CUlibrary handle) {
    struct sg_module *module;
    return sg_context_peek() ? current_module(handle, &module) : sg_library_managed(library);
}

CUresult sg_cuLibraryGetManaged(CUdeviceptr *dptr, size_t *bytes, CUlibrary handle,
                                const char *name) {
    struct sg_library *library;
    if (!name || !*name || (!dptr && !bytes))
        return CUDA_ERROR_INVALID_VALUE;
    if (!atomic_load(&sg_initialized))
        return CUDA_ERROR_NOT_INITIALIZED;
    CUresult result = sg_library_from_handle(handle, &library);
    if (result != CUDA_SUCCESS)
        return result;
    const struct sg_image *image = library->program->image;
    const struct sg_image_variable *found = sg_image_find_variable(image, name);
    if (!found || !found->managed)
        return CUDA_ERROR_NOT_FOUND;
    result = make_managed(library, handle);
    if (result != CUDA_SUCCESS)
        return result;
    const struct sg_range *range = library->managed[found - image->variables];
    if (dptr)
        *dptr = range ? range->start : 0; /* an external one has none */
    if (bytes)
        *bytes = (size_t)found->size;
    return CUDA_SUCCESS;
}

/* Functions that the CPU and the device call at one address: no image has any. An H200 answers
 * INVALID_VALUE, where its documentation says NOT_FOUND. */
CUresult sg_cuLibraryGetUnifiedFunction(void **fptr, CUlibrary handle, const char *symbol) {
    struct sg_library *library;
    (void)symbol; /* the library is looked at first, and none has such functions */
    if (!fptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sg_library_from_handle(handle, &library);
    return result == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : result;
}
