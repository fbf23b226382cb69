/* Linking: every name from one image, none from two, and what comes out as softgpu's container. */
#include "softgpu/image/container.h"

#include <stdlib.h>
#include <string.h>

struct linking {
    const struct sg_image *const *images;
    size_t count;
    const struct sg_image_options *options;
    struct sg_image_log *log;
    struct sg_name_table defined; /* scope 0: functions, variables, device functions */
    CUresult result;
};

static void wrong(struct linking *link, const char *what, const char *name) {
    if (link->result != CUDA_SUCCESS)
        return;
    link->result = CUDA_ERROR_INVALID_SOURCE; /* as an H200 says */
    sg_image_log_error(link->log, link->options->name, 0, "%s '%.80s'", what, name);
}

static void define(struct linking *link, const char *name, bool twice) {
    size_t found, number = link->defined.used;
    if (link->result != CUDA_SUCCESS)
        return;
    if (!sg_names_add(&link->defined, 0, name, strlen(name), number, &found))
        link->result = CUDA_ERROR_OUT_OF_MEMORY;
    else if (found != number && !twice)
        wrong(link, "two inputs define", name);
}

/* Names that are not visible belong to their input alone, and do not meet those of others. */
static bool meets(const struct sg_image_variable *variable) {
    return variable->visible && !variable->external;
}

static void define_all(struct linking *link, const struct sg_image *image) {
    for (size_t i = 0; i < image->function_count; i++)
        define(link, image->functions[i].name, false);
    for (size_t i = 0; i < image->variable_count; i++) {
        if (meets(&image->variables[i]))
            define(link, image->variables[i].name, image->variables[i].weak);
    }
    for (size_t i = 0; i < image->exported_count; i++)
        define(link, image->exported[i], false);
}

static bool is_defined(const struct linking *link, const char *name) {
    size_t value;
    return sg_names_find(&link->defined, 0, name, strlen(name), &value);
}

static void require_all(struct linking *link, const struct sg_image *image) {
    for (size_t i = 0; i < image->undefined_count; i++) {
        if (!is_defined(link, image->undefined[i]))
            wrong(link, "no input defines", image->undefined[i]);
    }
    for (size_t i = 0; i < image->variable_count; i++) {
        if (image->variables[i].external && !is_defined(link, image->variables[i].name))
            wrong(link, "no input defines", image->variables[i].name);
    }
}

/* ---- writing
 * ----------------------------------------------------------------------------------------- */

struct totals {
    size_t functions, variables, textures, surfaces;
    int ptx_version, target;
    char suffix;
    bool machine;
};

static struct totals total(const struct linking *link) {
    struct totals sum = {0};
    for (size_t i = 0; i < link->count; i++) {
        const struct sg_image *image = link->images[i];
        sum.functions += image->function_count;
        sum.textures += image->texture_count;
        sum.surfaces += image->surface_count;
        for (size_t v = 0; v < image->variable_count; v++)
            sum.variables += !image->variables[v].external;
        sum.machine = sum.machine || image->source == SG_IMAGE_MACHINE;
        sum.suffix = image->target_suffix ? image->target_suffix : sum.suffix;
        if (image->ptx_version > sum.ptx_version)
            sum.ptx_version = image->ptx_version;
        if (image->target > sum.target)
            sum.target = image->target;
    }
    return sum;
}

static void put_names(struct sg_container_writer *to, char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++)
        sg_container_put_text(to, names[i]);
}

static void put_objects(struct sg_container_writer *to, const struct linking *link) {
    for (size_t i = 0; i < link->count; i++) {
        for (size_t f = 0; f < link->images[i]->function_count; f++)
            sg_container_put_function(to, &link->images[i]->functions[f]);
    }
    for (size_t i = 0; i < link->count; i++) {
        const struct sg_image *image = link->images[i];
        for (size_t v = 0; v < image->variable_count; v++) {
            if (!image->variables[v].external)
                sg_container_put_variable(to, &image->variables[v]);
        }
    }
    for (size_t i = 0; i < link->count; i++)
        put_names(to, link->images[i]->textures, link->images[i]->texture_count);
    for (size_t i = 0; i < link->count; i++)
        put_names(to, link->images[i]->surfaces, link->images[i]->surface_count);
    for (size_t i = 0; i < link->count; i++) {
        const struct sg_image *image = link->images[i];
        sg_container_put_number(to, image->source, 1);
        if (image->ptx)
            sg_container_put_bytes(to, image->ptx, strlen(image->ptx));
        else
            sg_container_put_bytes(to, image->machine, image->machine_size);
    }
}

static void put_all(struct sg_container_writer *to, const struct linking *link) {
    const struct totals sum = total(link);
    sg_container_put_number(to, SG_CONTAINER_MAGIC, 4);
    sg_container_put_number(to, 1, 4);
    sg_container_put_number(to, 0, 8); /* bytes in all, filled in when they are known */
    sg_container_put_number(to, (uint64_t)sum.ptx_version, 4);
    sg_container_put_number(to, (uint64_t)sum.target, 4);
    sg_container_put_number(to, (unsigned char)sum.suffix, 1);
    sg_container_put_number(to, sum.machine ? SG_IMAGE_MACHINE : SG_IMAGE_PTX, 1);
    sg_container_put_number(to, sum.functions, 4);
    sg_container_put_number(to, sum.variables, 4);
    sg_container_put_number(to, sum.textures, 4);
    sg_container_put_number(to, sum.surfaces, 4);
    sg_container_put_number(to, link->count, 4);
    put_objects(to, link);
    for (unsigned i = 0; !to->failed && i < 8; i++)
        to->bytes[8 + i] = (unsigned char)((uint64_t)to->size >> (8 * i));
}

CUresult sg_image_link(const struct sg_image *const *images, size_t count,
                       const struct sg_image_options *options, struct sg_image_log *log,
                       unsigned char **bytes, size_t *size) {
    struct linking link = {.images = images, .count = count, .options = options, .log = log};
    for (size_t i = 0; i < count; i++)
        define_all(&link, images[i]);
    for (size_t i = 0; i < count; i++)
        require_all(&link, images[i]);
    sg_names_clear(&link.defined);
    if (link.result != CUDA_SUCCESS)
        return link.result;
    struct sg_container_writer to = {0};
    put_all(&to, &link);
    if (to.failed) {
        free(to.bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *bytes = to.bytes;
    *size = to.size;
    return CUDA_SUCCESS;
}
