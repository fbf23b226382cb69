/*
 * External semaphores.
 *
 * A wait is an operation that polls, like a wait for a value in memory: the signal may come from
 * another process. A binary semaphore is taken by the poll that finds it signaled, once per wait,
 * however often the scheduler polls.
 */
#include "softgpu/core/calls.h"
#include "softgpu/core/text.h"
#include "softgpu/external/external.h"
#include "softgpu/external/internal.h"
#include "softgpu/external/semaphore_fd.h"
#include "softgpu/stream/capture.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct sg_semaphore {
    uint64_t handle;
    unsigned refs;              /* the handle's, and those of operations */
    struct sg_context *context; /* whose end is the semaphore's; referenced */
    softgpu_semaphore *shared;
};

static struct sg_semaphore *semaphore_of(CUexternalSemaphore handle) {
    return sg_handle_get(SG_KIND_EXTERNAL_SEMAPHORE, SG_HANDLE_VALUE(handle));
}

static void unref(struct sg_semaphore *semaphore) {
    if (--semaphore->refs > 0)
        return;
    sg_semaphore_fd_unmap(semaphore->shared);
    sg_context_unref(semaphore->context);
    free(semaphore);
}

/* ---- Import and end ------------------------------------------------------------------------- */

static CUresult check_description(const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC *desc) {
    if (desc->flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    switch (desc->type) {
    case CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD:
        return CUDA_SUCCESS;
    case CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD:
        return desc->handle.fd >= 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; /* as on H200 */
    case CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_WIN32:
        return CUDA_ERROR_NOT_SUPPORTED;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* Takes ownership of `shared`, even on failure. */
static CUresult publish(struct sg_context *context, softgpu_semaphore *shared,
                        CUexternalSemaphore *out) {
    struct sg_semaphore *semaphore = calloc(1, sizeof *semaphore);
    uint64_t handle = semaphore ? sg_handle_new(SG_KIND_EXTERNAL_SEMAPHORE, semaphore) : 0;
    if (!handle) {
        free(semaphore);
        sg_semaphore_fd_unmap(shared);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *semaphore =
        (struct sg_semaphore){.handle = handle, .refs = 1, .context = context, .shared = shared};
    sg_context_ref(context);
    *out = SG_HANDLE_POINTER(CUexternalSemaphore, handle);
    return CUDA_SUCCESS;
}

CUresult sg_cuImportExternalSemaphore(CUexternalSemaphore *extSem_out,
                                      const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC *semHandleDesc) {
    struct sg_context *context;
    CUresult result = sg_context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!extSem_out || !semHandleDesc)
        return CUDA_ERROR_INVALID_VALUE;
    result = check_description(semHandleDesc);
    if (result != CUDA_SUCCESS)
        return result;
    int fd = semHandleDesc->handle.fd;
    softgpu_semaphore *shared = sg_semaphore_fd_map(fd);
    if (!shared) {
        sg_log(SG_LOG_WARNING,
               "descriptor %d is no semaphore of softgpu's format (gpumem/softgpu.h)", fd);
        return SG_EXTERNAL_WRONG_FD;
    }
    bool timeline = semHandleDesc->type == CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD;
    if (timeline != (shared->kind == SOFTGPU_SEMAPHORE_TIMELINE)) {
        sg_log(SG_LOG_WARNING, "descriptor %d is a %s semaphore", fd,
               timeline ? "binary" : "timeline");
        sg_semaphore_fd_unmap(shared);
        return SG_EXTERNAL_WRONG_FD;
    }
    result = publish(context, shared, extSem_out);
    if (result == CUDA_SUCCESS)
        close(fd); /* the driver owns it once imported */
    return result;
}

static void end(struct sg_semaphore *semaphore) {
    sg_handle_drop(SG_KIND_EXTERNAL_SEMAPHORE, semaphore->handle);
    semaphore->handle = 0;
    unref(semaphore);
}

CUresult sg_cuDestroyExternalSemaphore(CUexternalSemaphore extSem) {
    struct sg_semaphore *semaphore = semaphore_of(extSem);
    if (!semaphore)
        return extSem ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
    end(semaphore);
    return CUDA_SUCCESS;
}

/* ---- Operations ----------------------------------------------------------------------------- */

struct entry {
    struct sg_semaphore *semaphore; /* referenced */
    uint64_t value;
    bool taken; /* by a wait */
};

struct list {
    struct entry *entries; /* owned */
    unsigned count;
};
_Static_assert(sizeof(struct list) <= sizeof(((struct sg_op *)0)->data), "fits an operation");

static struct list *list_of(struct sg_op *op) {
    return (void *)op->data.bytes;
}

static CUresult run_signal(struct sg_op *op) {
    const struct list *list = list_of(op);
    for (unsigned i = 0; i < list->count; i++)
        sg_semaphore_fd_signal(list->entries[i].semaphore->shared, list->entries[i].value);
    return CUDA_SUCCESS;
}

static bool all_taken(struct sg_op *op) {
    const struct list *list = list_of(op);
    bool all = true;
    for (unsigned i = 0; i < list->count; i++) {
        struct entry *entry = &list->entries[i];
        if (!entry->taken)
            entry->taken = sg_semaphore_fd_take(entry->semaphore->shared, entry->value);
        all &= entry->taken;
    }
    return all;
}

static void free_list(struct list *list) {
    for (unsigned i = 0; i < list->count; i++)
        unref(list->entries[i].semaphore);
    free(list->entries);
}

static void finish(struct sg_op *op) {
    free_list(list_of(op));
}

void sg_semaphore_discard(struct sg_op *op) {
    finish(op);
    sg_op_free(op);
}

/* Values are not set yet. */
static CUresult make_list(const CUexternalSemaphore *handles, const void *params, unsigned count,
                          struct list *list) {
    *list = (struct list){0};
    if (count == 0)
        return CUDA_SUCCESS;
    if (!handles || !params)
        return CUDA_ERROR_INVALID_VALUE;
    /* Before there is room for them, and no further: a count may be a mistake. */
    for (unsigned i = 0; i < count; i++)
        if (!semaphore_of(handles[i]))
            return handles[i] ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
    list->entries = calloc(count, sizeof *list->entries);
    if (!list->entries)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (; list->count < count; list->count++) {
        struct sg_semaphore *semaphore = semaphore_of(handles[list->count]);
        semaphore->refs++;
        list->entries[list->count].semaphore = semaphore;
    }
    return CUDA_SUCCESS;
}

static CUresult make_op(struct list *list, bool wait, struct sg_op **op) {
    struct sg_op *made = sg_op_new(wait ? NULL : run_signal);
    if (!made) {
        free_list(list);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *list_of(made) = *list;
    made->little = true;
    made->ready = wait ? all_taken : NULL;
    made->finish = finish;
    *op = made;
    return CUDA_SUCCESS;
}

CUresult sg_semaphore_signal_make(struct sg_context *context,
                                  const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2 *params,
                                  struct sg_op **op) {
    (void)context; /* softgpu's semaphores belong to no device */
    struct list list;
    CUresult result =
        make_list(params->extSemArray, params->paramsArray, params->numExtSems, &list);
    if (result != CUDA_SUCCESS)
        return result;
    for (unsigned i = 0; i < list.count; i++)
        list.entries[i].value = params->paramsArray[i].params.fence.value;
    return make_op(&list, false, op);
}

CUresult sg_semaphore_wait_make(struct sg_context *context,
                                const CUDA_EXT_SEM_WAIT_NODE_PARAMS_v2 *params, struct sg_op **op) {
    (void)context;
    struct list list;
    CUresult result =
        make_list(params->extSemArray, params->paramsArray, params->numExtSems, &list);
    if (result != CUDA_SUCCESS)
        return result;
    for (unsigned i = 0; i < list.count; i++)
        list.entries[i].value = params->paramsArray[i].params.fence.value;
    return make_op(&list, true, op);
}

/* When sg_stream_submit fails, it frees the operation without calling `finish`. */
static CUresult submit(struct sg_stream *stream, struct sg_op *op) {
    struct list list = *list_of(op);
    CUresult result = sg_stream_submit(stream, op);
    if (result != CUDA_SUCCESS)
        free_list(&list);
    sg_schedule_chance();
    return result;
}

/* ---- Calls ---------------------------------------------------------------------------------- */

CUresult
sg_cuSignalExternalSemaphoresAsync(const CUexternalSemaphore *extSemArray,
                                   const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS *paramsArray,
                                   unsigned int numExtSems, CUstream stream) {
    struct sg_stream *found;
    struct sg_op *op;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL};
    params.extSemSignal = (CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2){
        .extSemArray = (CUexternalSemaphore *)(uintptr_t)extSemArray,
        .paramsArray = paramsArray,
        .numExtSems = numExtSems};
    CUresult result = sg_stream_from_handle(stream, &found);
    if (result == CUDA_SUCCESS && numExtSems == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = sg_semaphore_signal_make(found->context, &params.extSemSignal, &op);
    if (result != CUDA_SUCCESS || !found->capture)
        return result == CUDA_SUCCESS ? submit(found, op) : result;
    sg_semaphore_discard(op);
    return sg_capture_node(found, &params);
}

CUresult sg_cuWaitExternalSemaphoresAsync(const CUexternalSemaphore *extSemArray,
                                          const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *paramsArray,
                                          unsigned int numExtSems, CUstream stream) {
    struct sg_stream *found;
    struct sg_op *op;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT};
    params.extSemWait = (CUDA_EXT_SEM_WAIT_NODE_PARAMS_v2){
        .extSemArray = (CUexternalSemaphore *)(uintptr_t)extSemArray,
        .paramsArray = paramsArray,
        .numExtSems = numExtSems};
    CUresult result = sg_stream_from_handle(stream, &found);
    if (result == CUDA_SUCCESS && numExtSems == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = sg_semaphore_wait_make(found->context, &params.extSemWait, &op);
    if (result != CUDA_SUCCESS || !found->capture)
        return result == CUDA_SUCCESS ? submit(found, op) : result;
    sg_semaphore_discard(op);
    return sg_capture_node(found, &params);
}

/* ---- The end of a context, and reports ------------------------------------------------------- */

static void end_with(uint64_t handle, void *object, void *context) {
    (void)handle;
    struct sg_semaphore *semaphore = object;
    if (semaphore->context == context)
        end(semaphore);
}

void sg_semaphores_context_end(struct sg_context *context) {
    sg_handle_each(SG_KIND_EXTERNAL_SEMAPHORE, end_with, context);
}

static void dump(uint64_t handle, void *object, void *text) {
    const struct sg_semaphore *semaphore = object;
    sg_text_handle(text, handle, semaphore->context);
    bool timeline = semaphore->shared->kind == SOFTGPU_SEMAPHORE_TIMELINE;
    sg_text_line(text, "external %s semaphore at %llu", timeline ? "timeline" : "binary",
                 (unsigned long long)__atomic_load_n(&semaphore->shared->value, __ATOMIC_RELAXED));
}

void sg_dump_semaphores(struct sg_text *text) {
    sg_handle_each(SG_KIND_EXTERNAL_SEMAPHORE, dump, text);
}
