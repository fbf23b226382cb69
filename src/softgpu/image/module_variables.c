/*
 * Variables of loaded images: memory of their own in the context, filled with what the image says.
 *
 * The bytes are written under the lock, by the CPU: nobody knows the addresses yet, so no work can
 * be under way there.
 */
#include "softgpu/core/config.h"
#include "softgpu/image/module.h"
#include "softgpu/managed/managed.h"
#include "softgpu/memory/allocation.h"

#include <string.h>

void sg_variable_range_free(struct sg_range *range) {
    if (range->kind == SG_RANGE_MANAGED)
        sg_managed_free(range);
    else
        sg_allocation_free(range);
}

/* A managed variable of a library is made by its first module, and the others have the same. */
static struct sg_range **library_place(struct sg_module *module, size_t index) {
    bool managed = module->program->image->variables[index].managed;
    return module->library && managed ? &module->library->managed[index] : NULL;
}

static CUresult allocate(struct sg_module *module, size_t index) {
    struct sg_module_variable *variable = &module->variables[index];
    struct sg_range **shared = library_place(module, index);
    struct sg_context *context = module->context;
    variable->of_library = shared != NULL;
    if (shared && *shared) {
        variable->range = *shared;
        return CUDA_SUCCESS;
    }
    size_t size = variable->image->size ? (size_t)variable->image->size : 1;
    CUresult result =
        variable->image->managed
            ? sg_managed_allocate(context, size, CU_MEM_ATTACH_GLOBAL, &variable->range)
            : sg_allocate(context, context->device, size, 0, &variable->range);
    if (result != CUDA_SUCCESS)
        return result;
    variable->range->variable = true;
    variable->fresh = true;
    if (shared)
        *shared = variable->range;
    return CUDA_SUCCESS;
}

/* Writes into a variable; offsets beyond its end were refused by the reader of the image. */
static void put(const struct sg_module *module, const struct sg_range *range, uint64_t offset,
                const void *bytes, size_t size) {
    while (size > 0) {
        size_t span;
        unsigned char *to = sg_translate(module->context->device, range->start + offset, size,
                                         SG_READ | SG_WRITE, &span);
        if (!to)
            return;
        if (bytes)
            memcpy(to, bytes, span);
        else
            memset(to, 0, span);
        bytes = bytes ? (const unsigned char *)bytes + span : NULL;
        offset += span;
        size -= span;
    }
}

static uint64_t address_of(const struct sg_module *module, const char *symbol) {
    const struct sg_image *image = module->program->image;
    const struct sg_image_variable *found = sg_image_find_variable(image, symbol);
    const struct sg_range *range = found ? module->variables[found - image->variables].range : NULL;
    return range ? range->start : 0;
}

static void relocate(const struct sg_module *module, const struct sg_module_variable *variable) {
    for (size_t i = 0; i < variable->image->relocation_count; i++) {
        const struct sg_relocation *one = &variable->image->relocations[i];
        uint64_t target = address_of(module, one->symbol);
        if (!target)
            sg_log(1, "%s holds the address of %s, which is code: it reads 0",
                   variable->image->name, one->symbol);
        uint64_t word = target ? target + (uint64_t)one->addend : 0;
        if (one->offset + one->size <= variable->range->size)
            put(module, variable->range, one->offset, &word, one->size);
    }
}

static void fill(const struct sg_module *module, const struct sg_module_variable *variable) {
    const struct sg_image_variable *image = variable->image;
    size_t given = (size_t)image->initial_size;
    if (given > variable->range->size)
        given = variable->range->size;
    if (image->initial && given)
        put(module, variable->range, 0, image->initial, given);
    put(module, variable->range, given, NULL, variable->range->size - given);
    relocate(module, variable);
}

/* What the library got from this module alone. */
static void take_back(struct sg_module *module) {
    for (size_t i = 0; i < module->program->image->variable_count; i++) {
        struct sg_module_variable *variable = &module->variables[i];
        if (!variable->of_library || !variable->fresh)
            continue;
        *library_place(module, i) = NULL;
        variable->of_library = false;
    }
}

CUresult sg_variables_make(struct sg_module *module) {
    const struct sg_image *image = module->program->image;
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < image->variable_count && result == CUDA_SUCCESS; i++) {
        module->variables[i].image = &image->variables[i];
        if (!image->variables[i].external)
            result = allocate(module, i);
    }
    if (result != CUDA_SUCCESS) {
        take_back(module);
        sg_variables_free(module);
        return result;
    }
    for (size_t i = 0; i < image->variable_count; i++)
        if (module->variables[i].fresh)
            fill(module, &module->variables[i]);
    return CUDA_SUCCESS;
}

void sg_variables_free(struct sg_module *module) {
    for (size_t i = 0; i < module->program->image->variable_count; i++) {
        struct sg_module_variable *variable = &module->variables[i];
        if (variable->range && !variable->of_library)
            sg_variable_range_free(variable->range);
        variable->range = NULL;
    }
}

CUresult sg_module_variable(struct sg_module *module, const char *name, CUdeviceptr *address,
                            size_t *size) {
    const struct sg_image *image = module->program->image;
    if (!name[0] || sg_image_find_function(image, name))
        return CUDA_ERROR_INVALID_VALUE;
    /* An H200 finds those that are not .visible, too. */
    const struct sg_image_variable *found = sg_image_find_variable(image, name);
    const struct sg_range *range = found ? module->variables[found - image->variables].range : NULL;
    if (found && found->external)
        return CUDA_ERROR_INVALID_VALUE;
    if (!range)
        return CUDA_ERROR_NOT_FOUND;
    *address = range->start;
    *size = range->size;
    return CUDA_SUCCESS;
}
