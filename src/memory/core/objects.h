/*
 * The internals of the memory library's objects. Lock order: library, device, resource. A
 * resource's functions run under no lock but the library's (stats, destroy), because they may be
 * the user's. No lock is held while waiting for queued work.
 */
#ifndef GM_MEMORY_OBJECTS_H
#define GM_MEMORY_OBJECTS_H

#include "memory/core/buffer_roll.h"
#include "memory/core/inventory.h"
#include "memory/core/meter.h"

#include <gpumem/driver.h>
#include <gpumem/gpumem.h>
#include <pthread.h>
#include <stdatomic.h>

/* An object that its owner has closed, and that has not ended: memory/object/closing.h. */
enum gm_closing_kind { GM_CLOSING_RESOURCE, GM_CLOSING_DEVICE, GM_CLOSING_LIBRARY };

struct gm_closing {
    struct gm_closing *next;
    void *object;
    enum gm_closing_kind kind;
    int listed;
};

struct gpumem_library {
    unsigned generation; /* base/fork.h */
    gpumem_driver *driver;
    const gpumem_driver_api *cu;
    int driver_version;
    int device_count;
    pthread_mutex_t lock;    /* devices */
    gpumem_device **devices; /* by ordinal; NULL when not open */
    struct gm_meter meter;
    pthread_mutex_t registry; /* pools; nothing else is locked under it */
    struct gm_pool *pools;    /* mapped ones that have been registered */
    struct gm_closing closing;
};

/* Resources of the device's own. They are waited for in this order: a view's end may be the last of
 * what it is over. */
enum gm_hidden {
    GM_HIDDEN_VIEW,            /* memory/object/view.c */
    GM_HIDDEN_HOST_VIEW,       /* mapped/host_view.c */
    GM_HIDDEN_FOREIGN,         /* memory/foreign/foreign.c */
    GM_HIDDEN_FOREIGN_ORDERED, /* the same, given back in the order of a stream */
    GM_HIDDEN_FOREIGN_HOST,    /* the same, that only the CPU uses */
    GM_HIDDEN_IMPORTED_POOL,   /* share/import_pool.c: memory of other processes' pools */
    GM_HIDDEN_IMPORTED,        /* share/import.c: memory of theirs in chunks */
    GM_HIDDEN_COUNT,
};

/* What src/share lists of a device; the structs are its own (memory/object/device.h). */
struct gm_shared_lists {
    struct gm_import *imports;
    struct gm_shared_pool *pools; /* under a lock of share's */
    gpumem_export *exports;
};

struct gpumem_device {
    unsigned generation;
    gpumem_library *library;
    const gpumem_driver_api *cu;
    int ordinal;
    unsigned opened;           /* under the library's lock */
    struct gm_closing closing; /* likewise: whether it is listed */
    CUdevice handle;
    CUcontext context;
    int has_virtual;
    size_t granularity; /* minimum of device memory; 0 without virtual memory */
    struct gm_meter meter;
    struct gm_inventory inventory;

    pthread_mutex_t lock; /* everything below */
    gpumem_resource *resources;
    pthread_cond_t left; /* a resource has no visitors left */
    size_t low_level;    /* live reservations, physical and mapping objects */
    CUevent *events;     /* unused ones */
    size_t event_count, event_room;
    CUstream
        helper; /* an unused stream of ours, NULL when there is none: memory/core/stream_waits.c */
    gpumem_buffer *deferred, *deferred_last; /* in the order in which they were freed */
    uint64_t deferred_number;                /* number of the last one */
    pthread_cond_t worked;                   /* a buffer of that list was examined, or freed */
    CUstream *streams;                       /* those of gpumem_stream_create */
    size_t stream_count, stream_room;
    struct gm_shared_lists shared;
    gpumem_resource *hidden[GM_HIDDEN_COUNT]; /* created when first needed, not listed */
    gpumem_resource *ended_pools;             /* likewise: has the queued frees of those that are
                                               * gone */
    gpumem_capability_report *reports[GPUMEM_CAPABILITY_COUNT];

    gpumem_device *sibling; /* memory/core/siblings.c, under its lock, and the next two */
    uint64_t sibling_number;
    size_t sibling_visitors; /* threads of other openings: it must not be destroyed */

    atomic_size_t deferred_count; /* length of that list: what every call checks first */
    atomic_size_t queued_count;   /* marks of queued frees in it, which that does not include */
    atomic_flag polled;           /* a thread is processing the list; others need not */
};

/* One physical handle of a virtual allocation, or a hole where one was. */
struct gm_chunk {
    CUmemGenericAllocationHandle handle; /* 0: a hole */
    size_t bytes;
};

/* The chunks of an allocation, for exports; the array is valid until it is resized. */
typedef size_t (*gm_chunks_fn)(const gpumem_allocation *allocation, const struct gm_chunk **chunks);

/*
 * A resource that reuses its own buffer objects: it does what the library does for other resources
 * (counting, waiting for streams) itself, in fewer steps.
 */
struct gm_fast_ops {
    /* A cached buffer, or NULL in every other case; arguments are not checked yet. No driver
     * call. */
    gpumem_buffer *(*try_allocate)(gpumem_resource *resource, size_t bytes,
                                   const gpumem_buffer_options *options);
    /* The same with checked arguments, by any means. */
    gpumem_status (*allocate)(gpumem_resource *resource, const gpumem_request *request,
                              gpumem_buffer **buffer);
    /* The last reference is gone; the named streams are recorded. */
    void (*take_back)(gpumem_buffer *buffer);
    /* Adds what threads have counted by themselves to the meter. */
    void (*report)(gpumem_resource *resource);
    /* Waits until everything that was freed so far can be handed out or given back. No lock is
     * held; the device's context is current. */
    void (*settle)(gpumem_resource *resource);
    /* BUSY, with the reason, while any of its memory is in use; there are no buffers. As above.
     */
    gpumem_status (*may_end)(gpumem_resource *resource);
    /* Whether its end would wait for nothing; polls, and gives back what it can. As settle. */
    int (*is_idle)(gpumem_resource *resource);
    /* The stream is about to be destroyed. */
    void (*forget)(gpumem_resource *resource, CUstream stream);
};

/*
 * Allocation and free for the common case, in fewer steps than the general ones, which do
 * everything else. Buffers are the same either way.
 */
struct gm_quick_ops {
    /* A buffer, or NULL: then `refusal` is the recorded error, or OK if the general path must be
     * used. Arguments are not checked yet. */
    gpumem_buffer *(*try_allocate)(gpumem_resource *resource, size_t bytes,
                                   const gpumem_buffer_options *options, gpumem_status *refusal);
    /* Whether the buffer, which is valid, was freed. */
    int (*try_free)(gpumem_buffer *buffer, CUstream stream);
};

struct gm_freed;

/* What threads count by themselves for a resource: memory/object/thread_counts.h. */
struct gm_tally {
    uint64_t serial; /* of the resource, never reused; 0: threads do not count */
    struct gm_meter *meter;
    int64_t alive;         /* allocations minus frees, as reported to the meter */
    struct gm_freed *left; /* frees that were counted by threads that have ended, or that went on
                            * to other resources; NULL until there are any */
    struct gm_tally *next;
};

/*
 * Memory that is mapped in chunks, and whose mappings and access change while buffers live. One for
 * a virtual resource and all of the library's wrappers around it.
 */
struct gm_mapped {
    gpumem_resource *resource; /* the one that maps */
    /* Taken for reading to change one buffer's mappings and by holds, for writing by operations on
     * all buffers. Comes after a buffer's lock; a writer may only try those.
     */
    pthread_rwlock_t lock;
    /* The memory is about to become known elsewhere: waits for earlier work on it, and keeps it out
     * of caches from now on. */
    gpumem_status (*share)(const gpumem_allocation *allocation);
    /* Whether all of these bytes have memory. */
    int (*is_whole)(const gpumem_allocation *allocation, size_t offset, size_t bytes);
    /* Waits until cached memory can be given back or handed out to any stream. No lock is held. */
    void (*settle)(void *user);
    /* Whether that would wait for nothing. */
    int (*is_idle)(void *user);
    /* Somebody has a handle of the memory at this address, which may be the resource's: it is kept
     * out of caches, and where it is. Whether it is. No lock is held. */
    int (*handle_taken)(void *user, CUdeviceptr address);
};

/* How a resource changes and reads what devices may do with all of its memory. */
struct gm_access_ops {
    gpumem_status (*set)(gpumem_resource *resource, int ordinal, gpumem_access access);
    gpumem_status (*get)(gpumem_resource *resource, int ordinal, gpumem_access *access);
};

struct gm_engine;

struct gpumem_resource {
    unsigned generation;
    gpumem_device *device;
    gpumem_resource *upstream; /* of a wrapper, else NULL */
    int apart; /* a wrapper of the user's: takes buffers of the upstream, which counts them */
    gpumem_resource_ops ops;
    char kind[48];
    void *user;
    gpumem_resource_properties properties;
    gm_chunks_fn chunks; /* NULL: not exportable */
    /* What gpumem_resource_trim calls in place of ops.trim, or NULL: memory running out must not
     * trim a pool of others, but a program may. */
    gpumem_status (*trim_on_request)(void *user, size_t keep_bytes);
    atomic_int closed; /* for later: frees are then guests of memory/object/closing.h */
    const struct gm_fast_ops *fast;     /* or NULL */
    const struct gm_quick_ops *quick;   /* or NULL */
    struct gm_tally tally;              /* of the fast path */
    struct gm_mapped *mapped;           /* or NULL; a wrapper has that of its upstream */
    struct gm_engine *engine;           /* mapped/engine.h; likewise */
    const struct gm_access_ops *access; /* or NULL; a wrapper asks its upstream */
    int users;                          /* made of the user's functions */
    int transparent;                    /* a wrapper without a limit of its own */
    size_t multiple; /* of a wrapper: of which it makes addresses and capacities; 0: any */
    int own_stream;  /* stream-ordered, with a stream for callers that name none */
    int reclaims;    /* its own functions handle running out of memory */
    /* Its allocate, deallocate and resize make the context current themselves, and only where they
     * call the driver. */
    int enters;
    int tells_committed; /* its `stats` has all that it took from the driver */
    /* Where its small buffers come from, or NULL: a cache over this one, which ends with it and is
     * not known to the program. Set once, before the program has the resource. */
    _Atomic(gpumem_resource *) slabs;
    size_t slab_most; /* bytes of the largest of these buffers */
    int inside;       /* it is such a cache */
    int imported;     /* memory of other processes, counted by share/import.c */
    int foreign;      /* memory of the program, not allocated by the library */
    /* For a wrapper: the address of an allocation that passed through it has changed. No lock is
     * held; may be NULL. */
    void (*moved)(void *user, CUdeviceptr from, const gpumem_allocation *allocation);
    struct gpumem_watch *watches; /* memory/object/watch.c, under its lock */
    atomic_size_t watched;        /* their number */
    struct gm_meter meter;
    _Atomic(struct gm_pointer_table *) pointers; /* by_pointer.c; NULL until the first */
    uint64_t serial;                             /* in the process: its id in snapshots */
    struct gm_roll rolls[GM_ROLLS];
    _Atomic(const struct gm_describe_ops *) describe; /* memory/core/describe.h; or NULL */
    atomic_size_t
        queued_frees; /* of those that its driver has taken, what is known to be held back;
                                 * in the meter too */
    _Atomic uint64_t queued_bytes;
    /* Not including those in the tally: gm_resource_owned, gm_resource_live. */
    atomic_size_t live;  /* buffers, from allocation until their memory is back */
    atomic_size_t owned; /* of these, still referenced */
    struct gm_closing closing;
    size_t wrappers;       /* under the device's lock, as the rest */
    size_t ending;         /* deferred buffers whose memory is just being taken back */
    size_t visitors;       /* threads in its trim or stats: it must not be destroyed */
    gpumem_resource *next; /* in the device's list */
};

#define GM_INLINE_STREAMS 4

enum gm_wait_state {
    GM_WAIT_NAMED = 0, /* the stream is known, but not yet marked */
    GM_WAIT_PASSED,
    GM_WAIT_EVENT,     /* `event` marks the point */
    GM_WAIT_CAPTURING, /* it is capturing: marked when that has ended */
    GM_WAIT_ELSEWHERE, /* another thread's per-thread stream: that thread can mark it */
    GM_WAIT_LOST,      /* the stream is gone; only waiting for the whole context covers its work */
};

struct gm_wait {
    CUstream stream;
    unsigned long long id; /* cuStreamGetId, because handles are reused; 0: unknown */
    uint64_t namer;        /* the thread that named it */
    int task;              /* its Linux thread id */
    enum gm_wait_state state;
    CUevent event;
};

/* For gpumem_buffer.freed: the owner has freed it; a watch must be called before the memory goes.
 * Either rules out the fast free. */
#define GM_FREED   1
#define GM_WATCHED 2

struct gpumem_buffer {
    unsigned generation;
    gpumem_resource *resource;
    gpumem_allocation allocation;
    atomic_uint references; /* owner, holds, exports */
    int freed;              /* GM_FREED, GM_WATCHED */
    int homeless;           /* no stream was named for it: freed on a stream of the resource */
    size_t home;            /* the wait whose stream the memory goes back on, if stream-ordered */
    /* Streams that use it, that of the allocation first. Grown when a stream is named, so that a
     * free needs no memory. */
    struct gm_wait inline_waits[GM_INLINE_STREAMS];
    struct gm_wait *waits;
    size_t wait_count, wait_room;
    pthread_mutex_t lock; /* waits */
    unsigned char id[16]; /* random, made at the first export */
    uint64_t layout;      /* counts the changes of its chunks */
    uint64_t epoch;       /* counts changes other than new chunks at the end */
    struct gm_roll_entry listed;
    /* In the device's deferred list, under the device's lock. */
    gpumem_buffer *next, *previous;
    uint64_t number; /* rises along the list */
    int claimed;     /* claimed by a thread that examines it without the lock */
    int queued;      /* without memory: the mark of frees that the driver has taken */
    size_t frees;    /* their number */

    gpumem_buffer *root; /* for a view: the buffer that has the memory, held */
    size_t views;        /* number of views; `waits` has room for the stream that each free names */
    gpumem_buffer *followers; /* its host views, which grow with it; of such a view, the next one */
    int read_only;            /* the library does not write there */
    int told;                 /* no watch needs to be called for its end any more */
    struct gpumem_watch *watches;
    uint64_t queried_layout, layout_generation; /* memory/object/buffer_layout.c */
};

#endif
