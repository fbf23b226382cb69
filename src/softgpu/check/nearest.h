/* Describes what is around an address. */
#ifndef SG_CHECK_NEAREST_H
#define SG_CHECK_NEAREST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes one line, with its newline: the allocation that contains the address, that has been freed
 * there, or that is nearest. Never writes "". With the lock. */
void sg_nearest_text(uint64_t address, char *text, size_t size);
/* The same of the block of the kernels' heap behind which an address is; false: none is near. */
bool sg_block_text(uint64_t address, char *text, size_t size);

#endif
