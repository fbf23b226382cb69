/*
 * Members of the driver's structs that belong together, for initialisers:
 *
 *     CUDA_MEMCPY2D copy = {FROM_HOST(bytes), .srcPitch = 64, TO_ARRAY(array), EXTENT(64, 8)};
 *     CUlaunchConfig config = {GRID(4), BLOCK(32), .hStream = stream};
 */
#ifndef TESTS_MEMBERS_H
#define TESTS_MEMBERS_H

/* Ends of copies. */
#define FROM_HOST(at)    .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = (at)
#define FROM_DEVICE(at)  .srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = (at)
#define FROM_UNIFIED(at) .srcMemoryType = CU_MEMORYTYPE_UNIFIED, .srcDevice = (at)
#define FROM_ARRAY(from) .srcMemoryType = CU_MEMORYTYPE_ARRAY, .srcArray = (from)
#define TO_HOST(at)      .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = (at)
#define TO_DEVICE(at)    .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = (at)
#define TO_UNIFIED(at)   .dstMemoryType = CU_MEMORYTYPE_UNIFIED, .dstDevice = (at)
#define TO_ARRAY(to)     .dstMemoryType = CU_MEMORYTYPE_ARRAY, .dstArray = (to)

/* How much is copied: bytes of a row, rows, slices. */
#define EXTENT(bytes, rows)            .WidthInBytes = (bytes), .Height = (rows)
#define EXTENT_3D(bytes, rows, slices) EXTENT(bytes, rows), .Depth = (slices)

/* Shapes of launches in one dimension. */
#define GRID(blocks)   .gridDimX = (blocks), .gridDimY = 1, .gridDimZ = 1
#define BLOCK(threads) .blockDimX = (threads), .blockDimY = 1, .blockDimZ = 1

/* Forms of arrays. */
#define SIZE_3D(width, height, depth) .Width = (width), .Height = (height), .Depth = (depth)
#define TEXELS(format, channels)      .Format = (format), .NumChannels = (channels)

/* Places of memory. */
#define AT_DEVICE(number) .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = (number)}

#endif
