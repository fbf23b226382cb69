/*
 * Tells softgpu which function of ours a thread is in. All that is known of softgpu is the control
 * that its public header describes, and it is found by its symbol in the driver that was opened
 * anyway: NVIDIA's has none, and nothing is told then.
 */
#include "runtime/core/runtime.h"

#include <dlfcn.h>
#include <gpumem/softgpu.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Before the driver is opened it is not known who would listen. */
static const unsigned unknown = 1, nobody;
const unsigned *rt_watched = &unknown;
static const softgpu_control *_Atomic control;

static const char *current_call(void) {
    return rt_self.inside;
}

/* An older softgpu has a shorter struct. */
static bool can_report(const softgpu_control *found) {
    return found && found->size >= offsetof(softgpu_control, runtime_leave) + sizeof(void *);
}

void rt_report_to(void *library) {
    static const softgpu_runtime runtime = {sizeof runtime, current_call};
    void *symbol = dlsym(library, "softgpu_get_control");
    softgpu_get_control_fn get;
    memcpy(&get, &symbol, sizeof get);
    const softgpu_control *found = get ? get(SOFTGPU_CONTROL_VERSION) : NULL;
    const unsigned *word = can_report(found) ? found->runtime_attach(&runtime) : NULL;
    if (word)
        atomic_store(&control, found);
    __atomic_store_n(&rt_watched, word ? word : &nobody, __ATOMIC_RELEASE);
}

/*
 * A fault may be meant for a function that needs no driver, or is the first to need one: then the
 * driver is opened now, without cuInit. Without these settings nothing is opened before its time.
 */
static void find_out(void) {
    const unsigned *expected = &unknown;
    if (secure_getenv("SOFTGPU_FAULT") || secure_getenv("SOFTGPU_TRACE"))
        rt_load_driver();
    __atomic_compare_exchange_n(&rt_watched, &expected, &nobody, false, __ATOMIC_RELEASE,
                                __ATOMIC_RELAXED);
}

bool rt_enter(const char *function, cudaError_t *error) {
    int answer = 0;
    if (__atomic_load_n(&rt_watched, __ATOMIC_RELAXED) == &unknown)
        find_out();
    const softgpu_control *softgpu = atomic_load(&control);
    if (!softgpu || !rt_is_watched() || softgpu->runtime_enter(function, &answer))
        return true;
    *error = (cudaError_t)answer;
    return false;
}

static int write_value(char *to, size_t room, const struct rt_value *value) {
    switch (value->kind) {
    case RT_SIGNED_VALUE:
        return snprintf(to, room, "%lld", (long long)value->bits);
    case RT_UNSIGNED_VALUE:
        return snprintf(to, room, "%llu", (unsigned long long)value->bits);
    case RT_REAL_VALUE:
        return snprintf(to, room, "%g", value->real);
    case RT_STRUCT_VALUE:
        return snprintf(to, room, "{...}");
    case RT_ADDRESS_VALUE:
        break;
    }
    return snprintf(to, room, value->bits ? "0x%llx" : "NULL", (unsigned long long)value->bits);
}

cudaError_t rt_leave(const char *function, const struct rt_value *values, size_t count,
                     cudaError_t error) {
    const softgpu_control *softgpu = atomic_load(&control);
    char text[1024] = "";
    size_t used = 0;
    if (!softgpu)
        return error;
    for (size_t i = 0; i < count && used < sizeof text - 32 && rt_is_watched(); i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s", i ? ", " : "");
        used += (size_t)write_value(text + used, sizeof text - used, &values[i]);
    }
    return (cudaError_t)softgpu->runtime_leave(function, text, (int)error);
}
