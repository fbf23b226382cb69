/* The mapped resource that a benchmark measures. */
#ifndef BENCH_MAPPED_METHOD_H
#define BENCH_MAPPED_METHOD_H

#include <gpumem/gpumem.h>

/* Uses the method that GPUMEM_MAPPED_METHOD names ("vulkan-import"), or the best that works, and
 * prints which. Ends the program if there is none. */
gpumem_resource *mapped_resource(gpumem_device *device, gpumem_mapped_method *method);

#endif
