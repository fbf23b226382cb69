#include "memory/core/current_context.h"

#include "base/log.h"
#include "memory/core/driver_error.h"

/* 1 or 0, or -1 if the driver does not report it. */
static int is_current(const gpumem_device *device) {
    CUcontext now = NULL;
    if (device->cu->cuCtxGetCurrent(&now) != CUDA_SUCCESS)
        return -1;
    return now == device->context;
}

static void pop(const struct gm_current *current) {
    /* If the driver does not report what is current, a second pop might remove the caller's own. */
    int current_now = 1;
    for (int tries = 0; tries < 2 && current_now == 1; tries++) {
        CUcontext popped = NULL;
        if (current->device->cu->cuCtxPopCurrent_v2(&popped) == CUDA_SUCCESS)
            return;
        current_now = is_current(current->device);
    }
    if (current_now != 0)
        gm_log(GPUMEM_LOG_ERROR, "the context of device %d %s current: cuCtxPopCurrent failed",
               current->device->ordinal, current_now == 1 ? "stays" : "may stay");
}

gpumem_status gm_current_enter_strict(struct gm_current *current, gpumem_device *device) {
    const gpumem_driver_api *cu = device->cu;
    CUcontext now = NULL;
    CUresult result = cu->cuCtxGetCurrent(&now);
    if (result != CUDA_SUCCESS)
        return gm_cu_fail(cu, result, "cuCtxGetCurrent", "cannot use device %d", device->ordinal);
    *current = (struct gm_current){
        .device = device, .pushed = now != device->context, .relaxed = GM_NOT_RELAXED};
    if (!current->pushed)
        return GPUMEM_OK;
    result = cu->cuCtxPushCurrent_v2(device->context);
    if (result == CUDA_SUCCESS)
        return GPUMEM_OK;
    /* The driver reports earlier failures through calls that took effect. */
    if (is_current(device) == 1)
        pop(current);
    return gm_cu_fail(cu, result, "cuCtxPushCurrent", "cannot use device %d", device->ordinal);
}

gpumem_status gm_current_enter(struct gm_current *current, gpumem_device *device) {
    gpumem_status status = gm_current_enter_strict(current, device);
    if (status == GPUMEM_OK)
        gm_relax(&current->relaxed, device->cu);
    return status;
}

void gm_current_leave(struct gm_current *current) {
    gm_unrelax(&current->relaxed, current->device->cu);
    if (current->pushed)
        pop(current);
}
