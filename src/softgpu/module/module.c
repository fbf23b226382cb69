#include "softgpu/module/module.h"
#include "softgpu/texture/texture.h"

#include "softgpu/core/chapter.h"
#include "softgpu/core/config.h"
#include "softgpu/core/text.h"

#include <stdlib.h>
#include <string.h>

void (*sg_function_engine_end)(struct sg_function *function);

static struct sg_module *first, *last;

struct sg_module *sg_module_first(void) {
    return first;
}

static void add(struct sg_module *module) {
    module->previous = last;
    *(last ? &last->next : &first) = module;
    last = module;
}

static void take_out(struct sg_module *module) {
    *(module->previous ? &module->previous->next : &first) = module->next;
    *(module->next ? &module->next->previous : &last) = module->previous;
}

static void fill_functions(struct sg_module *module) {
    const struct sg_image *image = module->program->image;
    for (size_t i = 0; i < image->function_count; i++)
        module->functions[i] =
            (struct sg_function){.module = module,
                                 .context = module->context,
                                 .image = &image->functions[i],
                                 .kernel = module->library ? &module->library->kernels[i] : NULL,
                                 .loaded = sg_loading_eager()};
}

static void release(struct sg_module *module) {
    for (size_t i = 0; module->functions && i < module->program->image->function_count; i++) {
        if (module->functions[i].handle)
            sg_handle_drop(SG_KIND_FUNCTION, module->functions[i].handle);
        free(module->functions[i].old);
        if (module->functions[i].engine)
            sg_function_engine_end(&module->functions[i]);
    }
    if (module->handle)
        sg_handle_drop(SG_KIND_MODULE, module->handle);
    sg_loaded_unref(module->program);
    sg_context_unref(module->context);
    free(module->functions);
    free(module->variables);
    free(module);
}

CUresult sg_module_new(struct sg_context *context, struct sg_loaded *program,
                       struct sg_library *library, struct sg_module **module) {
    const struct sg_image *image = program->image;
    if (image->unplaced)
        return CUDA_ERROR_INVALID_IMAGE;
    struct sg_module *made = calloc(1, sizeof *made);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *made = (struct sg_module){.context = context, .program = program, .library = library};
    sg_context_ref(context);
    sg_loaded_ref(program);
    made->functions = calloc(image->function_count + 1, sizeof *made->functions);
    made->variables = calloc(image->variable_count + 1, sizeof *made->variables);
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    if (made->functions && made->variables)
        made->handle = sg_handle_new(SG_KIND_MODULE, made);
    if (made->handle) {
        fill_functions(made);
        result = sg_variables_make(made);
    }
    if (result != CUDA_SUCCESS) {
        release(made);
        return result;
    }
    add(made);
    *module = made;
    return CUDA_SUCCESS;
}

void sg_module_free(struct sg_module *module) {
    take_out(module);
    sg_variables_free(module);
    sg_references_module_end(module, module->context);
    release(module);
}

CUresult sg_module_from_handle(CUmodule handle, struct sg_module **module) {
    struct sg_module *found = sg_handle_get(SG_KIND_MODULE, SG_HANDLE_VALUE(handle));
    if (!found)
        return CUDA_ERROR_INVALID_HANDLE;
    *module = found;
    return found->context->sticky;
}

uint64_t sg_module_function_handle(struct sg_function *function) {
    if (!function->handle)
        function->handle = sg_handle_new(SG_KIND_FUNCTION, function);
    return function->handle;
}

size_t sg_program_order(const struct sg_image *image, size_t place, bool library) {
    bool turned = (image->source == SG_IMAGE_MACHINE) != library;
    return turned ? image->function_count - 1 - place : place;
}

CUresult sg_function_lacks(const struct sg_image_function *function) {
    switch (function->lacks) {
    case SG_LACKS_PLACES:
        return CUDA_ERROR_INVALID_IMAGE;
    case SG_LACKS_OTHERS:
    case SG_LACKS_CALLED:
        return CUDA_ERROR_NOT_FOUND;
    default:
        return CUDA_SUCCESS;
    }
}

/* An H200 counts all functions of what was not linked, and finds those that could run. */
CUresult sg_module_function(struct sg_module *module, const char *name,
                            struct sg_function **function) {
    const struct sg_image *image = module->program->image;
    const struct sg_image_function *found = sg_image_find_function(image, name);
    CUresult result = found ? sg_function_lacks(found) : CUDA_ERROR_NOT_FOUND;
    if (result == CUDA_SUCCESS)
        *function = &module->functions[found - image->functions];
    return result;
}

static void end_with_context(struct sg_context *context) {
    for (struct sg_module *module = first, *next; module; module = next) {
        next = module->next;
        if (module->context == context)
            sg_module_free(module);
    }
}

/* ---- Reports -------------------------------------------------------------------------------- */

static unsigned loaded_functions(const struct sg_module *module) {
    unsigned count = 0;
    for (size_t i = 0; i < module->program->image->function_count; i++)
        count += module->functions[i].loaded;
    return count;
}

/* Functions with settings, hardly any of which an application can query. */
static void dump_function(struct sg_text *text, const struct sg_function *function) {
    const char *name = function->image->name;
    if (function->cache_config || function->shared_config)
        sg_text_line(text, "function %s: cache %d, banks %d", name, (int)function->cache_config,
                     (int)function->shared_config);
    for (int i = 0; i < CU_FUNC_ATTRIBUTE_MAX; i++)
        if (function->setting_set[i])
            sg_text_line(text, "function %s: attribute %d is %d", name, i, function->settings[i]);
}

static void dump_kernel(uint64_t handle, void *object, void *user) {
    const struct sg_kernel *kernel = object;
    (void)handle;
    for (int i = 0; i < SG_MAX_DEVICES; i++)
        if (kernel->devices[i].cache_config)
            sg_text_line(user, "kernel %s: cache %d on device %d", kernel->image->name,
                         (int)kernel->devices[i].cache_config, i);
}

static void dump(struct sg_text *text) {
    unsigned number = 0;
    for (const struct sg_module *module = first; module; module = module->next) {
        const struct sg_image *image = module->program->image;
        sg_text_line(text, "module %u of context %llu: %zu functions, %u loaded, %zu variables%s",
                     ++number, (unsigned long long)module->context->id, image->function_count,
                     loaded_functions(module), image->variable_count,
                     module->library ? ", of a library" : "");
        for (size_t i = 0; i < image->function_count; i++)
            dump_function(text, &module->functions[i]);
    }
    sg_handle_each(SG_KIND_KERNEL, dump_kernel, text);
    sg_text_line(text, "libraries %llu, links %llu",
                 (unsigned long long)sg_handle_count(SG_KIND_LIBRARY),
                 (unsigned long long)sg_handle_count(SG_KIND_LINK));
}

static void leaked_library(uint64_t handle, void *object, void *user) {
    if (((const struct sg_library *)object)->of_runtime)
        return;
    sg_text_handle(user, handle, NULL);
    sg_text_line(user, "library, not unloaded");
}

static void leaked_link(uint64_t handle, void *object, void *user) {
    (void)object;
    sg_text_handle(user, handle, NULL);
    sg_text_line(user, "linker, not destroyed");
}

static void leaks(struct sg_text *text) {
    for (const struct sg_module *module = first; module; module = module->next)
        if (!module->library) {
            sg_text_handle(text, module->handle, module->context);
            sg_text_line(text, "module of context %llu with %zu function%s, not unloaded",
                         (unsigned long long)module->context->id,
                         module->program->image->function_count,
                         module->program->image->function_count == 1 ? "" : "s");
        }
    sg_handle_each(SG_KIND_LIBRARY, leaked_library, text);
    sg_handle_each(SG_KIND_LINK, leaked_link, text);
}

const struct sg_chapter sg_module_chapter = {
    .dump = dump,
    .leaks = leaks,
    .leak_kind = SG_LEAK_MODULES,
    .context_end = {[SG_END_MODULES] = end_with_context},
};
