/* Parameters of kernel nodes: arguments are laid out by the function, and copied. */
#include "softgpu/graph/nodes.h"
#include "softgpu/image/function.h"

#include <stdlib.h>
#include <string.h>

/* The arguments of a deep copy: kernelParams is `values`, and the bytes lie behind it. */
struct arguments {
    size_t bytes; /* of the whole block */
    unsigned count;
    void *values[];
};

static struct arguments *arguments_of(const CUDA_KERNEL_NODE_PARAMS_v3 *params) {
    char *values = (void *)params->kernelParams;
    return values ? (void *)(values - offsetof(struct arguments, values)) : NULL;
}

static CUresult find_function(const CUDA_KERNEL_NODE_PARAMS_v3 *params,
                              struct sg_function **function) {
    if (params->func)
        return sg_function_from_handle(params->func, function);
    if (!params->kern)
        return CUDA_ERROR_INVALID_VALUE;
    struct sg_context *context;
    CUresult result =
        params->ctx ? sg_context_from_handle(params->ctx, &context) : sg_context_current(&context);
    return result == CUDA_SUCCESS ? sg_function_of_kernel(params->kern, context, function) : result;
}

/* What `extra` lists: a buffer of all arguments and its size. */
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
    return CUDA_SUCCESS;
}

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
    if (result == CUDA_SUCCESS && (!buffer || size < image->parameter_bytes))
        result = CUDA_ERROR_INVALID_VALUE;
    return result;
}

CUresult sg_kernel_params_check(const CUDA_KERNEL_NODE_PARAMS_v3 *params) {
    struct sg_function *function;
    CUresult result = find_function(params, &function);
    if (result != CUDA_SUCCESS)
        return result;
    if (!params->gridDimX || !params->gridDimY || !params->gridDimZ || !params->blockDimX ||
        !params->blockDimY || !params->blockDimZ)
        return CUDA_ERROR_INVALID_VALUE;
    return check_arguments(params, function->image);
}

static CUresult lay_out(struct arguments *made, const CUDA_KERNEL_NODE_PARAMS_v3 *from,
                        const struct sg_image_function *image) {
    const unsigned char *buffer = NULL;
    size_t size = 0;
    if (!from->kernelParams && from->extra) {
        CUresult result = buffer_of(from->extra, &buffer, &size);
        if (result != CUDA_SUCCESS)
            return result;
    }
    unsigned char *bytes = (void *)&made->values[made->count];
    for (unsigned i = 0; i < made->count; i++) {
        const struct sg_parameter *parameter = &image->parameters[i];
        const void *value = from->kernelParams ? from->kernelParams[i]
                            : buffer && parameter->offset + parameter->size <= size
                                ? buffer + parameter->offset
                                : NULL;
        if (!value)
            return CUDA_ERROR_INVALID_VALUE;
        made->values[i] = bytes + parameter->offset;
        memcpy(made->values[i], value, parameter->size);
    }
    return CUDA_SUCCESS;
}

static CUresult copy_deep(CUDA_KERNEL_NODE_PARAMS_v3 *to, const CUDA_KERNEL_NODE_PARAMS_v3 *from) {
    const struct arguments *old = arguments_of(from);
    if (!old)
        return CUDA_SUCCESS;
    struct arguments *made = malloc(old->bytes);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(made, old, old->bytes);
    for (unsigned i = 0; i < made->count; i++)
        made->values[i] = (char *)made + ((const char *)old->values[i] - (const char *)old);
    to->kernelParams = made->values;
    return CUDA_SUCCESS;
}

CUresult sg_kernel_params_copy(CUDA_KERNEL_NODE_PARAMS_v3 *to,
                               const CUDA_KERNEL_NODE_PARAMS_v3 *from, bool deep) {
    if (deep)
        return copy_deep(to, from);
    struct sg_function *function;
    CUresult result = find_function(from, &function);
    if (result != CUDA_SUCCESS)
        return result;
    const struct sg_image_function *image = function->image;
    size_t bytes =
        sizeof(struct arguments) + image->parameter_count * sizeof(void *) + image->parameter_bytes;
    struct arguments *made = malloc(bytes);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made->bytes = bytes;
    made->count = image->parameter_count;
    result = lay_out(made, from, image);
    if (result != CUDA_SUCCESS) {
        free(made);
        return result;
    }
    to->kernelParams = made->count ? made->values : NULL;
    to->extra = NULL;
    if (!made->count)
        free(made);
    return CUDA_SUCCESS;
}

void sg_kernel_params_free(CUDA_KERNEL_NODE_PARAMS_v3 *params) {
    free(arguments_of(params));
}
