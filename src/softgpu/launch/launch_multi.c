/*
 * cuLaunchCooperativeKernelMultiDevice: a kernel on each of several devices. Unless flags disable
 * this, none begins before all streams have reached it, and later work in any of the streams waits
 * for all kernels.
 */
#include "softgpu/core/calls.h"
#include "softgpu/core/config.h"
#include "softgpu/device/device.h"
#include "softgpu/launch/launch_run.h"
#include "softgpu/stream/capture.h"
#include "softgpu/stream/schedule.h"

#define NO_SYNC_BEFORE CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_PRE_LAUNCH_SYNC
#define NO_SYNC_AFTER  CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_POST_LAUNCH_SYNC
#define FLAGS          ((unsigned)NO_SYNC_BEFORE | (unsigned)NO_SYNC_AFTER)

struct part {
    struct sg_stream *stream;
    struct sg_function *function;
    struct sg_op *op, *after; /* `after` waits for the others' ends; NULL if disabled */
};

/* ---- Checks ---------------------------------------------------------------------------------- */

/* A default stream does not belong to any device in particular. */
static CUresult find_stream(CUstream handle, struct sg_stream **stream) {
    if (!sg_handle_get(SG_KIND_STREAM, SG_HANDLE_VALUE(handle)))
        return CUDA_ERROR_INVALID_HANDLE;
    return sg_stream_from_handle(handle, stream);
}

static struct sg_launch launch_of(const CUDA_LAUNCH_PARAMS *one) {
    return (struct sg_launch){.grid = {one->gridDimX, one->gridDimY, one->gridDimZ},
                              .block = {one->blockDimX, one->blockDimY, one->blockDimZ},
                              .shared = one->sharedMemBytes,
                              .stream = one->hStream,
                              .params = one->kernelParams,
                              .cooperative = true};
}

static CUresult find_parts(const CUDA_LAUNCH_PARAMS *list, unsigned count, struct part *parts) {
    bool seen[SG_MAX_DEVICES] = {false};
    for (unsigned i = 0; i < count; i++) {
        struct sg_stream *stream;
        CUresult result = find_stream(list[i].hStream, &stream);
        if (result != CUDA_SUCCESS)
            return result;
        if (seen[stream->context->device])
            return CUDA_ERROR_INVALID_VALUE;
        seen[stream->context->device] = true;
        parts[i].stream = stream; /* at most one per device, so there is room */
    }
    for (unsigned i = 0; i < count; i++) {
        const struct sg_launch launch = launch_of(&list[i]);
        CUresult result = sg_function_from_handle(list[i].function, &parts[i].function);
        if (result == CUDA_SUCCESS)
            result = sg_launch_check(parts[i].function, &launch);
        if (result != CUDA_SUCCESS)
            return result;
    }
    return CUDA_SUCCESS;
}

/* ---- Launching ------------------------------------------------------------------------------- */

/* The operation of a part waits for the work that precedes the others. */
static bool wait_before(struct part *parts, unsigned count, unsigned number) {
    bool room = true;
    for (unsigned i = 0; i < count && room; i++)
        if (i != number)
            room = sg_op_wait_for(parts[number].op,
                                  (struct sg_token){parts[i].stream, parts[i].stream->submitted});
    return room;
}

/* A marker after it waits for the others; each is the next operation of its stream. */
static bool wait_after(struct part *parts, unsigned count, unsigned number) {
    struct sg_op *after = parts[number].after = sg_op_new(NULL);
    bool room = after != NULL;
    for (unsigned i = 0; i < count && room; i++)
        if (i != number)
            room = sg_op_wait_for(
                after, (struct sg_token){parts[i].stream, parts[i].stream->submitted + 1});
    return room;
}

static CUresult make_part(const CUDA_LAUNCH_PARAMS *list, struct part *parts, unsigned count,
                          unsigned number, unsigned flags) {
    struct part *part = &parts[number];
    const struct sg_launch launch = launch_of(&list[number]);
    if (part->function->context != sg_context_owner(part->stream->context))
        return CUDA_ERROR_INVALID_HANDLE;
    if (part->stream->capture)
        return sg_capture_refuse(part->stream);
    CUresult result = sg_launch_make(part->function, &launch, &part->op);
    if (result != CUDA_SUCCESS)
        return result;
    bool before = !(flags & NO_SYNC_BEFORE), after = !(flags & NO_SYNC_AFTER) && count > 1;
    bool room = (!before || wait_before(parts, count, number)) &&
                (!after || wait_after(parts, count, number));
    return room ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* The waits of the default-stream rules come last, because they then count as done. */
static CUresult make_parts(const CUDA_LAUNCH_PARAMS *list, struct part *parts, unsigned count,
                           unsigned flags) {
    CUresult result = CUDA_SUCCESS;
    for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++)
        result = make_part(list, parts, count, i, flags);
    for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++)
        if (!sg_default_stream_waits(parts[i].stream, parts[i].op))
            result = CUDA_ERROR_OUT_OF_MEMORY;
    return result;
}

static void discard(const struct part *parts, unsigned count) {
    for (unsigned i = count; i-- > 0;) {
        if (parts[i].op)
            sg_launch_discard(parts[i].op);
        if (parts[i].after)
            sg_op_free(parts[i].after);
    }
}

static void queue(const struct part *parts, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        sg_stream_enqueue(parts[i].stream, parts[i].op);
        if (parts[i].after)
            sg_stream_enqueue(parts[i].stream, parts[i].after);
    }
    sg_workers_later();
}

/* CUDA_LAUNCH_BLOCKING. The lock is released meanwhile: only the tokens last. */
static CUresult wait_for(const struct part *parts, unsigned count) {
    struct sg_token tokens[SG_MAX_DEVICES];
    CUresult result = CUDA_SUCCESS;
    for (unsigned i = 0; i < count; i++)
        tokens[i] = sg_stream_token(parts[i].stream);
    for (unsigned i = 0; i < count; i++) {
        CUresult one = sg_token_wait(tokens[i]);
        result = result == CUDA_SUCCESS ? one : result;
        sg_token_release(&tokens[i]);
    }
    return result;
}

CUresult sg_cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *launchParamsList,
                                                 unsigned int numDevices, unsigned int flags) {
    struct part parts[SG_MAX_DEVICES] = {{.op = NULL}};
    if (!launchParamsList || numDevices == 0 || (flags & ~FLAGS))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = find_parts(launchParamsList, numDevices, parts);
    if (result != CUDA_SUCCESS)
        return result;
    if (!sg_config()->kernels)
        return sg_launch_refuse(parts[numDevices - 1].function);
    result = make_parts(launchParamsList, parts, numDevices, flags);
    if (result == CUDA_SUCCESS)
        queue(parts, numDevices);
    else
        discard(parts, numDevices);
    if (result != CUDA_SUCCESS)
        return result;
    sg_schedule_chance();
    return sg_launches_block() ? wait_for(parts, numDevices) : CUDA_SUCCESS;
}
