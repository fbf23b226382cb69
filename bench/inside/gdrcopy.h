/* GDRCopy, if its library and its kernel module are present: memory of cuMemAlloc that it maps. */
#ifndef BENCH_GDRCOPY_H
#define BENCH_GDRCOPY_H

#include <gpumem/driver.h>
#include <stddef.h>

/* The address of at least `bytes` that the CPU can load from. NULL if unavailable, with the reason
 * printed. The memory remains until the program ends. */
const void *gdrcopy_open(const gpumem_driver_api *cu, size_t bytes);
/* Its own copy into the mapping, including the fence at its end. */
void gdrcopy_store(const void *from, size_t bytes);

#endif
