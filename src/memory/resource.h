/* Making and ending resources, for the built-in ones and the public door alike. */
#ifndef GM_MEMORY_RESOURCE_H
#define GM_MEMORY_RESOURCE_H

#include "memory/objects.h"

/* `upstream` is NULL but for wrappers. On failure ops->destroy is not called. */
gpumem_status gm_resource_make(gpumem_device *device, const gpumem_resource_ops *ops, void *user,
                               gpumem_resource *upstream, gpumem_resource **resource);

/* The same, for a resource that the device itself owns and lists nowhere. */
gpumem_status gm_resource_make_hidden(gpumem_device *device, const gpumem_resource_ops *ops,
                                      void *user, gpumem_resource **resource);

/* Ends a resource without buffers. */
void gm_resource_discard(gpumem_resource *resource);

/* What allocation does when memory runs out: waits for held-back frees and empties the caches of
 * the device. Returns whether there was anything to do. */
int gm_reclaim(gpumem_device *device);

/* Adds what the device's resources know beside the meters. */
void gm_resources_add_stats(gpumem_device *device, gpumem_stats *stats);

#endif
