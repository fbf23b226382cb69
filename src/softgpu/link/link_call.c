/* cuLink*: inputs are read as they are added, and joined once all are there. The output is an ELF
 * with a section of softgpu's own (docs/softgpu.md), which cuModuleLoadData accepts. */
#include "softgpu/link/link_call.h"
#include "base/growing_array.h"
#include "softgpu/context/context.h"
#include "softgpu/core/calls.h"
#include "softgpu/core/handle.h"
#include "softgpu/image/reader.h"
#include "softgpu/link/grid_sync.h"
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

/* ---- A grid's synchronization ---------------------------------------------------------------- */

/* Whether the image declares such a function, or defines one. A text that may be linked is not
 * required to have the device runtime's functions, which are no undefined names of its. */
static bool has_grid_sync(const struct sg_image *image, bool defined) {
    for (size_t i = 0; i < image->code_count; i++)
        if (image->code[i].defined == defined &&
            strncmp(image->code[i].name, SG_LINK_GRID_PREFIX, strlen(SG_LINK_GRID_PREFIX)) == 0)
            return true;
    return false;
}

/* Where a text calls it and machine code defines it, as in libcudadevrt.a, there is a text, too. */
static CUresult add_grid_sync(struct sg_link *link, struct sg_image_options options) {
    bool called = false, defined = false;
    for (size_t i = 0; i < link->count; i++) {
        const struct sg_image *image = link->images[i];
        called = called || (image->ptx && has_grid_sync(image, false));
        defined = defined || (!image->ptx && has_grid_sync(image, true));
    }
    if (!called || !defined)
        return CUDA_SUCCESS;
    if (!GM_RESERVE(link->images, link->room, link->count + 1))
        return CUDA_ERROR_OUT_OF_MEMORY;
    options.relocatable = true;
    CUresult result = sg_image_read(sg_link_grid_sync, SIZE_MAX, &options, &link->log,
                                    &link->images[link->count]);
    link->count += result == CUDA_SUCCESS;
    return result;
}

/* Leaves the inputs as they are if they cannot be linked. */
static CUresult link_all(struct sg_link *link, const struct sg_image_options *options) {
    size_t given = link->count;
    CUresult result = add_grid_sync(link, *options);
    if (result == CUDA_SUCCESS)
        result = sg_image_link((const struct sg_image *const *)link->images, link->count, options,
                               &link->log, &link->output, &link->output_size);
    while (result != CUDA_SUCCESS && link->count > given)
        sg_image_free(link->images[--link->count]);
    return result;
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
        result = link_all(link, &options);
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
