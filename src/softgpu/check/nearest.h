/* What is around an address, in words. */
#ifndef SG_CHECK_NEAREST_H
#define SG_CHECK_NEAREST_H

#include <stddef.h>
#include <stdint.h>

/* A line, with its end: the allocation that the address is in, that has been freed there, or that
 * is nearest. "" is never written. With the lock. */
void sg_nearest_text(uint64_t address, char *text, size_t size);

#endif
