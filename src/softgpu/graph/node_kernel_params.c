/* Parameters of kernel nodes: arguments are laid out by the function and copied. */
#include "softgpu/graph/nodes.h"
#include "softgpu/launch/launch_run.h"
#include "softgpu/module/occupancy.h"

#include <stdlib.h>
#include <string.h>

/* The arguments of a deep copy: kernelParams is `values`, and the bytes follow it. */
struct arguments {
    size_t block;   /* size of all this in bytes */
    bool packed;    /* they were given as one buffer, and are returned as one */
    size_t given;   /* size of that buffer in bytes */
    void *extra[5]; /* the list that names the buffer */
    unsigned count;
    void *values[];
};

static struct arguments *arguments_of(const CUDA_KERNEL_NODE_PARAMS_v3 *params) {
    char *values = (void *)params->kernelParams;
    return values ? (void *)(values - offsetof(struct arguments, values)) : NULL;
}

/* ---- Functions ------------------------------------------------------------------------------ */

static void find_primary(uint64_t handle, void *object, void *user) {
    (void)handle;
    struct sg_context *context = object, **found = user;
    if (!*found && context->primary && context->alive)
        *found = context;
}

/* The context of a kernel that names none: an H200 takes the primary context of the device if none
 * is current. */
static CUresult context_of_kernel(CUcontext named, struct sg_context **context) {
    if (named)
        return sg_context_from_handle(named, context);
    if (sg_context_peek())
        return sg_context_current(context);
    *context = NULL;
    sg_handle_each(SG_KIND_CONTEXT, find_primary, context);
    return *context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult sg_kernel_params_resolve(CUDA_KERNEL_NODE_PARAMS_v3 *params) {
    struct sg_function *function;
    struct sg_context *context;
    CUresult result = CUDA_ERROR_INVALID_HANDLE;
    if (params->func) { /* here a kernel is not accepted as a function */
        if (sg_handle_get(SG_KIND_FUNCTION, SG_HANDLE_VALUE(params->func)))
            result = sg_function_from_handle(params->func, &function);
        params->kern = NULL;
    } else if (params->kern) {
        result = context_of_kernel(params->ctx, &context);
        if (result == CUDA_SUCCESS)
            result = sg_function_of_kernel(params->kern, context, &function);
    }
    if (result != CUDA_SUCCESS)
        return result;
    params->func = SG_HANDLE_POINTER(CUfunction, function->handle);
    params->ctx = SG_HANDLE_POINTER(CUcontext, function->context->handle);
    return function->context->sticky;
}

/* ---- Checks --------------------------------------------------------------------------------- */

static CUresult check_shape(const CUDA_KERNEL_NODE_PARAMS_v3 *params,
                            const struct sg_function *function) {
    const unsigned grid[] = {params->gridDimX, params->gridDimY, params->gridDimZ};
    const unsigned block[] = {params->blockDimX, params->blockDimY, params->blockDimZ};
    if (!sg_launch_fits(function, grid, block, params->sharedMemBytes) ||
        !sg_launch_as_required(function, block))
        return CUDA_ERROR_INVALID_VALUE;
    unsigned most = sg_occupancy_most_threads(function->image, function->context->device);
    return (uint64_t)block[0] * block[1] * block[2] > most ? CUDA_ERROR_INVALID_VALUE
                                                           : CUDA_SUCCESS;
}

/* What `extra` lists: a buffer with all arguments, and its size. */
static CUresult buffer_of(void *const *extra, const unsigned char **buffer, size_t *size) {
    *buffer = NULL;
    *size = 0;
    for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
            *buffer = extra[1];
        else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[1])
            *size = *(const size_t *)extra[1];
        else
            return CUDA_ERROR_INVALID_VALUE;
    }
    return *buffer || *size == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* A buffer may be shorter than the parameters, but not longer. */
static CUresult check_arguments(const CUDA_KERNEL_NODE_PARAMS_v3 *params,
                                const struct sg_image_function *image) {
    if (params->kernelParams && params->extra)
        return CUDA_ERROR_INVALID_VALUE;
    if (image->parameter_count == 0 || params->kernelParams)
        return CUDA_SUCCESS;
    const unsigned char *buffer;
    size_t size;
    CUresult result =
        params->extra ? buffer_of(params->extra, &buffer, &size) : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && size > image->parameter_bytes)
        result = CUDA_ERROR_INVALID_VALUE;
    return result;
}

CUresult sg_kernel_params_check(const CUDA_KERNEL_NODE_PARAMS_v3 *params) {
    struct sg_function *function;
    CUresult result =
        params->func ? sg_function_from_handle(params->func, &function) : CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS)
        result = check_shape(params, function);
    if (result == CUDA_SUCCESS)
        result = check_arguments(params, function->image);
    /* As recorded: what a reference is bound to is no argument. */
    return result == CUDA_SUCCESS && sg_launch_has_references(function) ? CUDA_ERROR_NOT_SUPPORTED
                                                                        : result;
}

/* ---- Deep copies ---------------------------------------------------------------------------- */

/* Pointers into the block itself. */
static void point(struct arguments *made, const struct sg_image_function *image) {
    unsigned char *bytes = (void *)&made->values[made->count];
    for (unsigned i = 0; i < made->count; i++)
        made->values[i] = bytes + image->parameters[i].offset;
    void *const extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, bytes, CU_LAUNCH_PARAM_BUFFER_SIZE,
                           &made->given, CU_LAUNCH_PARAM_END};
    memcpy(made->extra, extra, sizeof extra);
}

static CUresult fill(struct arguments *made, const CUDA_KERNEL_NODE_PARAMS_v3 *from,
                     const struct sg_image_function *image) {
    const unsigned char *buffer;
    if (!from->kernelParams) {
        CUresult result = buffer_of(from->extra, &buffer, &made->given);
        made->packed = true;
        if (result == CUDA_SUCCESS && made->given > 0)
            memcpy(&made->values[made->count], buffer, made->given);
        return result;
    }
    for (unsigned i = 0; i < made->count; i++) {
        if (!from->kernelParams[i])
            return CUDA_ERROR_INVALID_VALUE;
        memcpy(made->values[i], from->kernelParams[i], image->parameters[i].size);
    }
    return CUDA_SUCCESS;
}

static CUresult copy_deep(CUDA_KERNEL_NODE_PARAMS_v3 *to, const CUDA_KERNEL_NODE_PARAMS_v3 *from) {
    const struct arguments *old = arguments_of(from);
    if (!old)
        return CUDA_SUCCESS;
    struct arguments *made = malloc(old->block);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(made, old, old->block);
    for (unsigned i = 0; i < made->count; i++)
        made->values[i] = (char *)made + ((const char *)old->values[i] - (const char *)old);
    made->extra[1] = &made->values[made->count];
    made->extra[3] = &made->given;
    to->kernelParams = made->values;
    return CUDA_SUCCESS;
}

CUresult sg_kernel_params_copy(CUDA_KERNEL_NODE_PARAMS_v3 *to,
                               const CUDA_KERNEL_NODE_PARAMS_v3 *from, bool deep) {
    if (deep)
        return copy_deep(to, from);
    struct sg_function *function;
    CUresult result = sg_function_from_handle(from->func, &function);
    if (result == CUDA_SUCCESS)
        result = check_arguments(from, function->image);
    if (result != CUDA_SUCCESS)
        return result;
    const struct sg_image_function *image = function->image;
    to->kernelParams = to->extra = NULL;
    if (image->parameter_count == 0)
        return CUDA_SUCCESS;
    size_t block =
        sizeof(struct arguments) + image->parameter_count * sizeof(void *) + image->parameter_bytes;
    struct arguments *made = calloc(1, block);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made->block = block;
    made->count = image->parameter_count;
    point(made, image);
    result = fill(made, from, image);
    if (result == CUDA_SUCCESS)
        to->kernelParams = made->values;
    else
        free(made);
    return result;
}

void sg_kernel_params_free(CUDA_KERNEL_NODE_PARAMS_v3 *params) {
    free(arguments_of(params));
}

CUDA_KERNEL_NODE_PARAMS_v3 sg_kernel_params_given(const CUDA_KERNEL_NODE_PARAMS_v3 *params) {
    CUDA_KERNEL_NODE_PARAMS_v3 given = *params;
    struct arguments *arguments = arguments_of(params);
    if (arguments && arguments->packed) {
        given.kernelParams = NULL;
        given.extra = arguments->extra;
    }
    return given;
}
