/* Green contexts: parts of a device's primary context, each with streams of its own. */
#include "softgpu/context/lifetime.h"
#include "softgpu/core/calls.h"
#include "softgpu/core/chapter.h"
#include "softgpu/green/resource.h"
#include "softgpu/stream/stream.h"

#include <stdlib.h>

/* NULL, and a context that is not green, are not accepted. */
static CUresult from_handle(CUgreenCtx handle, struct sg_context **part) {
    struct sg_context *found;
    CUresult result =
        handle ? sg_context_from_handle((CUcontext)handle, &found) : CUDA_ERROR_INVALID_CONTEXT;
    if (result == CUDA_SUCCESS && !found->owner)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (result == CUDA_SUCCESS)
        *part = found;
    return result;
}

static void unlist(struct sg_context *part) {
    struct sg_context **link = &part->owner->parts;
    while (*link && *link != part)
        link = &(*link)->next_part;
    if (*link)
        *link = part->next_part;
    part->next_part = NULL;
}

static pthread_cond_t part_ended = PTHREAD_COND_INITIALIZER;

/* Waits for the part's work with the lock released: its owner, whose memory the work uses, does not
 * end in the meantime. */
static void end_part(struct sg_context *part) {
    struct sg_context *owner = part->owner;
    unlist(part);
    owner->ending_parts++;
    sg_context_end(part);
    owner->ending_parts--;
    pthread_cond_broadcast(&part_ended);
}

/* A reset ends the parts but leaves their retains; a last release has used those up. */
static void end_parts_of(struct sg_context *context) {
    struct sg_context *part;
    while ((part = context->parts)) {
        if (context->uses == 0)
            part->green->retains = false;
        end_part(part);
    }
    while (context->ending_parts > 0)
        sg_wait(&part_ended, 0);
}

static void free_part(struct sg_context *part) {
    if (!part->owner)
        return;
    free(part->green);
    sg_context_unref(part->owner);
}

/* A context object that is part of `owner`, not yet alive; NULL when out of memory. */
static struct sg_context *part_new(struct sg_context *owner, const struct sg_multiprocessors *of) {
    struct sg_green *green = malloc(sizeof *green);
    struct sg_context *part = green ? sg_context_new(sg_device(owner->device), false) : NULL;
    if (!part) {
        free(green);
        return NULL;
    }
    *green = (struct sg_green){.of = *of, .retains = true};
    part->green = green;
    part->owner = owner;
    sg_context_ref(owner);
    return part;
}

static CUresult create(struct sg_context *owner, const struct sg_multiprocessors *of,
                       struct sg_context **made) {
    struct sg_context *part = part_new(owner, of);
    if (!part)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = sg_context_begin(part, owner->flags, owner->api_version);
    if (result != CUDA_SUCCESS) {
        sg_handle_drop(SG_KIND_CONTEXT, part->handle);
        sg_context_unref(part);
        return result;
    }
    part->next_part = owner->parts;
    owner->parts = part;
    *made = part;
    return CUDA_SUCCESS;
}

/* Without a description, the whole device, as on H200. */
static CUresult described(CUdevResourceDesc handle, int device, struct sg_multiprocessors *of) {
    if (!handle)
        return sg_multiprocessors_all(device, of) ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
    const struct sg_multiprocessors *found = sg_description_get(handle);
    if (!found || found->device != device)
        return CUDA_ERROR_INVALID_VALUE;
    *of = *found;
    return CUDA_SUCCESS;
}

CUresult sg_cuGreenCtxCreate(CUgreenCtx *phCtx, CUdevResourceDesc desc, CUdevice dev,
                             unsigned int flags) {
    struct sg_multiprocessors of;
    struct sg_context *part = NULL;
    CUcontext primary;
    const struct sg_device *device = sg_device(dev);
    if (!phCtx || flags != CU_GREEN_CTX_DEFAULT_STREAM)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    CUresult result = described(desc, dev, &of);
    if (result == CUDA_SUCCESS)
        result = device->fault;
    if (result == CUDA_SUCCESS)
        result = sg_cuDevicePrimaryCtxRetain(&primary, dev);
    if (result != CUDA_SUCCESS)
        return result;
    result = create(device->primary, &of, &part);
    if (result != CUDA_SUCCESS) {
        sg_cuDevicePrimaryCtxRelease_v2(dev);
        return result;
    }
    *phCtx = SG_HANDLE_POINTER(CUgreenCtx, part->handle);
    return CUDA_SUCCESS;
}

/* A context that a reset has ended can still be destroyed, which releases its retain. If it is
 * current to a thread, it remains on that thread's stack. */
CUresult sg_cuGreenCtxDestroy(CUgreenCtx hCtx) {
    struct sg_context *part;
    CUresult result = hCtx ? sg_context_find((CUcontext)hCtx, &part) : CUDA_ERROR_INVALID_CONTEXT;
    if (result != CUDA_SUCCESS)
        return result;
    if (!part->owner)
        return CUDA_ERROR_INVALID_CONTEXT;
    sg_handle_drop(SG_KIND_CONTEXT, part->handle);
    if (part->green->retains) {
        /* The last release ends the primary context, which ends this part. */
        part->green->retains = false;
        sg_cuDevicePrimaryCtxRelease_v2(part->device);
    }
    if (part->alive)
        end_part(part);
    sg_context_unref(part);
    return CUDA_SUCCESS;
}

/* Both handles have the same value, as on H200. */
CUresult sg_cuCtxFromGreenCtx(CUcontext *pContext, CUgreenCtx hCtx) {
    struct sg_context *part;
    if (!pContext)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = from_handle(hCtx, &part);
    if (result == CUDA_SUCCESS)
        *pContext = SG_HANDLE_POINTER(CUcontext, part->handle);
    return result;
}

CUresult sg_cuGreenCtxGetId(CUgreenCtx greenCtx, unsigned long long *greenCtxId) {
    struct sg_context *part;
    if (!greenCtxId)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = from_handle(greenCtx, &part);
    if (result == CUDA_SUCCESS)
        *greenCtxId = part->id;
    return result;
}

CUresult sg_cuGreenCtxGetDevResource(CUgreenCtx hCtx, CUdevResource *resource,
                                     CUdevResourceType type) {
    struct sg_context *part;
    if (!resource)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = from_handle(hCtx, &part);
    return result == CUDA_SUCCESS
               ? sg_cuCtxGetDevResource(SG_HANDLE_POINTER(CUcontext, part->handle), resource, type)
               : result;
}

CUresult sg_cuGreenCtxStreamCreate(CUstream *phStream, CUgreenCtx greenCtx, unsigned int flags,
                                   int priority) {
    struct sg_context *part;
    if (!phStream)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sg_stream_create_begin(phStream);
    if (result == CUDA_SUCCESS)
        result = from_handle(greenCtx, &part);
    if (result == CUDA_SUCCESS)
        result = part->sticky;
    if (result != CUDA_SUCCESS)
        return result;
    if (flags != CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    return sg_stream_create(part, flags, priority, phStream);
}

CUresult sg_cuGreenCtxRecordEvent(CUgreenCtx hCtx, CUevent hEvent) {
    struct sg_context *part;
    CUresult result = from_handle(hCtx, &part);
    return result == CUDA_SUCCESS ? sg_cuCtxRecordEvent((CUcontext)hCtx, hEvent) : result;
}

/* Anything that is not an event is an invalid handle here, whatever else it is. */
CUresult sg_cuGreenCtxWaitEvent(CUgreenCtx hCtx, CUevent hEvent) {
    struct sg_context *part;
    CUresult result = from_handle(hCtx, &part);
    return result == CUDA_SUCCESS ? sg_cuCtxWaitEvent((CUcontext)hCtx, hEvent) : result;
}

const struct sg_chapter sg_green_chapter = {.context_end = {[SG_END_PARTS] = end_parts_of},
                                            .context_free = free_part};
