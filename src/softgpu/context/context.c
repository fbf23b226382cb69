#include "softgpu/context/context.h"

#include "softgpu/context/lifetime.h"
#include "softgpu/core/chapter.h"
#include "softgpu/core/config.h"
#include "softgpu/core/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

CUresult sg_context_current_part(struct sg_context **context) {
    struct sg_context *top = sg_context_peek_part();
    if (!top)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!top->alive)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (top->sticky != CUDA_SUCCESS)
        return top->sticky;
    *context = top;
    return CUDA_SUCCESS;
}

CUresult sg_context_current(struct sg_context **context) {
    CUresult result = sg_context_current_part(context);
    if (result == CUDA_SUCCESS)
        *context = sg_context_owner(*context);
    return result;
}

struct sg_context *sg_context_peek_part(void) {
    const struct sg_thread *thread = sg_thread();
    return thread->depth ? thread->stack[thread->depth - 1] : NULL;
}

struct sg_context *sg_context_peek(void) {
    struct sg_context *top = sg_context_peek_part();
    return top && top->alive ? sg_context_owner(top) : top;
}

CUresult sg_context_admits(void) {
    const struct sg_context *top = sg_context_peek_part();
    if (!atomic_load(&sg_initialized))
        return CUDA_ERROR_NOT_INITIALIZED;
    return top ? top->sticky : CUDA_SUCCESS;
}

struct sg_context *sg_context_owner(struct sg_context *context) {
    return context->owner ? context->owner : context;
}

bool sg_context_includes(const struct sg_context *context, const struct sg_context *other) {
    return other == context || other->owner == context;
}

/* A value that only a context of this process can have had: kind and slot as handle.h builds them.
 */
static bool was_context(CUcontext handle) {
    uint64_t value = SG_HANDLE_VALUE(handle);
    return value >> 48 == SG_KIND_CONTEXT && (value & 0xf) == 0;
}

CUresult sg_context_find(CUcontext handle, struct sg_context **context) {
    struct sg_context *found =
        handle ? sg_handle_get(SG_KIND_CONTEXT, SG_HANDLE_VALUE(handle)) : sg_context_peek_part();
    if (!found)
        return handle && was_context(handle) ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                                             : CUDA_ERROR_INVALID_CONTEXT;
    *context = found;
    return CUDA_SUCCESS;
}

CUresult sg_context_from_handle(CUcontext handle, struct sg_context **context) {
    struct sg_context *found;
    CUresult result = sg_context_find(handle, &found);
    if (result != CUDA_SUCCESS)
        return result;
    if (!found->alive)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *context = found;
    return CUDA_SUCCESS;
}

void sg_context_ref(struct sg_context *context) {
    context->refs++;
}

void sg_context_unref(struct sg_context *context) {
    if (--context->refs > 0)
        return;
    sg_chapters_context_free(context);
    free(context);
}

struct fault {
    int device;
    CUresult error;
};

static void poison(uint64_t handle, void *object, void *user) {
    (void)handle;
    struct sg_context *context = object;
    const struct fault *fault = user;
    if (context->alive && context->device == fault->device && context->sticky == CUDA_SUCCESS)
        context->sticky = fault->error;
}

void sg_context_fault(struct sg_context *context, CUresult error) {
    struct sg_device *device = sg_device(context->device);
    struct fault fault = {context->device, error};
    if (context->sticky == CUDA_SUCCESS)
        sg_coredump_fault(&(struct sg_faulted){.settings = &context->coredump,
                                               .device = context->device,
                                               .id = context->id,
                                               .handle = context->handle,
                                               .primary = context->primary},
                          error);
    sg_handle_each(SG_KIND_CONTEXT, poison, &fault);
    if (context->sticky == CUDA_SUCCESS)
        context->sticky = error; /* A context that is ending has no handle any more. */
    if (device->fault == CUDA_SUCCESS)
        device->fault = error;
}

bool sg_context_flags_valid(unsigned flags) {
    unsigned schedule = flags & CU_CTX_SCHED_MASK;
    return (flags & ~(unsigned)CU_CTX_FLAGS_MASK) == 0 && (schedule & (schedule - 1)) == 0;
}

unsigned sg_context_flags_kept(unsigned flags) {
    if (flags & CU_CTX_USER_COREDUMP_ENABLE)
        flags |= CU_CTX_COREDUMP_ENABLE;
    return flags & ~(unsigned)CU_CTX_USER_COREDUMP_ENABLE;
}

struct sg_context *sg_context_new(struct sg_device *device, bool primary) {
    struct sg_context *context = calloc(1, sizeof *context);
    if (!context)
        return NULL;
    context->handle = sg_handle_new(SG_KIND_CONTEXT, context);
    if (!context->handle) {
        free(context);
        return NULL;
    }
    context->device = device->ordinal;
    context->primary = primary;
    context->refs = 1;
    return context;
}

/* Which of a device's counts a context is in. */
static unsigned *kind_count(struct sg_device *device, unsigned api_version) {
    return api_version < 3020 ? &device->first_versions : &device->later_versions;
}

CUresult sg_context_begin(struct sg_context *context, unsigned flags, unsigned api_version) {
    static uint64_t last_id;
    struct sg_device *device = sg_device(context->device);
    /* The count of the other kind: 32-bit and 64-bit addresses do not mix on H200. */
    if (*kind_count(device, api_version < 3020 ? 3020 : 3010) > 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = sg_chapters_context_begin(context);
    if (result != CUDA_SUCCESS)
        return result;
    ++*kind_count(device, api_version);
    context->id = ++last_id;
    context->flags = sg_context_flags_kept(flags);
    context->api_version = api_version;
    memcpy(context->limits, device->context.limits, sizeof context->limits);
    memset(context->limit_fixed, 0, sizeof context->limit_fixed);
    context->cache_config = CU_FUNC_CACHE_PREFER_NONE;
    sg_coredump_begin(&context->coredump, flags);
    context->profiled = false;
    context->alive = true;
    return CUDA_SUCCESS;
}

/* Reports what the end will free: its maker did not free it and cannot find it afterwards. */
static void tell_what_is_left(const struct sg_context *context) {
    char when[64];
    if (!sg_config()->leaks || context->owner)
        return;
    snprintf(when, sizeof when, "when %s context of device %d ended",
             context->primary ? "the primary" : "a created", context->device);
    unsigned kinds = sg_config()->leak_kinds;
    char *text = sg_text_of_leaks(&kinds, 0, context, sg_context_includes);
    sg_leaks_say(text, kinds, when);
}

void sg_context_end(struct sg_context *context) {
    tell_what_is_left(context);
    context->alive = false;
    --*kind_count(sg_device(context->device), context->api_version);
    /* The caller's stack may hold the last reference to it, and waiting drops the lock. */
    sg_context_ref(context);
    for (int step = 0; step < SG_END_STEPS; step++)
        sg_chapters_context_end(context, (enum sg_end_step)step);
    sg_peers_context_end(context);
    /* As seen on H200: a context that has ended reports no flags and no fault (the device's fault
     * remains). */
    context->flags = 0;
    context->sticky = CUDA_SUCCESS;
    sg_context_unref(context);
}
