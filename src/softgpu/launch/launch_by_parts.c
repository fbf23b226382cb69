/* The original launch calls: shape, shared memory, arguments and textures are kept in the function
 * until a launch uses them. */
#include "softgpu/core/calls.h"
#include "softgpu/core/chapter.h"
#include "softgpu/core/text.h"
#include "softgpu/device/device.h"
#include "softgpu/launch/device_runtime.h"
#include "softgpu/launch/launch.h"
#include "softgpu/module/occupancy.h"
#include "softgpu/texture/texture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sg_old_launch {
    unsigned block[3];
    unsigned shared;
    unsigned size; /* of the arguments, as set by cuParamSetSize */
    unsigned char arguments[SG_PARAMETER_ROOM];
    bool textures[]; /* those of the image's that cuParamSetTexRef was given */
};

static void dump_function(struct sg_text *text, const struct sg_function *function) {
    const struct sg_old_launch *old = function->old;
    char hex[2 * 64 + 1] = "";
    unsigned size = old->size < 64 ? old->size : 64;
    for (unsigned i = 0; i < size; i++)
        snprintf(hex + (size_t)2 * i, 3, "%02x", old->arguments[i]);
    sg_text_line(text, "function %s: block %u,%u,%u, shared %u, arguments %u bytes %s",
                 function->image->name, old->block[0], old->block[1], old->block[2], old->shared,
                 old->size, hex);
    const struct sg_image *image = function->module->program->image;
    for (size_t i = 0; i < image->texture_count; i++)
        if (old->textures[i])
            sg_text_line(text, "function %s: texture %s", function->image->name,
                         image->textures[i]);
}

static CUresult find(CUfunction handle, struct sg_function **function) {
    struct sg_context *context;
    CUresult result = sg_context_current(&context);
    if (result == CUDA_SUCCESS)
        result = sg_function_get(handle, function);
    if (result != CUDA_SUCCESS || (*function)->old)
        return result;
    size_t textures = (*function)->module->program->image->texture_count;
    (*function)->old = calloc(1, sizeof *(*function)->old + textures * sizeof(bool));
    if (!(*function)->old)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (int i = 0; i < 3; i++)
        (*function)->old->block[i] = 1; /* so a launch without a shape succeeds on H200 */
    return CUDA_SUCCESS;
}

/* Only the image's limits count; the registers of a thread are checked at the launch. */
static bool shape_allowed(const struct sg_function *function, int x, int y, int z) {
    const unsigned *required = function->image->required_threads;
    int64_t most = sg_occupancy_allowed_threads(function->image, function->context->device);
    return (int64_t)x * y * z <= most &&
           (required[0] == 0 || ((unsigned)x == required[0] && (unsigned)y == required[1] &&
                                 (unsigned)z == required[2]));
}

CUresult sg_cuFuncSetBlockShape(CUfunction hfunc, int x, int y, int z) {
    struct sg_function *function;
    CUresult result = find(hfunc, &function);
    if (result != CUDA_SUCCESS)
        return result;
    const int *most = sg_device(function->context->device)->attributes;
    if (x <= 0 || y <= 0 || z <= 0 || x > most[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X] ||
        y > most[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y] ||
        z > most[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z] || !shape_allowed(function, x, y, z))
        return CUDA_ERROR_INVALID_VALUE;
    function->old->block[0] = (unsigned)x;
    function->old->block[1] = (unsigned)y;
    function->old->block[2] = (unsigned)z;
    return CUDA_SUCCESS;
}

CUresult sg_cuFuncSetSharedSize(CUfunction hfunc, unsigned int bytes) {
    struct sg_function *function;
    CUresult result = find(hfunc, &function);
    if (result != CUDA_SUCCESS)
        return result;
    int most = sg_function_value(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    if (bytes > (unsigned)most)
        return CUDA_ERROR_INVALID_VALUE;
    function->old->shared = bytes;
    return CUDA_SUCCESS;
}

CUresult sg_cuParamSetSize(CUfunction hfunc, unsigned int numbytes) {
    struct sg_function *function;
    CUresult result = find(hfunc, &function);
    if (result != CUDA_SUCCESS)
        return result;
    unsigned words = (numbytes + 3) & ~3u; /* overflows as on H200 */
    if (words > SG_PARAMETER_ROOM)
        return CUDA_ERROR_INVALID_VALUE;
    function->old->size = words;
    return CUDA_SUCCESS;
}

static CUresult put(CUfunction hfunc, int offset, const void *bytes, size_t size) {
    struct sg_function *function;
    CUresult result = find(hfunc, &function);
    if (result != CUDA_SUCCESS)
        return result;
    if (!bytes || offset < 0 || size > SG_PARAMETER_ROOM ||
        (size_t)offset > SG_PARAMETER_ROOM - size)
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

/*
 * Accepts a bound reference of the function's module, as recorded (tests/parity, the scenarios
 * first/bound-texture and module/old-texture): H200 refuses any that is not bound. That it must be
 * a module's, and the unit CU_PARAM_TR_DEFAULT, is what the documentation says.
 */
CUresult sg_cuParamSetTexRef(CUfunction hfunc, int texunit, CUtexref hTexRef) {
    struct sg_function *function;
    CUresult result = find(hfunc, &function);
    if (result != CUDA_SUCCESS)
        return result;
    const struct sg_reference *reference = sg_reference_get(hTexRef);
    if (!reference)
        return CUDA_ERROR_INVALID_HANDLE;
    if (texunit != CU_PARAM_TR_DEFAULT || reference->module != function->module ||
        !sg_reference_bound(reference))
        return CUDA_ERROR_INVALID_VALUE;
    const struct sg_image *image = function->module->program->image;
    for (size_t i = 0; i < image->texture_count; i++)
        if (image->textures[i] == reference->name) /* the image's own: see cuModuleGetTexRef */
            function->old->textures[i] = true;
    return CUDA_SUCCESS;
}

/* ---- Launches -------------------------------------------------------------------------------- */

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
                              .extra = extra,
                              .never_captured = true};
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

static void dump(struct sg_text *text) {
    for (const struct sg_module *module = sg_module_first(); module; module = module->next)
        for (size_t i = 0; i < module->program->image->function_count; i++)
            if (module->functions[i].old)
                dump_function(text, &module->functions[i]);
}

const struct sg_chapter sg_launch_chapter = {
    .dump = dump,
    .context_end = {[SG_END_STREAMS] = sg_device_runtime_streams_end,
                    [SG_END_MEMORY] = sg_device_runtime_memory_end},
    .context_free = sg_device_runtime_free,
};
