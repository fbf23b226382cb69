/*
 * The first way to launch: shape, shared memory and arguments are kept in the function until a
 * launch takes them.
 */
#include "softgpu/core/calls.h"
#include "softgpu/device/device.h"
#include "softgpu/image/launch_refused.h"

#include <stdlib.h>
#include <string.h>

#define ROOM 32764u /* bytes of parameters that a function may have from 7.0 on */

struct sg_old_launch {
    unsigned block[3]; /* zeros: no shape was given */
    unsigned shared;
    unsigned size; /* of the arguments, as cuParamSetSize was told */
    unsigned char arguments[ROOM];
};

static CUresult find(CUfunction handle, struct sg_function **function) {
    struct sg_context *context;
    CUresult result = sg_context_current(&context);
    if (result == CUDA_SUCCESS)
        result = sg_function_from_handle(handle, function);
    if (result != CUDA_SUCCESS || (*function)->old)
        return result;
    (*function)->old = calloc(1, sizeof *(*function)->old);
    return (*function)->old ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sg_cuFuncSetBlockShape(CUfunction hfunc, int x, int y, int z) {
    struct sg_function *function;
    CUresult result = find(hfunc, &function);
    if (result != CUDA_SUCCESS)
        return result;
    if (x <= 0 || y <= 0 || z <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    function->old->block[0] = (unsigned)x;
    function->old->block[1] = (unsigned)y;
    function->old->block[2] = (unsigned)z;
    return CUDA_SUCCESS;
}

CUresult sg_cuFuncSetSharedSize(CUfunction hfunc, unsigned int bytes) {
    struct sg_function *function;
    CUresult result = find(hfunc, &function);
    if (result == CUDA_SUCCESS)
        function->old->shared = bytes;
    return result;
}

CUresult sg_cuParamSetSize(CUfunction hfunc, unsigned int numbytes) {
    struct sg_function *function;
    CUresult result = find(hfunc, &function);
    if (result != CUDA_SUCCESS)
        return result;
    if (numbytes > ROOM)
        return CUDA_ERROR_INVALID_VALUE;
    function->old->size = numbytes;
    return CUDA_SUCCESS;
}

static CUresult put(CUfunction hfunc, int offset, const void *bytes, size_t size) {
    struct sg_function *function;
    CUresult result = find(hfunc, &function);
    if (result != CUDA_SUCCESS)
        return result;
    if (offset < 0 || size > ROOM || (size_t)offset > ROOM - size)
        return CUDA_ERROR_INVALID_VALUE;
    if (size == 0)
        return CUDA_SUCCESS;
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(function->old->arguments + offset, bytes, size);
    return CUDA_SUCCESS;
}

CUresult sg_cuParamSeti(CUfunction hfunc, int offset, unsigned int value) {
    return put(hfunc, offset, &value, sizeof value);
}

CUresult sg_cuParamSetf(CUfunction hfunc, int offset, float value) {
    return put(hfunc, offset, &value, sizeof value);
}

CUresult sg_cuParamSetv(CUfunction hfunc, int offset, void *ptr, unsigned int numbytes) {
    return put(hfunc, offset, ptr, numbytes);
}

/* ---- Launches ------------------------------------------------------------------------------- */

static CUresult launch(CUfunction f, int width, int height, CUstream stream) {
    struct sg_function *function;
    CUresult result = find(f, &function);
    if (result != CUDA_SUCCESS)
        return result;
    const struct sg_old_launch *old = function->old;
    size_t size = old->size;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, function->old->arguments,
                     CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
    struct sg_launch asked = {.grid = {(unsigned)width, (unsigned)height, 1},
                              .block = {old->block[0], old->block[1], old->block[2]},
                              .shared = old->shared,
                              .stream = stream,
                              .extra = extra};
    return width > 0 && height > 0 ? sg_launch(f, &asked) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sg_cuLaunch(CUfunction f) {
    return launch(f, 1, 1, NULL);
}

CUresult sg_cuLaunchGrid(CUfunction f, int grid_width, int grid_height) {
    return launch(f, grid_width, grid_height, NULL);
}

CUresult sg_cuLaunchGridAsync(CUfunction f, int grid_width, int grid_height, CUstream hStream) {
    return launch(f, grid_width, grid_height, hStream);
}
