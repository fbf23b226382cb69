/* cuModule*: loading, and looking up what is in a module. */
#include "softgpu/context/address_32.h"
#include "softgpu/core/calls.h"
#include "softgpu/module/module.h"
#include "softgpu/stream/capture.h"
#include "softgpu/stream/stream.h"
#include "softgpu/texture/texture.h"

#include <stdlib.h>
#include <string.h>

static CUresult load(CUmodule *module, const void *bytes, size_t size, const struct sg_jit *jit) {
    struct sg_context *context;
    CUresult result = sg_context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!module || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    struct sg_loaded *program;
    result = sg_loaded_read(bytes, size, context->device, jit, false, &program);
    if (result != CUDA_SUCCESS)
        return result;
    struct sg_module *made;
    result = sg_module_new(context, program, NULL, &made);
    sg_loaded_unref(program);
    if (result == CUDA_SUCCESS)
        *module = SG_HANDLE_POINTER(CUmodule, made->handle);
    return result;
}

CUresult sg_cuModuleLoadData(CUmodule *module, const void *image) {
    return load(module, image, SIZE_MAX, &(struct sg_jit){.count = 0});
}

CUresult sg_cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin) {
    return load(module, fatCubin, SIZE_MAX, &(struct sg_jit){.count = 0});
}

CUresult sg_cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions,
                               CUjit_option *options, void **optionValues) {
    struct sg_context *context;
    struct sg_jit jit;
    CUresult result = sg_context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!module || !image)
        return CUDA_ERROR_INVALID_VALUE;
    result = sg_jit_read(&jit, numOptions, options, optionValues);
    return result == CUDA_SUCCESS ? load(module, image, SIZE_MAX, &jit) : result;
}

CUresult sg_cuModuleLoad(CUmodule *module, const char *fname) {
    struct sg_context *context;
    unsigned char *bytes;
    size_t size;
    CUresult result = sg_context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!module || !fname || !fname[0])
        return CUDA_ERROR_INVALID_VALUE;
    result = sg_loading_file(fname, &bytes, &size);
    if (result != CUDA_SUCCESS)
        return result;
    result = load(module, bytes, size, &(struct sg_jit){.count = 0});
    free(bytes);
    return result;
}

CUresult sg_cuModuleUnload(CUmodule hmod) {
    struct sg_module *module;
    CUresult result = sg_module_from_handle(hmod, &module);
    if (result == CUDA_SUCCESS)
        result = sg_capture_unsafe();
    if (result != CUDA_SUCCESS)
        return result;
    if (module->library)
        return CUDA_ERROR_NOT_PERMITTED;
    struct sg_context *context = module->context;
    result = sg_context_wait_to_free(context);
    if (result != CUDA_SUCCESS)
        return result;
    /* The wait released the lock. */
    result = sg_module_from_handle(hmod, &module);
    if (result == CUDA_SUCCESS)
        sg_module_free(module);
    return result;
}

CUresult sg_cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name) {
    struct sg_module *module;
    CUresult result = sg_module_from_handle(hmod, &module);
    if (result != CUDA_SUCCESS)
        return result;
    if (!hfunc || !name || !name[0])
        return CUDA_ERROR_INVALID_VALUE;
    *hfunc = NULL;
    struct sg_function *function;
    result = sg_module_function(module, name, &function);
    if (result != CUDA_SUCCESS)
        return result;
    if (!sg_module_function_handle(function))
        return CUDA_ERROR_OUT_OF_MEMORY;
    function->loaded = true;
    *hfunc = SG_HANDLE_POINTER(CUfunction, function->handle);
    return CUDA_SUCCESS;
}

CUresult sg_cuModuleGetFunctionCount(unsigned int *count, CUmodule mod) {
    struct sg_module *module;
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sg_module_from_handle(mod, &module);
    if (result == CUDA_SUCCESS)
        *count = (unsigned)module->program->image->function_count;
    return result;
}

CUresult sg_cuModuleEnumerateFunctions(CUfunction *functions, unsigned int numFunctions,
                                       CUmodule mod) {
    struct sg_module *module;
    if (!functions)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sg_module_from_handle(mod, &module);
    if (result != CUDA_SUCCESS)
        return result;
    const struct sg_image *image = module->program->image;
    for (size_t i = 0; i < image->function_count && i < numFunctions; i++) {
        size_t at = sg_program_order(image, i, false);
        uint64_t handle = sg_module_function_handle(&module->functions[at]);
        if (!handle)
            return CUDA_ERROR_OUT_OF_MEMORY;
        functions[i] = SG_HANDLE_POINTER(CUfunction, handle);
    }
    return CUDA_SUCCESS;
}

CUresult sg_cuModuleGetGlobal_v2(CUdeviceptr *dptr, size_t *bytes, CUmodule hmod,
                                 const char *name) {
    struct sg_module *module;
    CUdeviceptr address;
    size_t size;
    if (dptr)
        *dptr = 0;
    if (bytes)
        *bytes = 0;
    CUresult result = sg_module_from_handle(hmod, &module);
    if (result != CUDA_SUCCESS)
        return result;
    if (!name || (!dptr && !bytes))
        return CUDA_ERROR_INVALID_VALUE;
    result = sg_module_variable(module, name, &address, &size);
    if (result != CUDA_SUCCESS)
        return result;
    if (dptr)
        *dptr = address;
    if (bytes)
        *bytes = size;
    return CUDA_SUCCESS;
}

static CUresult narrow_address(CUdeviceptr wide, CUdeviceptr_v1 *address) {
    const struct sg_range *range = sg_range_find(wide);
    CUresult result = range ? sg_address_32_of(range, address) : CUDA_ERROR_NOT_FOUND;
    if (result == CUDA_SUCCESS)
        *address += (CUdeviceptr_v1)(wide - range->start);
    return result;
}

/* Only in a context of 32-bit addresses, whatever else is requested: as recorded (tests/parity, the
 * scenarios first/old-globals and module/globals-v1). */
CUresult sg_cuModuleGetGlobal(CUdeviceptr_v1 *dptr, unsigned int *bytes, CUmodule hmod,
                              const char *name) {
    struct sg_module *module;
    CUdeviceptr wide;
    CUdeviceptr_v1 address;
    size_t size;
    if (dptr)
        *dptr = 0;
    if (bytes)
        *bytes = 0;
    CUresult result = sg_module_from_handle(hmod, &module);
    if (result != CUDA_SUCCESS)
        return result;
    if (!sg_context_has_32_bit_addresses(module->context))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!name || (!dptr && !bytes))
        return CUDA_ERROR_INVALID_VALUE;
    result = sg_module_variable(module, name, &wide, &size);
    if (result == CUDA_SUCCESS)
        result = narrow_address(wide, &address);
    if (result != CUDA_SUCCESS)
        return result;
    if (dptr)
        *dptr = address;
    if (bytes)
        *bytes = (unsigned)size;
    return CUDA_SUCCESS;
}

CUresult sg_cuModuleGetLoadingMode(CUmoduleLoadingMode *mode) {
    if (!mode) /* an H200's driver crashes */
        return CUDA_ERROR_INVALID_VALUE;
    *mode = sg_loading_eager() ? CU_MODULE_EAGER_LOADING : CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}

/* ---- References ----------------------------------------------------------------------------- */

/* The image's own copy of the name, which lives as long as the module; NULL when it has none. */
static const char *own_name(char **names, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return names[i];
    return NULL;
}

static CUresult reference_named(const struct sg_module *module, const char *name, bool surface,
                                uint64_t *handle) {
    struct sg_reference *reference;
    if (!name)
        return CUDA_ERROR_NOT_FOUND;
    CUresult result = sg_reference_of_module(module, module->context, name, surface, &reference);
    if (result == CUDA_SUCCESS)
        *handle = reference->handle;
    return result;
}

CUresult sg_cuModuleGetTexRef(CUtexref *pTexRef, CUmodule hmod, const char *name) {
    struct sg_module *module;
    CUresult result = sg_module_from_handle(hmod, &module);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pTexRef || !name)
        return CUDA_ERROR_INVALID_VALUE;
    const struct sg_image *image = module->program->image;
    uint64_t handle = 0;
    result = reference_named(module, own_name(image->textures, image->texture_count, name), false,
                             &handle);
    if (result == CUDA_SUCCESS)
        *pTexRef = SG_HANDLE_POINTER(CUtexref, handle);
    return result;
}

CUresult sg_cuModuleGetSurfRef(CUsurfref *pSurfRef, CUmodule hmod, const char *name) {
    struct sg_module *module;
    CUresult result = sg_module_from_handle(hmod, &module);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pSurfRef || !name)
        return CUDA_ERROR_INVALID_VALUE;
    const struct sg_image *image = module->program->image;
    uint64_t handle = 0;
    result = reference_named(module, own_name(image->surfaces, image->surface_count, name), true,
                             &handle);
    if (result == CUDA_SUCCESS)
        *pSurfRef = SG_HANDLE_POINTER(CUsurfref, handle);
    return result;
}
