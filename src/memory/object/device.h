/* What the other files need of a device. */
#ifndef GM_MEMORY_DEVICE_H
#define GM_MEMORY_DEVICE_H

#include "memory/core/objects.h"

/* An attribute's value; `missing` if the driver does not know it. */
int gm_device_attribute(const gpumem_device *device, CUdevice_attribute attribute, int missing);

/* With the library's lock held: whether nobody has anything of it, and its end would wait for
 * nothing; and that end. */
int gm_device_is_unused(gpumem_device *device);
void gm_device_end(gpumem_device *device);

int gm_library_has_devices(gpumem_library *library);
void gm_library_end(gpumem_library *library);

/* Low-level objects keep their device open. */
void gm_device_object_made(gpumem_device *device);
void gm_device_object_gone(gpumem_device *device);

/* The lists of what is shared, with the device's lock held until they are left. Nothing is called
 * meanwhile. */
struct gm_shared_lists *gm_device_shared_lock(gpumem_device *device);
void gm_device_shared_unlock(gpumem_device *device);

#endif
