/* A runtime's calls: faults that name them, their lines in the trace and in the error log. */
#include "base/cancel.h"
#include "softgpu/core/config.h"
#include "softgpu/core/runtime_calls.h"
#include "softgpu/core/state.h"
#include "softgpu/core/watch.h"
#include "softgpu/entry/entry.h"
#include "softgpu/entry/fault.h"
#include "softgpu/entry/trace.h"
#include "softgpu/report/error_log.h"

#include <stdlib.h>

/* The error that an injected fault has for the call that this thread is in; 0: none. */
static _Thread_local int fault_after;

const unsigned *sg_runtime_attach(const softgpu_runtime *runtime) {
    GM_UNCANCELLED;
    sg_entry_configure();
    return sg_runtime_add(runtime) ? &sg_runtime_watched : NULL;
}

int sg_runtime_enter(const char *function, int *error) {
    GM_UNCANCELLED;
    fault_after = 0;
    if (atomic_load(&sg_exiting))
        return 1;
    return sg_fault_enter_runtime(function, error, &fault_after);
}

static bool is_refusal(int error) {
    return error != CUDA_SUCCESS && error != CUDA_ERROR_NOT_READY;
}

int sg_runtime_leave(const char *function, const char *arguments, int error) {
    GM_UNCANCELLED;
    unsigned watched = atomic_load_explicit(&sg_watched, memory_order_relaxed);
    if (fault_after && !is_refusal(error)) {
        error = fault_after;
        sg_fault_shows((CUresult)error);
    }
    fault_after = 0;
    bool refused = is_refusal(error) && !sg_runtime_returns_last_error(function);
    if (refused)
        sg_error_log_runtime(function, error);
    if (watched & SG_WATCH_TRACE)
        sg_trace_runtime(function, arguments ? arguments : "", error);
    if ((watched & SG_WATCH_ABORT) && refused) {
        const char *name = sg_runtime_error_name(error);
        sg_log(SG_LOG_ERROR, "%s answered %s; SOFTGPU_ABORT ends the process", function,
               name ? name : "an unknown result");
        abort();
    }
    return error;
}
