#include "softgpu/entry/life.h"

#include "base/cancel.h"
#include "softgpu/checkpoint/gate.h"
#include "softgpu/core/calls.h"
#include "softgpu/core/config.h"
#include "softgpu/core/state.h"
#include "softgpu/device/device.h"
#include "softgpu/entry/entry.h"
#include "softgpu/entry/verdict.h"
#include "softgpu/image/loading.h"
#include "softgpu/memory/memory.h"
#include "softgpu/report/coredump.h"
#include "softgpu/stream/stream.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_bool begun;

bool sg_life_begun(void) {
    return atomic_load(&begun);
}

void sg_leaks_say(char *text, const char *when) {
    if (!text || !text[0]) {
        free(text);
        return;
    }
    sg_verdict_leak();
    unsigned lines = 0;
    for (const char *at = text; *at; at++)
        lines += *at == '\n';
    sg_log_lasting(SG_LOG_WARNING,
                   "%u object%s still live %s; SOFTGPU_TRACE=FILE records all calls:", lines,
                   lines == 1 ? "" : "s", when);
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        sg_log_lasting(SG_LOG_WARNING, "  %s", line);
    free(text);
}

/*
 * Registered by cuInit, so it runs before the handlers that the application registered earlier;
 * those, and destructors, then get CUDA_ERROR_DEINITIALIZED, as on hardware. Threads are left
 * alone: joining one here could wait for a host function that waits for this thread.
 */
static void begin_exit(void) {
    GM_UNCANCELLED;
    bool reachable = !atomic_load(&sg_forked) && !sg_thread()->in_call;
    if (reachable)
        sg_coredumps_write(); /* of a fault that no call has told */
    if (reachable && sg_config()->leaks)
        sg_leaks_say(sg_leak_text(), "at exit");
    atomic_store(&sg_exiting, true);
}

/* Stages that succeeded are kept, so that a second cuInit takes up where the first one failed. */
static CUresult initialize(void) {
    static CUresult (*const stages[])(void) = {sg_devices_init, sg_memory_init,    sg_streams_init,
                                               sg_loading_init, sg_coredumps_init, sg_gate_init};
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
