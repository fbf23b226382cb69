/*
 * cuLink*: inputs are read as they are added, and joined when all are there. The output is
 * softgpu's own container (docs/softgpu.md), which cuModuleLoadData takes.
 */
#include "softgpu/context/context.h"
#include "softgpu/core/calls.h"
#include "softgpu/core/handle.h"
#include "softgpu/image/loading.h"

#include <stdlib.h>
#include <string.h>

/* Logs, and the values that say how much of them was used, are written until the linker ends. */
struct sg_link {
    uint64_t handle;
    int device;
    struct sg_jit jit; /* its options are a copy; its values are the application's */
    struct sg_image_log log;
    uint64_t started;
    struct sg_image **images;
    size_t count;
    unsigned char *output;
    size_t output_size;
};

static CUresult find(CUlinkState state, struct sg_link **link) {
    *link = sg_handle_get(SG_KIND_LINK, SG_HANDLE_VALUE(state));
    return *link ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
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
    if (jit->count == 0)
        return true;
    CUjit_option *copy = malloc(jit->count * sizeof *copy);
    if (!copy)
        return false;
    memcpy(copy, jit->options, jit->count * sizeof *copy);
    jit->options = copy;
    return true;
}

static CUresult link_new(const struct sg_jit *jit, int device, struct sg_link **link) {
    struct sg_link *made = calloc(1, sizeof *made);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *made = (struct sg_link){.device = device, .jit = *jit, .started = sg_now()};
    made->log = sg_jit_log(&made->jit);
    if (!copy_options(&made->jit))
        made->jit.options = NULL;
    else
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
    if (result == CUDA_SUCCESS)
        result = link_new(&jit, context->device, &link);
    if (result == CUDA_SUCCESS)
        *stateOut = SG_HANDLE_POINTER(CUlinkState, link->handle);
    return result;
}

CUresult sg_cuLinkCreate(unsigned int numOptions, CUjit_option *options, void **optionValues,
                         CUlinkState *stateOut) {
    return sg_cuLinkCreate_v2(numOptions, options, optionValues, stateOut);
}

/* ---- Inputs --------------------------------------------------------------------------------- */

static bool keep(struct sg_link *link, struct sg_image *image) {
    struct sg_image **images = realloc(link->images, (link->count + 1) * sizeof *images);
    if (!images)
        return false;
    link->images = images;
    images[link->count++] = image;
    return true;
}

static CUresult add(struct sg_link *link, const void *bytes, size_t size, const char *name) {
    struct sg_image_options options = sg_loading_options(link->device, name);
    struct sg_image *image;
    options.relocatable = true;
    CUresult result = sg_image_read(bytes, size, &options, &link->log, &image);
    if (result == CUDA_SUCCESS && !keep(link, image)) {
        sg_image_free(image);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    sg_jit_answer(&link->jit, &link->log, link->started);
    return result;
}

static CUresult check_input(CUlinkState state, CUjitInputType type, unsigned count,
                            CUjit_option *options, void **values, struct sg_link **link) {
    struct sg_jit jit;
    CUresult result = find(state, link);
    if (result == CUDA_SUCCESS && (type < 0 || type >= CU_JIT_NUM_INPUT_TYPES))
        result = CUDA_ERROR_INVALID_VALUE;
    return result == CUDA_SUCCESS ? sg_jit_read(&jit, count, options, values) : result;
}

CUresult sg_cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size,
                             const char *name, unsigned int numOptions, CUjit_option *options,
                             void **optionValues) {
    struct sg_link *link;
    CUresult result = check_input(state, type, numOptions, options, optionValues, &link);
    if (result != CUDA_SUCCESS)
        return result;
    if (!data || size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    return add(link, data, size, name);
}

CUresult sg_cuLinkAddData(CUlinkState state, CUjitInputType type, void *data, size_t size,
                          const char *name, unsigned int numOptions, CUjit_option *options,
                          void **optionValues) {
    return sg_cuLinkAddData_v2(state, type, data, size, name, numOptions, options, optionValues);
}

CUresult sg_cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path,
                             unsigned int numOptions, CUjit_option *options, void **optionValues) {
    struct sg_link *link;
    unsigned char *bytes;
    size_t size;
    CUresult result = check_input(state, type, numOptions, options, optionValues, &link);
    if (result != CUDA_SUCCESS)
        return result;
    if (!path)
        return CUDA_ERROR_INVALID_VALUE;
    result = sg_loading_file(path, &bytes, &size);
    if (result != CUDA_SUCCESS)
        return result;
    result = add(link, bytes, size, path);
    free(bytes);
    return result;
}

CUresult sg_cuLinkAddFile(CUlinkState state, CUjitInputType type, const char *path,
                          unsigned int numOptions, CUjit_option *options, void **optionValues) {
    return sg_cuLinkAddFile_v2(state, type, path, numOptions, options, optionValues);
}

/* ---- Output --------------------------------------------------------------------------------- */

CUresult sg_cuLinkComplete(CUlinkState state, void **cubinOut, size_t *sizeOut) {
    struct sg_link *link;
    CUresult result = find(state, &link);
    if (result != CUDA_SUCCESS)
        return result;
    if (!cubinOut)
        return CUDA_ERROR_INVALID_VALUE;
    if (!link->output) {
        struct sg_image_options options = sg_loading_options(link->device, NULL);
        result = sg_image_link((const struct sg_image *const *)link->images, link->count, &options,
                               &link->log, &link->output, &link->output_size);
        sg_jit_answer(&link->jit, &link->log, link->started);
        if (result != CUDA_SUCCESS)
            return result;
    }
    *cubinOut = link->output;
    if (sizeOut)
        *sizeOut = link->output_size;
    return CUDA_SUCCESS;
}

CUresult sg_cuLinkDestroy(CUlinkState state) {
    struct sg_link *link;
    CUresult result = find(state, &link);
    if (result == CUDA_SUCCESS)
        link_free(link);
    return result;
}
