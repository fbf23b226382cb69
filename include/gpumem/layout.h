/*
 * Where the memory of a buffer is, and notification before any of it goes away: for NCCL, UCX,
 * GPUDirect and others that register memory with a device or a library, and must release it in
 * time.
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
    unsigned long long handle; /* CUmemGenericAllocationHandle, borrowed; 0: none */
} gpumem_segment;

/* The shape of an array in a buffer. */
typedef struct gpumem_layout {
    size_t size;
    /* Changes with every change of the mappings; no two sets of mappings in a process have the same
     * value: (base, generation) identifies what was registered. */
    uint64_t generation;
    CUdeviceptr base;     /* a multiple of the granularity */
    size_t bytes;         /* mapped from base on, a multiple of the granularity */
    size_t capacity;      /* bytes from base on that may be mapped, now or later */
    size_t granularity;   /* bytes; 1 if memory is not mapped in units */
    size_t offset;        /* from base to the buffer or view; 0 for most buffers */
    size_t segment_count; /* of all segments, even if there was less room */
} gpumem_layout;

/*
 * Fills in *layout (set `size` before the call) and the first `room` segments; `segments` may be
 * NULL if `room` is 0. A view has the layout of its buffer; a buffer of a user-defined wrapper has
 * that of the wrapped buffer. Virtual and imported memory has a segment for each handle; other
 * memory has one, without a handle, and the granularity of its resource. Thread-safe, except with a
 * concurrent growth or shrink of the same buffer. No driver call.
 */
GPUMEM_API gpumem_status gpumem_buffer_get_layout(gpumem_buffer *buffer, gpumem_layout *layout,
                                                  gpumem_segment *segments, size_t room);

/* Why a watch is told. */
typedef enum gpumem_watch_reason {
    GPUMEM_WATCH_FREE = 1,     /* the buffer ends; its memory goes back to its origin */
    GPUMEM_WATCH_SHRINK = 2,   /* the end of the buffer is unmapped; the rest is kept */
    GPUMEM_WATCH_ACCESS = 3,   /* it stays mapped, but a device loses access */
    GPUMEM_WATCH_DECOMMIT = 4, /* chunks are unmapped; the addresses stay reserved */
    GPUMEM_WATCH_MOVE = 5,     /* gpumem_buffer_move_to_capacity: all of it gets new addresses */
    GPUMEM_WATCH_ADD = 6, /* gpumem_resource_watch_ranges: memory that may be used from now on */
} gpumem_watch_reason;

/* What a watch is told. */
typedef struct gpumem_watch_event {
    size_t size;
    gpumem_watch_reason reason;
    /* With FREE it has already been given up, and only the plain getters may be called on it. NULL:
     * a caching resource gives back a segment with memory of many buffers that were freed
     * earlier. */
    gpumem_buffer *buffer;
    CUdeviceptr base; /* a multiple of the resource's granularity, */
    size_t bytes;     /* likewise; with FREE, all that was mapped */
    CUstream stream;  /* FREE of stream-ordered memory: the stream in whose order it goes back */
} gpumem_watch_event;

/*
 * Called before memory is unmapped, given back or made inaccessible, once per event and watch:
 * first the buffer's watches, then its resource's, then those of the resource that it wraps, in
 * each case in order of creation. The memory stays in place until all have returned.
 *
 * If the memory is not stream-ordered, every stream that was named for it has passed. If it is
 * stream-ordered, work may still be queued on it: a registrar that needs to can wait for it here.
 * Access that is taken from all buffers of a virtual resource at once
 * (gpumem_resource_set_access) is not announced. Announced memory may stay
 * after all, if the driver refuses to unmap it or a hold is taken in between; the buffer's layout
 * shows it.
 *
 * It is called in any thread that frees, shrinks, allocates or trims, because later calls carry out
 * deferred frees. Two threads may call one watch at the same time, for two events. No lock of the
 * library is held, the device's context is current, and the function may block. It may use,
 * allocate and free other buffers, make queries, and end watches, including this one. It must not
 * free, grow, shrink, hold or view this buffer, destroy its resource, close the device, or call
 * gpumem_device_trim with `wait`: these would wait for the operation that this call is part of.
 */
typedef void (*gpumem_watch_fn)(void *user, const gpumem_watch_event *event);

/* A callback that is told before memory goes away. */
typedef struct gpumem_watch gpumem_watch;

/*
 * Watches a buffer, or every present and future buffer of a resource. Watching a view watches its
 * buffer. A watch of a caching resource is called for its segments, because memory freed into the
 * cache is neither unmapped nor made inaccessible; so is a watch of the wrapped resource. A watch
 * of a buffer of a cache is called when that buffer is freed. Memory that other resources keep for
 * later is announced when its buffer ends. The caller ends the watch. Thread-safe for resources;
 * for buffers as their other calls. OUT_OF_HOST_MEMORY. No driver call.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_buffer_watch(gpumem_buffer *buffer,
                                                               gpumem_watch_fn fn, void *user,
                                                               gpumem_watch **watch);
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_resource_watch(gpumem_resource *resource,
                                                                 gpumem_watch_fn fn, void *user,
                                                                 gpumem_watch **watch);

/*
 * Told of a range of memory before any of it may be used (GPUMEM_WATCH_ADD; `buffer` and `stream`
 * are NULL). Another status than OK refuses it: the allocation that it was for fails with that
 * status, and nothing of it is left. It must not use the resource itself, allocations of it
 * included. Otherwise as gpumem_watch_fn.
 */
typedef gpumem_status (*gpumem_add_fn)(void *user, const gpumem_watch_event *event);

/*
 * Watches the memory of a caching resource range by range, for registrars: `added` is called for
 * each range before it may be used, `gone` (GPUMEM_WATCH_FREE, `buffer` is NULL) before it is
 * unmapped or given back, with the same base and bytes. Where the resource's memory moves, ranges
 * are its pages; else, segments. For each range the two are called in turn, beginning with `added`,
 * in the same order for all watches. Before this returns, `added` has been called for all ranges
 * that there are; when it refuses one, `gone` is called for those before it, this fails with its
 * status, and there is no watch. A range that another watch refuses is told to those that had
 * agreed as gone. Memory that the driver refuses to unmap after `gone` is told as added again, and
 * when that is refused, is not used any more. gpumem_watch_destroy calls neither: what is still
 * registered then, the caller releases.
 *
 * NOT_SUPPORTED: not a caching resource. INVALID_ARGUMENT: inside a function of a watch.
 * OUT_OF_HOST_MEMORY. Thread-safe. Blocks while other threads take or give back memory of the
 * resource, and while it calls `added` no memory comes or goes. No driver call.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_resource_watch_ranges(gpumem_resource *resource,
                                                                        gpumem_add_fn added,
                                                                        gpumem_watch_fn gone,
                                                                        void *user,
                                                                        gpumem_watch **watch);

/*
 * Ends a watch; NULL is allowed. A watch can and must be ended even after its buffer or resource
 * has ended. `fn` will not be called again. When `user` may go:
 *
 * - Called outside of watch functions, it waits until all threads have left `fn`: after the return
 *   `fn` is not running. Blocks as long as they do.
 * - Called inside a watch function, of this watch or of any other, it waits for nobody, so that
 *   watches may end one another. Calls of `fn` that have begun in other threads may still be
 *   running, and `user` must stay valid for them until the operations that they are part of have
 *   returned there. A program that cannot tell ends the watch outside.
 *
 * INVALID_ARGUMENT: it has been ended. Thread-safe; of several threads that end one watch, each
 * inside a watch function, one gets OK. No driver call.
 */
GPUMEM_API gpumem_status gpumem_watch_destroy(gpumem_watch *watch);

#ifdef __cplusplus
}
#endif

#endif
