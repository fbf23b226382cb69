/* What an application can set on a function: attributes, cache and bank preferences. */
#include "softgpu/core/calls.h"
#include "softgpu/device/device.h"
#include "softgpu/module/module.h"

static bool dynamic_shared_fits(const struct sg_image_function *function, int device, int value) {
    int most = sg_device(device)->attributes[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN];
    return value >= 0 && value <= most - (int)function->static_shared;
}

static bool in_range(int value, int least, int most) {
    return value >= least && value <= most;
}

/* A directive of the image cannot be changed; setting the same value is not an error. */
static bool cluster_fits(const struct sg_image_function *function, CUfunction_attribute attribute,
                         int value) {
    unsigned size = function->cluster[attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH];
    return size ? value == (int)size : value >= 0;
}

static CUresult check(const struct sg_image_function *function, int device,
                      CUfunction_attribute attribute, int value) {
    bool good = false;
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        good = dynamic_shared_fits(function, device, value);
        break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        good = in_range(value, -1, 100);
        break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        good = cluster_fits(function, attribute, value);
        break;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        good = true;
        break;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        good = in_range(value, CU_CLUSTER_SCHEDULING_POLICY_DEFAULT,
                        CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING);
        break;
    default:
        break;
    }
    return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sg_function_set(const struct sg_image *image, const struct sg_image_function *function,
                         int device, CUfunction_attribute attribute, int value, int *settings,
                         bool *set) {
    (void)image;
    CUresult result = check(function, device, attribute, value);
    if (result != CUDA_SUCCESS)
        return result;
    bool truth = attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED;
    settings[attribute] = truth ? value != 0 : value;
    set[attribute] = true;
    return CUDA_SUCCESS;
}

CUresult sg_cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value) {
    struct sg_function *function;
    CUresult result = sg_function_get(hfunc, &function);
    if (result != CUDA_SUCCESS)
        return result;
    result = sg_function_set(function->module->program->image, function->image,
                             function->context->device, attrib, value, function->settings,
                             function->setting_set);
    if (result == CUDA_SUCCESS)
        function->loaded = true;
    return result;
}

CUresult sg_cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config) {
    struct sg_function *function;
    CUresult result = sg_function_get(hfunc, &function);
    if (result != CUDA_SUCCESS)
        return result;
    if (config < CU_FUNC_CACHE_PREFER_NONE || config > CU_FUNC_CACHE_PREFER_EQUAL)
        return CUDA_ERROR_INVALID_VALUE;
    function->cache_config = config;
    return CUDA_SUCCESS;
}

CUresult sg_cuFuncSetSharedMemConfig(CUfunction hfunc, CUsharedconfig config) {
    struct sg_function *function;
    CUresult result = sg_function_get(hfunc, &function);
    if (result != CUDA_SUCCESS)
        return result;
    if (config < CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE ||
        config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
        return CUDA_ERROR_INVALID_VALUE;
    function->shared_config = config;
    return CUDA_SUCCESS;
}
