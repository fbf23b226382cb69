/* cuTexObject* and cuSurfObject*: objects, and reading back their descriptions. */
#include "base/growing_array.h"
#include "softgpu/core/calls.h"
#include "softgpu/core/chapter.h"
#include "softgpu/core/text.h"
#include "softgpu/texture/texture.h"

#include <stdlib.h>
#include <string.h>

/* The number of objects an H200 can number. */
#define NUMBERS (1u << 20)

struct sg_samplers {
    struct sg_sampler **list; /* by number minus one; NULL where there is none */
    size_t used, room;
    struct sg_sampler *first_ended, *last_ended; /* in the order of their ends */
    size_t ended;
};

/* ---- Launches, and objects that were destroyed ----------------------------------------------- */

static uint64_t moment;
static struct sg_sampler_user *oldest, *newest;

void sg_sampler_user_begin(struct sg_sampler_user *user) {
    *user = (struct sg_sampler_user){.since = ++moment, .previous = newest};
    *(newest ? &newest->next : &oldest) = user;
    newest = user;
}

void sg_sampler_user_end(struct sg_sampler_user *user) {
    *(user->previous ? &user->previous->next : &oldest) = user->next;
    *(user->next ? &user->next->previous : &newest) = user->previous;
}

static bool is_needed(const struct sg_sampler *ended) {
    return oldest && oldest->since < ended->ended;
}

static void forget_oldest(struct sg_samplers *samplers) {
    struct sg_sampler *sampler = samplers->first_ended;
    samplers->first_ended = sampler->next_ended;
    if (!samplers->first_ended)
        samplers->last_ended = NULL;
    samplers->ended--;
    samplers->list[sampler->number - 1] = NULL;
    free(sampler);
}

static void end(struct sg_samplers *samplers, struct sg_sampler *sampler) {
    sampler->ended = ++moment;
    *(samplers->last_ended ? &samplers->last_ended->next_ended : &samplers->first_ended) = sampler;
    samplers->last_ended = sampler;
    samplers->ended++;
    while (samplers->ended > SG_SAMPLERS_KEPT && !is_needed(samplers->first_ended))
        forget_oldest(samplers);
}

/* ---- Objects --------------------------------------------------------------------------------- */

/* A used number is reused only when no others are left, so that stale ones are detected. */
static size_t free_number(struct sg_samplers *samplers) {
    if (samplers->used < NUMBERS)
        return GM_RESERVE(samplers->list, samplers->room, samplers->used + 1) ? ++samplers->used
                                                                              : 0;
    for (size_t i = 0; i < samplers->used; i++)
        if (!samplers->list[i])
            return i + 1;
    size_t number = samplers->first_ended ? samplers->first_ended->number : 0;
    if (number > 0 && !is_needed(samplers->first_ended))
        forget_oldest(samplers);
    else
        number = 0;
    return number;
}

static CUresult add(struct sg_context *context, const struct sg_sampler *sampler,
                    unsigned long long *number) {
    if (!context->samplers && !(context->samplers = calloc(1, sizeof *context->samplers)))
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct sg_sampler *copy = malloc(sizeof *copy);
    size_t at = copy ? free_number(context->samplers) : 0;
    if (at == 0) {
        free(copy);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *copy = *sampler;
    copy->number = at;
    copy->origin = sg_origin_here();
    context->samplers->list[at - 1] = copy;
    *number = at;
    return CUDA_SUCCESS;
}

/* The slot of a live object of that kind in the current context, or NULL. */
static CUresult find(unsigned long long number, bool surface, struct sg_sampler ***slot) {
    struct sg_context *context;
    CUresult result = sg_context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    struct sg_samplers *samplers = context->samplers;
    *slot = NULL;
    if (samplers && number > 0 && number <= samplers->used) {
        struct sg_sampler **found = &samplers->list[number - 1];
        if (*found && !(*found)->ended && (*found)->surface == surface)
            *slot = found;
    }
    return CUDA_SUCCESS;
}

const struct sg_sampler *sg_sampler_find(const struct sg_context *context, uint64_t number) {
    const struct sg_samplers *samplers = context->samplers;
    return samplers && number > 0 && number <= samplers->used ? samplers->list[number - 1] : NULL;
}

/* Destroying something that is not an object succeeds, as on an H200. */
static CUresult destroy(unsigned long long number, bool surface) {
    struct sg_sampler **slot;
    CUresult result = find(number, surface, &slot);
    if (result != CUDA_SUCCESS || !slot)
        return result;
    end(sg_context_peek()->samplers, *slot);
    return CUDA_SUCCESS;
}

/* INVALID_VALUE if there is no output or no such object. */
static CUresult look_up(const void *output, unsigned long long number, bool surface,
                        const struct sg_sampler **sampler) {
    struct sg_sampler **slot;
    CUresult result = find(number, surface, &slot);
    if (result != CUDA_SUCCESS)
        return result;
    if (!output || !slot)
        return CUDA_ERROR_INVALID_VALUE;
    *sampler = *slot;
    return CUDA_SUCCESS;
}

static void context_end(struct sg_context *context) {
    struct sg_samplers *samplers = context->samplers;
    if (!samplers)
        return;
    for (size_t i = 0; i < samplers->used; i++)
        free(samplers->list[i]);
    free(samplers->list);
    free(samplers);
    context->samplers = NULL;
}

/* ---- Textures -------------------------------------------------------------------------------- */

/* An H200 does not report everything about an object that it was given. */
static void keep_what_counts(struct sg_sampler *sampler) {
    CUDA_RESOURCE_DESC *resource = &sampler->resource;
    const CUaddress_mode *modes = sampler->texture.addressMode;
    if (resource->resType == CU_RESOURCE_TYPE_LINEAR ||
        resource->resType == CU_RESOURCE_TYPE_PITCH2D)
        sampler->has_view = false;
    if (resource->resType == CU_RESOURCE_TYPE_PITCH2D && resource->res.pitch2D.height == 0) {
        CUDA_RESOURCE_DESC row = {.resType = CU_RESOURCE_TYPE_LINEAR, .flags = resource->flags};
        row.res.linear.devPtr = resource->res.pitch2D.devPtr;
        row.res.linear.format = resource->res.pitch2D.format;
        row.res.linear.numChannels = resource->res.pitch2D.numChannels;
        row.res.linear.sizeInBytes = resource->res.pitch2D.pitchInBytes;
        *resource = row;
    } else if (resource->resType == CU_RESOURCE_TYPE_PITCH2D && resource->res.pitch2D.height == 1) {
        resource->res.pitch2D.pitchInBytes = 0;
    }
    bool border = false;
    for (int i = 0; i < 3; i++)
        border |= modes[i] == CU_TR_ADDRESS_MODE_BORDER;
    if (!border)
        memset(sampler->texture.borderColor, 0, sizeof sampler->texture.borderColor);
}

CUresult sg_cuTexObjectCreate(CUtexObject *pTexObject, const CUDA_RESOURCE_DESC *pResDesc,
                              const CUDA_TEXTURE_DESC *pTexDesc,
                              const CUDA_RESOURCE_VIEW_DESC *pResViewDesc) {
    struct sg_context *context;
    CUresult result = sg_context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pTexObject || !pResDesc || !pTexDesc)
        return CUDA_ERROR_INVALID_VALUE;
    struct sg_sampler sampler = {.resource = *pResDesc, .texture = *pTexDesc};
    if (pResViewDesc) {
        sampler.has_view = true;
        sampler.view = *pResViewDesc;
    }
    result = sg_texture_check(&sampler, context);
    if (result != CUDA_SUCCESS && pResViewDesc && pResViewDesc->format == CU_RES_VIEW_FORMAT_NONE)
        *pTexObject = 0; /* as on an H200, which detects this mistake after the others */
    if (result != CUDA_SUCCESS)
        return result;
    keep_what_counts(&sampler);
    return add(context, &sampler, pTexObject);
}

CUresult sg_cuTexObjectDestroy(CUtexObject texObject) {
    return destroy(texObject, false);
}

CUresult sg_cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *pResDesc, CUtexObject texObject) {
    const struct sg_sampler *sampler;
    CUresult result = look_up(pResDesc, texObject, false, &sampler);
    if (result == CUDA_SUCCESS)
        *pResDesc = sampler->resource;
    return result;
}

CUresult sg_cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *pTexDesc, CUtexObject texObject) {
    const struct sg_sampler *sampler;
    CUresult result = look_up(pTexDesc, texObject, false, &sampler);
    if (result == CUDA_SUCCESS)
        *pTexDesc = sampler->texture;
    return result;
}

/* For an object without a view the output is left unchanged, and the result is success. */
CUresult sg_cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC *pResViewDesc,
                                           CUtexObject texObject) {
    const struct sg_sampler *sampler;
    CUresult result = look_up(pResViewDesc, texObject, false, &sampler);
    if (result == CUDA_SUCCESS && sampler->has_view)
        *pResViewDesc = sampler->view;
    return result;
}

/* ---- Surfaces -------------------------------------------------------------------------------- */

CUresult sg_cuSurfObjectCreate(CUsurfObject *pSurfObject, const CUDA_RESOURCE_DESC *pResDesc) {
    struct sg_context *context;
    CUresult result = sg_context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pSurfObject || !pResDesc || sg_surface_check(pResDesc) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    struct sg_sampler sampler = {.surface = true, .resource = *pResDesc};
    return add(context, &sampler, pSurfObject);
}

CUresult sg_cuSurfObjectDestroy(CUsurfObject surfObject) {
    return destroy(surfObject, true);
}

CUresult sg_cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *pResDesc, CUsurfObject surfObject) {
    const struct sg_sampler *sampler;
    CUresult result = look_up(pResDesc, surfObject, true, &sampler);
    if (result == CUDA_SUCCESS)
        *pResDesc = sampler->resource;
    return result;
}

/* ---- Reports --------------------------------------------------------------------------------- */

struct report {
    struct sg_text *text;
    const char *ending;
};

static void report_context(uint64_t handle, void *object, void *user) {
    (void)handle;
    const struct sg_context *context = object;
    const struct report *report = user;
    for (size_t i = 0; context->samplers && i < context->samplers->used; i++) {
        const struct sg_sampler *sampler = context->samplers->list[i];
        if (!sampler || sampler->ended)
            continue;
        sg_text_address(report->text, i + 1, sampler->origin, context);
        sg_text_line(report->text, "%s object %zu on device %d%s",
                     sampler->surface ? "surface" : "texture", i + 1, context->device,
                     report->ending);
    }
    size_t references = 0;
    struct sg_origin last = {0};
    for (const struct sg_reference *r = context->references; r; r = r->next) {
        struct sg_origin origin = sg_handle_origin(r->handle);
        references += r->module == NULL;
        if (r->module == NULL && origin.number > last.number)
            last = origin;
    }
    sg_text_address(report->text, context->handle, last, context);
    if (references > 0)
        sg_text_line(report->text, "texture references on device %d: %zu%s", context->device,
                     references, report->ending);
}

static void dump(struct sg_text *text) {
    struct report report = {text, ""};
    sg_handle_each(SG_KIND_CONTEXT, report_context, &report);
}

static void leaks(struct sg_text *text) {
    struct report report = {text, ": not destroyed"};
    sg_handle_each(SG_KIND_CONTEXT, report_context, &report);
}

const struct sg_chapter sg_texture_chapter = {
    .dump = dump,
    .leaks = leaks,
    .context_end =
        {[SG_END_SAMPLERS] = context_end, [SG_END_REFERENCES] = sg_references_context_end},
};
