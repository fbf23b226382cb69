/* Functions of loaded images, as graphs, launches and occupancy see them. Everything here requires
 * the lock. */
#ifndef SG_MODULE_FUNCTION_H
#define SG_MODULE_FUNCTION_H

#include "softgpu/context/context.h"
#include "softgpu/image/image.h"

struct sg_module;
struct sg_kernel;
struct sg_old_launch;

/* A function of a module that is loaded in a context. */
struct sg_function {
    uint64_t handle;
    struct sg_module *module;
    struct sg_context *context;            /* the module's */
    const struct sg_image_function *image; /* owned by the module's image */
    struct sg_kernel *kernel; /* the kernel that this is the context's function of, or NULL */
    bool loaded;              /* CU_FUNCTION_LOADING_STATE */
    CUfunc_cache cache_config;
    CUsharedconfig shared_config;
    int settings[CU_FUNC_ATTRIBUTE_MAX]; /* cuFuncSetAttribute's, where set */
    bool setting_set[CU_FUNC_ATTRIBUTE_MAX];
    bool refusal_said;         /* the log says once that it is not launched */
    struct sg_old_launch *old; /* what the first API prepared for a launch; NULL until it is used */
    void *engine;              /* launch/ has it: what a launch runs; NULL until the first */
};

/* A function argument: a CUfunction, or a CUkernel cast to one, which stands for its function in
 * the current context. Else INVALID_HANDLE. */
CUresult sg_function_from_handle(CUfunction handle, struct sg_function **function);
/* For graph nodes that name a CUkernel and a context. */
CUresult sg_function_of_kernel(CUkernel kernel, struct sg_context *context,
                               struct sg_function **function);

/* Ends `engine` of a function whose module goes; launch/ sets it. */
extern void (*sg_function_engine_end)(struct sg_function *function);

#endif
