/* Shared by cuGraphDebugDotPrint and the code that draws the parameters of a type. */
#ifndef SG_GRAPH_DOT_H
#define SG_GRAPH_DOT_H

#include "softgpu/graph/graph.h"

#include <stdio.h>

struct sg_picture {
    FILE *out;
    unsigned flags;
    unsigned graphs; /* numbered so far */
};

/* Whether the flags request what this flag stands for. */
static inline bool sg_picture_wants(const struct sg_picture *picture, unsigned flag) {
    return picture->flags & (flag | CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE);
}

/* Adds a number as a field of the record, if the flag requests it. */
void sg_picture_count(const struct sg_picture *picture, unsigned flag, const char *what,
                      unsigned count);

#endif
