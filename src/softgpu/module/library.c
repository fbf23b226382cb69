/* Libraries: a program with kernels, which gets a module in each context that asks for one. */
#include "softgpu/core/calls.h"
#include "softgpu/core/runtime_calls.h"
#include "softgpu/device/device.h"
#include "softgpu/module/module.h"
#include "softgpu/stream/stream.h"

#include <stdlib.h>
#include <string.h>

CUresult sg_library_from_handle(CUlibrary handle, struct sg_library **library) {
    *library = sg_handle_get(SG_KIND_LIBRARY, SG_HANDLE_VALUE(handle));
    return *library ? (*library)->refusal : CUDA_ERROR_INVALID_HANDLE;
}

static struct sg_module *module_of(const struct sg_library *library,
                                   const struct sg_context *context) {
    for (struct sg_module *module = sg_module_first(); module; module = module->next)
        if (module->library == library && (!context || module->context == context))
            return module;
    return NULL;
}

CUresult sg_library_module(struct sg_library *library, struct sg_context *context,
                           struct sg_module **module) {
    *module = module_of(library, context);
    if (*module)
        return CUDA_SUCCESS;
    return sg_module_new(context, library->program, library, module);
}

CUresult sg_library_managed(struct sg_library *library) {
    for (size_t i = 0; i < library->program->image->variable_count; i++)
        if (library->managed[i])
            return CUDA_SUCCESS;
    return sg_variables_make_managed(library);
}

static void end_contents(struct sg_library *library) {
    const struct sg_image *image = library->program->image;
    for (struct sg_module *module; (module = module_of(library, NULL));)
        sg_module_free(module);
    for (size_t i = 0; library->managed && i < image->variable_count; i++)
        if (library->managed[i])
            sg_variable_range_free(library->managed[i]);
    for (size_t i = 0; library->kernels && i < image->function_count; i++)
        if (library->kernels[i].handle)
            sg_handle_drop(SG_KIND_KERNEL, library->kernels[i].handle);
    sg_loaded_unref(library->program);
}

static void library_free(struct sg_library *library) {
    if (library->program)
        end_contents(library);
    if (library->handle)
        sg_handle_drop(SG_KIND_LIBRARY, library->handle);
    free(library->kernels);
    free(library->managed);
    free(library);
}

static bool fill_kernels(struct sg_library *library) {
    const struct sg_image *image = library->program->image;
    for (size_t i = 0; i < image->function_count; i++) {
        struct sg_kernel *kernel = &library->kernels[i];
        *kernel = (struct sg_kernel){.library = library, .image = &image->functions[i]};
        kernel->handle = sg_handle_new(SG_KIND_KERNEL, kernel);
        if (!kernel->handle)
            return false;
    }
    return true;
}

static bool make_contents(struct sg_library *library) {
    const struct sg_image *image = library->program->image;
    library->kernels = calloc(image->function_count + 1, sizeof *library->kernels);
    library->managed = calloc(image->variable_count + 1, sizeof(struct sg_range *));
    return library->kernels && library->managed && fill_kernels(library);
}

/* Loaded because a kernel or variable was needed, and not because the program asked for it. */
static bool is_of_runtime(void) {
    const char *call = sg_runtime_call();
    return call && strncmp(call, "cudaLibrary", strlen("cudaLibrary")) != 0;
}

/* From a program, whose reference it takes even on failure; or from an image that cannot be read,
 * which an H200 notices when something in it is requested. */
static CUresult library_new(struct sg_loaded *program, CUresult refusal,
                            struct sg_library **library) {
    struct sg_library *made = calloc(1, sizeof *made);
    if (!made) {
        if (program)
            sg_loaded_unref(program);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made->program = program;
    made->refusal = refusal;
    made->of_runtime = is_of_runtime();
    made->handle = sg_handle_new(SG_KIND_LIBRARY, made);
    if (!made->handle || (program && !make_contents(made))) {
        library_free(made);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *library = made;
    return CUDA_SUCCESS;
}

/* ---- Loading -------------------------------------------------------------------------------- */

static CUresult check_options(const CUlibraryOption *options, void **values, unsigned count,
                              bool from_file) {
    if (count > 0 && !options)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        if (options[i] < 0 || options[i] >= CU_LIBRARY_NUM_OPTIONS)
            return CUDA_ERROR_INVALID_VALUE;
        if (from_file && options[i] == CU_LIBRARY_BINARY_IS_PRESERVED)
            return CUDA_ERROR_INVALID_VALUE;
        bool table = options[i] == CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE;
        if (table && (!values || !values[i]))
            return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

static int some_device(void) {
    const struct sg_context *context = sg_context_peek();
    return context ? context->device : 0;
}

static CUresult load(CUlibrary *library, const void *code, size_t size, const struct sg_jit *jit) {
    struct sg_loaded *program = NULL;
    struct sg_library *made;
    CUresult refusal = sg_loaded_read(code, size, some_device(), jit, true, &program);
    if (refusal == CUDA_ERROR_OUT_OF_MEMORY)
        return refusal;
    CUresult result = library_new(program, refusal, &made);
    if (result == CUDA_SUCCESS)
        *library = SG_HANDLE_POINTER(CUlibrary, made->handle);
    return result;
}

CUresult sg_cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions,
                              void **jitOptionsValues, unsigned int numJitOptions,
                              CUlibraryOption *libraryOptions, void **libraryOptionValues,
                              unsigned int numLibraryOptions) {
    struct sg_jit jit;
    if (!library || !code)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sg_jit_read(&jit, numJitOptions, jitOptions, jitOptionsValues);
    if (result == CUDA_SUCCESS)
        result = check_options(libraryOptions, libraryOptionValues, numLibraryOptions, false);
    return result == CUDA_SUCCESS ? load(library, code, SIZE_MAX, &jit) : result;
}

CUresult sg_cuLibraryLoadFromFile(CUlibrary *library, const char *fileName,
                                  CUjit_option *jitOptions, void **jitOptionsValues,
                                  unsigned int numJitOptions, CUlibraryOption *libraryOptions,
                                  void **libraryOptionValues, unsigned int numLibraryOptions) {
    struct sg_jit jit;
    unsigned char *bytes;
    size_t size;
    if (!library || !fileName || !*fileName)
        return CUDA_ERROR_INVALID_VALUE;
    /* As recorded: that there are options, then the file, then what the options are. */
    if (numJitOptions && (!jitOptions || !jitOptionsValues || numJitOptions > CU_JIT_NUM_OPTIONS))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sg_loading_file(fileName, &bytes, &size);
    if (result != CUDA_SUCCESS)
        return result;
    result = sg_jit_read(&jit, numJitOptions, jitOptions, jitOptionsValues);
    if (result == CUDA_SUCCESS)
        result = check_options(libraryOptions, libraryOptionValues, numLibraryOptions, true);
    if (result == CUDA_SUCCESS)
        result = size ? load(library, bytes, size, &jit) : CUDA_ERROR_INVALID_IMAGE;
    free(bytes);
    return result;
}

/* A context with work that may use the library; referenced, or NULL. Each is waited for once. */
static struct sg_context *next_context(const struct sg_library *library, uint64_t *after) {
    struct sg_context *next = NULL;
    for (struct sg_module *module = sg_module_first(); module; module = module->next)
        if (module->library == library && module->context->id > *after &&
            (!next || module->context->id < next->id))
            next = module->context;
    if (next) {
        *after = next->id;
        sg_context_ref(next);
    }
    return next;
}

CUresult sg_cuLibraryUnload(CUlibrary handle) {
    struct sg_library *library;
    struct sg_context *context;
    uint64_t waited = 0;
    sg_library_from_handle(handle, &library);
    /* Waiting releases the lock. */
    while (library && (context = next_context(library, &waited))) {
        CUresult result = sg_context_wait_to_free(context);
        sg_context_unref(context);
        if (result != CUDA_SUCCESS)
            return result;
        sg_library_from_handle(handle, &library);
    }
    if (!library)
        return CUDA_ERROR_INVALID_HANDLE;
    library_free(library);
    return CUDA_SUCCESS;
}
