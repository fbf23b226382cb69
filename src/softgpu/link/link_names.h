/* Which input of a link defines each name. Private to the linker: others include image.h. */
#ifndef SG_LINK_LINK_NAMES_H
#define SG_LINK_LINK_NAMES_H

#include "softgpu/image/reader.h"

/* A name that inputs share, with the definition that counts or, if none yet, a declaration. */
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

/* Gathers the names of all inputs. SUCCESS, INVALID_SOURCE or UNKNOWN when inputs contradict each
 * other, OUT_OF_MEMORY. Call sg_link_names_end in any case. */
CUresult sg_link_names_gather(struct sg_link_names *names);
/* INVALID_SOURCE when something is declared and needed, but not defined. */
CUresult sg_link_names_require(struct sg_link_names *names);
void sg_link_names_end(struct sg_link_names *names);

/* Shared by link_names.c and link_reach.c. Marks the function of that name as needed: false when no
 * input defines it, else *image is the one that does. */
bool sg_link_need(struct sg_link_names *names, const char *name, size_t *image);
/* Follows the calls from what a link always keeps. OUT_OF_MEMORY. */
CUresult sg_link_reach(struct sg_link_names *names);

/* Whether the result includes that function, or variable, of that input. */
bool sg_link_has_function(const struct sg_link_names *names, size_t image, size_t function);
bool sg_link_has_variable(const struct sg_link_names *names, size_t image, size_t variable);

/* The variable that an address in input *image refers to: sets its input and number. False when it
 * refers to code. */
bool sg_link_target(const struct sg_link_names *names, const struct sg_relocation *of,
                    size_t *image, size_t *variable);

#endif
