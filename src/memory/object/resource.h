/* Creation and destruction of resources, for built-in and user-defined ones. */
#ifndef GM_MEMORY_RESOURCE_H
#define GM_MEMORY_RESOURCE_H

#include "memory/core/objects.h"

/* `upstream` is NULL except for wrappers. On failure ops->destroy is not called. */
gpumem_status gm_resource_make(gpumem_device *device, const gpumem_resource_ops *ops, void *user,
                               gpumem_resource *upstream, gpumem_resource **resource);

/* The same, for memory that is mapped in chunks. */
gpumem_status gm_resource_make_mapped(gpumem_device *device, const gpumem_resource_ops *ops,
                                      void *user, struct gm_mapped *mapped, gm_chunks_fn chunks,
                                      gpumem_resource **resource);

/* The same, for an unlisted resource that the device itself owns. */
gpumem_status gm_resource_make_hidden(gpumem_device *device, const gpumem_resource_ops *ops,
                                      void *user, gpumem_resource **resource);

/* What a resource of the device's own can do; what it cannot is NULL. `user` of the functions is
 * the device. */
struct gm_hidden_kind {
    const gpumem_resource_ops *ops;
    gm_chunks_fn chunks;
    const struct gm_describe_ops *describe;
};

/*
 * The device's own resource of that kind, made when it is first asked for. Its buffers are made by
 * who knows their memory (gm_buffer_attach), not by an allocation; what is behind them is counted
 * nowhere.
 */
gpumem_status gm_resource_hidden(gpumem_device *device, enum gm_hidden which,
                                 const struct gm_hidden_kind *kind, gpumem_resource **resource);

/* Whether it is a hidden one for memory of other processes. */
int gm_resource_is_imported(const gpumem_resource *resource);

/* From here on buffers without a capacity, and of at most so many bytes, are cut by `slabs`, a
 * caching resource over this one, which is this one's from here on. The program has neither yet. */
void gm_resource_set_slabs(gpumem_resource *resource, gpumem_resource *slabs, size_t most);

/* Gives back what is kept, of its slabs too. The device's context is current. */
void gm_resource_trim(gpumem_resource *resource, size_t keep_bytes);

/* Whether nobody has anything of it, and its end would wait for nothing. */
int gm_resource_is_unused(gpumem_resource *resource);

/* Ends a resource without buffers, and its slabs. */
void gm_resource_discard(gpumem_resource *resource);

/* Calls `visit` for each resource except wrappers, with no lock held: a user's resource may free
 * buffers of another one. */
void gm_resources_visit(gpumem_device *device, void (*visit)(gpumem_resource *, void *),
                        void *data);

/* Notifies the caches of the device that a stream is about to be destroyed, and processes frees
 * that can only now be marked. The device's context is current, and no lock is held. */
void gm_stream_ends(gpumem_device *device, CUstream stream);

/* The numbers of buffers not yet freed, and of those whose memory has not come back. */
size_t gm_resource_owned(gpumem_resource *resource);
size_t gm_resource_live(gpumem_resource *resource);

/* Adds what threads have counted by themselves to the meters. */
void gm_resources_report(gpumem_device *device);
/* The same for all resources that the device lists. */
void gm_resources_visit_all(gpumem_device *device, void (*visit)(gpumem_resource *, void *),
                            void *data);

/* Adds what the device's resources know besides the meters. */
void gm_resources_add_stats(gpumem_device *device, gpumem_stats *stats);

#endif
