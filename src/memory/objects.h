/*
 * What the memory library's objects are inside. Lock order: library, device, resource; the drain
 * lock of a device comes before the last two. A resource's functions run under none but the drain
 * lock (deallocate) or the library's (stats, destroy), since they may be the user's.
 */
#ifndef GM_MEMORY_OBJECTS_H
#define GM_MEMORY_OBJECTS_H

#include "memory/meter.h"

#include <gpumem/driver.h>
#include <gpumem/gpumem.h>
#include <pthread.h>
#include <stdatomic.h>

struct gpumem_library {
    unsigned generation; /* base/fork.h */
    gpumem_driver *driver;
    const gpumem_driver_api *cu;
    int driver_version;
    int device_count;
    pthread_mutex_t lock;    /* devices */
    gpumem_device **devices; /* by ordinal; NULL when not open */
    struct gm_meter meter;
};

struct gpumem_device {
    unsigned generation;
    gpumem_library *library;
    const gpumem_driver_api *cu;
    int ordinal;
    unsigned opened; /* under the library's lock */
    CUdevice handle;
    CUcontext context;
    int has_virtual;
    size_t granularity; /* minimum of device memory; 0 without virtual memory */
    struct gm_meter meter;

    pthread_mutex_t lock; /* everything below */
    gpumem_resource *resources;
    pthread_cond_t left; /* a resource has no visitors any more */
    size_t low_level;    /* live reservations, physical and mapping objects */
    CUevent *events;     /* unused ones */
    size_t event_count, event_room;
    gpumem_buffer *deferred, **deferred_end;
    struct gm_import *imports; /* share/import.c */
    gpumem_resource *import_resource;
    gpumem_capability_report *reports[GPUMEM_CAPABILITY_COUNT];

    pthread_mutex_t drain; /* one thread works off frees at a time */
};

/* One physical handle of a virtual allocation. */
struct gm_chunk {
    CUmemGenericAllocationHandle handle;
    size_t bytes;
};

/* The chunks of an allocation, for exports; the array is valid until it is resized. */
typedef size_t (*gm_chunks_fn)(const gpumem_allocation *allocation, const struct gm_chunk **chunks);

/*
 * A resource whose buffers are objects of its own, handed out many times: it does what the rest of
 * the library does for other resources (counting, waiting for streams), in fewer steps.
 */
struct gm_fast_ops {
    /* A buffer at hand, or NULL for everything else; arguments are not checked yet. No driver
     * call. */
    gpumem_buffer *(*try_allocate)(gpumem_resource *resource, size_t bytes,
                                   const gpumem_buffer_options *options);
    /* The same with checked arguments, by whatever it takes. */
    gpumem_status (*allocate)(gpumem_resource *resource, const gpumem_request *request,
                              gpumem_buffer **buffer);
    /* The last reference is gone; streams are as named. */
    void (*take_back)(gpumem_buffer *buffer);
    /* Buffers that are not taken back. */
    size_t (*owned)(gpumem_resource *resource);
};

struct gpumem_resource {
    unsigned generation;
    gpumem_device *device;
    gpumem_resource *upstream; /* of a wrapper, else NULL */
    int apart; /* a wrapper of the user's: takes buffers of the upstream, which counts them */
    gpumem_resource_ops ops;
    char kind[48];
    void *user;
    gpumem_resource_properties properties;
    gm_chunks_fn chunks;            /* NULL: not exportable */
    const struct gm_fast_ops *fast; /* or NULL */
    int imported;                   /* memory of other processes, which share/import.c counts */
    struct gm_meter meter;
    atomic_size_t live;    /* buffers, from allocation until their memory is back */
    atomic_size_t owned;   /* of those, not yet given up by all who refer to them */
    size_t wrappers;       /* under the device's lock, as the rest */
    size_t visitors;       /* threads in its trim or stats: it must stay */
    gpumem_resource *next; /* in the device's list */
};

#define GM_INLINE_STREAMS 4

struct gm_wait {
    CUstream stream;
    CUevent event; /* recorded on it; NULL: the stream itself is asked */
    int passed;
};

struct gpumem_buffer {
    unsigned generation;
    gpumem_resource *resource;
    gpumem_allocation allocation;
    atomic_uint references; /* owner, holds, exports */
    int freed;              /* the owner has let go */
    CUstream free_stream;
    /* Streams that use it, with that of allocation first. Grown when a stream is named, so that a
     * free needs no memory. */
    struct gm_wait inline_waits[GM_INLINE_STREAMS];
    struct gm_wait *waits;
    size_t wait_count, wait_room;
    pthread_mutex_t lock; /* waits */
    unsigned char id[16]; /* random, made at the first export */
    uint64_t layout;      /* counts the changes of its chunks */
    gpumem_buffer *next;  /* in the device's deferred list */
};

#endif
