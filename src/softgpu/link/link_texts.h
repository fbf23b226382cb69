/* Links PTX texts without a context: for compilers' libraries, which have none. */
#ifndef SG_LINK_LINK_TEXTS_H
#define SG_LINK_LINK_TEXTS_H

#include "softgpu/image/image.h"

/*
 * As cuLinkAddData of each text and cuLinkComplete; messages go to `log` (zero-terminated, cut to
 * fit). *bytes is malloc'd. The version of the PTX is judged when the image is loaded.
 */
CUresult sg_link_texts(unsigned architecture, const char *const *texts, size_t count, char *log,
                       size_t log_size, unsigned char **bytes, size_t *size);

#endif
