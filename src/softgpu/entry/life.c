#include "softgpu/entry/life.h"

#include "base/cancel.h"
#include "softgpu/address/memory.h"
#include "softgpu/check/check.h"
#include "softgpu/checkpoint/gate.h"
#include "softgpu/core/calls.h"
#include "softgpu/core/config.h"
#include "softgpu/core/state.h"
#include "softgpu/core/text.h"
#include "softgpu/core/verdict.h"
#include "softgpu/coredump/coredump.h"
#include "softgpu/device/device.h"
#include "softgpu/entry/entry.h"
#include "softgpu/entry/verdict.h"
#include "softgpu/launch/device_output.h"
#include "softgpu/launch/kernel_profile.h"
#include "softgpu/launch/launch.h"
#include "softgpu/module/loading.h"
#include "softgpu/stream/stream.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_bool begun;

bool sg_life_begun(void) {
    return atomic_load(&begun);
}

static void say_leaks(void) {
    sg_lock();
    unsigned kinds = sg_config()->leak_kinds;
    char *text = sg_text_of_leaks(&kinds, 0, NULL, NULL);
    sg_unlock();
    sg_leaks_say(text, kinds, "at exit");
}

/*
 * Registered by cuInit, so it runs before the handlers that the application registered earlier;
 * those, and destructors, then get CUDA_ERROR_DEINITIALIZED, as on hardware. Threads are left
 * alone: joining one here could wait for a host function that waits for this thread.
 */
static void begin_exit(void) {
    GM_UNCANCELLED;
    bool reachable = !atomic_load(&sg_forked) && !sg_thread()->in_call;
    if (reachable) {
        sg_coredumps_write(); /* for a fault that no call has reported */
        sg_output_write();
    }
    if (reachable)
        sg_profile_write();
    if (reachable && sg_config()->leaks)
        say_leaks();
    if (reachable && sg_config()->checks) {
        sg_lock();
        sg_check_finish();
        sg_unlock();
    }
    atomic_store(&sg_exiting, true);
}

/* Completed stages are kept, so that a second cuInit continues where the first one failed. */
static CUresult initialize(void) {
    static CUresult (*const stages[])(void) = {sg_devices_init, sg_memory_init,   sg_streams_init,
                                               sg_loading_init, sg_launches_init, sg_coredumps_init,
                                               sg_gate_init};
    static unsigned done;
    while (done < sizeof stages / sizeof stages[0]) {
        CUresult result = stages[done]();
        if (result != CUDA_SUCCESS)
            return result;
        done++;
    }
    return atexit(begin_exit) == 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sg_cuInit(unsigned int Flags) {
    if (Flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (atomic_load(&sg_initialized))
        return CUDA_SUCCESS;
    if (sg_verdict_is_wrong())
        return CUDA_ERROR_SYSTEM_NOT_READY;
    atomic_store(&begun, true);
    sg_verdict_begin();
    CUresult result = initialize();
    atomic_store(result == CUDA_SUCCESS ? &sg_initialized : &begun, result == CUDA_SUCCESS);
    return result;
}

CUresult sg_cuDriverGetVersion(int *driverVersion) {
    if (!driverVersion)
        return CUDA_ERROR_INVALID_VALUE;
    *driverVersion = sg_driver_version();
    return CUDA_SUCCESS;
}
