/* Memory that Vulkan allocates and maps, and CUDA imports: fixed in size, no views. */
#ifndef GM_MAPPED_VULKAN_EXPORT_H
#define GM_MAPPED_VULKAN_EXPORT_H

#include "mapped/incoherent.h"
#include "mapped/mapper.h"

struct gm_exported {
    struct gm_piece piece; /* the CPU's mapping; `address` is the device's */
    CUexternalMemory external;
    struct gm_incoherent incoherent;
    size_t bounded; /* bytes counted against the resource's bound */
};

/* All or nothing, with the context current; what the driver refuses to take back is counted in the
 * meter. */
gpumem_status gm_exported_make(struct gm_mapper *mapper, struct gm_meter *meter, size_t bytes,
                               struct gm_exported **made);
void gm_exported_end(struct gm_mapper *mapper, struct gm_meter *meter,
                     struct gm_exported *exported);

/* Makes a resource of such memory, which owns `user` (which begins with the mapper) from here on
 * and ends it. */
gpumem_status gm_exported_resource(gpumem_device *device, struct gm_mapper *mapper, void *user,
                                   void (*end)(void *user), gpumem_resource **resource);
/* The mapper of such a resource, or NULL. */
struct gm_mapper *gm_exported_mapper(const gpumem_resource *resource);

#endif
