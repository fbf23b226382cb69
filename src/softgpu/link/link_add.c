/* cuLinkAdd*: inputs are read as they are added. */
#include "base/growing_array.h"
#include "softgpu/binary/archive.h"
#include "softgpu/binary/read.h"
#include "softgpu/core/calls.h"
#include "softgpu/core/config.h"
#include "softgpu/image/reader.h"
#include "softgpu/link/link.h"
#include "softgpu/link/link_call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool keep(struct sg_link *link, struct sg_image *image) {
    if (!GM_RESERVE(link->images, link->room, link->count + 1))
        return false;
    link->images[link->count++] = image;
    return true;
}

static bool is_elf(const void *data, size_t size) {
    return size >= 4 && memcmp(data, "\177ELF", 4) == 0;
}

static bool is_fatbin(const void *data, size_t size) {
    const uint32_t magic = SG_FATBIN_MAGIC;
    return size >= sizeof magic && memcmp(data, &magic, sizeof magic) == 0;
}

/* Of a fatbin a linker takes the machine code, as recorded, where it can be linked. The text beside
 * it is what can run. */
static void take_text(const void *data, size_t size, struct sg_image_options options,
                      struct sg_image **image) {
    struct sg_image_log none = {0};
    struct sg_image *text;
    options.prefer_machine = false;
    if (sg_image_read(data, size, &options, &none, &text) != CUDA_SUCCESS)
        return;
    sg_image_free(*image);
    *image = text;
}

/* Reads it, answering like the compiler of text and the choice among machine code. */
static CUresult read_input(struct sg_link *link, CUjitInputType type, const void *data, size_t size,
                           const struct sg_image_options *options, struct sg_image **image) {
    if (type == CU_JIT_INPUT_CUBIN && !is_elf(data, size))
        return CUDA_ERROR_INVALID_IMAGE;
    if (type == CU_JIT_INPUT_CUBIN && sg_object_is((struct sg_bytes){data, size}))
        return CUDA_ERROR_UNKNOWN;
    /* A text ends at its zero, whatever its size: recorded. */
    if (type == CU_JIT_INPUT_PTX && !is_fatbin(data, size) && !is_elf(data, size))
        size = SIZE_MAX;
    CUresult result = sg_image_read(data, size, options, &link->log, image);
    sg_loading_explain(result, &link->log);
    if (result == CUDA_SUCCESS && (*image)->to_be_linked && sg_config()->kernels)
        take_text(data, size, *options, image);
    if (result != CUDA_SUCCESS)
        return result;
    result = sg_jit_image(&link->jit, *image, options->architecture, true);
    if (result != CUDA_SUCCESS)
        sg_image_free(*image);
    return result;
}

/* The options of one input are those that a compiler accepts for it. */
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
 * Hands it to the linker, which accepts machine code made to be linked. A refusal is permanent, as
 * recorded: the next input and the end get the same answer. On success the linker owns the image.
 */
static CUresult take(struct sg_link *link, struct sg_image *image) {
    if (link->refusal != CUDA_SUCCESS)
        return link->refusal;
    if (image->machine && !image->to_be_linked)
        return link->refusal = CUDA_ERROR_NO_BINARY_FOR_GPU;
    return keep(link, image) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static void drop_from(struct sg_link *link, size_t first) {
    while (link->count > first)
        sg_image_free(link->images[--link->count]);
}

/* Joins all images of one input, from `first` on, with the others: no name twice. Frees them when
 * that, or what came before, is refused. */
static CUresult join(struct sg_link *link, size_t first, CUresult result,
                     const struct sg_image_options *options) {
    if (result == CUDA_SUCCESS && link->count > first) {
        result = sg_image_meet((const struct sg_image *const *)link->images, link->count, options,
                               &link->log);
        if (result != CUDA_ERROR_OUT_OF_MEMORY)
            link->refusal = result;
    }
    if (result != CUDA_SUCCESS)
        drop_from(link, first);
    return result;
}

static CUresult add_program(struct sg_link *link, CUjitInputType type, const void *data,
                            size_t size, const char *name) {
    struct sg_image_options options = sg_link_options(link, name);
    struct sg_image *image;
    options.relocatable = true;
    if (type != CU_JIT_INPUT_FATBINARY && link->refusal != CUDA_SUCCESS)
        return link->refusal;
    CUresult result = read_input(link, type, data, size, &options, &image);
    if (result == CUDA_SUCCESS) {
        size_t first = link->count;
        result = take(link, image);
        if (result != CUDA_SUCCESS)
            sg_image_free(image);
        return join(link, first, result, &options);
    }
    /* A fatbin without code for the device adds nothing, even after a refusal: recorded for one
     * that is a single ELF. */
    if (type == CU_JIT_INPUT_FATBINARY)
        return result == CUDA_ERROR_NO_BINARY_FOR_GPU ? CUDA_SUCCESS : result;
    sg_link_text_was_refused = sg_link_text_was_refused || result == CUDA_ERROR_INVALID_PTX;
    /* Bad text is left out; bad machine code makes the linker refuse. */
    if (type == CU_JIT_INPUT_CUBIN && result != CUDA_ERROR_OUT_OF_MEMORY)
        link->refusal = result;
    return result;
}

/* ---- Objects and archives of a host ---------------------------------------------------------- */

struct host_input {
    struct sg_link *link;
    struct sg_image_options options;
    bool found; /* code for some device */
};

/* A fatbin without code for the device adds nothing. */
static CUresult take_fatbin(struct sg_bytes fatbin, void *user) {
    struct host_input *input = user;
    struct sg_image *image;
    input->found = true;
    CUresult result = read_input(input->link, CU_JIT_INPUT_FATBINARY, fatbin.data, fatbin.size,
                                 &input->options, &image);
    if (result != CUDA_SUCCESS)
        return result == CUDA_ERROR_NO_BINARY_FOR_GPU ? CUDA_SUCCESS : result;
    result = take(input->link, image);
    if (result != CUDA_SUCCESS)
        sg_image_free(image);
    return result;
}

static CUresult take_members(struct sg_archive *archive, struct host_input *input,
                             const char *name) {
    struct sg_archive_member member;
    bool whole = true;
    CUresult result = CUDA_SUCCESS;
    while (result == CUDA_SUCCESS && sg_archive_next(archive, &member, &whole)) {
        char label[256];
        if (!sg_object_is(member.bytes))
            continue;
        int length = member.name.size < 100 ? (int)member.name.size : 100;
        const char *text = length ? (const char *)member.name.data : "";
        snprintf(label, sizeof label, "%.120s:%.*s", name ? name : "", length, text);
        input->options.name = label;
        result = sg_object_each_fatbin(member.bytes, take_fatbin, input);
        input->options.name = name;
    }
    /* An H200 reads on past the given end as long as members follow. */
    return result == CUDA_SUCCESS && !whole ? CUDA_ERROR_INVALID_IMAGE : result;
}

/*
 * All members of an archive are linked, whether referenced or not, and those that are not objects
 * are skipped, as in nvlink. Anything else, or without code for a device, gets an H200's own
 * answer, without a mark on the linker. A linker that has refused something accepts any object, and
 * reads none.
 */
static CUresult add_host(struct sg_link *link, CUjitInputType type, struct sg_bytes bytes,
                         const char *name) {
    struct host_input input = {.link = link, .options = sg_link_options(link, name)};
    struct sg_archive archive;
    size_t first = link->count;
    CUresult result;
    if (type == CU_JIT_INPUT_OBJECT && link->refusal != CUDA_SUCCESS)
        return CUDA_SUCCESS;
    input.options.relocatable = true;
    if (type == CU_JIT_INPUT_LIBRARY)
        result = sg_archive_open(bytes, &archive) ? take_members(&archive, &input, name)
                                                  : CUDA_ERROR_UNKNOWN;
    else if (sg_object_is(bytes))
        result = sg_object_each_fatbin(bytes, take_fatbin, &input);
    else
        result = is_elf(bytes.data, bytes.size) ? CUDA_ERROR_INVALID_IMAGE : CUDA_ERROR_UNKNOWN;
    if (result == CUDA_SUCCESS && !input.found)
        result = CUDA_ERROR_INVALID_IMAGE;
    return join(link, first, result, &input.options);
}

/* There is no compiler for it: the linker lacks what it would have provided. */
static CUresult add_nvvm(struct sg_link *link) {
    if (link->refusal == CUDA_SUCCESS)
        link->refusal = CUDA_ERROR_JIT_COMPILER_NOT_FOUND;
    return CUDA_ERROR_JIT_COMPILER_NOT_FOUND;
}

static CUresult add_input(struct sg_link *link, CUjitInputType type, const void *data, size_t size,
                          const char *name) {
    CUresult result;
    if (type < 0 || type >= CU_JIT_NUM_INPUT_TYPES || link->completed)
        return CUDA_ERROR_INVALID_VALUE;
    if (type == CU_JIT_INPUT_NVVM)
        result = add_nvvm(link);
    else if (type <= CU_JIT_INPUT_FATBINARY)
        result = add_program(link, type, data, size, name);
    else
        result = add_host(link, type, (struct sg_bytes){data, size}, name);
    sg_jit_answer(&link->jit, &link->log, link->started);
    return result;
}

CUresult sg_cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size,
                             const char *name, unsigned int numOptions, CUjit_option *options,
                             void **optionValues) {
    struct sg_link *link;
    CUresult result = sg_link_find(state, &link);
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
    CUresult result = sg_link_find(state, &link);
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
