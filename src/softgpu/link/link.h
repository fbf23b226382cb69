/* The linker. */
#ifndef SG_LINK_LINK_H
#define SG_LINK_LINK_H

#include "softgpu/binary/read.h"
#include "softgpu/image/image.h"

/*
 * Links images: every external name must be given by one of them, no name twice but by weak
 * definitions, and no name as two things (link_names.c), else INVALID_SOURCE. Names that are not
 * visible belong to their image alone. The result owns copies: an ELF for the architecture of the
 * options (docs/softgpu.md), `*bytes`, malloc'd, that sg_image_read takes again.
 */
CUresult sg_image_link(const struct sg_image *const *images, size_t count,
                       const struct sg_image_options *options, struct sg_image_log *log,
                       unsigned char **bytes, size_t *size);
/* The first half of that: SUCCESS, or INVALID_SOURCE when a name is given twice. */
CUresult sg_image_meet(const struct sg_image *const *images, size_t count,
                       const struct sg_image_options *options, struct sg_image_log *log);

#endif
