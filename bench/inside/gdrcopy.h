/* GDRCopy, where its library and its kernel module are: memory of cuMemAlloc that it maps. */
#ifndef BENCH_GDRCOPY_H
#define BENCH_GDRCOPY_H

#include <gpumem/driver.h>
#include <stddef.h>

/* The address of at least `bytes` that the CPU may load from. NULL where it is not to be had, with
 * the reason printed. What was made stays until the program ends. */
const void *gdrcopy_open(const gpumem_driver_api *cu, size_t bytes);
/* Its own copy into the mapping, and the fence that it ends with. */
void gdrcopy_store(const void *from, size_t bytes);

#endif
