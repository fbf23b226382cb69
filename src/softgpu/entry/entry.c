#include "softgpu/entry/entry.h"
#include "softgpu/core/results.h"
#include "softgpu/core/rows.h"
#include "softgpu/core/verdict.h"
#include "softgpu/core/watch.h"
#include "softgpu/graph/graph.h"

#include "base/cancel.h"
#include "softgpu/check/check.h"
#include "softgpu/checkpoint/gate.h"
#include "softgpu/context/address_32.h"
#include "softgpu/context/context.h"
#include "softgpu/core/config.h"
#include "softgpu/core/job.h"
#include "softgpu/core/site.h"
#include "softgpu/core/state.h"
#include "softgpu/coredump/coredump.h"
#include "softgpu/entry/fault.h"
#include "softgpu/entry/life.h"
#include "softgpu/entry/rules.h"
#include "softgpu/entry/trace.h"
#include "softgpu/entry/verdict.h"
#include "softgpu/launch/device_output.h"
#include "softgpu/report/error_log.h"
#include "softgpu/stream/capture.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static atomic_ullong counts[GPUMEM_FN_COUNT];
static atomic_bool refusal_said[GPUMEM_FN_COUNT];

uint64_t sg_call_count(gpumem_driver_fn fn) {
    if (fn != GPUMEM_FN_COUNT)
        return atomic_load_explicit(&counts[fn], memory_order_relaxed);
    uint64_t all = 0;
    for (unsigned i = 0; i < GPUMEM_FN_COUNT; i++)
        all += atomic_load_explicit(&counts[i], memory_order_relaxed);
    return all;
}

static void say_settings(const struct sg_config *config) {
    const struct sg_complaints *complaints = sg_config_complaints();
    for (unsigned i = 0; i < complaints->count; i++)
        sg_verdict_wrong(complaints->text[i]);
    if (complaints->seed_drawn)
        sg_log_lasting(SG_LOG_WARNING, "random schedule%s; SOFTGPU_SEED=%llu repeats it",
                       config->independent_lanes ? " with independent lanes" : "",
                       (unsigned long long)config->seed);
}

static void configure(void) {
    const struct sg_config *config = sg_config();
    sg_watch(SG_WATCH_CONFIGURE, false);
    sg_verdict_watch();
    say_settings(config);
    if (config->abort_on_error)
        sg_watch(SG_WATCH_ABORT, true);
    if (config->leaks || config->checks)
        sg_sites_begin();
    char why[512];
    if (config->checks && !sg_check_start(why, sizeof why))
        sg_verdict_wrong(why);
    else if (config->checks & SG_CHECK_MEMORY)
        sg_watch(SG_WATCH_CHECK, true);
    if (config->trace && sg_trace_open(config->trace, why, sizeof why))
        sg_watch(SG_WATCH_TRACE, true);
    else if (config->trace)
        sg_verdict_wrong(why);
    if (config->fault && !sg_fault_parse(config->fault, why, sizeof why))
        sg_verdict_wrong(why);
    sg_job_note(SG_JOB_PROCESS);
}

void sg_entry_configure(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, configure);
}

/* Work that only a watched process needs. False when *result is the answer. */
static bool enter_watched(struct sg_call *call, CUresult *result) {
    sg_entry_configure();
    unsigned watched = atomic_load_explicit(&sg_watched, memory_order_acquire);
    if (watched & SG_WATCH_FAULT)
        return sg_fault_enter(call, !(sg_rules[call->fn].flags & SG_UNCOUNTED), result);
    return true;
}

static bool null_answers(gpumem_driver_fn fn, struct sg_arguments arguments, CUresult *result) {
    if (sg_rules[fn].null.argument == 1 ? arguments.first : arguments.second)
        return false;
    *result = (CUresult)sg_rules[fn].null.result;
    return true;
}

/* What is checked before the context requires only cuInit. */
static bool null_answers_early(gpumem_driver_fn fn, struct sg_arguments arguments,
                               CUresult *result) {
    bool ready = sg_rules[fn].null.when == SG_NULL_BEFORE_INIT ||
                 (sg_rules[fn].flags & SG_BEFORE_INIT) ||
                 atomic_load_explicit(&sg_initialized, memory_order_acquire);
    return ready && null_answers(fn, arguments, result);
}

/* With the lock held. True when *result, from the current context, is the answer. */
static bool context_answers(gpumem_driver_fn fn, CUresult *result) {
    const unsigned rule = sg_rules[fn].flags;
    const struct sg_context *context = sg_context_peek_part();
    if (!context)
        return false;
    if (!context->alive && (rule & (SG_ALIVE | SG_CONTEXT_FIRST)))
        *result = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    else if (context->sticky != CUDA_SUCCESS && !(rule & SG_STICKY_OK))
        *result = context->sticky;
    else
        return false;
    return true;
}

static void zero_outputs(struct sg_arguments arguments, unsigned outputs) {
    if (outputs > 0 && arguments.first != 0)
        memset((void *)arguments.first, 0, sizeof(uint64_t));
    if (outputs > 1 && arguments.second != 0)
        memset((void *)arguments.second, 0, sizeof(uint64_t));
}

/* With the lock held. True when *result, for the kind of the current context, is the answer. */
static bool kind_answers(gpumem_driver_fn fn, struct sg_arguments arguments, CUresult *result) {
    const struct sg_context *context = sg_rules[fn].flags & SG_WIDE_ONLY ? sg_context_peek() : NULL;
    if (!context || !context->alive || !sg_context_has_32_bit_addresses(context))
        return false;
    zero_outputs(arguments, sg_rules[fn].outputs);
    *result = CUDA_ERROR_INVALID_CONTEXT;
    return true;
}

/* With the lock held. True when *result, because of a stream capture, is the answer. */
static bool capture_answers(gpumem_driver_fn fn, CUresult *result) {
    if (!(sg_rules[fn].flags & SG_CAPTURE_UNSAFE) ||
        atomic_load_explicit(&sg_captures_under_way, memory_order_relaxed) == 0)
        return false;
    *result = sg_capture_unsafe();
    return *result != CUDA_SUCCESS;
}

/* A refused function checks its context only if it needs one, or has a rule for it. */
static bool refused_by_context(gpumem_driver_fn fn, CUresult *result) {
    if (!(sg_rules[fn].flags & (SG_CONTEXT_FIRST | SG_ALIVE)))
        return false;
    if (sg_thread()->depth == 0) {
        *result = CUDA_ERROR_INVALID_CONTEXT;
        return true;
    }
    sg_lock();
    bool answers = context_answers(fn, result);
    sg_unlock();
    return answers;
}

static CUresult refuse(gpumem_driver_fn fn, struct sg_arguments arguments) {
    CUresult result;
    if (!atomic_exchange_explicit(&refusal_said[fn], true, memory_order_relaxed))
        sg_log(SG_LOG_WARNING, "%s is not implemented", sg_rows[fn].symbol);
    if (refused_by_context(fn, &result))
        return result;
    if (sg_rules[fn].null.when == SG_NULL_LAST && null_answers(fn, arguments, &result))
        return result;
    return sg_rules[fn].refusal ? (CUresult)sg_rules[fn].refusal : CUDA_ERROR_NOT_SUPPORTED;
}

/* Some outputs are zeroed before anything else is checked. */
static void zero_output(gpumem_driver_fn fn, struct sg_arguments arguments) {
    const unsigned both = SG_CAPTURE_UNSAFE | SG_WIDE_ONLY;
    const struct sg_rule *rule = &sg_rules[fn];
    unsigned first = rule->flags & SG_ZERO_FIRST ? 1 : 0;
    zero_outputs(arguments, (rule->flags & both) == both ? rule->outputs : first);
}

/* Checks that do not need the lock. False when *result is the answer. */
static bool enter_unlocked(struct sg_call *call, struct sg_arguments arguments, CUresult *result) {
    const gpumem_driver_fn fn = call->fn;
    const unsigned rule = sg_rules[fn].flags;
    if (atomic_load_explicit(&sg_exiting, memory_order_relaxed)) {
        *result = CUDA_ERROR_DEINITIALIZED;
        return false;
    }
    /* A forked child may find the lock held by a thread that it does not have. */
    if (atomic_load_explicit(&sg_forked, memory_order_relaxed) && !(rule & SG_UNLOCKED)) {
        zero_output(fn, arguments);
        *result = CUDA_ERROR_NOT_INITIALIZED;
        return false;
    }
    atomic_fetch_add_explicit(&counts[fn], 1, memory_order_relaxed);
    if (__builtin_expect(atomic_load_explicit(&sg_watched, memory_order_acquire) != 0, 0) &&
        !enter_watched(call, result))
        return false;
    if (__builtin_expect(sg_rules[fn].null.when >= SG_NULL_BEFORE_CONTEXT, 0) &&
        null_answers_early(fn, arguments, result))
        return false;
    if (!(rule & SG_BEFORE_INIT) && !atomic_load_explicit(&sg_initialized, memory_order_acquire)) {
        zero_output(fn, arguments);
        *result = CUDA_ERROR_NOT_INITIALIZED;
        return false;
    }
    if (sg_thread()->in_host_function && !(rule & SG_IN_HOST_FUNCTION)) {
        *result = CUDA_ERROR_NOT_PERMITTED;
        return false;
    }
    return true;
}

bool sg_enter(struct sg_call *call, gpumem_driver_fn fn, struct sg_arguments arguments,
              CUresult *result) {
    *call = (struct sg_call){.fn = fn, .cancel = gm_cancel_disable(), .arguments = arguments};
    bool enters = enter_unlocked(call, arguments, result);
    call->traced = (atomic_load_explicit(&sg_watched, memory_order_relaxed) & SG_WATCH_TRACE) != 0;
    if (!enters)
        return false;
    if (!sg_implemented(fn)) {
        *result = refuse(fn, arguments);
        return false;
    }
    struct sg_thread *thread = sg_thread();
    thread->fn = fn;
    if (sg_rules[fn].flags & SG_UNLOCKED) {
        call->inside = true;
        return true;
    }

    sg_lock();
    sg_gate_enter(thread);
    if (context_answers(fn, result) || capture_answers(fn, result) ||
        kind_answers(fn, arguments, result)) {
        zero_output(fn, arguments);
        sg_gate_leave(thread);
        sg_unlock();
        return false;
    }
    thread->per_thread_stream = sg_rows[fn].kind != GPUMEM_FN_PLAIN;
    thread->in_call = true;
    call->inside = call->entered = true;
    return true;
}

static bool is_refusal(CUresult result) {
    return result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY;
}

/* A question whose answer is no: how programs find out which functions a driver has. */
static bool is_probe(gpumem_driver_fn fn, CUresult result) {
    return fn == GPUMEM_FN_cuGetProcAddress && result == CUDA_ERROR_NOT_FOUND;
}

/* A call that is watched, or that did not simply succeed. */
static CUresult leave_closely(const struct sg_call *call, unsigned watched, CUresult result) {
    if (call->fault_after && !is_refusal(result)) {
        result = call->fault;
        sg_fault_shows(result);
    }
    if ((watched & SG_WATCH_COREDUMP) && !atomic_load(&sg_forked))
        sg_coredumps_write();
    if ((watched & SG_WATCH_OUTPUT) && !atomic_load(&sg_forked) && !atomic_load(&sg_exiting))
        sg_output_leave(call->fn);
    if (is_refusal(result))
        sg_error_log_refusal(call->fn, call->arguments, result, call->inside);
    const bool wrong = is_refusal(result) && !is_probe(call->fn, result);
    if ((watched & SG_WATCH_CHECK) && wrong && call->inside && !atomic_load(&sg_forked) &&
        !atomic_load(&sg_exiting))
        sg_check_refusal(sg_rows[call->fn].symbol, call->arguments.first, result);
    if (watched & SG_WATCH_TRACE)
        sg_trace_call(call, result);
    if ((watched & SG_WATCH_ABORT) && wrong) {
        const char *name = sg_result_name(result);
        sg_log(SG_LOG_ERROR, "%s answered %s; SOFTGPU_ABORT ends the process",
               sg_rows[call->fn].symbol, name ? name : "an unknown result");
        abort();
    }
    return result;
}

CUresult sg_leave(struct sg_call *call, CUresult result) {
    if (call->entered) {
        if (__builtin_expect(sg_user_objects_ended != 0, 0))
            sg_user_objects_run();
        struct sg_thread *thread = sg_thread();
        thread->in_call = false;
        sg_gate_leave(thread);
        sg_unlock();
    }
    unsigned watched = atomic_load_explicit(&sg_watched, memory_order_relaxed);
    if (__builtin_expect(watched != 0 || result != CUDA_SUCCESS || call->fault_after, 0))
        result = leave_closely(call, watched, result);
    gm_cancel_restore(call->cancel);
    return result;
}

/* ---- Fork ----------------------------------------------------------------------------------- */

/* Only a process that has begun to use the driver loses it by fork: the children of a parent that
 * merely loaded the library may call cuInit. */
static void in_child(void) {
    sg_fault_fork_done();
    if (!sg_life_begun())
        return;
    atomic_store(&sg_forked, true);
    sg_gate_in_child();
}

__attribute__((constructor(101))) static void watch_forks(void) {
    pthread_atfork(sg_fault_fork_prepare, sg_fault_fork_done, in_child);
}
