/* Has the system put memory behind addresses, with several threads: the first touch of a page costs
 * far more than pinning it (2 GB/s a thread). */
#ifndef GM_MEMORY_TOUCH_H
#define GM_MEMORY_TOUCH_H

#include <stddef.h>

/* Writable, private, page-aligned memory; content is kept. 0 or an errno. */
int gm_touch(void *base, size_t bytes, unsigned threads);

#endif
