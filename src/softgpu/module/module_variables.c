/*
 * Variables of loaded images: allocated in the context, filled with what the image says.
 *
 * As recorded on an H200: constants share one bank, in the compiler's order; the bank comes first,
 * and is the range of any address in it. Each of the other variables has its own range, in the
 * order of the image, in memory that modules share (address/small.h).
 *
 * The CPU writes the bytes under the lock: nobody knows the addresses yet, so no work can be in
 * progress there.
 */
#include "softgpu/core/config.h"
#include "softgpu/engine/engine.h"
#include "softgpu/managed/managed.h"
#include "softgpu/memory/allocation.h"
#include "softgpu/module/module.h"

#include <stdlib.h>
#include <string.h>

void sg_variable_range_free(struct sg_range *range) {
    range->ops->end(range);
}

static bool in_bank(const struct sg_image_variable *variable) {
    return variable->constant && !variable->managed && !variable->external;
}

/* Its address; 0 for an external one. */
static CUdeviceptr place_of(const struct sg_module_variable *variable) {
    return variable->range ? variable->range->start + variable->offset : 0;
}

/* A library's managed variable is made by its first module, or earlier, and shared by all. */
static struct sg_range **library_place(struct sg_module *module, size_t index) {
    bool managed = module->program->image->variables[index].managed;
    return module->library && managed ? &module->library->managed[index] : NULL;
}

/* ptxas places those visible to other images before the others. */
static uint64_t place_constants(struct sg_module *module, bool visible, uint64_t end,
                                uint64_t *alignment) {
    for (size_t i = 0; i < module->program->image->variable_count; i++) {
        struct sg_module_variable *variable = &module->variables[i];
        const struct sg_image_variable *image = variable->image;
        if (!in_bank(image) || image->visible != visible)
            continue;
        variable->offset = (end + image->alignment - 1) & ~(image->alignment - 1);
        if (variable->offset < end || image->size > UINT64_MAX - variable->offset)
            return UINT64_MAX;
        end = variable->offset + image->size;
        if (image->alignment > *alignment)
            *alignment = image->alignment;
    }
    return end;
}

static CUresult allocate_bank(struct sg_module *module) {
    const struct sg_image *image = module->program->image;
    bool any = false;
    for (size_t i = 0; i < image->variable_count; i++)
        any = any || in_bank(&image->variables[i]);
    if (!any)
        return CUDA_SUCCESS;
    uint64_t alignment = 1, end = place_constants(module, true, 0, &alignment);
    end = place_constants(module, false, end, &alignment);
    CUresult result =
        sg_allocate_variable(module->context, end ? (size_t)end : 1, alignment, &module->bank);
    for (size_t i = 0; result == CUDA_SUCCESS && i < image->variable_count; i++) {
        if (!in_bank(&image->variables[i]))
            continue;
        module->variables[i].range = module->bank;
        module->variables[i].fresh = true;
    }
    return result;
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
            ? sg_managed_allocate(context, size, CU_MEM_ATTACH_GLOBAL, true, &variable->range)
            : sg_allocate_variable(context, size, variable->image->alignment, &variable->range);
    if (result != CUDA_SUCCESS)
        return result;
    variable->fresh = true;
    if (shared)
        *shared = variable->range;
    return CUDA_SUCCESS;
}

/* Variables made without a context are managed: the same on all devices. */
static int device_of(const struct sg_module *module) {
    return module->context ? module->context->device : 0;
}

/* Writes bytes, or zeros where they are NULL. */
static void put(const struct sg_module *module, CUdeviceptr address, const void *bytes,
                size_t size) {
    while (size > 0) {
        size_t span;
        unsigned char *to =
            sg_translate(device_of(module), address, size, SG_READ | SG_WRITE, &span);
        if (!to)
            return;
        if (bytes)
            memcpy(to, bytes, span);
        else
            memset(to, 0, span);
        bytes = bytes ? (const unsigned char *)bytes + span : NULL;
        address += span;
        size -= span;
    }
}

static const struct sg_image_variable *variable_named(const struct sg_image *image,
                                                      const struct sg_relocation *of) {
    return of->target ? &image->variables[of->target - 1]
                      : sg_image_find_variable(image, of->symbol);
}

/* What an initial value names: a variable of the module, or a function, as its code would say. */
static uint64_t address_of(const struct sg_module *module, const struct sg_image_variable *in,
                           const struct sg_relocation *of, struct sg_function_names *functions) {
    const struct sg_image *image = module->program->image;
    const struct sg_image_variable *found = variable_named(image, of);
    uint32_t ordinal;
    if (found)
        return place_of(&module->variables[found - image->variables]);
    return functions && sg_function_ordinal(functions, in->part, of->symbol, &ordinal)
               ? SG_FUNCTION_ADDRESS(ordinal)
               : 0;
}

/* Whether something could read the variable: what is private to machine code, nobody, since machine
 * code does not run. libcudadevrt.a has many of these. */
static bool is_read(const struct sg_image *image, const struct sg_image_variable *variable) {
    bool text =
        image->ptx || (variable->part < image->part_count && image->parts[variable->part][0]);
    return text || variable->visible;
}

static void relocate(const struct sg_module *module, const struct sg_module_variable *variable,
                     struct sg_function_names *functions) {
    const struct sg_image_variable *image = variable->image;
    for (size_t i = 0; i < image->relocation_count; i++) {
        const struct sg_relocation *one = &image->relocations[i];
        uint64_t target = address_of(module, image, one, functions);
        if (!target && is_read(module->program->image, image))
            sg_log(SG_LOG_WARNING, "%s holds the address of %s, which has none here: it reads 0",
                   image->name, one->symbol);
        uint64_t word = target ? target + (uint64_t)one->addend : 0;
        if (one->offset + one->size <= image->size)
            put(module, place_of(variable) + one->offset, &word, one->size);
    }
}

/* The reader of the image has refused offsets beyond a variable's end. */
static void fill(const struct sg_module *module, const struct sg_module_variable *variable,
                 struct sg_function_names *functions) {
    const struct sg_image_variable *image = variable->image;
    CUdeviceptr address = place_of(variable);
    size_t size = (size_t)image->size, given = (size_t)image->initial_size;
    if (given > size)
        given = size;
    if (image->initial && given)
        put(module, address, image->initial, given);
    put(module, address + given, NULL, size - given);
    relocate(module, variable, functions);
}

static bool names_function(const struct sg_module *module,
                           const struct sg_module_variable *variable) {
    const struct sg_image *image = module->program->image;
    for (size_t i = 0; i < variable->image->relocation_count; i++)
        if (!variable_named(image, &variable->image->relocations[i]))
            return true;
    return false;
}

/* Machine code has functions, too, but their places in it are not known: their addresses read 0. */
static CUresult fill_fresh(const struct sg_module *module) {
    const struct sg_image *image = module->program->image;
    struct sg_function_names *functions = NULL;
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < image->variable_count && !functions && result == CUDA_SUCCESS; i++)
        if (module->variables[i].fresh && names_function(module, &module->variables[i]))
            result = image->ptx || image->part_count ? sg_function_names_begin(image, &functions)
                                                     : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS)
        return result;
    for (size_t i = 0; i < image->variable_count; i++)
        if (module->variables[i].fresh)
            fill(module, &module->variables[i], functions);
    sg_function_names_end(functions);
    return CUDA_SUCCESS;
}

/* Takes back what the library got from this module alone. */
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
    for (size_t i = 0; i < image->variable_count; i++)
        module->variables[i].image = &image->variables[i];
    CUresult result = allocate_bank(module);
    for (size_t i = 0; i < image->variable_count && result == CUDA_SUCCESS; i++)
        if (!image->variables[i].external && !in_bank(&image->variables[i]))
            result = allocate(module, i);
    if (result == CUDA_SUCCESS && module->bank) /* including what is between constants */
        put(module, module->bank->start, NULL, module->bank->size);
    if (result == CUDA_SUCCESS)
        result = fill_fresh(module);
    if (result != CUDA_SUCCESS) {
        take_back(module);
        sg_variables_free(module);
    }
    return result;
}

CUresult sg_variables_make_managed(struct sg_library *library) {
    const struct sg_image *image = library->program->image;
    struct sg_module module = {.program = library->program, .library = library};
    module.variables = calloc(image->variable_count + 1, sizeof *module.variables);
    if (!module.variables)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < image->variable_count && result == CUDA_SUCCESS; i++) {
        module.variables[i].image = &image->variables[i];
        if (image->variables[i].managed && !image->variables[i].external)
            result = allocate(&module, i);
    }
    if (result == CUDA_SUCCESS)
        result = fill_fresh(&module);
    if (result != CUDA_SUCCESS) {
        take_back(&module);
        sg_variables_free(&module);
    }
    free(module.variables);
    return result;
}

void sg_variables_free(struct sg_module *module) {
    for (size_t i = 0; i < module->program->image->variable_count; i++) {
        struct sg_module_variable *variable = &module->variables[i];
        if (variable->range && variable->range != module->bank && !variable->of_library)
            sg_variable_range_free(variable->range);
        variable->range = NULL;
    }
    if (module->bank)
        sg_variable_range_free(module->bank);
    module->bank = NULL;
}

CUresult sg_module_variable(struct sg_module *module, const char *name, CUdeviceptr *address,
                            size_t *size) {
    const struct sg_image *image = module->program->image;
    if (!name[0] || sg_image_find_function(image, name))
        return CUDA_ERROR_INVALID_VALUE;
    /* An H200 finds those that are not .visible, too. */
    const struct sg_image_variable *found = sg_image_find_variable(image, name);
    if (!found)
        return CUDA_ERROR_NOT_FOUND;
    if (found->external)
        return CUDA_ERROR_INVALID_VALUE;
    if (image->to_be_linked) /* it has no place yet */
        return CUDA_ERROR_NOT_FOUND;
    *address = place_of(&module->variables[found - image->variables]);
    *size = found->size ? (size_t)found->size : 1;
    return CUDA_SUCCESS;
}
