#include "softgpu/entry/verdict.h"

#include "softgpu/core/config.h"
#include "softgpu/core/job.h"
#include "softgpu/core/verdict.h"
#include "softgpu/entry/fault.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static _Atomic pid_t watched; /* the process that is meant: a forked child inherits its parent's */

static bool fault_missed(void) {
    char text[512];
    if (!sg_fault_missed(text, sizeof text))
        return false;
    sg_log(SG_LOG_WARNING, "%s", text);
    return true;
}

/* The outcome of a job of many processes is decided where all of them are known. */
static int verdict(void) {
    const struct sg_config *config = sg_config();
    if (sg_verdict_is_wrong())
        return SG_EXIT_SETTINGS;
    if (sg_job_known())
        return 0;
    bool missed = fault_missed();
    if (sg_verdict_is_hazard() && config->check_error_exit)
        return config->check_error_exit;
    bool fails =
        (missed && config->fail_on_fault) || (sg_verdict_is_leak() && config->fail_on_leaks);
    return fails ? SG_EXIT_FAILED : 0;
}

/*
 * Calling exit within an exit handler continues with the remaining handlers and the new status,
 * according to Linux's atexit(3); POSIX leaves it open. Calling _exit instead would leave buffers
 * unwritten.
 */
static void at_exit(int status, void *unused) {
    (void)unused;
    if (getpid() != atomic_load(&watched))
        return;
    sg_log_repeat();
    int own = verdict();
    if (own != 0 && status == 0)
        exit(own);
}

void sg_verdict_begin(void) {
    atomic_store(&watched, getpid());
}

void sg_verdict_watch(void) {
    sg_verdict_begin();
    if (on_exit(at_exit, NULL) != 0)
        sg_log(SG_LOG_WARNING,
               "no exit handler can be registered: the end of the process tells nothing");
}
