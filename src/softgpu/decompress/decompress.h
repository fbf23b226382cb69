/* Decompression as the engine of a device does it: whole buffers, of one algorithm each. */
#ifndef SG_DECOMPRESS_DECOMPRESS_H
#define SG_DECOMPRESS_DECOMPRESS_H

#include <gpumem/cuda_api.h>
#include <stdbool.h>

/* Decompresses a raw DEFLATE stream or LZ4 block. False when it is none, or longer than `room`. */
bool sg_decompress(CUmemDecompressAlgorithm algorithm, const void *from, size_t size, void *to,
                   size_t room, size_t *written);

#endif
