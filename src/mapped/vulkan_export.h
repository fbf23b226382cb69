/* Memory that Vulkan allocates and maps, and CUDA imports: fixed in size, no views. */
#ifndef GM_MAPPED_VULKAN_EXPORT_H
#define GM_MAPPED_VULKAN_EXPORT_H

#include "mapped/incoherent.h"
#include "mapped/mapper.h"

struct gm_exported {
    struct gm_piece piece; /* what the CPU has; `address` is the device's */
    CUexternalMemory external;
    struct gm_incoherent incoherent;
    size_t bounded; /* bytes that the resource's bound has for it */
};

/* Whole or nothing, with the context current; what the driver does not take back is counted in the
 * meter. */
gpumem_status gm_exported_make(struct gm_mapper *mapper, struct gm_meter *meter, size_t bytes,
                               struct gm_exported **made);
void gm_exported_end(struct gm_mapper *mapper, struct gm_meter *meter,
                     struct gm_exported *exported);

/* A resource of it, which owns `user` (that begins with the mapper) from here on and ends it. */
gpumem_status gm_exported_resource(gpumem_device *device, struct gm_mapper *mapper, void *user,
                                   void (*end)(void *user), gpumem_resource **resource);
/* The mapper behind such a resource, or NULL. */
struct gm_mapper *gm_exported_mapper(const gpumem_resource *resource);

#endif
