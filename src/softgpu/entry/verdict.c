#include "softgpu/entry/verdict.h"

#include "softgpu/core/config.h"
#include "softgpu/core/state.h"
#include "softgpu/device/profile.h"
#include "softgpu/entry/fault.h"
#include "softgpu/entry/job.h"
#include "softgpu/entry/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Atomic pid_t watched; /* the process whose end is meant: a forked child has its parent's */
static atomic_bool wrong, leaked;

static bool fault_missed(void) {
    char text[512];
    if (!sg_fault_missed(text, sizeof text))
        return false;
    sg_log(SG_LOG_WARNING, "%s", text);
    return true;
}

/* What becomes of a job of many processes is decided where all of them are known. */
static int verdict(void) {
    const struct sg_config *config = sg_config();
    if (atomic_load(&wrong))
        return SG_EXIT_SETTINGS;
    if (sg_job_known())
        return 0;
    bool missed = fault_missed();
    bool fails =
        (missed && config->fail_on_fault) || (atomic_load(&leaked) && config->fail_on_leaks);
    return fails ? SG_EXIT_FAILED : 0;
}

/*
 * exit within an exit handler goes on with the handlers that are left, with the new status: so says
 * Linux's atexit(3); POSIX leaves it open. Calling _exit instead would leave buffers unwritten.
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

/* ---- Beforehand ------------------------------------------------------------------------------ */

struct lines {
    char *text;
    size_t size, used;
    int count;
};

static void add(struct lines *lines, const char *line) {
    lines->count++;
    int length = snprintf(lines->text + lines->used, lines->size - lines->used, "%s\n", line);
    if (length > 0 && (size_t)length < lines->size - lines->used)
        lines->used += (size_t)length;
    else
        lines->text[lines->used] = '\0';
}

int sg_settings_check(char *text, size_t size) {
    static struct sg_profile profile;
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    struct lines lines = {.text = text, .size = size};
    struct sg_config config;
    struct sg_complaints complaints;
    char message[1024];
    text[0] = '\0';
    sg_config_examine(&config, &complaints);
    for (unsigned i = 0; i < complaints.count; i++)
        add(&lines, complaints.text[i]);
    if (config.fault && !sg_fault_understood(config.fault, message, sizeof message))
        add(&lines, message);
    if (config.trace && !sg_trace_possible(config.trace, message, sizeof message))
        add(&lines, message);
    pthread_mutex_lock(&one_at_a_time);
    if (!sg_profile_load(&profile, config.profile, message, sizeof message))
        add(&lines, message);
    pthread_mutex_unlock(&one_at_a_time);
    return lines.count;
}
