/* Copies of rectangles and boxes, between memory and arrays. */
#ifndef RT_COPY_SHAPES_H
#define RT_COPY_SHAPES_H

#include "runtime/core/runtime.h"

bool rt_copy_kind(cudaMemcpyKind kind);
/* The driver's form of a copy; extents in bytes. */
cudaError_t rt_box_copy(const cudaMemcpy3DParms *parameters, CUDA_MEMCPY3D *copy);
/* The runtime's form of the driver's. */
void rt_box_parameters(const CUDA_MEMCPY3D *copy, cudaMemcpy3DParms *parameters);
/* Bytes of an element of an array. */
cudaError_t rt_element_size(CUarray array, size_t *size);

#endif
