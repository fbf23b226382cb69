/*
 * Frees that queued work holds back. A buffer whose memory may still be in use waits in its
 * device's list; the list is worked off by later allocations and frees. A thread that looks at a
 * buffer of it claims that one and drops the lock, so that nobody waits for work that is not his.
 */
#ifndef GM_MEMORY_DEFERRED_FREES_H
#define GM_MEMORY_DEFERRED_FREES_H

#include "memory/core/stream_waits.h"

/* Puts a marked buffer into the list. */
void gm_defer(gpumem_buffer *buffer);

/* Takes back the memory of the buffers whose marks are passed; how many those were. Never waits. */
size_t gm_work_off(gpumem_device *device);

/*
 * Waits for the frees of `resource`, or for all that there are now when it is NULL, but for those
 * that nothing can be waited for. Others' buffers are left alone. Waits for events with no lock
 * held.
 */
void gm_wait_for_frees(gpumem_device *device, const gpumem_resource *resource);

/* Whether frees of the resource, or of the library's wrappers around it, are held back. */
int gm_has_frees(gpumem_device *device, const gpumem_resource *resource);

/* What a wait would have to be for to be of use. */
typedef int (*gm_wanted_fn)(const gpumem_buffer *buffer, const void *data);

/* Bytes behind the held-back buffers that are wanted and whose end can be waited for. */
uint64_t gm_deferred_bytes(gpumem_device *device, gm_wanted_fn wanted, const void *data);

/* Waits until the memory of at least one such buffer came back, whichever is first. Returns how
 * many did: 0 when there is none to wait for. */
size_t gm_wait_for_one(gpumem_device *device, gm_wanted_fn wanted, const void *data);

/* Says in `text` why frees of the resource are still held back. */
void gm_deferred_reason(gpumem_device *device, const gpumem_resource *resource, char *text,
                        size_t size);

#endif
