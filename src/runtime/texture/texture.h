/* Arrays, as the runtime describes them. */
#ifndef RT_TEXTURE_TEXTURE_H
#define RT_TEXTURE_TEXTURE_H

#include "runtime/core/runtime.h"

/* The driver's description; INVALID_CHANNEL_DESCRIPTOR where it has no such elements. */
cudaError_t rt_array_shape(const cudaChannelFormatDesc *desc, cudaExtent extent, unsigned flags,
                           CUDA_ARRAY3D_DESCRIPTOR *shape);

#endif
