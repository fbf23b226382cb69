/*
 * Where the memory of a buffer lies, and word before any of it goes: for NCCL, UCX, GPUDirect and
 * others who register memory with a device or a library, and must let go of it in time.
 */
#ifndef GPUMEM_LAYOUT_H
#define GPUMEM_LAYOUT_H

#include <gpumem/buffer.h>
#include <gpumem/resource.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One piece of physical memory behind a buffer. */
typedef struct gpumem_segment {
    size_t offset;             /* bytes from the layout's base */
    size_t bytes;              /* a multiple of the granularity */
    unsigned long long handle; /* CUmemGenericAllocationHandle, not to be released; 0: none */
} gpumem_segment;

typedef struct gpumem_layout {
    size_t size;
    /* Another one after every change of what is mapped, and no two of a process are the same but
     * for the same mappings: (base, generation) names what was registered. */
    uint64_t generation;
    CUdeviceptr base;     /* a multiple of the granularity */
    size_t bytes;         /* mapped from base on: a multiple of it */
    size_t capacity;      /* bytes from base on that may become mapped later, what is included */
    size_t granularity;   /* bytes; 1 where memory is not mapped in units */
    size_t offset;        /* of the buffer from base: of a view where it begins, else mostly 0 */
    size_t segment_count; /* of all, also when there was less room */
} gpumem_layout;

/*
 * Fills *layout (`size` is to be set) and the first `room` of the segments; `segments` may be NULL
 * with 0. Of a view it is the layout of its buffer, of a buffer of a user's wrapper that of the
 * wrapped one. Virtual and imported memory has a segment for each handle; other memory has one,
 * without a handle, and granularity as its resource says. Thread-safe, but not beside a growth or
 * shrink of the same buffer. No driver call.
 */
GPUMEM_API gpumem_status gpumem_buffer_get_layout(gpumem_buffer *buffer, gpumem_layout *layout,
                                                  gpumem_segment *segments, size_t room);

typedef enum gpumem_leaving {
    GPUMEM_LEAVING_FREE = 1,     /* the buffer ends; its memory goes back to where it came from */
    GPUMEM_LEAVING_SHRINK = 2,   /* the end of the buffer is unmapped; the rest stays */
    GPUMEM_LEAVING_ACCESS = 3,   /* it stays mapped, and a device loses access */
    GPUMEM_LEAVING_DECOMMIT = 4, /* chunks in the middle are unmapped; the addresses stay */
    GPUMEM_LEAVING_MOVE = 5, /* gpumem_buffer_move_to_capacity: all of it gets other addresses */
} gpumem_leaving;

typedef struct gpumem_leaving_event {
    size_t size;
    gpumem_leaving reason;
    /* With FREE only for the plain getters: it has been given up. NULL: a caching resource gives a
     * segment back, with memory of many buffers that were freed before. */
    gpumem_buffer *buffer;
    CUdeviceptr base; /* a multiple of the resource's granularity, */
    size_t bytes;     /* and so is this; all that was mapped where the reason is FREE */
    CUstream stream;  /* FREE of stream-ordered memory: in whose order it goes back */
} gpumem_leaving_event;

/*
 * Called before memory is unmapped, given back or taken away, each time and for each watch once: of
 * one event first the buffer's watches, then its resource's, then those of what that one wraps,
 * each in the order in which they were made. The memory stays where it is until all have returned.
 *
 * Memory that is not stream-ordered has been passed by every stream that was named for it. Of
 * stream-ordered memory work may still be queued: a registrar that minds waits for it here.
 * Access that is taken from all buffers of a virtual resource at once
 * (gpumem_virtual_resource_set_access, _set_peers) is not announced.
 * A piece that was announced may stay after all, where the driver refuses to unmap it or a hold
 * came in between; the buffer's layout tells.
 *
 * The thread is any that frees, shrinks, allocates or trims, since frees that had to wait are
 * worked off by later calls; two events may come at once from two threads, and one watch is then
 * called by both. No lock of the library is held, the device's context is current, and the call may
 * block. It may use other buffers, allocate and free them, query, and end watches, this one
 * included. It must not free, grow, shrink, hold or view this buffer, destroy its resource, close
 * the device, or call gpumem_device_trim with waiting: those wait for what it is part of.
 */
typedef void (*gpumem_leaving_fn)(void *user, const gpumem_leaving_event *event);

typedef struct gpumem_watch gpumem_watch;

/*
 * Has `fn` called for a buffer, or for every present and future buffer of a resource. Of a view it
 * is the buffer that is watched. Of a caching resource `fn` is told of its segments, since what is
 * freed into the cache is neither unmapped nor taken away, and so is a watch of the resource below;
 * a watch of one of its buffers is called when that one is freed. Memory that other resources keep
 * for later is announced when its buffer ends. The caller ends the watch. Thread-safe for
 * resources; for buffers as their other calls. OUT_OF_HOST_MEMORY. No driver call.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_buffer_watch(gpumem_buffer *buffer,
                                                               gpumem_leaving_fn fn, void *user,
                                                               gpumem_watch **watch);
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_resource_watch(gpumem_resource *resource,
                                                                 gpumem_leaving_fn fn, void *user,
                                                                 gpumem_watch **watch);

/*
 * Ends a watch; NULL is allowed. Also needed after the buffer or the resource has ended, and
 * possible then. After the return `fn` is not running and is not called any more: waits until other
 * threads have left it; within `fn` itself, not for its own call. Thread-safe. No driver call.
 */
GPUMEM_API gpumem_status gpumem_watch_end(gpumem_watch *watch);

#ifdef __cplusplus
}
#endif

#endif
