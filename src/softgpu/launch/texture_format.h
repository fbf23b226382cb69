/* Formats of arrays and of views, as what a channel's bits mean to the engine. */
#ifndef SG_LAUNCH_TEXTURE_FORMAT_H
#define SG_LAUNCH_TEXTURE_FORMAT_H

#include "softgpu/engine/texture.h"
#include <gpumem/cuda_api.h>

/* Sets form, bits, channels and element, and srgb of formats that are. False: the engine has no
 * such format; the texture is unchanged then. */
bool sg_texture_format(struct sg_texture *texture, CUarray_format format, unsigned channels);
/* The same for a view; NONE changes nothing. */
bool sg_texture_view_format(struct sg_texture *texture, CUresourceViewFormat format);

#endif
