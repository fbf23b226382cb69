/* Calls for virtual buffers that wrappers with a buffer of their own inside pass on. */
#ifndef GM_MEMORY_VIRTUAL_THROUGH_H
#define GM_MEMORY_VIRTUAL_THROUGH_H

#include "memory/core/objects.h"

/* The buffer inside one of the library's alignment and fallback wrappers; NULL for others. */
gpumem_buffer *gm_through(const gpumem_buffer *buffer);

/* The public calls of these names. NOT_SUPPORTED if it is not a virtual resource's in the end. */
gpumem_status gm_through_decommit(gpumem_buffer *outer, gpumem_buffer *inner, size_t offset,
                                  size_t bytes, CUstream stream, size_t *released);
gpumem_status gm_through_recommit(gpumem_buffer *outer, gpumem_buffer *inner, size_t offset,
                                  size_t bytes);
gpumem_status gm_through_set_access(gpumem_buffer *outer, gpumem_buffer *inner, size_t offset,
                                    size_t bytes, int device, gpumem_access access,
                                    CUstream stream);
gpumem_status gm_through_get_access(gpumem_buffer *outer, gpumem_buffer *inner, size_t offset,
                                    int device, gpumem_access *access);
gpumem_status gm_through_move(gpumem_buffer *outer, gpumem_buffer *inner, size_t capacity,
                              CUstream stream, CUdeviceptr *address);

#endif
