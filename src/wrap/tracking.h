/* Copies of a tracking resource's data, which stay valid while the program continues. */
#ifndef GM_WRAP_TRACKING_H
#define GM_WRAP_TRACKING_H

#include "memory/core/describe.h"

#include <gpumem/wrappers.h>

#define GM_FRAMES_MOST 64

struct gm_tracking_list {
    gpumem_tracked *entries; /* their frames are in `frames` */
    size_t count, room;
    void **frames;
    size_t frames_each;
};

/* Oldest first. The caller clears `list`. The resource must be a tracking one. */
gpumem_status gm_tracking_read(gpumem_resource *resource, struct gm_tracking_list *list);
void gm_tracking_clear(struct gm_tracking_list *list);

/* Its member "tracked" in a snapshot, with call sites by name. */
void gm_tracking_describe(gpumem_resource *resource, struct gm_json *json,
                          const gpumem_snapshot_options *options);

int gm_is_tracking(const gpumem_resource *resource);

#endif
