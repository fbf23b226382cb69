/* Kernels: functions of libraries, which belong to no context. */
#include "softgpu/core/calls.h"
#include "softgpu/device/device.h"
#include "softgpu/module/module.h"

CUresult sg_kernel_from_handle(CUkernel handle, struct sg_kernel **kernel) {
    *kernel = sg_handle_get(SG_KIND_KERNEL, SG_HANDLE_VALUE(handle));
    return *kernel ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult find(CUkernel handle, CUdevice dev, struct sg_kernel **kernel) {
    *kernel = NULL;
    if (handle && !atomic_load(&sg_initialized))
        return CUDA_ERROR_NOT_INITIALIZED;
    CUresult result = sg_kernel_from_handle(handle, kernel);
    if (result == CUDA_SUCCESS && !sg_device(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    return result;
}

CUresult sg_cuKernelGetAttribute(int *pi, CUfunction_attribute attrib, CUkernel handle,
                                 CUdevice dev) {
    struct sg_kernel *kernel;
    CUresult result = find(handle, dev, &kernel);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pi)
        return CUDA_ERROR_INVALID_VALUE;
    const struct sg_kernel_device *own = &kernel->devices[dev];
    return sg_function_attribute(kernel->library->program->image, kernel->image, dev, attrib,
                                 own->settings, own->setting_set, pi);
}

CUresult sg_cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel handle,
                                 CUdevice dev) {
    struct sg_kernel *kernel;
    CUresult result = find(handle, dev, &kernel);
    if (result != CUDA_SUCCESS)
        return result;
    struct sg_kernel_device *own = &kernel->devices[dev];
    return sg_function_set(kernel->library->program->image, kernel->image, dev, attrib, val,
                           own->settings, own->setting_set);
}

CUresult sg_cuKernelSetCacheConfig(CUkernel handle, CUfunc_cache config, CUdevice dev) {
    struct sg_kernel *kernel;
    CUresult result = find(handle, dev, &kernel);
    if (result != CUDA_SUCCESS)
        return result;
    if (config < CU_FUNC_CACHE_PREFER_NONE || config > CU_FUNC_CACHE_PREFER_EQUAL)
        return CUDA_ERROR_INVALID_VALUE;
    kernel->devices[dev].cache_config = config;
    return CUDA_SUCCESS;
}

CUresult sg_cuKernelGetFunction(CUfunction *pFunc, CUkernel handle) {
    struct sg_kernel *kernel;
    struct sg_context *context;
    struct sg_function *function;
    if (!pFunc)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sg_kernel_from_handle(handle, &kernel);
    if (result == CUDA_SUCCESS)
        result = sg_context_current(&context);
    if (result == CUDA_SUCCESS)
        result = sg_function_of_kernel(handle, context, &function);
    else
        return result;
    if (result != CUDA_SUCCESS && sg_function_lacks(kernel->image) == result)
        *pFunc = NULL;
    if (result != CUDA_SUCCESS)
        return result;
    function->loaded = true;
    *pFunc = SG_HANDLE_POINTER(CUfunction, function->handle);
    return CUDA_SUCCESS;
}

CUresult sg_cuKernelGetLibrary(CUlibrary *pLib, CUkernel handle) {
    struct sg_kernel *kernel;
    if (!pLib)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sg_kernel_from_handle(handle, &kernel);
    if (result == CUDA_SUCCESS)
        *pLib = SG_HANDLE_POINTER(CUlibrary, kernel->library->handle);
    return result;
}

CUresult sg_cuKernelGetName(const char **name, CUkernel handle) {
    struct sg_kernel *kernel;
    if (!name || !handle)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sg_kernel_from_handle(handle, &kernel);
    if (result == CUDA_SUCCESS)
        *name = kernel->image->name;
    return result;
}

CUresult sg_cuKernelGetParamInfo(CUkernel handle, size_t paramIndex, size_t *paramOffset,
                                 size_t *paramSize) {
    struct sg_kernel *kernel;
    struct sg_context *context;
    if (!handle || !paramOffset)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sg_context_current(&context);
    if (result == CUDA_SUCCESS)
        result = sg_kernel_from_handle(handle, &kernel);
    if (result != CUDA_SUCCESS)
        return result;
    return sg_function_parameter(kernel->image, paramIndex, paramOffset, paramSize);
}
