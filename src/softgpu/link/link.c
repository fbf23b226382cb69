/* Linking: writes what the inputs define (link_names.c) as an ELF. */
#include "softgpu/link/link.h"
#include "softgpu/binary/container.h"
#include "softgpu/link/link_names.h"

#include <stdlib.h>
#include <string.h>

struct linking {
    struct sg_link_names names;
    /* For each input, where its variables begin in `numbers`, which has their numbers in the result
     * + 1, or 0 for those left out. */
    size_t *first, *numbers;
    size_t most_relocations; /* of any variable */
};

/* Numbers the variables that count; false when out of memory. */
static bool number_variables(struct linking *link) {
    const struct sg_link_names *names = &link->names;
    size_t all = 0, next = 0;
    for (size_t i = 0; i < names->count; i++)
        all += names->images[i]->variable_count;
    link->first = calloc(names->count + 1, sizeof *link->first);
    link->numbers = calloc(all + 1, sizeof *link->numbers);
    if (!link->first || !link->numbers)
        return false;
    for (size_t i = 0, at = 0; i < names->count; i++) {
        const struct sg_image *image = names->images[i];
        link->first[i] = at;
        for (size_t v = 0; v < image->variable_count; v++, at++) {
            if (sg_link_has_variable(names, i, v))
                link->numbers[at] = ++next;
            if (image->variables[v].relocation_count > link->most_relocations)
                link->most_relocations = image->variables[v].relocation_count;
        }
    }
    return true;
}

/* ---- writing --------------------------------------------------------------------------------- */

struct totals {
    size_t functions, variables, textures, surfaces;
    int ptx_version, target;
    bool specific, machine;
};

static struct totals total(const struct linking *link) {
    struct totals sum = {0};
    for (size_t i = 0; i < link->names.count; i++) {
        const struct sg_image *image = link->names.images[i];
        for (size_t f = 0; f < image->function_count; f++)
            sum.functions += sg_link_has_function(&link->names, i, f);
        sum.textures += image->texture_count;
        sum.surfaces += image->surface_count;
        for (size_t v = 0; v < image->variable_count; v++)
            sum.variables += link->numbers[link->first[i] + v] != 0;
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

static void put_variable(struct sg_container_writer *to, const struct linking *link, size_t image,
                         const struct sg_image_variable *variable, size_t *targets) {
    for (size_t i = 0; i < variable->relocation_count; i++) {
        size_t of = image, number;
        bool known = sg_link_target(&link->names, &variable->relocations[i], &of, &number);
        targets[i] = known ? link->numbers[link->first[of] + number] : 0;
    }
    sg_container_put_variable(to, variable, (unsigned)image, targets);
}

static void put_variables(struct sg_container_writer *to, const struct linking *link) {
    size_t *targets = calloc(link->most_relocations + 1, sizeof *targets);
    to->failed = to->failed || !targets;
    for (size_t i = 0; targets && i < link->names.count; i++) {
        const struct sg_image *image = link->names.images[i];
        for (size_t v = 0; v < image->variable_count; v++) {
            if (link->numbers[link->first[i] + v])
                put_variable(to, link, i, &image->variables[v], targets);
        }
    }
    free(targets);
}

static void put_functions(struct sg_container_writer *to, const struct linking *link) {
    for (size_t i = 0; i < link->names.count; i++) {
        const struct sg_image *image = link->names.images[i];
        for (size_t f = 0; f < image->function_count; f++) {
            if (sg_link_has_function(&link->names, i, f))
                sg_container_put_function(to, &image->functions[f]);
        }
    }
}

static void put_function_names(struct sg_container_writer *to, const struct linking *link) {
    for (size_t i = 0; i < link->names.count; i++) {
        const struct sg_image *image = link->names.images[i];
        for (size_t f = 0; f < image->function_count; f++) {
            if (sg_link_has_function(&link->names, i, f))
                sg_container_put(to, image->functions[f].name,
                                 strlen(image->functions[f].name) + 1);
        }
    }
}

static void put_objects(struct sg_container_writer *to, const struct linking *link) {
    const struct sg_image *const *images = link->names.images;
    const size_t count = link->names.count;
    put_functions(to, link);
    put_variables(to, link);
    for (size_t i = 0; i < count; i++)
        put_names(to, images[i]->textures, images[i]->texture_count);
    for (size_t i = 0; i < count; i++)
        put_names(to, images[i]->surfaces, images[i]->surface_count);
    for (size_t i = 0; i < count; i++) {
        const struct sg_image *image = images[i];
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
    sg_container_put_number(to, link->names.count, 4);
    put_objects(to, link);
}

static CUresult write_all(const struct linking *link, unsigned char **bytes, size_t *size) {
    const struct totals sum = total(link);
    int architecture =
        link->names.options->architecture < 0 ? sum.target : link->names.options->architecture;
    struct sg_container_writer section = {0}, names = {0}, to = {0};
    put_section(&section, link, &sum);
    put_function_names(&names, link);
    to.failed = section.failed || names.failed;
    sg_container_put_elf(&to, (unsigned)architecture, sum.specific,
                         (struct sg_bytes){names.bytes, names.size},
                         (struct sg_bytes){section.bytes, section.size});
    sg_container_free(&section);
    sg_container_free(&names);
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
    struct linking link = {
        .names = {.images = images, .count = count, .options = options, .log = log}};
    CUresult result = sg_link_names_gather(&link.names);
    if (result == CUDA_SUCCESS)
        result = sg_link_names_require(&link.names);
    if (result == CUDA_SUCCESS)
        result = number_variables(&link) ? write_all(&link, bytes, size) : CUDA_ERROR_OUT_OF_MEMORY;
    free(link.first);
    free(link.numbers);
    sg_link_names_end(&link.names);
    return result;
}

CUresult sg_image_meet(const struct sg_image *const *images, size_t count,
                       const struct sg_image_options *options, struct sg_image_log *log) {
    struct sg_link_names names = {.images = images, .count = count, .options = options, .log = log};
    CUresult result = sg_link_names_gather(&names);
    sg_link_names_end(&names);
    return result;
}
