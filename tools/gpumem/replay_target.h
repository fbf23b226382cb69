/* The target of a replay: a resource of the library, or the driver's pool without the library. */
#ifndef CLI_REPLAY_TARGET_H
#define CLI_REPLAY_TARGET_H

#include "replay.h"

#include <gpumem/driver.h>

/* One buffer of the log. */
struct replay_slot {
    gpumem_buffer *buffer; /* a resource's */
    CUdeviceptr base;      /* the driver's */
    uint64_t bytes;
};

struct replay_target {
    const struct replay_target_ops *ops;
    gpumem_device *device;
    const struct replay_description *description;
    gpumem_resource *layers[REPLAY_LAYERS_MOST]; /* the outermost first */
    bool resizes;                                /* buffers can grow in place */
    const gpumem_driver_api *cu;
    CUmemoryPool pool;
};

/* All return OK, or leave a message in gpumem_last_error. */
struct replay_target_ops {
    gpumem_status (*begin)(struct replay_target *target);
    gpumem_status (*allocate)(struct replay_target *target, const struct replay_event *event,
                              uint64_t bytes, CUstream stream, struct replay_slot *slot);
    /* Resizes in place; NULL if the target never can. */
    gpumem_status (*resize)(struct replay_target *target, struct replay_slot *slot, uint64_t bytes,
                            CUstream stream);
    gpumem_status (*free)(struct replay_target *target, struct replay_slot *slot, CUstream stream);
    /* Another stream uses the buffer, too. NULL: the target has no need to know. */
    gpumem_status (*use)(struct replay_target *target, struct replay_slot *slot, CUstream stream);
    /* Gives back what is not in use. */
    gpumem_status (*empty)(struct replay_target *target);
    /* Bytes currently taken from the driver. */
    gpumem_status (*committed)(struct replay_target *target, uint64_t *bytes);
    gpumem_status (*end)(struct replay_target *target);
};

/* The cache among the layers, or NULL. */
gpumem_resource *replay_cache_of(const struct replay_target *target);

extern const struct replay_target_ops replay_library, replay_driver;

#endif
