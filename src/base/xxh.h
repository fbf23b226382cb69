/* Checksums by the algorithms of xxHash, as its specification defines them: their values are part
 * of gpumem_buffer_checksum's contract, and of files that are kept. */
#ifndef GM_BASE_XXH_H
#define GM_BASE_XXH_H

#include <stddef.h>
#include <stdint.h>

/* XXH3 with a result of 64 bits. A seed of 0 is XXH3 without one. */
uint64_t gm_xxh3(const void *data, size_t size, uint64_t seed);

/* XXH64 with a seed of 0. */
uint64_t gm_xxh64(const void *data, size_t size);

#endif
