/* Texture and surface references, through which the old interface samples. They belong to a
 * context, and those that an image declares belong to its module. */
#include "softgpu/texture/texture.h"

#include "softgpu/array/array.h"

#include <stdlib.h>
#include <string.h>

struct sg_reference *sg_reference_new(struct sg_context *context, bool surface) {
    struct sg_reference *reference = calloc(1, sizeof *reference);
    if (!reference)
        return NULL;
    reference->handle =
        sg_handle_new(surface ? SG_KIND_SURFACE_REFERENCE : SG_KIND_TEXTURE_REFERENCE, reference);
    if (!reference->handle) {
        free(reference);
        return NULL;
    }
    reference->surface = surface;
    reference->context = context;
    for (int i = 0; i < 3; i++)
        reference->address_mode[i] = CU_TR_ADDRESS_MODE_CLAMP;
    reference->format = CU_AD_FORMAT_FLOAT;
    reference->channels = 1;
    reference->next = context->references;
    context->references = reference;
    return reference;
}

static void end(struct sg_reference *reference) {
    sg_handle_drop(reference->surface ? SG_KIND_SURFACE_REFERENCE : SG_KIND_TEXTURE_REFERENCE,
                   reference->handle);
    free(reference);
}

void sg_reference_free(struct sg_reference *reference) {
    struct sg_reference **at = &reference->context->references;
    while (*at != reference)
        at = &(*at)->next;
    *at = reference->next;
    end(reference);
}

CUresult sg_reference_of_module(const struct sg_module *module, struct sg_context *context,
                                const char *name, bool surface, struct sg_reference **reference) {
    for (struct sg_reference *r = context->references; r; r = r->next)
        if (r->module == module && r->surface == surface && strcmp(r->name, name) == 0) {
            *reference = r;
            return CUDA_SUCCESS;
        }
    struct sg_reference *made = sg_reference_new(context, surface);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made->module = module;
    made->name = name;
    *reference = made;
    return CUDA_SUCCESS;
}

void sg_references_module_end(const struct sg_module *module, struct sg_context *context) {
    for (struct sg_reference **at = &context->references; *at;) {
        struct sg_reference *reference = *at;
        if (reference->module != module) {
            at = &reference->next;
            continue;
        }
        *at = reference->next;
        end(reference);
    }
}

void sg_references_context_end(struct sg_context *context) {
    while (context->references) {
        struct sg_reference *reference = context->references;
        context->references = reference->next;
        end(reference);
    }
}

struct sg_reference *sg_reference_get(CUtexref handle) {
    return sg_handle_get(SG_KIND_TEXTURE_REFERENCE, SG_HANDLE_VALUE(handle));
}

bool sg_reference_bound(const struct sg_reference *reference) {
    switch (reference->bound) {
    case SG_BOUND_ADDRESS:
        return true;
    case SG_BOUND_ARRAY:
        return sg_array_get(reference->array) != NULL;
    case SG_BOUND_MIPMAP:
        return sg_mipmap_get(reference->mipmap) != NULL;
    case SG_BOUND_NOTHING:
        break;
    }
    return false;
}
