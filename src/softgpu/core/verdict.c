#include "softgpu/core/verdict.h"

#include "softgpu/core/config.h"
#include "softgpu/core/job.h"

#include <stdatomic.h>

static atomic_bool wrong, leaked, hazard;

void sg_verdict_wrong(const char *text) {
    atomic_store(&wrong, true);
    sg_log_lasting(SG_LOG_ERROR, "%s", text);
}

bool sg_verdict_is_wrong(void) {
    return atomic_load(&wrong);
}

void sg_verdict_leak(void) {
    atomic_store(&leaked, true);
    sg_job_note(SG_JOB_LEAK);
}

bool sg_verdict_is_leak(void) {
    return atomic_load(&leaked);
}

void sg_verdict_hazard(void) {
    atomic_store(&hazard, true);
    sg_job_note(SG_JOB_HAZARD);
}

bool sg_verdict_is_hazard(void) {
    return atomic_load(&hazard);
}
