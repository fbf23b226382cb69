/*
 * Resources, from which buffers are allocated: what all of them share, and how to write your own.
 * Each kind has its header: gpumem/pool.h, pinned.h, managed.h, virtual.h, mapped.h, caching.h, and
 * wrappers.h for what is put around another resource.
 *
 * A resource belongs to a device and may be used from any thread. Destroy it after its buffers.
 */
#ifndef GPUMEM_RESOURCE_H
#define GPUMEM_RESOURCE_H

#include <gpumem/library.h>
#include <gpumem/stats.h>
#include <gpumem/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What gpumem_resource_get_properties fills in. */
typedef struct gpumem_resource_properties {
    size_t size;
    const char *kind; /* "device_pool", "pinned", "virtual", ..., or gpumem_resource_ops.kind */
    bool device_accessible;
    bool host_accessible; /* the CPU may dereference gpumem_buffer_host_pointer */
    bool stream_ordered;  /* memory is allocated and freed in stream order */
    bool can_resize;      /* buffers can grow and shrink in place */
    bool exportable;      /* gpumem_export_create works */
    gpumem_location location;
    gpumem_handle_type handle_type; /* the one in effect */
    size_t granularity;             /* allocations are rounded up to this, bytes; 1: not rounded */
    size_t maximum_chunk_bytes;     /* largest physical handle or slab, bytes; 0 if meaningless */
    char note[192];                 /* what was requested and not granted, and why; else "" */
} gpumem_resource_properties;

/* Set `properties->size` before the call. Thread-safe, no driver call. */
GPUMEM_API gpumem_status gpumem_resource_get_properties(gpumem_resource *resource,
                                                        gpumem_resource_properties *properties);

/*
 * Destroys the resource; NULL is allowed. BUSY while buffers are live, a wrapper uses it, or a
 * stream capture holds a free back: the message says which, and nothing is changed. Waits, by
 * events, for its own frees that queued work holds back, and for no others. Cannot fail otherwise:
 * memory that the driver refuses to take back is counted (gpumem_stats.quarantined).
 */
GPUMEM_API gpumem_status gpumem_resource_destroy(gpumem_resource *resource);

/*
 * Destroys the resource as soon as nobody has anything of it: now, or with the last of its buffers,
 * holds, exports, wrappers, capture pools and deferred frees. For owners that cannot choose the
 * order, such as finalizers. Never BUSY, never waits; NULL is allowed. From now on `resource` must
 * not be used, except by what is above it: its buffers, also those that wrappers and caches take.
 * The call that gives back the last of it ends it; if queued work still holds something back, a
 * later call of the library for the same device does (gpumem_device_trim with `wait` at the
 * latest). INVALID_ARGUMENT: closed before. Any thread may free buffers of it afterwards, several
 * at once; while this call runs no other call may be under way on it or on its buffers. Driver: as
 * gpumem_resource_destroy, whenever that is.
 */
GPUMEM_API gpumem_status gpumem_resource_close_later(gpumem_resource *resource);

/* Gives cached memory back until at most `keep_bytes` are left. A device pool that is not owned is
 * trimmed too, for all its users; a wrapper around it leaves it alone. DRIVER: the driver refuses
 * to trim a pool. May block in the driver. */
GPUMEM_API gpumem_status gpumem_resource_trim(gpumem_resource *resource, size_t keep_bytes);

/*
 * Sets what the device with this ordinal (the resource's own or another) may do with all present
 * and future memory of the resource, which is a virtual or mapped resource, a pool of the driver,
 * or any wrapper or cache around one: then with all memory of that one. All or nothing.
 *
 * Virtual memory: overrides what was set for single buffers (gpumem_buffer_set_access). Only if a
 * failing driver refuses to undo a step is that step undone by the next change or trim. Work faults
 * without access just as without a mapping. Taking access away therefore waits, by events, for the
 * streams of each buffer that loses some, and blocks allocation, growth and free of the resource's
 * buffers meanwhile. Give such buffers no new work during the call. BUSY: such a buffer has a hold
 * or an export, one of its streams is capturing or is another thread's per-thread stream, or a
 * cache has taken memory of the resource; trim the cache when its buffers are freed.
 *
 * A pool: READ_WRITE or NONE, since the driver's pools support nothing in between (READ is
 * NOT_SUPPORTED). Its own device keeps its access: NONE is INVALID_ARGUMENT. A pool that is not
 * owned is changed for all its users. Does not wait: queued work of the other device faults once
 * its access is taken away. In a pool of managed memory, which every device can reach, access is
 * advice about its pages (ACCESSED_BY).
 *
 * INVALID_ARGUMENT: no such device. NOT_SUPPORTED: another kind of resource, or a device that
 * cannot reach this one's memory. Thread-safe. gpumem_resource_properties still reports the access
 * that the resource was created with. Driver: cuMemSetAccess, 26 us per handle; for a pool
 * cuMemPoolSetAccess, cuMemPoolGetAccess.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_resource_set_access(gpumem_resource *resource,
                                                                      int ordinal,
                                                                      gpumem_access access);

/* What a device may do with memory that is allocated from the resource now; its own device too.
 * Errors as set. Thread-safe. Driver: none for virtual memory but cuDeviceGet; for a pool
 * cuMemPoolGetAccess. */
GPUMEM_API gpumem_status gpumem_resource_get_access(gpumem_resource *resource, int ordinal,
                                                    gpumem_access *access);

/* The device. Cannot fail. */
GPUMEM_API gpumem_device *gpumem_resource_device(const gpumem_resource *resource);

/* ---- Your own -------------------------------------------------------------------------------- */

/* What a buffer requests of its resource. The values are already validated. */
typedef struct gpumem_request {
    size_t size;
    size_t bytes;     /* more than 0 */
    size_t alignment; /* a power of two, 1 at least */
    size_t capacity;  /* 0, or the bytes it may grow to, at least `bytes` */
    CUstream stream;
} gpumem_request;

/* What the buffer got. The resource fills it in; the library keeps it and passes it back. */
typedef struct gpumem_allocation {
    size_t size;
    CUdeviceptr pointer;
    void *host_pointer;     /* NULL if the CPU has no access */
    size_t bytes;           /* usable: the requested size, not the rounded one */
    size_t committed_bytes; /* memory backing it */
    size_t capacity;        /* largest size for resize; `bytes` if it cannot grow */
    void *cookie;           /* the resource's */
    /* For a resource with `upstream`: the upstream's buffer, if this allocation is all of it.
     * Exports pass through to it. NULL: none, or a part of one. */
    gpumem_buffer *buffer;
} gpumem_allocation;

/* The functions of a resource of one's own, for gpumem_resource_create. */
typedef struct gpumem_resource_ops {
    size_t size;
    /* The kind shown in properties and messages, copied, at most 47 bytes; NULL: "user". It
     * overrides what the properties function writes there. */
    const char *kind;
    /* Fills *allocation, or fails without effect. The device's context is current. A message can be
     * set with gpumem_set_last_error. Must be thread-safe, like all of these functions. */
    gpumem_status (*allocate)(void *user, const gpumem_request *request,
                              gpumem_allocation *allocation);
    /* Takes memory back; cannot fail. Without `stream_ordered` it is called when no stream that the
     * library knows of uses the memory any more, and `stream` is that of the allocation. With
     * `stream_ordered` it is called at once, and the memory must stay intact until `stream` has
     * reached this point; where that is impossible (captures, another thread's stream) it is called
     * later with an idle stream of the library's. It may free buffers of other resources, but not
     * allocate. */
    void (*deallocate)(void *user, const gpumem_allocation *allocation, CUstream stream);
    /* NULL if buffers cannot be resized. Changes the bytes and committed_bytes of *allocation,
     * never its pointer or capacity; all or nothing. `bytes` is more than 0 and at most the
     * capacity. A shrink is called when no stream uses the memory. `stream` is the caller's, and
     * may be NULL. */
    gpumem_status (*resize)(void *user, gpumem_allocation *allocation, size_t bytes,
                            CUstream stream);
    /* Fills in what it knows; all members start as zero, granularity as 1. Called once, at
     * creation. `exportable` is reset to 0 unless the upstream is exportable; `kind` is ignored,
     * see there. */
    void (*properties)(void *user, gpumem_resource_properties *properties);
    /* NULL, or adds members that the library cannot know: cached, committed. May be called at any
     * time. */
    void (*stats)(void *user, gpumem_stats *stats);
    /* NULL, or gives cached memory back down to keep_bytes. Called from any thread, also during an
     * allocation from this or another resource when memory runs out: a resource must not, while it
     * allocates from another one, hold a lock that its trim takes. Buffers may be freed here. */
    void (*trim)(void *user, size_t keep_bytes);
    /* NULL, or called when the resource is destroyed, with no allocation left. */
    void (*destroy)(void *user);
    /*
     * NULL, or, for a wrapper, the resource of the same device whose buffers this one hands out.
     * The upstream cannot be destroyed before the wrapper. The device counts bytes and allocations
     * once, at the upstream; the wrapper's own statistics show what goes through it, and of its
     * `stats` the device uses only cached_bytes. Exports pass through to gpumem_allocation.buffer
     * if the upstream's buffers can be exported, as properties.exportable says.
     */
    gpumem_resource *upstream;
} gpumem_resource_ops;

/*
 * A resource made of your own functions; the table is copied. `allocate`, `deallocate` and
 * `properties` are required. On failure `destroy` is not called.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_resource_create(gpumem_device *device,
                                                                  const gpumem_resource_ops *ops,
                                                                  void *user,
                                                                  gpumem_resource **resource);

/* Records a message for gpumem_last_error and returns `status`: for the functions above. */
GPUMEM_API gpumem_status gpumem_set_last_error(gpumem_status status, const char *message);

#ifdef __cplusplus
}
#endif

#endif
