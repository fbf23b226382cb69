/* The linker. */
#ifndef SG_LINK_LINK_H
#define SG_LINK_LINK_H

#include "softgpu/binary/read.h"
#include "softgpu/image/image.h"

/*
 * Links images. Every external name must be defined by one of them, no name may be defined twice
 * except weakly, and no name may be two kinds of thing (link_names.c), else INVALID_SOURCE. Names
 * that are not visible are private to their image. The result owns copies: `*bytes` is a malloc'd
 * ELF for the architecture of the options (docs/softgpu.md), which sg_image_read accepts.
 */
CUresult sg_image_link(const struct sg_image *const *images, size_t count,
                       const struct sg_image_options *options, struct sg_image_log *log,
                       unsigned char **bytes, size_t *size);
/* The first half of sg_image_link: SUCCESS, or INVALID_SOURCE when a name is defined twice. */
CUresult sg_image_meet(const struct sg_image *const *images, size_t count,
                       const struct sg_image_options *options, struct sg_image_log *log);

#endif
