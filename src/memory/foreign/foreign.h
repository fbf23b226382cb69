/* The internals of buffers over foreign memory. */
#ifndef GM_MEMORY_FOREIGN_H
#define GM_MEMORY_FOREIGN_H

#include "memory/core/pointer_facts.h"

#include <gpumem/foreign.h>

/* A buffer over memory that has been checked; options are complete. On failure nothing is taken
 * over. */
gpumem_status gm_foreign_make(gpumem_device *device, CUdeviceptr pointer, size_t bytes,
                              const struct gm_pointer *known, const gpumem_foreign_options *options,
                              gpumem_buffer **buffer);

/* NO_DEVICE for device memory of another device. */
gpumem_status gm_foreign_check_device(const gpumem_device *device, const struct gm_pointer *known);

#endif
