/*
 * Program images: PTX, cubins, fatbins and linked programs that no tool wrote. A reader refuses
 * them or gives what keeps the promises of image.h; what it takes can be linked, and read again.
 */
#include "softgpu/image/image.h"
#include "softgpu/binary/archive.h"
#include "softgpu/binary/read.h"
#include "softgpu/link/link.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool true_here) {
    if (!true_here)
        abort();
}

static void check_names(char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++)
        require(names[i] != NULL);
}

static void check_variable(const struct sg_image *image, const struct sg_image_variable *variable) {
    require(variable->name && (variable->alignment & (variable->alignment - 1)) == 0);
    require(variable->initial_size <= variable->size || variable->external);
    require(!variable->initial_size || variable->initial);
    for (size_t i = 0; i < variable->relocation_count; i++) {
        const struct sg_relocation *one = &variable->relocations[i];
        require(one->symbol && one->size >= 1 && one->size <= 8);
        require(one->offset <= variable->size && one->size <= variable->size - one->offset);
        require(one->target <= image->variable_count);
    }
}

static void check_calls(const struct sg_image *image) {
    size_t followed = 0;
    for (size_t i = 0; i < image->code_count; i++) {
        require(image->code[i].name != NULL);
        for (size_t call = image->code[i].last_call; call; call = image->calls[call - 1].next) {
            require(call <= image->call_count && image->calls[call - 1].to < image->code_count);
            require(image->calls[call - 1].next < call);
            followed++;
        }
    }
    require(followed == image->call_count);
}

static void check(const struct sg_image *image) {
    for (size_t i = 0; i < image->function_count; i++) {
        const struct sg_image_function *function = &image->functions[i];
        require(function->name && sg_image_find_function(image, function->name));
        require(!function->parameter_count || function->parameters);
    }
    for (size_t i = 0; i < image->variable_count; i++)
        check_variable(image, &image->variables[i]);
    check_names(image->textures, image->texture_count);
    check_names(image->surfaces, image->surface_count);
    check_names(image->undefined, image->undefined_count);
    check_names(image->exported, image->exported_count);
    check_names(image->weak, image->weak_count);
    check_calls(image);
    require(image->source == SG_IMAGE_MACHINE || image->ptx || image->machine);
}

/* What was linked is read again, with as many functions. */
static void link_again(const struct sg_image *image, const struct sg_image_options *options,
                       struct sg_image_log *log) {
    unsigned char *bytes = NULL;
    size_t size = 0;
    struct sg_image *again = NULL;
    if (sg_image_link(&image, 1, options, log, &bytes, &size) != CUDA_SUCCESS)
        return;
    CUresult result = sg_image_read(bytes, size, options, log, &again);
    require(result == CUDA_SUCCESS && again->function_count == image->function_count);
    check(again);
    sg_image_free(again);
    free(bytes);
}

/* ---- Objects and archives of a host ---------------------------------------------------------- */

struct reading {
    const struct sg_image_options *options;
    struct sg_image_log *log;
};

static CUresult read_fatbin(struct sg_bytes fatbin, void *user) {
    const struct reading *reading = user;
    struct sg_image *image = NULL;
    CUresult result =
        sg_image_read(fatbin.data, fatbin.size, reading->options, reading->log, &image);
    require((result == CUDA_SUCCESS) == (image != NULL));
    if (image)
        check(image);
    sg_image_free(image);
    return CUDA_SUCCESS;
}

static void read_host(struct sg_bytes bytes, struct reading *reading) {
    struct sg_archive archive;
    struct sg_archive_member member;
    bool whole = false;
    if (sg_object_is(bytes))
        sg_object_each_fatbin(bytes, read_fatbin, reading);
    if (!sg_archive_open(bytes, &archive))
        return;
    while (sg_archive_next(&archive, &member, &whole)) {
        require(member.name.size == 0 || member.name.data);
        if (sg_object_is(member.bytes))
            sg_object_each_fatbin(member.bytes, read_fatbin, reading);
    }
}

/* The first byte says how it is read; the rest is the image. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char error[100], info[10];
    if (size == 0)
        return 0;
    const struct sg_image_options options = {
        .architecture = data[0] & 1 ? 90 : -1,
        .suffix = data[0] & 2 ? 'a' : 0,
        .newest_ptx = SG_PTX_NEWEST,
        .prefer_machine = (data[0] & 4) != 0,
        .relocatable = (data[0] & 8) != 0,
        .name = data[0] & 16 ? "input" : NULL,
    };
    struct sg_image_log log = {.error = error,
                               .error_size = data[0] & 32 ? sizeof error : 1,
                               .info = info,
                               .info_size = sizeof info};
    struct sg_image *image = NULL;
    /* Exactly as many bytes as there are, so that reading one more is seen. */
    uint8_t *copy = malloc(size);
    memcpy(copy, data + 1, size - 1);
    struct reading reading = {&options, &log};
    read_host((struct sg_bytes){copy, size - 1}, &reading);
    CUresult result = sg_image_read(copy, size - 1, &options, &log, &image);
    free(copy);
    require((result == CUDA_SUCCESS) == (image != NULL));
    require(log.error_used <= log.error_size && log.info_used <= log.info_size);
    if (image) {
        check(image);
        link_again(image, &options, &log);
    }
    sg_image_free(image);
    return 0;
}
