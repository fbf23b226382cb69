/*
 * The output of softgpu's linker is an ELF like a cubin (elf_write.c), in which one section says
 * what a cubin's sections say, because nothing here generates machine code. Little-endian, no
 * padding:
 *
 *     u32 version 3
 *     i32 ptx_version    i32 target      u8 source
 *     u32 functions      u32 variables   u32 textures   u32 surfaces   u32 images
 *     each function:  text name, u32 parameter_bytes, max_threads, required_threads[3], cluster[3],
 *                     max_cluster_rank, explicit_cluster, registers, static_shared, local,
 *                     constant, parameters; each parameter: u32 offset, size
 *     each variable:  text name, u64 size, alignment, u8 flags (1 constant, 2 managed, 4 visible),
 *                     u32 part, bytes initial, u32 relocations; each: u64 offset, u32 size,
 *                     i64 addend, u8 generic, u32 number of its variable + 1, or 0 for code,
 *                     text symbol
 *     each texture, each surface: text name
 *     each image that was linked: u8 source, bytes (the PTX text or the ELF)
 *
 * where text is a u32 length and that many bytes, none of them zero, and bytes is a u64 length and
 * that many bytes. `source` is 0 for PTX, if every image was PTX, else 1 for machine code. `target`
 * is the newest that an image names; the link's own target is in the ELF header.
 */
#include "softgpu/binary/container.h"

#include "base/growing_array.h"

#include <stdlib.h>
#include <string.h>

/* ---- writing --------------------------------------------------------------------------------- */

void sg_container_put(struct sg_container_writer *to, const void *bytes, size_t size) {
    size_t needed;
    if (to->failed || size == 0)
        return;
    to->failed = __builtin_add_overflow(to->size, size, &needed);
    to->failed = to->failed || !GM_RESERVE(to->bytes, to->room, needed);
    if (to->failed)
        return;
    memcpy(to->bytes + to->size, bytes, size);
    to->size = needed;
}

void sg_container_put_number(struct sg_container_writer *to, uint64_t number, unsigned width) {
    unsigned char bytes[8];
    for (unsigned i = 0; i < width; i++)
        bytes[i] = (unsigned char)(number >> (8 * i));
    sg_container_put(to, bytes, width);
}

void sg_container_put_text(struct sg_container_writer *to, const char *text) {
    size_t length = strlen(text);
    to->failed = to->failed || length > UINT32_MAX;
    sg_container_put_number(to, length, 4);
    sg_container_put(to, text, length);
}

void sg_container_put_bytes(struct sg_container_writer *to, const void *bytes, size_t size) {
    sg_container_put_number(to, size, 8);
    sg_container_put(to, bytes, size);
}

void sg_container_put_function(struct sg_container_writer *to, const struct sg_image_function *f) {
    const unsigned numbers[] = {f->parameter_bytes,
                                f->max_threads,
                                f->required_threads[0],
                                f->required_threads[1],
                                f->required_threads[2],
                                f->cluster[0],
                                f->cluster[1],
                                f->cluster[2],
                                f->max_cluster_rank,
                                f->explicit_cluster,
                                f->registers,
                                f->static_shared,
                                f->local,
                                f->constant,
                                f->parameter_count};
    sg_container_put_text(to, f->name);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        sg_container_put_number(to, numbers[i], 4);
    for (size_t i = 0; i < f->parameter_count; i++) {
        sg_container_put_number(to, f->parameters[i].offset, 4);
        sg_container_put_number(to, f->parameters[i].size, 4);
    }
}

void sg_container_put_variable(struct sg_container_writer *to, const struct sg_image_variable *v,
                               unsigned part, const size_t *targets) {
    sg_container_put_text(to, v->name);
    sg_container_put_number(to, v->size, 8);
    sg_container_put_number(to, v->alignment, 8);
    sg_container_put_number(to, v->constant | 2u * v->managed | 4u * v->visible, 1);
    sg_container_put_number(to, part, 4);
    sg_container_put_bytes(to, v->initial, (size_t)v->initial_size);
    sg_container_put_number(to, v->relocation_count, 4);
    for (size_t i = 0; i < v->relocation_count; i++) {
        const struct sg_relocation *one = &v->relocations[i];
        sg_container_put_number(to, one->offset, 8);
        sg_container_put_number(to, one->size, 4);
        sg_container_put_number(to, (uint64_t)one->addend, 8);
        sg_container_put_number(to, one->generic, 1);
        sg_container_put_number(to, targets[i], 4);
        sg_container_put_text(to, one->symbol);
    }
}

void sg_container_free(struct sg_container_writer *to) {
    free(to->bytes);
    *to = (struct sg_container_writer){0};
}

/* ---- reading --------------------------------------------------------------------------------- */

struct cursor {
    struct sg_bytes bytes;
    uint64_t at;
    uint64_t variables; /* how many there will be */
    bool damaged, no_memory;
};

static uint64_t take(struct cursor *from, unsigned width) {
    struct sg_bytes slice;
    if (!sg_bytes_slice(from->bytes, from->at, width, &slice)) {
        from->damaged = true;
        return 0;
    }
    from->at += width;
    return sg_bytes_number(slice, 0, width);
}

static uint32_t take_u32(struct cursor *from) {
    return (uint32_t)take(from, 4);
}

static char *take_text(struct cursor *from) {
    struct sg_bytes slice;
    uint64_t length = take(from, 4);
    if (from->damaged || !sg_bytes_slice(from->bytes, from->at, length, &slice) || length == 0 ||
        memchr(slice.data, 0, slice.size)) {
        from->damaged = true;
        return NULL;
    }
    from->at += length;
    char *text = sg_image_text((const char *)slice.data, slice.size);
    from->no_memory = from->no_memory || !text;
    return text;
}

static struct sg_bytes take_slice(struct cursor *from) {
    struct sg_bytes slice = {0};
    uint64_t size = take(from, 8);
    if (from->damaged || !sg_bytes_slice(from->bytes, from->at, size, &slice))
        from->damaged = true;
    else
        from->at += size;
    return slice;
}

static unsigned char *take_bytes(struct cursor *from, uint64_t *size) {
    struct sg_bytes slice = take_slice(from);
    unsigned char *copy = slice.size ? malloc(slice.size) : NULL;
    if (copy)
        memcpy(copy, slice.data, slice.size);
    from->no_memory = from->no_memory || (slice.size && !copy);
    *size = copy ? slice.size : 0;
    return copy;
}

/* An array of `count` elements, each taking at least `least` of the remaining bytes. */
static void *take_array(struct cursor *from, uint64_t count, size_t size, uint64_t least) {
    if (from->damaged || count > (from->bytes.size - from->at) / least) {
        from->damaged = true;
        return NULL;
    }
    void *array = count ? calloc((size_t)count, size) : NULL;
    from->no_memory = from->no_memory || (count && !array);
    return array;
}

static bool good(const struct cursor *from) {
    return !from->damaged && !from->no_memory;
}

static void take_function(struct cursor *from, struct sg_image_function *f) {
    f->name = take_text(from);
    f->parameter_bytes = take_u32(from);
    f->max_threads = take_u32(from);
    for (unsigned i = 0; i < 3; i++)
        f->required_threads[i] = take_u32(from);
    for (unsigned i = 0; i < 3; i++)
        f->cluster[i] = take_u32(from);
    f->max_cluster_rank = take_u32(from);
    f->explicit_cluster = take_u32(from) != 0;
    f->registers = take_u32(from);
    f->static_shared = take_u32(from);
    f->local = take_u32(from);
    f->constant = take_u32(from);
    unsigned count = take_u32(from);
    f->parameters = take_array(from, count, sizeof *f->parameters, 8);
    while (good(from) && f->parameter_count < count) {
        struct sg_parameter *parameter = &f->parameters[f->parameter_count++];
        parameter->offset = take_u32(from);
        parameter->size = take_u32(from);
    }
}

static void take_relocation(struct cursor *from, const struct sg_image_variable *variable,
                            struct sg_relocation *one) {
    one->offset = take(from, 8);
    one->size = take_u32(from);
    one->addend = (int64_t)take(from, 8);
    one->generic = take(from, 1) != 0;
    one->target = take_u32(from);
    one->symbol = take_text(from);
    if (one->size == 0 || one->size > 8 || one->offset > variable->size ||
        one->size > variable->size - one->offset || one->target > from->variables)
        from->damaged = true;
}

static void take_variable(struct cursor *from, struct sg_image_variable *variable) {
    variable->name = take_text(from);
    variable->size = take(from, 8);
    variable->alignment = take(from, 8);
    uint64_t flags = take(from, 1), alignment = variable->alignment;
    variable->constant = flags & 1;
    variable->managed = flags & 2;
    variable->visible = flags & 4;
    variable->part = take_u32(from);
    variable->initial = take_bytes(from, &variable->initial_size);
    if (variable->initial_size > variable->size || variable->size > INT64_MAX || alignment == 0 ||
        (alignment & (alignment - 1)) != 0 || alignment > (1u << 30))
        from->damaged = true;
    unsigned count = take_u32(from);
    variable->relocations = take_array(from, count, sizeof *variable->relocations, 30);
    /* Counted before they are filled, so that a half-filled one is freed, too. */
    while (good(from) && variable->relocation_count < count)
        take_relocation(from, variable, &variable->relocations[variable->relocation_count++]);
}

static void take_names(struct cursor *from, char ***names, size_t *count, uint64_t wanted) {
    *names = take_array(from, wanted, sizeof **names, 5);
    while (good(from) && *count < wanted)
        (*names)[(*count)++] = take_text(from);
}

/* Texts are kept as text; machine code remains in the ELF, which is kept. */
static void take_images(struct cursor *from, struct sg_image *image, uint64_t count) {
    if (count > 1)
        image->parts = take_array(from, count, sizeof *image->parts, 9);
    for (uint64_t i = 0; good(from) && i < count; i++) {
        uint64_t source = take(from, 1);
        struct sg_bytes bytes = take_slice(from);
        if (source != SG_IMAGE_PTX)
            bytes.size = 0;
        bool kept = good(from) && (bytes.size || count > 1);
        const char *start = bytes.size ? (const char *)bytes.data : "";
        char *text = kept ? sg_image_text(start, bytes.size) : NULL;
        from->no_memory = from->no_memory || (kept && !text);
        if (count == 1)
            image->ptx = text;
        else if (text)
            image->parts[image->part_count++] = text;
    }
}

static void take_all(struct cursor *from, struct sg_image *image) {
    if (take_u32(from) != SG_CONTAINER_VERSION)
        from->damaged = true;
    image->ptx_version = (int)take_u32(from);
    image->target = (int)take_u32(from);
    image->source = take(from, 1) ? SG_IMAGE_MACHINE : SG_IMAGE_PTX;
    uint64_t functions = take_u32(from), variables = take_u32(from), textures = take_u32(from);
    uint64_t surfaces = take_u32(from), images = take_u32(from);
    from->variables = variables;
    image->functions = take_array(from, functions, sizeof *image->functions, 65);
    while (good(from) && image->function_count < functions)
        take_function(from, &image->functions[image->function_count++]);
    image->variables = take_array(from, variables, sizeof *image->variables, 38);
    while (good(from) && image->variable_count < variables)
        take_variable(from, &image->variables[image->variable_count++]);
    take_names(from, &image->textures, &image->texture_count, textures);
    take_names(from, &image->surfaces, &image->surface_count, surfaces);
    take_images(from, image, images);
}

CUresult sg_container_read(struct sg_bytes section, struct sg_image *image) {
    struct cursor from = {.bytes = section};
    take_all(&from, image);
    if (from.no_memory)
        return CUDA_ERROR_OUT_OF_MEMORY;
    return from.damaged || from.at != section.size ? CUDA_ERROR_INVALID_IMAGE : CUDA_SUCCESS;
}
