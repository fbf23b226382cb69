/*
 * Frees that queued work holds back. A buffer whose memory may still be in use waits in its
 * device's list, which later allocations and frees process. A thread that examines a buffer of the
 * list claims it and drops the lock, so that no thread waits for unrelated work.
 */
#ifndef GM_MEMORY_DEFERRED_FREES_H
#define GM_MEMORY_DEFERRED_FREES_H

#include "memory/core/stream_waits.h"

/* Puts a marked buffer into the list. */
void gm_defer(gpumem_buffer *buffer);

/* Takes back the memory of the buffers whose marks have passed; returns their number. Never
 * waits. Makes no driver call while there are only marks of queued frees (queued_frees.h), which
 * the second looks at alone, and the third too. */
size_t gm_work_off(gpumem_device *device);
size_t gm_work_off_queued(gpumem_device *device);
size_t gm_work_off_all(gpumem_device *device);

/*
 * Waits for the frees of `resource`, but not for those that its driver has taken; or for all
 * present ones if it is NULL. Those for which waiting is impossible are left, and so are other
 * buffers. Waits for events with no lock held.
 */
void gm_wait_for_frees(gpumem_device *device, const gpumem_resource *resource);

/* Whether frees of the resource, or of the library's wrappers around it, are held back. */
int gm_has_frees(gpumem_device *device, const gpumem_resource *resource);

/* The frees for which waiting would be useful. */
typedef int (*gm_wanted_fn)(const gpumem_buffer *buffer, const void *data);

/* Bytes of the deferred buffers that are wanted and that can be waited for. */
uint64_t gm_deferred_bytes(gpumem_device *device, gm_wanted_fn wanted, const void *data);

/* Waits until the memory of at least one such buffer, whichever is first, has come back. Returns
 * how many did: 0 if there is none to wait for. */
size_t gm_wait_for_one(gpumem_device *device, gm_wanted_fn wanted, const void *data);

/* Whether there are marks of queued frees of the resource; and makes them those of another one,
 * which may be NULL: they are then forgotten. Nobody else has looked at them when this returns. */
int gm_has_queued(gpumem_resource *resource);
void gm_move_queued(gpumem_resource *from, gpumem_resource *to);

/* Forgets all of the device, which is closed. Its context is current. */
void gm_drop_queued(gpumem_device *device);

/* Writes to `text` why frees of the resource are still held back. */
void gm_deferred_reason(gpumem_device *device, const gpumem_resource *resource, char *text,
                        size_t size);

#endif
