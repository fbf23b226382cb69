/* The inner side of mapped resources. */
#ifndef GM_MAPPED_RESOURCE_H
#define GM_MAPPED_RESOURCE_H

#include "mapped/host_range.h"

/* The CPU's mapping of a buffer of a mapped resource; NULL where it needs none or is of another
 * kind. */
struct gm_host_range *gm_mapped_range(const gpumem_buffer *buffer);

#endif
