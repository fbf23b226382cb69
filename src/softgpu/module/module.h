/* Modules, libraries and kernels. Everything here requires the lock. */
#ifndef SG_MODULE_MODULE_H
#define SG_MODULE_MODULE_H

#include "softgpu/address/memory.h"
#include "softgpu/core/chapter.h"
#include "softgpu/module/function.h"
#include "softgpu/module/loading.h"

struct sg_library;

/* A variable of an image, in one context; a library's managed ones are shared by all contexts. */
struct sg_module_variable {
    const struct sg_image_variable *image;
    struct sg_range *range; /* its own, or the bank; NULL if external */
    uint64_t offset;        /* in the range */
    bool of_library;        /* the library frees it */
    bool fresh;             /* made by this module, not yet filled */
};

struct sg_module {
    uint64_t handle;
    struct sg_context *context; /* referenced */
    struct sg_loaded *program;
    struct sg_library *library;    /* the library that this is the context's module of, or NULL */
    struct sg_function *functions; /* as many as the image has; handles are made on demand */
    struct sg_module_variable *variables; /* likewise */
    struct sg_range *bank;                /* of its constants; NULL when there are none */
    struct sg_module *next, *previous;    /* all modules, in order of loading */
};

/* A kernel's settings for one device. */
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
    CUresult refusal;          /* the answer in that case */
    struct sg_kernel *kernels; /* as many as the image has functions */
    struct sg_range **managed; /* as many as the image has variables: managed ones, once made */
    bool of_runtime;           /* made by a runtime for the program's kernels: its own, no leak */
};

/* Loads a program, which it references, into a context. All or nothing. */
CUresult sg_module_new(struct sg_context *context, struct sg_loaded *program,
                       struct sg_library *library, struct sg_module **module);
/* Frees the module with its variables, its functions' handles and its own. */
void sg_module_free(struct sg_module *module);
/* Which function is at a place in an enumeration: an H200 lists those of a module in source order,
 * which compilers reverse in machine code, and the kernels of a library in the opposite order. */
size_t sg_program_order(const struct sg_image *image, size_t place, bool library);
/* The first of all modules, in order of loading. */
struct sg_module *sg_module_first(void);
/* INVALID_HANDLE if the value is not a module; else the sticky error of its context. */
CUresult sg_module_from_handle(CUmodule handle, struct sg_module **module);
/* The handle of a function, made now if it has none; 0 when out of memory. */
uint64_t sg_module_function_handle(struct sg_function *function);
/* NOT_FOUND when the image has no function of that name; else as sg_function_lacks. */
CUresult sg_module_function(struct sg_module *module, const char *name,
                            struct sg_function **function);
/* What an H200 answers to a request for the function: NOT_FOUND or INVALID_IMAGE where it cannot
 * run before a link. */
CUresult sg_function_lacks(const struct sg_image_function *function);
/* NOT_FOUND when there is none of that name; INVALID_VALUE for a function's name and for "". */
CUresult sg_module_variable(struct sg_module *module, const char *name, CUdeviceptr *address,
                            size_t *size);

/* module_variables.c: allocates all of a module's variables and sets their initial values. */
CUresult sg_variables_make(struct sg_module *module);
void sg_variables_free(struct sg_module *module);
/* Makes the managed variables of a library that has none yet, without a context: in them, an
 * address of another variable reads 0. All or nothing. */
CUresult sg_variables_make_managed(struct sg_library *library);
/* Frees a managed variable of a library. */
void sg_variable_range_free(struct sg_range *range);

/* The library's module in a context, loaded now if absent. */
CUresult sg_library_module(struct sg_library *library, struct sg_context *context,
                           struct sg_module **module);
/* Makes its managed variables, if absent. */
CUresult sg_library_managed(struct sg_library *library);
/* INVALID_HANDLE, with *library NULL; else the error that its image was refused with. */
CUresult sg_library_from_handle(CUlibrary handle, struct sg_library **library);
CUresult sg_kernel_from_handle(CUkernel handle, struct sg_kernel **kernel);

/* For a CUfunction argument that must not be a CUkernel. */
CUresult sg_function_get(CUfunction handle, struct sg_function **function);

struct sg_text;

/* function.c: the value of a function's attribute on a device; `settings` and `set` may be NULL. */
CUresult sg_function_attribute(const struct sg_image *image,
                               const struct sg_image_function *function, int device,
                               CUfunction_attribute attribute, const int *settings, const bool *set,
                               int *value);
/* Checks a new value as an H200 does, and stores it. */
CUresult sg_function_set(const struct sg_image *image, const struct sg_image_function *function,
                         int device, CUfunction_attribute attribute, int value, int *settings,
                         bool *set);
CUresult sg_function_parameter(const struct sg_image_function *function, size_t index,
                               size_t *offset, size_t *size);
/* An attribute of a loaded function, with its kernel's settings; never fails for a valid one. */
int sg_function_value(const struct sg_function *function, CUfunction_attribute attribute);

extern const struct sg_chapter sg_module_chapter;

#endif
