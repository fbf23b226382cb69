/* The primary context of each device: inactive, or active with a count of retains. */
#include "softgpu/context/lifetime.h"
#include "softgpu/core/calls.h"

static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;

/* Another thread may be waiting for the context's last work with the lock released. */
static void wait_until_ended(const struct sg_device *device) {
    while (device->primary && device->primary->ending)
        sg_wait(&ended, 0);
}

static bool active(const struct sg_device *device) {
    return device->primary && device->primary->alive;
}

/* The flags return to their default with it. */
static void end_primary(struct sg_device *device) {
    struct sg_context *context = device->primary;
    context->ending = true;
    sg_context_end(context);
    context->ending = false;
    device->primary_flags = 0;
    pthread_cond_broadcast(&ended);
}

static CUresult activate(struct sg_device *device) {
    if (device->fault != CUDA_SUCCESS)
        return device->fault;
    if (!device->primary)
        device->primary = sg_context_new(device, true);
    if (!device->primary)
        return CUDA_ERROR_OUT_OF_MEMORY;
    return sg_context_begin(device->primary, device->primary_flags | CU_CTX_MAP_HOST, 3020);
}

CUresult sg_cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev) {
    struct sg_device *device = sg_device(dev);
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!pctx)
        return CUDA_ERROR_INVALID_VALUE;
    wait_until_ended(device);
    if (!active(device)) {
        CUresult result = activate(device);
        if (result != CUDA_SUCCESS)
            return result;
    }
    device->primary->uses++;
    *pctx = SG_HANDLE_POINTER(CUcontext, device->primary->handle);
    return CUDA_SUCCESS;
}

/* Retains outlive a reset ("resetting the primary context does not release it"), so an inactive
 * context may have a count above zero. */
CUresult sg_cuDevicePrimaryCtxRelease_v2(CUdevice dev) {
    struct sg_device *device = sg_device(dev);
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    wait_until_ended(device);
    struct sg_context *context = device->primary;
    if (!context || context->uses == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (--context->uses == 0 && context->alive)
        end_primary(device);
    return CUDA_SUCCESS;
}

CUresult sg_cuDevicePrimaryCtxReset_v2(CUdevice dev) {
    struct sg_device *device = sg_device(dev);
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    wait_until_ended(device);
    if (active(device))
        end_primary(device);
    return CUDA_SUCCESS;
}

CUresult sg_cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags) {
    struct sg_device *device = sg_device(dev);
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!sg_context_flags_valid(flags) || (flags & CU_CTX_MAP_HOST))
        return CUDA_ERROR_INVALID_VALUE;
    device->primary_flags = flags;
    if (active(device))
        device->primary->flags = sg_context_flags_kept(flags) | CU_CTX_MAP_HOST;
    return CUDA_SUCCESS;
}

CUresult sg_cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *state) {
    const struct sg_device *device = sg_device(dev);
    if (!flags || !state)
        return CUDA_ERROR_INVALID_VALUE;
    if (!atomic_load(&sg_initialized))
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    *flags = device->primary_flags;
    *state = active(device);
    return CUDA_SUCCESS;
}

/* ---- Before 11.0 ----------------------------------------------------------------------------- */

/* This version silently accepts a release without a matching retain. */
CUresult sg_cuDevicePrimaryCtxRelease(CUdevice dev) {
    CUresult result = sg_cuDevicePrimaryCtxRelease_v2(dev);
    return result == CUDA_ERROR_INVALID_CONTEXT ? CUDA_SUCCESS : result;
}

CUresult sg_cuDevicePrimaryCtxReset(CUdevice dev) {
    return sg_cuDevicePrimaryCtxReset_v2(dev);
}

/* This version refuses while the context is active; the later one changes the flags at once. */
CUresult sg_cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags) {
    const struct sg_device *device = sg_device(dev);
    if (device && sg_context_flags_valid(flags) && active(device))
        return CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE;
    return sg_cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}
