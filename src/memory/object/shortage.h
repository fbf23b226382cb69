/* What the message of a call that found no memory says, in one form: the request, what refused it,
 * what is free, what to do. */
#ifndef GM_MEMORY_SHORTAGE_H
#define GM_MEMORY_SHORTAGE_H

#include "memory/core/objects.h"

/*
 * Completes the message that was recorded for `status`, if that is OUT_OF_MEMORY, or
 * OUT_OF_HOST_MEMORY as the driver's answer: `bytes` were requested of the resource, or (NULL) of
 * the device. A message that is complete stays as it is. Returns `status`. Driver: cuMemGetInfo.
 */
gpumem_status gm_tell_shortage(gpumem_device *device, const gpumem_resource *resource,
                               uint64_t bytes, gpumem_status status);

#endif
