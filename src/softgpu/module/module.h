/* Modules, libraries and kernels, among the files of image/. Everything here wants the lock. */
#ifndef SG_MODULE_MODULE_H
#define SG_MODULE_MODULE_H

#include "softgpu/address/memory.h"
#include "softgpu/core/chapter.h"
#include "softgpu/module/function.h"
#include "softgpu/module/loading.h"

struct sg_library;

/* A variable of an image, in one context; a managed one of a library is in all of them. */
struct sg_module_variable {
    const struct sg_image_variable *image;
    struct sg_range *range; /* its own, or the bank; NULL for an external one */
    uint64_t offset;        /* in the range */
    bool of_library;        /* the library frees it */
    bool fresh;             /* made by this module, not yet filled */
};

struct sg_module {
    uint64_t handle;
    struct sg_context *context; /* referenced */
    struct sg_loaded *program;
    struct sg_library *library;           /* whose module of this context it is, or NULL */
    struct sg_function *functions;        /* as many as the image has; handles when asked for */
    struct sg_module_variable *variables; /* likewise */
    struct sg_range *bank;                /* of its constants; NULL when it has none */
    struct sg_module *next, *previous;    /* all modules, in order of loading */
};

/* What a kernel was told for one device. */
struct sg_kernel_device {
    int settings[CU_FUNC_ATTRIBUTE_MAX];
    bool setting_set[CU_FUNC_ATTRIBUTE_MAX];
    CUfunc_cache cache_config;
};

struct sg_kernel {
    uint64_t handle;
    struct sg_library *library;
    const struct sg_image_function *image;
    struct sg_kernel_device devices[SG_MAX_DEVICES];
};

struct sg_library {
    uint64_t handle;
    struct sg_loaded *program; /* NULL when the image cannot be read */
    CUresult refusal;          /* what it answers then */
    struct sg_kernel *kernels; /* as many as the image has functions */
    struct sg_range **managed; /* as many as the image has variables: managed ones, once made */
};

/* Loads a program (referenced) into a context. Whole or nothing. */
CUresult sg_module_new(struct sg_context *context, struct sg_loaded *program,
                       struct sg_library *library, struct sg_module **module);
/* Its functions' handles, its variables and its own. */
void sg_module_free(struct sg_module *module);
/*
 * Which function an enumeration gives at a place: an H200 gives those of a module in the order of
 * the source, which compilers turn round in machine code, and the kernels of a library the other
 * way.
 */
size_t sg_program_order(const struct sg_image *image, size_t place, bool library);
/* The first of all modules, in order of loading. */
struct sg_module *sg_module_first(void);
/* INVALID_HANDLE for a value that is none; else the sticky error of its context. */
CUresult sg_module_from_handle(CUmodule handle, struct sg_module **module);
/* The handle of a function, made now if it has none; 0 when out of memory. */
uint64_t sg_module_function_handle(struct sg_function *function);
/* NULL when the image has none of that name. */
struct sg_function *sg_module_function(struct sg_module *module, const char *name);
/* NOT_FOUND when there is none of that name; INVALID_VALUE for the name of a function and for "".
 */
CUresult sg_module_variable(struct sg_module *module, const char *name, CUdeviceptr *address,
                            size_t *size);

/* module_variables.c: memory for all of a module's variables, with their first values. */
CUresult sg_variables_make(struct sg_module *module);
void sg_variables_free(struct sg_module *module);
/* The managed variables of a library that has none yet, without a context: an address of another
 * variable in them reads 0. Whole or nothing. */
CUresult sg_variables_make_managed(struct sg_library *library);
/* A managed variable of a library. */
void sg_variable_range_free(struct sg_range *range);

/* The library's module in a context, loaded now if it is not there. */
CUresult sg_library_module(struct sg_library *library, struct sg_context *context,
                           struct sg_module **module);
/* Makes its managed variables, if they are not there. */
CUresult sg_library_managed(struct sg_library *library);
/* INVALID_HANDLE, with *library NULL; else what its image was refused with. */
CUresult sg_library_from_handle(CUlibrary handle, struct sg_library **library);
CUresult sg_kernel_from_handle(CUkernel handle, struct sg_kernel **kernel);

/* A CUfunction as an argument that may not be a CUkernel. */
CUresult sg_function_get(CUfunction handle, struct sg_function **function);

struct sg_text;
/* function_old.c: shape, shared memory, arguments and textures that are ready for a launch. */

/* function.c: what an attribute of a function is on a device; `settings` and `set` may be NULL. */
CUresult sg_function_attribute(const struct sg_image *image,
                               const struct sg_image_function *function, int device,
                               CUfunction_attribute attribute, const int *settings, const bool *set,
                               int *value);
/* Checks a new value as an H200 does and keeps it. */
CUresult sg_function_set(const struct sg_image *image, const struct sg_image_function *function,
                         int device, CUfunction_attribute attribute, int value, int *settings,
                         bool *set);
CUresult sg_function_parameter(const struct sg_image_function *function, size_t index,
                               size_t *offset, size_t *size);
/* An attribute of a loaded function, with what its kernel was told; never fails for one that is. */
int sg_function_value(const struct sg_function *function, CUfunction_attribute attribute);

extern const struct sg_chapter sg_module_chapter;

#endif
