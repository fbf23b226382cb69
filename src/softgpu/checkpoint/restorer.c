/*
 * The restore thread: takes its process from CHECKPOINTED to LOCKED at the request of the restoring
 * process, so that a tool that has stopped a process can restore it by letting only this thread
 * run, as with the hardware driver. It takes no lock and makes no driver call: it needs only the
 * control file.
 */
#include "softgpu/checkpoint/gate.h"

#include "base/thread.h"
#include "softgpu/checkpoint/futex.h"
#include "softgpu/core/config.h"

#define STACK ((size_t)256 << 10)
/* Only a request wakes it. */
#define LONG ((uint64_t)3600 * 1000000000u)

static void *restore(void *argument) {
    struct sg_control *control = argument;
    atomic_store(&control->restorer, (uint32_t)syscall(SYS_gettid));
    sg_futex_wake(&control->restorer);
    for (;;) {
        uint32_t requests = atomic_load(&control->requests), from = SG_STATE_RESTORING;
        if (atomic_compare_exchange_strong(&control->state, &from, CU_PROCESS_STATE_LOCKED))
            sg_futex_wake(&control->state);
        sg_futex_wait(&control->requests, requests, LONG);
    }
    return NULL;
}

void sg_restorer_start(struct sg_control *control) {
    atomic_store(&control->restorer, SG_RESTORER_STARTS);
    if (gm_thread_start(NULL, STACK, restore, control) != 0) {
        atomic_store(&control->restorer, 0);
        sg_log(SG_LOG_WARNING, "no restore thread: who restores this process does it itself");
    }
}
