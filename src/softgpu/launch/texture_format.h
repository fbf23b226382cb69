/* Formats of arrays and views, as the engine describes a channel's bits. */
#ifndef SG_LAUNCH_TEXTURE_FORMAT_H
#define SG_LAUNCH_TEXTURE_FORMAT_H

#include "softgpu/engine/texture.h"
#include <gpumem/cuda_api.h>

/* Sets form, bits, channels, element and srgb. False: the engine does not have the format, and the
 * texture is unchanged. */
bool sg_texture_format(struct sg_texture *texture, CUarray_format format, unsigned channels);
/* The same for a view's format; NONE changes nothing. */
bool sg_texture_view_format(struct sg_texture *texture, CUresourceViewFormat format);

#endif
