#include "softgpu/entry/fault.h"

#include "softgpu/context/context.h"
#include "softgpu/core/job.h"
#include "softgpu/core/results.h"
#include "softgpu/core/rows.h"
#include "softgpu/core/runtime_calls.h"
#include "softgpu/core/state.h"
#include "softgpu/core/watch.h"
#include "softgpu/stream/stream.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Not the global lock: a refused call must not wait for a running one. */
static pthread_mutex_t fault_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    bool armed;
    bool any;                    /* every function that counts */
    bool meant[GPUMEM_FN_COUNT]; /* otherwise these */
    char runtime[64];            /* or this function of a runtime; "" */
    uint64_t n;                  /* 0: every call */
    CUresult error;
    softgpu_fault_mode mode;
    uint64_t seen, fired;
    bool poisoned;  /* SOFTGPU_FAULT_FROM has begun */
    char text[256]; /* from SOFTGPU_FAULT; "" for a fault armed by a call */
} fault;

struct spec {
    bool any, meant[GPUMEM_FN_COUNT];
    char runtime[64];
    uint64_t n;
    CUresult error;
    softgpu_fault_mode mode;
};

static void arm(const struct spec *spec, const char *text) {
    pthread_mutex_lock(&fault_lock);
    fault.armed = true;
    fault.any = spec->any;
    memcpy(fault.meant, spec->meant, sizeof fault.meant);
    memcpy(fault.runtime, spec->runtime, sizeof fault.runtime);
    fault.n = spec->n;
    fault.error = spec->error;
    fault.mode = spec->mode;
    fault.seen = fault.fired = 0;
    fault.poisoned = false;
    snprintf(fault.text, sizeof fault.text, "%s", text);
    pthread_mutex_unlock(&fault_lock);
    sg_watch(SG_WATCH_FAULT, true);
    sg_runtime_watch(SG_RUNTIME_FAULT, spec->runtime[0] != 0);
}

/* By exported name. False if there is none. */
static bool mean_symbol(struct spec *spec, const char *symbol) {
    gpumem_driver_fn fn = sg_row_find(symbol);
    if (fn == GPUMEM_FN_COUNT)
        return false;
    spec->meant[fn] = true;
    return true;
}

/* A name in cuda.h means all versions of the function: the source does not show which one a program
 * was compiled to call. */
static bool mean_name(struct spec *spec, const char *name) {
    if (strcmp(name, "*") == 0)
        return spec->any = true;
    if (name[0] == '=')
        return mean_symbol(spec, name + 1);
    if (strlen(name) < sizeof spec->runtime && sg_runtime_has_function(name)) {
        strcpy(spec->runtime, name);
        return true;
    }
    bool found = false;
    for (unsigned i = 0; i < GPUMEM_FN_COUNT; i++)
        if (strcmp(sg_rows[i].name, name) == 0)
            spec->meant[i] = found = true;
    return found || mean_symbol(spec, name);
}

static bool mean_symbol_or_any(struct spec *spec, const char *symbol) {
    spec->any = strcmp(symbol, "*") == 0;
    return spec->any || mean_symbol(spec, symbol);
}

static bool arm_by(bool (*mean)(struct spec *spec, const char *name), const char *function,
                   uint64_t n, int error, softgpu_fault_mode mode) {
    struct spec spec = {.n = n, .error = (CUresult)error, .mode = mode};
    if (!function || mode < SOFTGPU_FAULT_BEFORE || mode > SOFTGPU_FAULT_STICKY ||
        !mean(&spec, function))
        return false;
    arm(&spec, "");
    return true;
}

bool sg_fault_arm(const char *function, uint64_t n, int error, softgpu_fault_mode mode) {
    return arm_by(mean_symbol_or_any, function, n, error, mode);
}

bool sg_fault_arm_name(const char *function, uint64_t n, int error, softgpu_fault_mode mode) {
    return arm_by(mean_name, function, n, error, mode);
}

uint64_t sg_fault_reached(void) {
    pthread_mutex_lock(&fault_lock);
    uint64_t seen = fault.seen;
    pthread_mutex_unlock(&fault_lock);
    return seen;
}

uint64_t sg_fault_disarm(void) {
    sg_watch(SG_WATCH_FAULT, false);
    sg_runtime_watch(SG_RUNTIME_FAULT, false);
    pthread_mutex_lock(&fault_lock);
    uint64_t fired = fault.armed ? fault.fired : 0;
    fault.armed = false;
    pthread_mutex_unlock(&fault_lock);
    return fired;
}

/* The n-th call, or any later one for a persistent fault. With the fault's lock held. */
static bool count(void) {
    fault.seen++;
    if (fault.n != 0 && fault.seen != fault.n)
        return false;
    fault.poisoned = fault.mode == SOFTGPU_FAULT_FROM;
    return true;
}

static bool hits(gpumem_driver_fn fn, bool counted) {
    if (!fault.armed)
        return false;
    if (fault.poisoned)
        return counted;
    return (fault.any ? counted : fault.meant[fn]) && count();
}

static bool hits_runtime(const char *function) {
    if (!fault.armed || !fault.runtime[0])
        return false;
    if (fault.poisoned) /* a runtime in which everything fails still says what failed */
        return !sg_runtime_returns_last_error(function);
    return strcmp(fault.runtime, function) == 0 && count();
}

/* The effect on the current context of a device fault that shows in this call. */
static void poison_current(CUresult error) {
    sg_lock();
    struct sg_context *context = sg_context_peek();
    if (context)
        sg_context_fault(context, error);
    sg_unlock();
}

/* The errors that a driver gives only when the device has stopped: from then on no queued work
 * touches memory, and programs that get one may give memory back without waiting. */
static bool is_lasting(CUresult error) {
    switch (error) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_EXTERNAL_DEVICE:
        return true;
    default:
        return false;
    }
}

void sg_fault_shows(CUresult error) {
    if (!is_lasting(error) || atomic_load(&sg_forked) || atomic_load(&sg_exiting) ||
        !atomic_load(&sg_initialized))
        return;
    sg_lock();
    const struct sg_context *context = sg_context_peek();
    sg_streams_stop(context ? context->device : -1);
    sg_unlock();
}

/* What the call gets that the fault hits. */
struct effect {
    bool hit, first;
    softgpu_fault_mode mode;
    CUresult error;
};

/* With the fault's lock held. */
static struct effect fire(bool hit) {
    return (struct effect){hit, hit && fault.fired++ == 0, fault.mode, fault.error};
}

/* Without it. False when *result is the answer. */
static bool apply(const struct effect *effect, CUresult *result) {
    if (effect->first)
        sg_job_note(SG_JOB_FAULT);
    if (!effect->hit || effect->mode == SOFTGPU_FAULT_AFTER)
        return true;
    *result = effect->mode == SOFTGPU_FAULT_SKIP ? CUDA_SUCCESS : effect->error;
    if (effect->mode == SOFTGPU_FAULT_STICKY)
        poison_current(*result);
    else
        sg_fault_shows(*result);
    return false;
}

bool sg_fault_enter(struct sg_call *call, bool counted, CUresult *result) {
    pthread_mutex_lock(&fault_lock);
    struct effect effect = fire(hits(call->fn, counted));
    pthread_mutex_unlock(&fault_lock);
    if (effect.hit) {
        call->fault = effect.error;
        call->fault_after = effect.mode == SOFTGPU_FAULT_AFTER;
    }
    return apply(&effect, result);
}

bool sg_fault_enter_runtime(const char *function, int *answer, int *after) {
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&fault_lock);
    struct effect effect = fire(hits_runtime(function));
    pthread_mutex_unlock(&fault_lock);
    *after = effect.hit && effect.mode == SOFTGPU_FAULT_AFTER ? (int)effect.error : 0;
    bool enters = apply(&effect, &result);
    if (!enters)
        *answer = (int)result;
    return enters;
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

static bool refuse(char *why, size_t size, const char *text, const char *what, const char *part) {
    snprintf(why, size,
             "SOFTGPU_FAULT='%.160s' is not understood: %s '%.100s'; it takes "
             "FUNCTION:N:ERROR:MODE, with a name of cuda.h (all its versions), an exported name, * "
             "or a name of the runtime's, a number from 1 or *, the name of a CUresult or "
             "cudaError, and before, after, from, skip or sticky",
             text, what, part);
    return false;
}

static bool parse_error(const char *name, CUresult *error) {
    int value;
    if (sg_result_parse(name, error))
        return true;
    if (!sg_runtime_error_parse(name, &value))
        return false;
    *error = (CUresult)value;
    return true;
}

static bool parse(const char *text, struct spec *spec, char *why, size_t size) {
    char copy[256];
    char *parts[4] = {copy};
    *spec = (struct spec){.n = 0};
    if (strlen(text) >= sizeof copy)
        return refuse(why, size, text, "too long", "");
    memcpy(copy, text, strlen(text) + 1);
    unsigned count = 1;
    for (char *at = copy; *at; at++)
        if (*at == ':') {
            *at = '\0';
            if (count == 4)
                return refuse(why, size, text, "more than four parts:", at + 1);
            parts[count++] = at + 1;
        }
    if (count != 4)
        return refuse(why, size, text, "fewer than four parts:", parts[count - 1]);
    if (!mean_name(spec, parts[0]))
        return refuse(why, size, text, "no function", parts[0]);
    if (!parse_count(parts[1], &spec->n))
        return refuse(why, size, text, "no count", parts[1]);
    if (!parse_error(parts[2], &spec->error))
        return refuse(why, size, text, "no result", parts[2]);
    if (!parse_mode(parts[3], &spec->mode))
        return refuse(why, size, text, "no mode", parts[3]);
    return true;
}

bool sg_fault_understood(const char *text, char *why, size_t size) {
    struct spec spec;
    return parse(text, &spec, why, size);
}

bool sg_fault_parse(const char *text, char *why, size_t size) {
    struct spec spec;
    if (!parse(text, &spec, why, size))
        return false;
    arm(&spec, text);
    return true;
}

bool sg_fault_missed(char *text, size_t size) {
    pthread_mutex_lock(&fault_lock);
    bool missed = fault.armed && fault.text[0] && fault.fired == 0;
    if (missed)
        snprintf(text, size,
                 "SOFTGPU_FAULT='%s' was never reached: its function was called %llu time%s",
                 fault.text, (unsigned long long)fault.seen, fault.seen == 1 ? "" : "s");
    pthread_mutex_unlock(&fault_lock);
    return missed;
}
