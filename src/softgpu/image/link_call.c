/*
 * cuLink*: inputs are read as they are added, and joined when all are there. The output is an ELF
 * with a section of softgpu's own (docs/softgpu.md), which cuModuleLoadData takes.
 */
#include "softgpu/context/context.h"
#include "softgpu/core/calls.h"
#include "softgpu/core/handle.h"
#include "softgpu/image/loading.h"
#include "softgpu/image/reader.h"

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
    CUresult refusal; /* the first input that cannot be joined with the others spoils all */
    bool completed, verbose;
    unsigned char *output;
    size_t output_size;
};

/* Once a linker's compiler has refused a text, an H200 says UNKNOWN of what a linker of the process
 * lacks: recorded of all later ones. */
static bool text_was_refused;

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

/* ---- Inputs --------------------------------------------------------------------------------- */

static bool keep(struct sg_link *link, struct sg_image *image) {
    struct sg_image **images = realloc(link->images, (link->count + 1) * sizeof *images);
    if (!images)
        return false;
    link->images = images;
    images[link->count++] = image;
    return true;
}

static struct sg_image_options options_of(const struct sg_link *link, const char *name) {
    struct sg_image_options options = sg_loading_options(link->device, name);
    if (link->jit.has_target && link->jit.target_result == CUDA_SUCCESS)
        options.architecture = (int)link->jit.target;
    return options;
}

static bool is_elf(const void *data, size_t size) {
    return size >= 4 && memcmp(data, "\177ELF", 4) == 0;
}

static bool is_fatbin(const void *data, size_t size) {
    const uint32_t magic = SG_FATBIN_MAGIC;
    return size >= sizeof magic && memcmp(data, &magic, sizeof magic) == 0;
}

/* Reads it: what the compiler of text and the choice among machine code say. */
static CUresult read_input(struct sg_link *link, CUjitInputType type, const void *data, size_t size,
                           const struct sg_image_options *options, struct sg_image **image) {
    if (type == CU_JIT_INPUT_CUBIN && !is_elf(data, size))
        return CUDA_ERROR_INVALID_IMAGE;
    if (type == CU_JIT_INPUT_PTX && is_elf(data, size))
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    /* A text ends with its zero, whatever its size: recorded. */
    if (type == CU_JIT_INPUT_PTX && !is_fatbin(data, size))
        size = SIZE_MAX;
    CUresult result = sg_image_read(data, size, options, &link->log, image);
    if (result != CUDA_SUCCESS)
        return result;
    result = sg_jit_image(&link->jit, *image, options->architecture, true);
    if (result != CUDA_SUCCESS)
        sg_image_free(*image);
    return result;
}

/* Options of one input are those that a compiler takes for it. */
static CUresult check_options(unsigned count, CUjit_option *options, void **values) {
    struct sg_jit jit;
    CUresult result = sg_jit_read(&jit, count, options, values);
    for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++)
        if (options[i] == CU_JIT_TARGET || options[i] == CU_JIT_TARGET_FROM_CUCONTEXT ||
            options[i] == CU_JIT_WALL_TIME || jit.info || jit.error || jit.fallback)
            result = CUDA_ERROR_INVALID_VALUE;
    return result;
}

/*
 * Hands it to the linker, which takes machine code that was made to be linked, and no name twice.
 * What it refuses once it refuses for good, as recorded: the next input and the end are answered
 * the same. The image is the linker's on success.
 */
static CUresult join(struct sg_link *link, struct sg_image *image,
                     const struct sg_image_options *options) {
    if (link->refusal != CUDA_SUCCESS)
        return link->refusal;
    if (image->machine && !image->to_be_linked)
        return link->refusal = CUDA_ERROR_NO_BINARY_FOR_GPU;
    if (!keep(link, image))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = sg_image_meet((const struct sg_image *const *)link->images, link->count,
                                    options, &link->log);
    if (result != CUDA_SUCCESS)
        link->count--;
    if (result != CUDA_ERROR_OUT_OF_MEMORY)
        link->refusal = result;
    return result;
}

static CUresult add_program(struct sg_link *link, CUjitInputType type, const void *data,
                            size_t size, const char *name) {
    struct sg_image_options options = options_of(link, name);
    struct sg_image *image;
    options.relocatable = true;
    if (type != CU_JIT_INPUT_FATBINARY && link->refusal != CUDA_SUCCESS)
        return link->refusal;
    CUresult result = read_input(link, type, data, size, &options, &image);
    if (result == CUDA_SUCCESS) {
        result = join(link, image, &options);
        if (result != CUDA_SUCCESS)
            sg_image_free(image);
        return result;
    }
    /* A fatbin without code for the device adds nothing, even to what was refused: recorded of one
     * that is a single ELF. */
    if (type == CU_JIT_INPUT_FATBINARY)
        return result == CUDA_ERROR_NO_BINARY_FOR_GPU ? CUDA_SUCCESS : result;
    text_was_refused = text_was_refused || result == CUDA_ERROR_INVALID_PTX;
    /* Text that is wrong is left out; machine code that is wrong is the linker's to refuse. */
    if (result == CUDA_ERROR_NO_BINARY_FOR_GPU ||
        (type == CU_JIT_INPUT_CUBIN && result != CUDA_ERROR_OUT_OF_MEMORY))
        link->refusal = result;
    return result;
}

/* softgpu takes no device code out of a host's objects and archives, and has no compiler for NVVM:
 * it answers to all of them what an H200 answers to those that are none. */
static CUresult refuse_host(CUjitInputType type, const void *data, size_t size) {
    if (type == CU_JIT_INPUT_NVVM)
        return CUDA_ERROR_JIT_COMPILER_NOT_FOUND;
    return type == CU_JIT_INPUT_OBJECT && is_elf(data, size) ? CUDA_ERROR_INVALID_IMAGE
                                                             : CUDA_ERROR_UNKNOWN;
}

static CUresult add_input(struct sg_link *link, CUjitInputType type, const void *data, size_t size,
                          const char *name) {
    if (type < 0 || type >= CU_JIT_NUM_INPUT_TYPES || link->completed)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = type <= CU_JIT_INPUT_FATBINARY ? add_program(link, type, data, size, name)
                                                     : refuse_host(type, data, size);
    sg_jit_answer(&link->jit, &link->log, link->started);
    return result;
}

CUresult sg_cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size,
                             const char *name, unsigned int numOptions, CUjit_option *options,
                             void **optionValues) {
    struct sg_link *link;
    CUresult result = find(state, &link);
    if (result == CUDA_SUCCESS)
        result = check_options(numOptions, options, optionValues);
    if (result != CUDA_SUCCESS)
        return result;
    if (!data || size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    return add_input(link, type, data, size, name);
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
    CUresult result = find(state, &link);
    if (result == CUDA_SUCCESS)
        result = check_options(numOptions, options, optionValues);
    if (result != CUDA_SUCCESS)
        return result;
    if (!path)
        return CUDA_ERROR_INVALID_VALUE;
    result = sg_loading_file(path, &bytes, &size);
    if (result != CUDA_SUCCESS)
        return result;
    result = add_input(link, type, bytes, size, path);
    free(bytes);
    return result;
}

CUresult sg_cuLinkAddFile(CUlinkState state, CUjitInputType type, const char *path,
                          unsigned int numOptions, CUjit_option *options, void **optionValues) {
    return sg_cuLinkAddFile_v2(state, type, path, numOptions, options, optionValues);
}

/* ---- Output --------------------------------------------------------------------------------- */

/* Once: an H200 takes the handle for no linker afterwards, but for its end. */
CUresult sg_cuLinkComplete(CUlinkState state, void **cubinOut, size_t *sizeOut) {
    struct sg_link *link;
    CUresult result = find(state, &link);
    if (result != CUDA_SUCCESS)
        return result;
    if (!cubinOut)
        return CUDA_ERROR_INVALID_VALUE;
    if (link->completed)
        return CUDA_ERROR_INVALID_HANDLE;
    struct sg_image_options options = options_of(link, NULL);
    result = link->refusal;
    if (result == CUDA_SUCCESS && link->verbose)
        sg_image_log_info(&link->log, "info    : %zu inputs to be linked", link->count);
    if (result == CUDA_SUCCESS)
        result = sg_image_link((const struct sg_image *const *)link->images, link->count, &options,
                               &link->log, &link->output, &link->output_size);
    if (result == CUDA_ERROR_INVALID_SOURCE && link->refusal == CUDA_SUCCESS && text_was_refused)
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
    CUresult result = find(state, &link);
    if (result == CUDA_SUCCESS)
        link_free(link);
    return result;
}
