/*
 * Frees that queued work holds back. A buffer whose memory may still be in use waits in its
 * device's list, with an event for each stream; the list is worked off by later allocations and
 * frees.
 */
#ifndef GM_MEMORY_DEFERRED_H
#define GM_MEMORY_DEFERRED_H

#include "memory/objects.h"

/* One stream: marks its present end, asks or waits for it, gives the event back. */
void gm_wait_mark(gpumem_device *device, struct gm_wait *wait);
int gm_wait_passed(gpumem_device *device, struct gm_wait *wait, int block);
void gm_wait_drop(gpumem_device *device, struct gm_wait *wait);

/*
 * Marks the present end of each stream that the buffer names. Returns 1 if all have passed already.
 * Cannot fail: where no event can be had, the stream itself is asked later. The device's context is
 * current.
 */
int gm_waits_mark(gpumem_buffer *buffer);

/* The same where memory goes back in the order of `stream`, which needs no mark for itself. */
int gm_waits_mark_others(gpumem_buffer *buffer, CUstream stream);

/* Whether all marks are passed; with `wait`, sleeps until they are. Gives the events back. */
int gm_waits_passed(gpumem_buffer *buffer, int wait);

/* Makes `stream` wait for the marks and gives the events back. 0, or -1 where that failed. */
int gm_waits_join(gpumem_buffer *buffer, CUstream stream);

/* Puts a marked buffer into the list. */
void gm_defer(gpumem_buffer *buffer);

/*
 * Takes back the memory of the buffers in the list whose marks are passed. With `wait`, waits for
 * the others too: all, or those of `only`. Returns how many were taken back.
 */
size_t gm_drain(gpumem_device *device, const gpumem_resource *only, int wait);

/* Destroys the unused events that the device keeps. Its context is current. */
void gm_drop_events(gpumem_device *device);

#endif
