/* Linking: every name from one image, none from two, and what comes out as an ELF. */
#include "softgpu/image/container.h"

#include <stdlib.h>
#include <string.h>

struct linking {
    const struct sg_image *const *images;
    size_t count;
    const struct sg_image_options *options;
    struct sg_image_log *log;
    /* Scope 0: functions, variables, device functions. The image whose definition counts, doubled;
     * odd while that is a weak one. */
    struct sg_name_table defined;
    CUresult result;
};

static void wrong(struct linking *link, const char *what, const char *name) {
    if (link->result != CUDA_SUCCESS)
        return;
    link->result = CUDA_ERROR_INVALID_SOURCE; /* as an H200 says */
    sg_image_log_error(link->log, link->options->name, 0, "%s '%.80s'", what, name);
}

/* Of weak definitions the first counts, unless there is one that is not. */
static void define(struct linking *link, size_t image, const char *name, bool weak) {
    size_t found, value = 2 * image + weak, known = link->defined.used;
    if (link->result != CUDA_SUCCESS)
        return;
    if (!sg_names_add(&link->defined, 0, name, strlen(name), value, &found))
        link->result = CUDA_ERROR_OUT_OF_MEMORY;
    else if (link->defined.used == known && !weak && !(found & 1))
        wrong(link, "two inputs define", name);
    else if (!weak && (found & 1))
        sg_names_slot(&link->defined, 0, name, strlen(name))->value = value;
}

/* Names that are not visible belong to their input alone, and do not meet those of others. */
static bool meets(const struct sg_image_variable *variable) {
    return variable->visible && !variable->external;
}

static void define_all(struct linking *link) {
    for (size_t i = 0; i < link->count; i++) {
        const struct sg_image *image = link->images[i];
        for (size_t f = 0; f < image->function_count; f++)
            define(link, i, image->functions[f].name, false);
        for (size_t v = 0; v < image->variable_count; v++) {
            if (meets(&image->variables[v]))
                define(link, i, image->variables[v].name, image->variables[v].weak);
        }
        for (size_t e = 0; e < image->exported_count; e++)
            define(link, i, image->exported[e], false);
    }
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

/* Whether that variable is one of the result's. */
static bool counts(const struct linking *link, size_t image, const struct sg_image_variable *one) {
    size_t value;
    if (one->external || !meets(one))
        return !one->external;
    return sg_names_find(&link->defined, 0, one->name, strlen(one->name), &value) &&
           value / 2 == image;
}

/* ---- writing
 * ----------------------------------------------------------------------------------------- */

struct totals {
    size_t functions, variables, textures, surfaces;
    int ptx_version, target;
    bool specific, machine;
};

static struct totals total(const struct linking *link) {
    struct totals sum = {0};
    for (size_t i = 0; i < link->count; i++) {
        const struct sg_image *image = link->images[i];
        sum.functions += image->function_count;
        sum.textures += image->texture_count;
        sum.surfaces += image->surface_count;
        for (size_t v = 0; v < image->variable_count; v++)
            sum.variables += counts(link, i, &image->variables[v]);
        sum.machine = sum.machine || image->source == SG_IMAGE_MACHINE;
        sum.specific = sum.specific || image->target_suffix == 'a';
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
            if (counts(link, i, &image->variables[v]))
                sg_container_put_variable(to, &image->variables[v]);
        }
    }
    for (size_t i = 0; i < link->count; i++)
        put_names(to, link->images[i]->textures, link->images[i]->texture_count);
    for (size_t i = 0; i < link->count; i++)
        put_names(to, link->images[i]->surfaces, link->images[i]->surface_count);
    for (size_t i = 0; i < link->count; i++) {
        const struct sg_image *image = link->images[i];
        sg_container_put_number(to, image->ptx ? SG_IMAGE_PTX : SG_IMAGE_MACHINE, 1);
        if (image->ptx)
            sg_container_put_bytes(to, image->ptx, strlen(image->ptx));
        else
            sg_container_put_bytes(to, image->machine, image->machine_size);
    }
}

static void put_section(struct sg_container_writer *to, const struct linking *link,
                        const struct totals *sum) {
    sg_container_put_number(to, SG_CONTAINER_VERSION, 4);
    sg_container_put_number(to, (uint64_t)sum->ptx_version, 4);
    sg_container_put_number(to, (uint64_t)sum->target, 4);
    sg_container_put_number(to, sum->machine ? SG_IMAGE_MACHINE : SG_IMAGE_PTX, 1);
    sg_container_put_number(to, sum->functions, 4);
    sg_container_put_number(to, sum->variables, 4);
    sg_container_put_number(to, sum->textures, 4);
    sg_container_put_number(to, sum->surfaces, 4);
    sg_container_put_number(to, link->count, 4);
    put_objects(to, link);
}

static CUresult write_all(const struct linking *link, unsigned char **bytes, size_t *size) {
    const struct totals sum = total(link);
    int architecture = link->options->architecture < 0 ? sum.target : link->options->architecture;
    struct sg_container_writer section = {0}, to = {0};
    put_section(&section, link, &sum);
    to.failed = section.failed;
    sg_container_put_elf(&to, (unsigned)architecture, sum.specific,
                         (struct sg_bytes){section.bytes, section.size});
    sg_container_free(&section);
    if (to.failed) {
        sg_container_free(&to);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *bytes = to.bytes;
    *size = to.size;
    return CUDA_SUCCESS;
}

CUresult sg_image_link(const struct sg_image *const *images, size_t count,
                       const struct sg_image_options *options, struct sg_image_log *log,
                       unsigned char **bytes, size_t *size) {
    struct linking link = {.images = images, .count = count, .options = options, .log = log};
    define_all(&link);
    for (size_t i = 0; i < count; i++)
        require_all(&link, images[i]);
    CUresult result = link.result == CUDA_SUCCESS ? write_all(&link, bytes, size) : link.result;
    sg_names_clear(&link.defined);
    return result;
}

CUresult sg_image_meet(const struct sg_image *const *images, size_t count,
                       const struct sg_image_options *options, struct sg_image_log *log) {
    struct linking link = {.images = images, .count = count, .options = options, .log = log};
    define_all(&link);
    sg_names_clear(&link.defined);
    return link.result;
}
