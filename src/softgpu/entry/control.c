/* softgpu.h: what the opened library offers besides the driver's functions. */
#include "base/cancel.h"
#include "softgpu/address/memory.h"
#include "softgpu/context/context.h"
#include "softgpu/core/chapter.h"
#include "softgpu/core/config.h"
#include "softgpu/core/rows.h"
#include "softgpu/core/site.h"
#include "softgpu/core/state.h"
#include "softgpu/core/text.h"
#include "softgpu/device/device.h"
#include "softgpu/device/profile.h"
#include "softgpu/entry/entry.h"
#include "softgpu/entry/fault.h"
#include "softgpu/entry/rules.h"
#include "softgpu/entry/settings.h"
#include "softgpu/entry/verdict.h"
#include "softgpu/external/semaphore_fd.h"
#include "softgpu/launch/kernel_profile.h"
#include "softgpu/link/link_texts.h"
#include "softgpu/module/loading.h"
#include "softgpu/stream/stream.h"

#include <gpumem/softgpu.h>
#include <gpumem/status.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

/* By this symbol a loader distinguishes softgpu from NVIDIA's driver. */
extern const char softgpu_version[];
EXPORT const char softgpu_version[] = GPUMEM_VERSION_STRING;

static const char *const proofs[GPUMEM_FN_COUNT + 1] = {
#define SG_PROVED(symbol, test) [GPUMEM_FN_##symbol] = test,
#include "softgpu/entry/coverage.def"
#define SG_UNOBSERVABLE(symbol, test) [GPUMEM_FN_##symbol] = test " (no effect to see on hardware)",
#include "softgpu/entry/unobservable.def"
    [GPUMEM_FN_COUNT] = NULL,
};

/* Whether the lock may be taken: never in a forked child, where no thread may be left to release
 * it. */
static bool usable(void) {
    return !atomic_load(&sg_forked) && !sg_thread()->in_call;
}

static int fault_arm(const char *function, uint64_t n, int error, softgpu_fault_mode mode) {
    GM_UNCANCELLED;
    return sg_fault_arm(function, n, error, mode) ? 0 : -1;
}

static int fault_arm_name(const char *function, uint64_t n, int error, softgpu_fault_mode mode) {
    GM_UNCANCELLED;
    return sg_fault_arm_name(function, n, error, mode) ? 0 : -1;
}

static uint64_t fault_reached(void) {
    GM_UNCANCELLED;
    return sg_fault_reached();
}

static uint64_t fault_disarm(void) {
    GM_UNCANCELLED;
    return sg_fault_disarm();
}

static uint64_t call_count(const char *function) {
    if (!function)
        return sg_call_count(GPUMEM_FN_COUNT);
    gpumem_driver_fn fn = sg_row_find(function);
    return fn == GPUMEM_FN_COUNT ? 0 : sg_call_count(fn);
}

static char *state_dump(void) {
    GM_UNCANCELLED;
    if (!usable())
        return NULL;
    sg_lock();
    char *text = sg_text_of_state();
    sg_unlock();
    return text;
}

static void free_text(char *text) {
    free(text);
}

static char *leak_report_since(uint64_t mark) {
    GM_UNCANCELLED;
    if (!usable())
        return NULL;
    sg_lock();
    unsigned kinds = SG_LEAKS_ALL;
    char *text = sg_text_of_leaks(&kinds, mark, NULL, NULL);
    sg_unlock();
    return text;
}

static char *leak_report(void) {
    return leak_report_since(0);
}

static uint64_t leak_mark(void) {
    GM_UNCANCELLED;
    if (!usable())
        return 0;
    sg_lock();
    uint64_t mark = sg_origin_last();
    sg_unlock();
    return mark;
}

static void label_set(const char *text) {
    sg_label_set(text);
}

static void schedule_set(softgpu_schedule schedule, uint64_t seed) {
    GM_UNCANCELLED;
    if (!usable())
        return;
    (void)sg_config(); /* the environment is applied first, then this */
    sg_lock();
    sg_config_schedule((enum sg_schedule)schedule, seed);
    sg_schedule_set((enum sg_schedule)schedule, seed);
    sg_unlock();
}

static softgpu_function_state function_state(const char *function, const char **test) {
    gpumem_driver_fn fn = sg_row_find(function);
    const char *proof = proofs[fn];
    if (test)
        *test = proof ? proof : "";
    unsigned flags = fn == GPUMEM_FN_COUNT ? 0 : sg_rules[fn].flags;
    if (flags & SG_LAUNCHES && !sg_config()->kernels)
        flags |= SG_REFUSES;
    if (fn == GPUMEM_FN_COUNT || flags & SG_REFUSES || !sg_implemented(fn))
        return SOFTGPU_FUNCTION_REFUSED;
    return proof ? SOFTGPU_FUNCTION_REAL : SOFTGPU_FUNCTION_UNPROVED;
}

static int context_poison(int error) {
    GM_UNCANCELLED;
    if (!usable())
        return -1;
    sg_lock();
    struct sg_context *context = sg_context_peek();
    if (context)
        sg_context_fault(context, (CUresult)error);
    sg_unlock();
    return context ? 0 : -1;
}

static int memory_info(int ordinal, uint64_t *used, uint64_t *limit) {
    GM_UNCANCELLED;
    if (!usable())
        return -1;
    sg_lock();
    const struct sg_device *device = atomic_load(&sg_initialized) ? sg_device(ordinal) : NULL;
    if (device) {
        *used = sg_memory_used(ordinal);
        *limit = device->limit;
    }
    sg_unlock();
    return device ? 0 : -1;
}

static int semaphore_create(softgpu_semaphore_kind kind, uint64_t value) {
    GM_UNCANCELLED;
    return sg_semaphore_fd_new(kind, value);
}

static int settings_check(char *text, size_t size) {
    return text && size ? sg_settings_check(text, size) : -1;
}

static int link_texts(unsigned architecture, const char *const *texts, size_t count, char *log,
                      size_t log_size, void *image, size_t *size) {
    GM_UNCANCELLED;
    unsigned char *bytes = NULL;
    size_t made = 0;
    if (!size || (!texts && count))
        return (int)CUDA_ERROR_INVALID_VALUE;
    CUresult result = sg_link_texts(architecture, texts, count, log, log_size, &bytes, &made);
    if (result == CUDA_SUCCESS && image && *size < made)
        result = CUDA_ERROR_INVALID_VALUE;
    else if (result == CUDA_SUCCESS && image)
        memcpy(image, bytes, made);
    free(bytes);
    *size = made;
    return (int)result;
}

static char *kernel_profile(int json) {
    GM_UNCANCELLED;
    if (!usable())
        return NULL;
    sg_lock();
    char *text = json ? sg_profile_json() : sg_profile_text();
    sg_unlock();
    return text;
}

static char *profile_list(int *newest_ptx) {
    GM_UNCANCELLED;
    if (newest_ptx)
        *newest_ptx = sg_loading_newest_ptx();
    return sg_profile_list();
}

static const softgpu_control control = {
    .size = sizeof(softgpu_control),
    .fault_arm = fault_arm,
    .fault_disarm = fault_disarm,
    .call_count = call_count,
    .state_dump = state_dump,
    .free_text = free_text,
    .leak_report = leak_report,
    .schedule_set = schedule_set,
    .function_state = function_state,
    .context_poison = context_poison,
    .memory_info = memory_info,
    .semaphore_create = semaphore_create,
    .settings_check = settings_check,
    .link_texts = link_texts,
    .kernel_profile = kernel_profile,
    .fault_arm_name = fault_arm_name,
    .fault_reached = fault_reached,
    .leak_mark = leak_mark,
    .leak_report_since = leak_report_since,
    .label_set = label_set,
    .profile_list = profile_list,
    .runtime_attach = sg_runtime_attach,
    .runtime_enter = sg_runtime_enter,
    .runtime_leave = sg_runtime_leave,
};

EXPORT const softgpu_control *softgpu_get_control(int version);

EXPORT const softgpu_control *softgpu_get_control(int version) {
    return version == SOFTGPU_CONTROL_VERSION ? &control : NULL;
}
