/* A copy between packed rows of the host and a level of a mipmapped array. */
#ifndef TESTS_CONFORMANCE_LEVEL_ROWS_H
#define TESTS_CONFORMANCE_LEVEL_ROWS_H

#include "harness.h"
#include "members.h"

static inline CUDA_MEMCPY2D level_rows(CUarray level, unsigned char *bytes, size_t width,
                                       size_t height, bool in) {
    CUDA_MEMCPY2D copy = {EXTENT(width, height),
                          .srcMemoryType = in ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_ARRAY,
                          .dstMemoryType = in ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_HOST,
                          .srcHost = bytes,
                          .dstHost = bytes,
                          .srcArray = level,
                          .dstArray = level,
                          .srcPitch = width,
                          .dstPitch = width};
    return copy;
}

#endif
