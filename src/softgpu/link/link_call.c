/* cuLink*: inputs are read as they are added, and joined once all are there. The output is an ELF
 * with a section of softgpu's own (docs/softgpu.md), which cuModuleLoadData accepts. */
#include "softgpu/link/link_call.h"
#include "softgpu/context/context.h"
#include "softgpu/core/calls.h"
#include "softgpu/core/handle.h"
#include "softgpu/image/reader.h"
#include "softgpu/link/link.h"

#include <stdlib.h>
#include <string.h>

bool sg_link_text_was_refused;

CUresult sg_link_find(CUlinkState state, struct sg_link **link) {
    *link = sg_handle_get(SG_KIND_LINK, SG_HANDLE_VALUE(state));
    return *link ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

struct sg_image_options sg_link_options(const struct sg_link *link, const char *name) {
    struct sg_image_options options = sg_loading_options(link->device, name);
    if (link->jit.has_target && link->jit.target_result == CUDA_SUCCESS)
        options.architecture = (int)link->jit.target;
    options.prefer_machine = true; /* as recorded; link_add.c then looks for text */
    return options;
}

static void link_free(struct sg_link *link) {
    for (size_t i = 0; i < link->count; i++)
        sg_image_free(link->images[i]);
    if (link->handle)
        sg_handle_drop(SG_KIND_LINK, link->handle);
    free(link->images);
    free(link->jit.options);
    free(link->output);
    free(link);
}

static bool copy_options(struct sg_jit *jit) {
    const CUjit_option *given = jit->options;
    jit->options = jit->count ? malloc(jit->count * sizeof *given) : NULL;
    if (jit->options)
        memcpy(jit->options, given, jit->count * sizeof *given);
    return jit->options || jit->count == 0;
}

static CUresult link_new(const struct sg_jit *jit, int device, struct sg_link **link) {
    struct sg_link *made = calloc(1, sizeof *made);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *made = (struct sg_link){.device = device, .jit = *jit, .started = sg_now()};
    made->log = sg_jit_log(&made->jit);
    for (unsigned i = 0; i < jit->count; i++)
        made->verbose |= jit->options[i] == CU_JIT_LOG_VERBOSE && jit->values[i];
    if (copy_options(&made->jit))
        made->handle = sg_handle_new(SG_KIND_LINK, made);
    if (!made->handle) {
        link_free(made);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *link = made;
    return CUDA_SUCCESS;
}

CUresult sg_cuLinkCreate_v2(unsigned int numOptions, CUjit_option *options, void **optionValues,
                            CUlinkState *stateOut) {
    struct sg_context *context;
    struct sg_jit jit;
    struct sg_link *link;
    CUresult result = sg_context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!stateOut)
        return CUDA_ERROR_INVALID_VALUE;
    result = sg_jit_read(&jit, numOptions, options, optionValues);
    if (result == CUDA_SUCCESS && jit.fallback)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = link_new(&jit, context->device, &link);
    if (result != CUDA_SUCCESS)
        return result;
    sg_jit_answer(&link->jit, &link->log, link->started);
    *stateOut = SG_HANDLE_POINTER(CUlinkState, link->handle);
    return CUDA_SUCCESS;
}

CUresult sg_cuLinkCreate(unsigned int numOptions, CUjit_option *options, void **optionValues,
                         CUlinkState *stateOut) {
    return sg_cuLinkCreate_v2(numOptions, options, optionValues, stateOut);
}

/* ---- Output --------------------------------------------------------------------------------- */

/* Only once: afterwards an H200 accepts the handle only to destroy the linker. */
CUresult sg_cuLinkComplete(CUlinkState state, void **cubinOut, size_t *sizeOut) {
    struct sg_link *link;
    CUresult result = sg_link_find(state, &link);
    if (result != CUDA_SUCCESS)
        return result;
    if (!cubinOut)
        return CUDA_ERROR_INVALID_VALUE;
    if (link->completed)
        return CUDA_ERROR_INVALID_HANDLE;
    struct sg_image_options options = sg_link_options(link, NULL);
    result = link->refusal;
    if (result == CUDA_SUCCESS && link->verbose)
        sg_image_log_info(&link->log, "info    : %zu inputs to be linked", link->count);
    if (result == CUDA_SUCCESS)
        result = sg_image_link((const struct sg_image *const *)link->images, link->count, &options,
                               &link->log, &link->output, &link->output_size);
    if (result == CUDA_ERROR_INVALID_SOURCE && link->refusal == CUDA_SUCCESS &&
        sg_link_text_was_refused)
        result = CUDA_ERROR_UNKNOWN;
    if (result == CUDA_SUCCESS)
        sg_image_log_info(&link->log, "info    : %zu inputs linked, %zu bytes", link->count,
                          link->output_size);
    sg_jit_answer(&link->jit, &link->log, link->started);
    if (result != CUDA_SUCCESS)
        return result;
    link->completed = true;
    *cubinOut = link->output;
    if (sizeOut)
        *sizeOut = link->output_size;
    return CUDA_SUCCESS;
}

CUresult sg_cuLinkDestroy(CUlinkState state) {
    struct sg_link *link;
    CUresult result = sg_link_find(state, &link);
    if (result == CUDA_SUCCESS)
        link_free(link);
    return result;
}
