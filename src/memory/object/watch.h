/*
 * Watches, which are called before memory goes away. Any operation that unmaps memory of a buffer,
 * or takes access to it away, calls them first, with no lock held.
 */
#ifndef GM_MEMORY_WATCH_H
#define GM_MEMORY_WATCH_H

#include "memory/core/objects.h"

#include <gpumem/layout.h>

/* Announces a range of the buffer, widened to whole granules. Cheap if there are no watches. */
void gm_watches_tell(gpumem_buffer *buffer, size_t offset, size_t bytes,
                     gpumem_watch_reason reason);

/* Before the memory goes back: announces it, and releases the buffer's watches. */
void gm_watches_tell_end(gpumem_buffer *buffer);

/* Before a shrink to `bytes`: announces the handles that lie wholly beyond that. */
void gm_watches_tell_shrink(gpumem_buffer *buffer, size_t bytes);

/* Before a caching resource gives a segment back to its upstream, or a page. */
void gm_watches_tell_segment(gpumem_resource *cache, const gpumem_allocation *segment,
                             CUstream stream);

/* Before it uses one: all who watch its ranges agree, or one refuses, and those that had agreed are
 * told that it goes. */
gpumem_status gm_watches_add_segment(gpumem_resource *cache, const gpumem_allocation *segment);

/* A watch of ranges, in three steps: made; told of what there is; and called from then on. If it
 * refuses, it is told that those before go. The caller sees to it that nothing comes or goes. */
gpumem_status gm_watch_make(gpumem_resource *cache, gpumem_add_fn added, gpumem_watch_fn gone,
                            void *user, gpumem_watch **watch);
gpumem_status gm_watch_tell_present(gpumem_resource *cache, gpumem_watch *watch,
                                    const gpumem_allocation *segments, size_t count);
void gm_watch_begin(gpumem_resource *cache, gpumem_watch *watch);
/* One that has not begun. */
void gm_watch_drop(gpumem_watch *watch);

/* Whether this thread is in a function of a watch. */
int gm_watch_is_inside(void);

/* The resource is destroyed: its watches are no longer called. */
void gm_watches_leave(gpumem_resource *resource);

/* The number of watches of this very buffer. Nothing else is locked under the lock of the
 * watches. */
size_t gm_watches_of(const gpumem_buffer *buffer);

/* The unit in which memory of the buffer is mapped. */
size_t gm_buffer_granularity(const gpumem_buffer *buffer);

#endif
