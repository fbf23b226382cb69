/* What the other files need of a device. */
#ifndef GM_MEMORY_DEVICE_H
#define GM_MEMORY_DEVICE_H

#include "memory/objects.h"

/* An attribute's value; `missing` if the driver does not know it. */
int gm_device_attribute(const gpumem_device *device, CUdevice_attribute attribute, int missing);

/* Low-level objects keep their device open. */
void gm_device_object_made(gpumem_device *device);
void gm_device_object_gone(gpumem_device *device);

#endif
