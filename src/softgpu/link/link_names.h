/* Which input of a link gives each name. Inside of the linker: others see image.h. */
#ifndef SG_LINK_LINK_NAMES_H
#define SG_LINK_LINK_NAMES_H

#include "softgpu/image/reader.h"

/* A name that inputs share, and the definition of it that counts; or the declaration, when there
 * is none so far. */
struct sg_link_name;

struct sg_link_names {
    const struct sg_image *const *images;
    size_t count; /* of the images */
    const struct sg_image_options *options;
    struct sg_image_log *log;
    /* Scope 0: names that inputs share; scope i + 1: all variables of input i. */
    struct sg_name_table table;
    struct sg_link_name *all;
    size_t used;
    CUresult result;
};

/* Gathers the names of all inputs; sg_link_names_end in any case. SUCCESS, INVALID_SOURCE or
 * UNKNOWN when inputs contradict each other, OUT_OF_MEMORY. */
CUresult sg_link_names_gather(struct sg_link_names *names);
/* INVALID_SOURCE when something is declared and needed, but not defined. */
CUresult sg_link_names_require(struct sg_link_names *names);
void sg_link_names_end(struct sg_link_names *names);

/* Between link_names.c and link_reach.c. A function of that name is needed: false when no input
 * defines it, else *image does. */
bool sg_link_need(struct sg_link_names *names, const char *name, size_t *image);
/* Follows the calls from what a link keeps in any case. OUT_OF_MEMORY. */
CUresult sg_link_reach(struct sg_link_names *names);

/* Whether the result has that function, or variable, of that input. */
bool sg_link_has_function(const struct sg_link_names *names, size_t image, size_t function);
bool sg_link_has_variable(const struct sg_link_names *names, size_t image, size_t variable);

/* The variable that an address in input *image means, of which the input and the number are set;
 * false when it means code. */
bool sg_link_target(const struct sg_link_names *names, const struct sg_relocation *of,
                    size_t *image, size_t *variable);

#endif
