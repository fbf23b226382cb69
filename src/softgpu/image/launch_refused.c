#include "softgpu/image/launch_refused.h"

#include "softgpu/core/calls.h"
#include "softgpu/core/config.h"
#include "softgpu/device/device.h"
#include "softgpu/graph/capture.h"
#include "softgpu/image/occupancy.h"

static bool within(const struct sg_device *device, const unsigned size[3],
                   CUdevice_attribute first) {
    for (int i = 0; i < 3; i++)
        if (size[i] == 0 || size[i] > (unsigned)device->attributes[(int)first + i])
            return false;
    return true;
}

static uint64_t threads_of(const struct sg_launch *launch) {
    return (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];
}

static CUresult check_shape(const struct sg_function *function, const struct sg_launch *launch) {
    const struct sg_device *device = sg_device(function->context->device);
    if (!within(device, launch->grid, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X) ||
        !within(device, launch->block, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X))
        return CUDA_ERROR_INVALID_VALUE;
    if (threads_of(launch) > sg_occupancy_most_threads(function->image, device->ordinal))
        return CUDA_ERROR_INVALID_VALUE;
    const unsigned *required = function->image->required_threads;
    for (int i = 0; required[0] && i < 3; i++)
        if (launch->block[i] != required[i])
            return CUDA_ERROR_INVALID_VALUE;
    int most = sg_function_value(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    return launch->shared > (unsigned)most ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult check_parameters(const struct sg_function *function,
                                 const struct sg_launch *launch) {
    if (launch->params && launch->extra)
        return CUDA_ERROR_INVALID_VALUE;
    if (function->image->parameter_count > 0 && !launch->params && !launch->extra)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

static CUresult capture(struct sg_stream *stream, const struct sg_function *function,
                        const struct sg_launch *launch) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
    params.kernel.func = SG_HANDLE_POINTER(CUfunction, function->handle);
    params.kernel.gridDimX = launch->grid[0];
    params.kernel.gridDimY = launch->grid[1];
    params.kernel.gridDimZ = launch->grid[2];
    params.kernel.blockDimX = launch->block[0];
    params.kernel.blockDimY = launch->block[1];
    params.kernel.blockDimZ = launch->block[2];
    params.kernel.sharedMemBytes = launch->shared;
    params.kernel.kernelParams = launch->params;
    params.kernel.extra = launch->extra;
    return sg_capture_node(stream, &params);
}

static CUresult refuse(const struct sg_function *function) {
    const struct sg_image *image = function->module->program->image;
    sg_log(1, "kernel %s was not launched: softgpu runs no kernels, and its image holds %s",
           function->image->name,
           image->source == SG_IMAGE_PTX ? "PTX" : "machine code without PTX");
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult sg_launch(CUfunction handle, const struct sg_launch *launch) {
    struct sg_context *context;
    struct sg_function *function;
    struct sg_stream *stream;
    CUresult result = sg_context_current(&context);
    if (result == CUDA_SUCCESS)
        result = sg_function_from_handle(handle, &function);
    if (result == CUDA_SUCCESS)
        result = check_parameters(function, launch);
    if (result == CUDA_SUCCESS)
        result = check_shape(function, launch);
    if (result == CUDA_SUCCESS)
        result = sg_stream_from_handle(launch->stream, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    return stream->capture ? capture(stream, function, launch) : refuse(function);
}

CUresult sg_cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                           unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
                           unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
                           void **kernelParams, void **extra) {
    return sg_launch(f, &(struct sg_launch){.grid = {gridDimX, gridDimY, gridDimZ},
                                            .block = {blockDimX, blockDimY, blockDimZ},
                                            .shared = sharedMemBytes,
                                            .stream = hStream,
                                            .params = kernelParams,
                                            .extra = extra});
}

CUresult sg_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams,
                             void **extra) {
    if (!config)
        return CUDA_ERROR_INVALID_VALUE;
    return sg_launch(
        f, &(struct sg_launch){.grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
                               .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
                               .shared = config->sharedMemBytes,
                               .stream = config->hStream,
                               .params = kernelParams,
                               .extra = extra,
                               .attributes = config->attrs,
                               .attribute_count = config->numAttrs});
}

CUresult sg_cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                      unsigned int gridDimZ, unsigned int blockDimX,
                                      unsigned int blockDimY, unsigned int blockDimZ,
                                      unsigned int sharedMemBytes, CUstream hStream,
                                      void **kernelParams) {
    return sg_launch(f, &(struct sg_launch){.grid = {gridDimX, gridDimY, gridDimZ},
                                            .block = {blockDimX, blockDimY, blockDimZ},
                                            .shared = sharedMemBytes,
                                            .stream = hStream,
                                            .params = kernelParams,
                                            .cooperative = true});
}
