/* Functions: handles, attributes, parameters. */
#include "softgpu/core/calls.h"
#include "softgpu/device/device.h"
#include "softgpu/module/module.h"
#include "softgpu/module/occupancy.h"

CUresult sg_function_get(CUfunction handle, struct sg_function **function) {
    *function = sg_handle_get(SG_KIND_FUNCTION, SG_HANDLE_VALUE(handle));
    return *function ? (*function)->context->sticky : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sg_function_from_handle(CUfunction handle, struct sg_function **function) {
    if (sg_handle_get(SG_KIND_FUNCTION, SG_HANDLE_VALUE(handle)))
        return sg_function_get(handle, function);
    if (!sg_handle_get(SG_KIND_KERNEL, SG_HANDLE_VALUE(handle)))
        return CUDA_ERROR_INVALID_HANDLE;
    struct sg_context *context;
    CUresult result = sg_context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    return sg_function_of_kernel(SG_HANDLE_POINTER(CUkernel, SG_HANDLE_VALUE(handle)), context,
                                 function);
}

CUresult sg_function_of_kernel(CUkernel handle, struct sg_context *context,
                               struct sg_function **function) {
    struct sg_kernel *kernel;
    struct sg_module *module;
    CUresult result = sg_kernel_from_handle(handle, &kernel);
    if (result == CUDA_SUCCESS)
        result = sg_library_module(kernel->library, context, &module);
    if (result != CUDA_SUCCESS)
        return result;
    struct sg_function *found = &module->functions[kernel - kernel->library->kernels];
    result = sg_function_lacks(found->image);
    if (result == CUDA_SUCCESS && !sg_module_function_handle(found))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS)
        *function = found;
    return result;
}

/* ---- Attributes ----------------------------------------------------------------------------- */

static int default_dynamic_shared(const struct sg_image_function *function, int device) {
    int most = sg_device(device)->attributes[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK];
    return (int)function->static_shared < most ? most - (int)function->static_shared : 0;
}

/* The image's value, or the device's for all functions. False if the number is not an attribute. */
static bool from_image(const struct sg_image *image, const struct sg_image_function *function,
                       int device, CUfunction_attribute attribute, int *value) {
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = (int)sg_occupancy_most_threads(function, device);
        return true;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *value = (int)function->static_shared;
        return true;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
        *value = (int)function->constant;
        return true;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        *value = (int)function->local;
        return true;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *value = (int)sg_occupancy_registers(function, device);
        return true;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
        *value = image->target;
        return true;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *value = sg_loading_options(device, NULL).architecture;
        return true;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = default_dynamic_shared(function, device);
        return true;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        *value = -1;
        return true;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
        *value = function->explicit_cluster;
        return true;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        *value = (int)function->cluster[attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH];
        return true;
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        *value = 0;
        return true;
    default:
        return false;
    }
}

CUresult sg_function_attribute(const struct sg_image *image,
                               const struct sg_image_function *function, int device,
                               CUfunction_attribute attribute, const int *settings, const bool *set,
                               int *value) {
    int found;
    if (!from_image(image, function, device, attribute, &found))
        return CUDA_ERROR_INVALID_VALUE;
    *value = set && set[attribute] ? settings[attribute] : found;
    return CUDA_SUCCESS;
}

/* A function's own setting takes precedence over its kernel's. */
int sg_function_value(const struct sg_function *function, CUfunction_attribute attribute) {
    int value = 0, device = function->context->device;
    const struct sg_image *image = function->module->program->image;
    const struct sg_kernel_device *kernel =
        function->kernel ? &function->kernel->devices[device] : NULL;
    if (function->setting_set[attribute])
        return function->settings[attribute];
    sg_function_attribute(image, function->image, device, attribute,
                          kernel ? kernel->settings : NULL, kernel ? kernel->setting_set : NULL,
                          &value);
    return value;
}

/* Those of an H200; the documentation of cuFuncGetAttribute lists CACHE_MODE_CA as the last. */
static bool needs_loading(CUfunction_attribute attribute) {
    return attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ||
           attribute == CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES ||
           attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
}

CUresult sg_cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc) {
    struct sg_function *function;
    if (!pi)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sg_function_get(hfunc, &function);
    if (result != CUDA_SUCCESS)
        return result;
    if (attrib < 0 || attrib >= CU_FUNC_ATTRIBUTE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (!function->loaded && needs_loading(attrib))
        return CUDA_ERROR_FUNCTION_NOT_LOADED;
    *pi = sg_function_value(function, attrib);
    return CUDA_SUCCESS;
}

/* ---- What a function is --------------------------------------------------------------------- */

CUresult sg_function_parameter(const struct sg_image_function *function, size_t index,
                               size_t *offset, size_t *size) {
    if (index >= function->parameter_count)
        return CUDA_ERROR_INVALID_VALUE;
    if (offset)
        *offset = function->parameters[index].offset;
    if (size)
        *size = function->parameters[index].size;
    return CUDA_SUCCESS;
}

CUresult sg_cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t *paramOffset,
                               size_t *paramSize) {
    struct sg_function *function;
    if (!func || !paramOffset)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sg_function_get(func, &function);
    if (result != CUDA_SUCCESS)
        return result;
    return sg_function_parameter(function->image, paramIndex, paramOffset, paramSize);
}

CUresult sg_cuFuncGetName(const char **name, CUfunction hfunc) {
    struct sg_function *function;
    if (!name || !hfunc)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sg_function_get(hfunc, &function);
    if (result == CUDA_SUCCESS)
        *name = function->image->name;
    return result;
}

CUresult sg_cuFuncGetModule(CUmodule *hmod, CUfunction hfunc) {
    struct sg_function *function;
    if (!hmod || !hfunc)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sg_function_get(hfunc, &function);
    if (result == CUDA_SUCCESS)
        *hmod = SG_HANDLE_POINTER(CUmodule, function->module->handle);
    return result;
}

CUresult sg_cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction hfunc) {
    struct sg_function *function;
    if (!state)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sg_function_get(hfunc, &function);
    if (result == CUDA_SUCCESS)
        *state = function->loaded ? CU_FUNCTION_LOADING_STATE_LOADED
                                  : CU_FUNCTION_LOADING_STATE_UNLOADED;
    return result;
}

CUresult sg_cuFuncLoad(CUfunction hfunc) {
    struct sg_function *function;
    CUresult result = sg_function_get(hfunc, &function);
    if (result == CUDA_SUCCESS && function->image->lacks == SG_LACKS_CALLED)
        return CUDA_ERROR_NOT_FOUND;
    if (result == CUDA_SUCCESS && !function->image->lacks)
        function->loaded = true;
    return result;
}
