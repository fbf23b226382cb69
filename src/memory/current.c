#include "memory/current.h"

#include "base/log.h"
#include "memory/driver_error.h"

static int is_current(const gpumem_device *device) {
    CUcontext now = NULL;
    return device->cu->cuCtxGetCurrent(&now) == CUDA_SUCCESS && now == device->context;
}

gpumem_status gm_current_enter(struct gm_current *current, gpumem_device *device) {
    const gpumem_driver_api *cu = device->cu;
    CUcontext now = NULL;
    CUresult result = cu->cuCtxGetCurrent(&now);
    if (result != CUDA_SUCCESS)
        return gm_cu_fail(cu, result, "cuCtxGetCurrent", "cannot use device %d", device->ordinal);
    *current = (struct gm_current){.device = device, .pushed = now != device->context};
    if (!current->pushed)
        return GPUMEM_OK;
    result = cu->cuCtxPushCurrent_v2(device->context);
    if (result == CUDA_SUCCESS)
        return GPUMEM_OK;
    /* The driver reports earlier failures through calls that did their work. */
    if (is_current(device))
        gm_current_leave(current);
    return gm_cu_fail(cu, result, "cuCtxPushCurrent", "cannot use device %d", device->ordinal);
}

void gm_current_leave(struct gm_current *current) {
    if (!current->pushed)
        return;
    CUcontext popped = NULL;
    CUresult result = current->device->cu->cuCtxPopCurrent_v2(&popped);
    if (result != CUDA_SUCCESS && is_current(current->device))
        result = current->device->cu->cuCtxPopCurrent_v2(&popped);
    else
        return;
    if (result != CUDA_SUCCESS)
        gm_log(GPUMEM_LOG_ERROR, "the context of device %d stays current: cuCtxPopCurrent failed",
               current->device->ordinal);
}
