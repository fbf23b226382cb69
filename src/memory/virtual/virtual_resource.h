/* The internals of the virtual resource, shared by its parts: creation, access, holes, moving. */
#ifndef GM_MEMORY_VIRTUAL_RESOURCE_H
#define GM_MEMORY_VIRTUAL_RESOURCE_H

#include "memory/virtual/range_cache.h"

/* Gives each range of a resource a mapping for the CPU, which follows the memory. */
struct gm_host_maker {
    const char *kind; /* of the resource */
    int cpu_access;   /* the CPU has access at the device's addresses */
    /* A mirror for a range, with nothing attached; NULL if the CPU uses the device's addresses.
     */
    gpumem_status (*make)(void *user, const struct gm_extent *extent, struct gm_mirror **mirror,
                          void **pointer);
    void (*unmake)(void *user, struct gm_mirror *mirror);
    /* The resource was destroyed. */
    void (*end)(void *user);
    void *user;
};

struct gm_virtual_resource {
    const struct gm_host_maker *maker; /* or NULL; its user's */
    gpumem_device *device;
    gpumem_resource *resource;
    gpumem_virtual_options options;
    gpumem_handle_type handle_type; /* the type in use */
    int rdma, compression;          /* likewise */
    CUmemAllocationProp prop;
    size_t granularity, alignment;
    const CUmemAccessDesc *access; /* of new memory: one of `lists` */
    size_t access_count;
    int host_accessible;
    char note[192];
    struct gm_range_cache cache;
    struct gm_mapped mapped;
    atomic_ullong handed; /* ranges handed out */
    atomic_int dirty;     /* some extent is */
    pthread_mutex_t lock; /* the rest */
    struct gm_range *ranges;
    struct gm_access_list *lists; /* each combination of rights once, kept until the end */
};

/* A virtual resource whose buffers the CPU accesses through mappings of `maker`, which is borrowed
 * until its `end` is called; that is not called on failure. */
gpumem_status gm_virtual_make(gpumem_device *device, const gpumem_virtual_options *given,
                              const struct gm_host_maker *maker, gpumem_resource **resource);

/* Turns the options into what this machine provides. */
gpumem_status gm_virtual_settle(struct gm_virtual_resource *v);

/* The location of a device by ordinal, checked for whether it can be given access, or only lose it.
 * `what` begins the messages. */
gpumem_status gm_virtual_locate(gpumem_device *device, int ordinal, int gives, const char *what,
                                CUmemLocation *location);

/* gm_mapped.handle_taken. */
int gm_virtual_handle_taken(void *user, CUdeviceptr address);

/* Undoes changes of access that the driver refused to undo when they failed. No lock is held; the
 * context is current. */
void gm_virtual_mend(struct gm_virtual_resource *v);

/* Adds the range to those of the resource. */
void gm_virtual_enlist(struct gm_virtual_resource *v, struct gm_range *range);

/* Takes it out of them, and gives its addresses and memory back. */
void gm_virtual_discard(struct gm_virtual_resource *v, struct gm_range *range);

/* The resource's own copy of these rights. Thread-safe. */
gpumem_status gm_virtual_intern(struct gm_virtual_resource *v, const CUmemAccessDesc *entries,
                                size_t count, struct gm_access *access);
void gm_virtual_free_lists(struct gm_virtual_resource *v);

/* The range of a buffer of a virtual resource or of the library's wrappers; NULL for others. */
struct gm_virtual_resource *gm_virtual_behind(const gpumem_resource *resource);

/* Who may use all of its memory: virtual_access.c. */
extern const struct gm_access_ops gm_virtual_access;

/* Wrappers find what they know of an allocation by its address, which was `from`. No lock is
 * held. */
void gm_virtual_tell_wrappers(const gpumem_buffer *buffer, CUdeviceptr from);

/* For calls on a part of a buffer, which may have no memory. */
gpumem_status gm_virtual_check_range(const gpumem_buffer *buffer, size_t offset, size_t bytes,
                                     const char *call);
/* NOT_PERMITTED if the buffer's device may not read, or write, all of the range. OK for memory of
 * other kinds. */
gpumem_status gm_virtual_permits(const gpumem_buffer *buffer, size_t offset, size_t bytes,
                                 int writes, const char *call);
/* The error for a buffer of another kind. */
gpumem_status gm_virtual_missing(const gpumem_buffer *buffer, const char *call);

/* Of the device, of the host where the memory is the host's, or within the resource's bound. */
static inline int gm_virtual_is_short(gpumem_status status) {
    return status == GPUMEM_ERROR_OUT_OF_MEMORY || status == GPUMEM_ERROR_OUT_OF_HOST_MEMORY ||
           status == GPUMEM_ERROR_OUT_OF_CAPACITY;
}

#endif
