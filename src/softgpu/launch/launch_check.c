#include "softgpu/launch/launch.h"
#include "softgpu/launch/launch_run.h"

#include "softgpu/core/calls.h"
#include "softgpu/core/config.h"
#include "softgpu/device/device.h"
#include "softgpu/module/occupancy.h"
#include "softgpu/stream/capture.h"

#include <stdlib.h>
#include <string.h>

static bool within(const struct sg_device *device, const unsigned size[3],
                   CUdevice_attribute first) {
    for (int i = 0; i < 3; i++)
        if (size[i] == 0 || size[i] > (unsigned)device->attributes[(int)first + i])
            return false;
    return true;
}

bool sg_launch_fits(const struct sg_function *function, const unsigned grid[3],
                    const unsigned block[3], unsigned shared) {
    const struct sg_device *device = sg_device(function->context->device);
    int most = sg_function_value(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    return within(device, grid, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X) &&
           within(device, block, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X) && shared <= (unsigned)most;
}

static uint64_t threads_of(const struct sg_launch *launch) {
    return (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];
}

/* A block of 1 x 1 x 1 stands for the shape that the function requires. */
bool sg_launch_as_required(const struct sg_function *function, const unsigned block[3]) {
    const unsigned *required = function->image->required_threads;
    bool one = block[0] == 1 && block[1] == 1 && block[2] == 1;
    return required[0] == 0 || one ||
           (block[0] == required[0] && block[1] == required[1] && block[2] == required[2]);
}

static CUresult check_shape(const struct sg_function *function, const struct sg_launch *launch) {
    const struct sg_image_function *image = function->image;
    int device = function->context->device;
    if (!sg_launch_fits(function, launch->grid, launch->block, launch->shared) ||
        !sg_launch_as_required(function, launch->block) ||
        threads_of(launch) > sg_occupancy_allowed_threads(image, device))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

static CUresult check_registers(const struct sg_function *function,
                                const struct sg_launch *launch) {
    return threads_of(launch) >
                   sg_occupancy_most_threads(function->image, function->context->device)
               ? CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
               : CUDA_SUCCESS;
}

/* `extra`: a buffer and its size, which may be smaller than the parameters. */
static CUresult check_extra(const struct sg_function *function, void *const *extra) {
    const void *buffer = NULL;
    const size_t *size = NULL;
    for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = extra[1];
        else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
            size = extra[1];
        else
            return CUDA_ERROR_INVALID_VALUE;
    }
    bool needed = function->image->parameter_count > 0;
    if (!buffer || !size)
        return needed ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    return *size > SG_PARAMETER_ROOM ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult check_parameters(const struct sg_function *function,
                                 const struct sg_launch *launch) {
    /* An H200 accepts both if the list of the second is empty. */
    if (launch->params && launch->extra && *launch->extra != CU_LAUNCH_PARAM_END)
        return CUDA_ERROR_INVALID_VALUE;
    if (launch->extra && !launch->params)
        return check_extra(function, launch->extra);
    for (unsigned i = 0; i < function->image->parameter_count; i++)
        if (!launch->params || !launch->params[i])
            return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

/* All blocks of a cooperative launch are resident at the same time. Too few registers even for a
 * single one are TOO_LARGE too, as recorded (tests/parity, the scenario first/launches). */
CUresult sg_launch_check_cooperative(const struct sg_function *function,
                                     const struct sg_launch *launch) {
    const struct sg_device *device = sg_device(function->context->device);
    uint64_t blocks = sg_occupancy_blocks(function->image, device->ordinal,
                                          (unsigned)threads_of(launch), launch->shared, -1);
    blocks *= (unsigned)device->attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT];
    uint64_t wanted = (uint64_t)launch->grid[0] * launch->grid[1];
    return wanted > blocks || wanted * launch->grid[2] > blocks
               ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
               : CUDA_SUCCESS;
}

/* A launch cannot request a cluster other than the one its function requires. */
CUresult sg_launch_check_cluster(const struct sg_function *function,
                                 const struct sg_launch *launch) {
    struct sg_cluster cluster;
    CUresult result = sg_cluster_read(launch->attributes, launch->attribute_count, &cluster);
    if (result != CUDA_SUCCESS)
        return result;
    for (int i = 0; i < 3 && cluster.given; i++)
        if (function->image->cluster[0] && cluster.size[i] != function->image->cluster[i])
            return CUDA_ERROR_INVALID_VALUE;
    return sg_cluster_check(function, launch->grid, &cluster);
}

/* Of local memory a thread can have less than 512 KiB: an H200 loads more, and launches 523,264. */
#define LOCAL_END (UINT32_C(512) << 10)

static CUresult check(const struct sg_function *function, const struct sg_launch *launch) {
    bool cooperative = launch->cooperative;
    CUresult result =
        sg_attributes_check(launch->attributes, launch->attribute_count, &cooperative);
    if (result == CUDA_SUCCESS && function->image->local >= LOCAL_END)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = check_shape(function, launch);
    if (result == CUDA_SUCCESS && !cooperative)
        result = check_registers(function, launch);
    if (result == CUDA_SUCCESS)
        result = sg_launch_check_cluster(function, launch);
    if (result == CUDA_SUCCESS && cooperative)
        result = sg_launch_check_cooperative(function, launch);
    return result;
}

/* Of a cooperative launch: shared memory that the device has and the function was not allowed. */
static bool asks_for_too_much(const struct sg_function *function, const struct sg_launch *launch) {
    const int *has = sg_device(function->context->device)->attributes;
    struct sg_launch less = *launch;
    less.shared = 0;
    return launch->cooperative &&
           launch->shared <= (unsigned)has[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN] &&
           check(function, &less) == CUDA_SUCCESS;
}

CUresult sg_launch_check(const struct sg_function *function, const struct sg_launch *launch) {
    CUresult result = check_parameters(function, launch);
    return result == CUDA_SUCCESS ? check(function, launch) : result;
}

/* The attributes go to the node; those that nodes do not have concern streams. */
static bool keep_attributes(CUgraphNode node, const struct sg_launch *launch) {
    CUlaunchAttributeValue cooperative = {.cooperative = 1};
    bool kept = true;
    for (unsigned i = 0; i < launch->attribute_count && kept; i++)
        kept = sg_capture_graphs->set_attribute(node, launch->attributes[i].id,
                                                &launch->attributes[i].value);
    if (launch->cooperative && kept)
        kept =
            sg_capture_graphs->set_attribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &cooperative);
    return kept;
}

static bool serializes_programmatically(const struct sg_launch *launch) {
    for (unsigned i = 0; i < launch->attribute_count; i++)
        if (launch->attributes[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
            return launch->attributes[i].value.programmaticStreamSerializationAllowed != 0;
    return false;
}

/* The edges that CUDA's programming guide names for these events; H200 shows the first. */
static CUevent event_of(const CUlaunchAttribute *attribute, CUgraphEdgeData *data) {
    const CUlaunchAttributeValue *value = &attribute->value;
    *data = (CUgraphEdgeData){.from_port = CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER};
    if (attribute->id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT)
        return value->launchCompletionEvent.event;
    if (attribute->id != CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT)
        return NULL;
    data->type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
    if (!value->programmaticEvent.triggerAtBlockStart)
        data->from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
    return value->programmaticEvent.event;
}

static bool record_events(struct sg_stream *stream, CUgraphNode node,
                          const struct sg_launch *launch) {
    for (unsigned i = 0; i < launch->attribute_count; i++) {
        CUgraphEdgeData data;
        struct sg_event *event = sg_event_get(event_of(&launch->attributes[i], &data));
        if (event && !sg_capture_record_node(event, stream, node, &data))
            return false;
    }
    return true;
}

/* Applies all effects of the launch to the capture. If memory runs out the capture is invalidated,
 * because a graph with half a launch would be another program. */
static CUresult complete(struct sg_stream *stream, CUgraphNode node,
                         const struct sg_launch *launch) {
    if (keep_attributes(node, launch) && record_events(stream, node, launch))
        return CUDA_SUCCESS;
    sg_capture_invalidate(stream->capture);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult capture(struct sg_stream *stream, const struct sg_function *function,
                        const struct sg_launch *launch) {
    CUgraphNode node;
    struct sg_dependencies before = {0};
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
    if (!sg_dependencies_copy(&before, &stream->dependencies)) {
        sg_dependencies_clear(&before);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (serializes_programmatically(launch))
        sg_capture_serialize_programmatically(stream);
    CUresult result = sg_capture_node_at(stream, &params, &node);
    if (result == CUDA_SUCCESS) {
        result = complete(stream, node, launch);
    } else {
        sg_dependencies_clear(&stream->dependencies);
        stream->dependencies = before;
        before = (struct sg_dependencies){0};
    }
    sg_dependencies_clear(&before);
    return result;
}

/* CUDA_LAUNCH_BLOCKING: a launch waits for its kernel. */
static bool blocking;

CUresult sg_launches_init(void) {
    const char *set = secure_getenv("CUDA_LAUNCH_BLOCKING");
    blocking = set && strcmp(set, "0") != 0;
    return CUDA_SUCCESS;
}

bool sg_launches_block(void) {
    return blocking;
}

/* As recorded, whatever the attribute's value: without a capture a launch has no node. */
static bool is_for_a_node(const struct sg_launch *launch) {
    for (unsigned i = 0; i < launch->attribute_count; i++)
        if (launch->attributes[i].id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE)
            return true;
    return false;
}

/* Attributes count as much as the function that was called. */
static CUresult run(struct sg_stream *stream, struct sg_function *function,
                    const struct sg_launch *given) {
    struct sg_launch launch = *given;
    CUresult result =
        sg_attributes_check(launch.attributes, launch.attribute_count, &launch.cooperative);
    if (result != CUDA_SUCCESS)
        return result;
    if (is_for_a_node(given))
        return CUDA_ERROR_NOT_SUPPORTED;
    if (serializes_programmatically(given))
        launch.early = SG_EARLY_TRIGGERED;
    launch.has_priority =
        sg_attributes_priority(launch.attributes, launch.attribute_count, &launch.priority);
    result = sg_launch_run(stream, function, &launch);
    if (result != CUDA_SUCCESS || !blocking)
        return result;
    struct sg_token token = sg_stream_token(stream);
    result = sg_token_wait(token);
    sg_token_release(&token);
    return result;
}

CUresult sg_launch_refuse(struct sg_function *function) {
    const struct sg_image *image = function->module->program->image;
    if (!function->refusal_said)
        sg_log(SG_LOG_WARNING,
               "kernel %s was not launched: SOFTGPU_KERNELS=0 is set, and its image holds %s",
               function->image->name,
               image->source == SG_IMAGE_PTX ? "PTX" : "machine code without PTX");
    function->refusal_said = true;
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult sg_launch(CUfunction handle, const struct sg_launch *launch) {
    struct sg_context *context;
    struct sg_function *function;
    struct sg_stream *stream;
    CUresult result = sg_context_current(&context);
    if (result == CUDA_SUCCESS)
        result = sg_function_from_handle(handle, &function);
    if (result == CUDA_SUCCESS && function->context != context)
        result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS)
        result = sg_stream_from_handle(launch->stream, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    bool captures = stream->capture && !launch->never_captured;
    if (captures)
        result = sg_capture_valid(stream);
    /* Arguments are checked first: if they are missing, an H200's capture continues. */
    if (result == CUDA_SUCCESS) {
        CUresult missing = check_parameters(function, launch);
        if (missing != CUDA_SUCCESS)
            return missing;
        result = check(function, launch);
        if (result == CUDA_ERROR_INVALID_VALUE && !captures && asks_for_too_much(function, launch))
            result = CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    }
    if (result != CUDA_SUCCESS) {
        if (captures)
            sg_capture_invalidate(stream->capture);
        return result;
    }
    if (captures && sg_launch_has_references(function)) {
        sg_capture_invalidate(stream->capture);
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (captures)
        return capture(stream, function, launch);
    return sg_config()->kernels ? run(stream, function, launch) : sg_launch_refuse(function);
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
