/* Decompression as a device's engine does it: whole buffers, of one algorithm each. */
#ifndef SG_DECOMPRESS_DECOMPRESS_H
#define SG_DECOMPRESS_DECOMPRESS_H

#include <gpumem/cuda_api.h>
#include <stdbool.h>

/* Decompresses a raw DEFLATE stream or LZ4 block. False if it is invalid or exceeds `room`. */
bool sg_decompress(CUmemDecompressAlgorithm algorithm, const void *from, size_t size, void *to,
                   size_t room, size_t *written);

#endif
