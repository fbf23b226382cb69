/* From the bytes that an application supplies to an image that modules and libraries share.
 * Everything here requires the lock. */
#ifndef SG_MODULE_LOADING_H
#define SG_MODULE_LOADING_H

#include "softgpu/image/image.h"

#include <stdbool.h>

/* An image that has been read, with a count of its users. */
struct sg_loaded {
    unsigned refs;
    struct sg_image *image;
    char *holder; /* of machine code: the file that it is in, what else is there; NULL: not known */
};

/* Options of the compiler, and where their answers go. */
struct sg_jit {
    CUjit_option *options;
    void **values;
    unsigned count;
    char *info, *error; /* the application's buffers, or NULL */
    size_t info_size, error_size;
    bool info_sized, error_sized; /* their sizes were given */
    bool has_target;              /* CU_JIT_TARGET was given */
    unsigned target;              /* 90 for 9.0 */
    CUresult target_result;       /* the answer to code for it, if there is no compiler for it */
    bool ptx_refused;             /* the compiler accepts no PTX with these options */
    bool unoptimized;             /* CU_JIT_OPTIMIZATION_LEVEL is 0 */
    bool fallback, prefer_ptx;    /* CU_JIT_FALLBACK_STRATEGY was given; it is CU_PREFER_PTX */
};

/* Reads the environment, once: an H200 does so when it is initialized. */
CUresult sg_loading_init(void);
/* Whether CUDA_MODULE_LOADING requests that everything be loaded at once. */
bool sg_loading_eager(void);

/* The newest .version that is taken, 92 for 9.2. Needs no lock. */
int sg_loading_newest_ptx(void);

/* Checks the options as an H200 does. SUCCESS, INVALID_VALUE, or what single options answer. */
CUresult sg_jit_read(struct sg_jit *jit, unsigned count, CUjit_option *options, void **values);
/* The answer of the options about code to an image that was read; a link may make code for any
 * device. */
CUresult sg_jit_image(const struct sg_jit *jit, const struct sg_image *image, int device_target,
                      bool link);
/* The log that a reader of images writes to. */
struct sg_image_log sg_jit_log(const struct sg_jit *jit);
/* Stores how much of the logs was used, and the time since `started`, over the options' values. */
void sg_jit_answer(const struct sg_jit *jit, const struct sg_image_log *log, uint64_t started);

/* One line in the log about a text that was refused because it is too new: its version, and what
 * can be done. Nothing for other answers, and for the same version again. */
void sg_loading_explain(CUresult result, const struct sg_image_log *log);

/* What a device accepts. `name` may be NULL. */
struct sg_image_options sg_loading_options(int device, const char *name);

/* A program with one reference, from `size` bytes; SIZE_MAX when the length is unknown. `wrapped`:
 * also accept what nvcc's host programs have around their fatbin. */
CUresult sg_loaded_read(const void *bytes, size_t size, int device, const struct sg_jit *jit,
                        bool wrapped, struct sg_loaded **program);
void sg_loaded_ref(struct sg_loaded *program);
void sg_loaded_unref(struct sg_loaded *program);

/* A whole file followed by a zero; free it. FILE_NOT_FOUND; OUT_OF_MEMORY, also for directories. */
CUresult sg_loading_file(const char *path, unsigned char **bytes, size_t *size);

#endif
