#include "softgpu/entry/fault.h"

#include "softgpu/context/context.h"
#include "softgpu/core/config.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Not the global lock: a refused call must not wait for one that runs. */
static pthread_mutex_t fault_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    bool armed;
    gpumem_driver_fn fn; /* GPUMEM_FN_COUNT: any */
    uint64_t n;          /* 0: every call */
    CUresult error;
    softgpu_fault_mode mode;
    uint64_t seen, fired;
    bool poisoned; /* SOFTGPU_FAULT_FROM has begun */
} fault;

bool sg_fault_arm(const char *function, uint64_t n, int error, softgpu_fault_mode mode) {
    gpumem_driver_fn fn = GPUMEM_FN_COUNT;
    if (!function || mode < SOFTGPU_FAULT_BEFORE || mode > SOFTGPU_FAULT_STICKY)
        return false;
    if (strcmp(function, "*") != 0) {
        fn = sg_row_find(function);
        if (fn == GPUMEM_FN_COUNT)
            return false;
    }
    pthread_mutex_lock(&fault_lock);
    fault.armed = true;
    fault.fn = fn;
    fault.n = n;
    fault.error = (CUresult)error;
    fault.mode = mode;
    fault.seen = fault.fired = 0;
    fault.poisoned = false;
    pthread_mutex_unlock(&fault_lock);
    sg_watch(SG_WATCH_FAULT, true);
    return true;
}

uint64_t sg_fault_disarm(void) {
    sg_watch(SG_WATCH_FAULT, false);
    pthread_mutex_lock(&fault_lock);
    uint64_t fired = fault.armed ? fault.fired : 0;
    fault.armed = false;
    pthread_mutex_unlock(&fault_lock);
    return fired;
}

/* The n-th call, or any later one of a fault that stays. With the fault's lock. */
static bool hits(gpumem_driver_fn fn, bool counted) {
    if (!fault.armed)
        return false;
    if (fault.poisoned)
        return counted;
    bool meant = fault.fn == GPUMEM_FN_COUNT ? counted : fault.fn == fn;
    if (!meant)
        return false;
    fault.seen++;
    if (fault.n != 0 && fault.seen != fault.n)
        return false;
    fault.poisoned = fault.mode == SOFTGPU_FAULT_FROM;
    return true;
}

/* What a device fault that shows in this call would do to the current context. */
static void poison_current(CUresult error) {
    sg_lock();
    struct sg_context *context = sg_context_peek();
    if (context)
        sg_context_fault(context, error);
    sg_unlock();
}

bool sg_fault_enter(struct sg_call *call, bool counted, CUresult *result) {
    bool go_on = true, poisons = false;
    pthread_mutex_lock(&fault_lock);
    if (hits(call->fn, counted)) {
        fault.fired++;
        call->fault = fault.error;
        call->fault_after = fault.mode == SOFTGPU_FAULT_AFTER;
        go_on = call->fault_after;
        *result = fault.mode == SOFTGPU_FAULT_SKIP ? CUDA_SUCCESS : fault.error;
        poisons = fault.mode == SOFTGPU_FAULT_STICKY;
    }
    pthread_mutex_unlock(&fault_lock);
    if (poisons)
        poison_current(*result);
    return go_on;
}

void sg_fault_fork_prepare(void) {
    pthread_mutex_lock(&fault_lock);
}

void sg_fault_fork_done(void) {
    pthread_mutex_unlock(&fault_lock);
}

/* ---- SOFTGPU_FAULT -------------------------------------------------------------------------- */

static bool parse_count(const char *text, uint64_t *n) {
    *n = 0;
    if (strcmp(text, "*") == 0)
        return true;
    char *end;
    if (text[0] < '0' || text[0] > '9')
        return false;
    *n = strtoull(text, &end, 10);
    return *end == '\0' && *n > 0;
}

static bool parse_mode(const char *text, softgpu_fault_mode *mode) {
    static const char *const names[] = {"before", "after", "from", "skip", "sticky"};
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(text, names[i]) == 0) {
            *mode = (softgpu_fault_mode)(SOFTGPU_FAULT_BEFORE + i);
            return true;
        }
    return false;
}

static bool refuse(const char *text, const char *why, const char *part) {
    sg_log(1,
           "SOFTGPU_FAULT='%s' is ignored: %s '%s'; it takes FUNCTION:N:ERROR:MODE, with an "
           "exported name or *, a number from 1 or *, the name of a CUresult, and before, after, "
           "from, skip or sticky",
           text, why, part);
    return false;
}

bool sg_fault_parse(const char *text) {
    char copy[256];
    char *parts[4] = {copy};
    if (strlen(text) >= sizeof copy)
        return refuse(text, "too long", "");
    memcpy(copy, text, strlen(text) + 1);
    unsigned count = 1;
    for (char *at = copy; *at; at++)
        if (*at == ':') {
            *at = '\0';
            if (count == 4)
                return refuse(text, "more than four parts:", at + 1);
            parts[count++] = at + 1;
        }
    if (count != 4)
        return refuse(text, "fewer than four parts:", parts[count - 1]);

    uint64_t n;
    CUresult error;
    softgpu_fault_mode mode;
    if (!parse_count(parts[1], &n))
        return refuse(text, "no count", parts[1]);
    if (!sg_result_parse(parts[2], &error))
        return refuse(text, "no result", parts[2]);
    if (!parse_mode(parts[3], &mode))
        return refuse(text, "no mode", parts[3]);
    if (!sg_fault_arm(parts[0], n, (int)error, mode))
        return refuse(text, "no function", parts[0]);
    return true;
}
