/*
 * What the memory library's objects are inside. Lock order: library, device, resource. A resource's
 * functions run under none but the library's (stats, destroy), since they may be the user's. No
 * lock is held while queued work is waited for.
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
};

/* Resources of the device's own. They are waited for in this order: a view's end may be the last of
 * what it is over. */
enum gm_hidden {
    GM_HIDDEN_VIEW,            /* memory/object/view.c */
    GM_HIDDEN_FOREIGN,         /* memory/foreign/foreign.c */
    GM_HIDDEN_FOREIGN_ORDERED, /* the same, given back in the order of a stream */
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
    unsigned opened; /* under the library's lock */
    CUdevice handle;
    CUcontext context;
    int has_virtual;
    size_t granularity; /* minimum of device memory; 0 without virtual memory */
    struct gm_meter meter;
    struct gm_inventory inventory;

    pthread_mutex_t lock; /* everything below */
    gpumem_resource *resources;
    pthread_cond_t left; /* a resource has no visitors any more */
    size_t low_level;    /* live reservations, physical and mapping objects */
    CUevent *events;     /* unused ones */
    size_t event_count, event_room;
    CUstream
        helper; /* an unused stream of ours, NULL when there is none: memory/core/stream_waits.c */
    gpumem_buffer *deferred, *deferred_last; /* in the order in which they were freed */
    uint64_t deferred_number;                /* of the last one */
    pthread_cond_t worked;                   /* a buffer of that list was looked at, or ended */
    struct gm_shared_lists shared;
    gpumem_resource *hidden[GM_HIDDEN_COUNT]; /* made when they are first needed, listed nowhere */
    gpumem_capability_report *reports[GPUMEM_CAPABILITY_COUNT];

    gpumem_device *sibling; /* memory/core/siblings.c, under its lock, and the next two */
    uint64_t sibling_number;
    size_t sibling_visitors; /* threads of other openings: it must stay */

    atomic_size_t deferred_count; /* of that list: what every call looks at first */
    atomic_flag polled;           /* a thread goes through the list; others need not */
};

/* One physical handle of a virtual allocation, or a hole where one was. */
struct gm_chunk {
    CUmemGenericAllocationHandle handle; /* 0: a hole */
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
    /* What threads have counted by themselves goes to the meter. */
    void (*report)(gpumem_resource *resource);
    /* Waits until everything that was freed so far can be handed out or given back. No lock is
     * held; the device's context is current. */
    void (*settle)(gpumem_resource *resource);
    /* BUSY, with the reason, while something of it is in use; nobody has buffers of it. As above.
     */
    gpumem_status (*may_end)(gpumem_resource *resource);
    /* The stream is about to end. */
    void (*forget)(gpumem_resource *resource, CUstream stream);
};

/*
 * Allocation and free where nothing is special, in fewer steps than the usual ones, which do
 * everything else. Buffers are the same either way.
 */
struct gm_quick_ops {
    /* A buffer, or NULL: then `refusal` is what the memory was refused with, and on record, or OK
     * if this is not the way. Arguments are not checked yet. */
    gpumem_buffer *(*try_allocate)(gpumem_resource *resource, size_t bytes,
                                   const gpumem_buffer_options *options, gpumem_status *refusal);
    /* Whether the buffer, which is valid, was freed. */
    int (*try_free)(gpumem_buffer *buffer, CUstream stream);
};

/* What threads count by themselves for a resource: memory/object/thread_counts.h. */
struct gm_tally {
    uint64_t serial; /* of the resource, never used again; 0: threads count nothing */
    struct gm_meter *meter;
    int64_t alive; /* allocations less frees, as far as the meter was told */
    struct gm_tally *next;
};

/*
 * Memory that is mapped in chunks, and whose mappings and access change while buffers live. One for
 * a virtual resource and all of the library's wrappers around it.
 */
struct gm_mapped {
    gpumem_resource *resource; /* the one that maps */
    /* Taken for reading by whatever changes one buffer's mappings and by holds, for writing by what
     * concerns all buffers. Comes after a buffer's lock; who has it for writing only tries those.
     */
    pthread_rwlock_t lock;
    /* The memory is about to be known elsewhere: waits for earlier work on it, and keeps it out of
     * caches from here on. */
    gpumem_status (*share)(const gpumem_allocation *allocation);
    /* Whether memory is behind all of these bytes. */
    int (*is_whole)(const gpumem_allocation *allocation, size_t offset, size_t bytes);
    /* Waits until what is cached can be given back or handed out to any stream. No lock is held. */
    void (*settle)(void *user);
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
    gm_chunks_fn chunks;              /* NULL: not exportable */
    const struct gm_fast_ops *fast;   /* or NULL */
    const struct gm_quick_ops *quick; /* or NULL */
    struct gm_tally tally;            /* of the quick way */
    struct gm_mapped *mapped;         /* or NULL; a wrapper's is that of what it wraps */
    struct gm_engine *engine;         /* mapped/engine.h; likewise */
    int users;                        /* made of the user's functions */
    int transparent;                  /* a wrapper without a limit of its own */
    int own_stream; /* in stream order, and has a stream for callers that name none */
    int reclaims;   /* its own functions do what an allocation does when memory runs out */
    /* Where its small buffers come from, or NULL: a cache over this one, which ends with it and is
     * not known to the program. Set once, before the program has the resource. */
    _Atomic(gpumem_resource *) slabs;
    size_t slab_most; /* bytes of the largest of these buffers */
    int inside;       /* it is such a cache */
    int imported;     /* memory of other processes, which share/import.c counts */
    int foreign;      /* memory of the program's, which the library did not take */
    /* Of a wrapper: an allocation that passed through it has another address now. No lock is held;
     * NULL: it does not mind. */
    void (*moved)(void *user, CUdeviceptr from, const gpumem_allocation *allocation);
    struct gpumem_watch *watches; /* memory/object/watch.c, under its lock */
    atomic_size_t watched;        /* how many those are */
    struct gm_meter meter;
    _Atomic(struct gm_pointer_table *) pointers; /* by_pointer.c; NULL until the first */
    uint64_t serial;                             /* of the process: what a snapshot calls it */
    struct gm_roll rolls[GM_ROLLS];
    _Atomic(const struct gm_describe_ops *) describe; /* memory/core/describe.h; or NULL */
    /* Without those that the tally has: gm_resource_owned, gm_resource_live. */
    atomic_size_t live;    /* buffers, from allocation until their memory is back */
    atomic_size_t owned;   /* of those, not yet given up by all who refer to them */
    size_t wrappers;       /* under the device's lock, as the rest */
    size_t ending;         /* deferred buffers whose memory is being taken back just now */
    size_t visitors;       /* threads in its trim or stats: it must stay */
    gpumem_resource *next; /* in the device's list */
};

#define GM_INLINE_STREAMS 4

enum gm_wait_state {
    GM_WAIT_NAMED = 0, /* the stream is known, and nothing of it is marked yet */
    GM_WAIT_PASSED,
    GM_WAIT_EVENT,     /* `event` marks the point */
    GM_WAIT_CAPTURING, /* it captures: marked when that has ended */
    GM_WAIT_ELSEWHERE, /* another thread's per-thread stream: that thread can mark it */
    GM_WAIT_LOST,      /* the stream is gone; what it ran, only the whole context tells */
};

struct gm_wait {
    CUstream stream;
    unsigned long long id; /* cuStreamGetId, since handles are used again; 0: not known */
    uint64_t namer;        /* the thread that named it */
    int task;              /* its Linux thread id */
    enum gm_wait_state state;
    CUevent event;
};

/* Of gpumem_buffer.freed: the owner has let go; somebody is told before the memory goes. Either
 * keeps a free from being a simple one. */
#define GM_FREED   1
#define GM_WATCHED 2

struct gpumem_buffer {
    unsigned generation;
    gpumem_resource *resource;
    gpumem_allocation allocation;
    atomic_uint references; /* owner, holds, exports */
    int freed;              /* GM_FREED, GM_WATCHED */
    int homeless;           /* no stream was named for it: goes back on one of the resource's own */
    size_t home;            /* which wait's stream the memory goes back on, if in stream order */
    /* Streams that use it, with that of allocation first. Grown when a stream is named, so that a
     * free needs no memory. */
    struct gm_wait inline_waits[GM_INLINE_STREAMS];
    struct gm_wait *waits;
    size_t wait_count, wait_room;
    pthread_mutex_t lock; /* waits */
    unsigned char id[16]; /* random, made at the first export */
    uint64_t layout;      /* counts the changes of its chunks */
    uint64_t epoch;       /* counts those that were more than new chunks at the end */
    struct gm_roll_entry listed;
    /* In the device's deferred list, under the device's lock. */
    gpumem_buffer *next, *previous;
    uint64_t number; /* rises along the list */
    int claimed;     /* a thread looks at it, without the lock; nobody else may */

    gpumem_buffer *root; /* of a view: the buffer that has the memory, held */
    size_t views;        /* of it; each has room in `waits` for the stream that its free names */
    int read_only;       /* the library writes nothing there */
    int told;            /* nobody needs to be told of its end any more */
    struct gpumem_watch *watches;
    uint64_t queried_layout, layout_generation; /* memory/object/buffer_layout.c */
};

#endif
