/* The state of a linker, between its inputs (link_add.c) and its output (link_call.c). */
#ifndef SG_LINK_LINK_CALL_H
#define SG_LINK_LINK_CALL_H

#include "softgpu/module/loading.h"

/* Logs, and the values that say how much of them was used, are written until the linker ends. */
struct sg_link {
    uint64_t handle;
    int device;
    struct sg_jit jit; /* its options are a copy; its values are the application's */
    struct sg_image_log log;
    uint64_t started;
    struct sg_image **images;
    size_t count, room;
    CUresult refusal; /* from the first input that cannot be joined with the others; permanent */
    bool completed, verbose;
    unsigned char *output;
    size_t output_size;
};

/* Once a linker's compiler has refused a text, an H200 answers UNKNOWN when a linker of the process
 * lacks something: recorded for all later ones. */
extern bool sg_link_text_was_refused;

/* INVALID_HANDLE when there is no such linker. */
CUresult sg_link_find(CUlinkState state, struct sg_link **link);
struct sg_image_options sg_link_options(const struct sg_link *link, const char *name);

#endif
