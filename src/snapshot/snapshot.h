/* Between the files of this folder: each function writes one member, named in docs/snapshot.md. */
#ifndef GM_SNAPSHOT_SNAPSHOT_H
#define GM_SNAPSHOT_SNAPSHOT_H

#include "base/json.h"
#include "memory/core/objects.h"

#include <gpumem/snapshot.h>

void gm_snapshot_stats(struct gm_json *json, const char *key, const gpumem_stats *stats);

/* An element of "resources". No lock of the device's is held. `memory`: the device's virtual
 * memory, in which the chunks of buffers are looked up. */
void gm_snapshot_resource(struct gm_json *json, gpumem_resource *resource,
                          const gpumem_snapshot_options *options,
                          const struct gm_inventory_copy *memory);

void gm_snapshot_deferred(struct gm_json *json, gpumem_device *device);
void gm_snapshot_exports(struct gm_json *json, gpumem_device *device);
void gm_snapshot_virtual(struct gm_json *json, gpumem_device *device,
                         const struct gm_inventory_copy *memory);

#endif
