/*
 * The streams that use a buffer, and the points in them that a free waits for. A wait names a
 * stream until the buffer is freed; then an event marks the point, and the stream is no longer
 * queried, because its owner may destroy it.
 */
#ifndef GM_MEMORY_STREAM_WAITS_H
#define GM_MEMORY_STREAM_WAITS_H

#include "memory/core/objects.h"

/*
 * The identity of the stream, for gm_wait: the thread for CU_STREAM_PER_THREAD, which is a
 * different stream in each; with `identify` the driver's number for it, which takes two driver
 * calls.
 */
struct gm_wait gm_wait_for(gpumem_device *device, CUstream stream, int identify);
/* For a stream that another thread may be using, whichever thread names it here. */
void gm_wait_is_shared(struct gm_wait *wait);
int gm_wait_same(const struct gm_wait *wait, const struct gm_wait *other);

/* One wait: marks the stream's present end, regardless of an earlier mark; queries it, or sleeps
 * until it has passed; releases its event. Returns whether it has passed. */
int gm_wait_mark(gpumem_device *device, struct gm_wait *wait);
int gm_wait_passed(gpumem_device *device, struct gm_wait *wait, int block);
void gm_wait_drop(gpumem_device *device, struct gm_wait *wait);
/* Whether the driver says that its event has passed; changes nothing. */
int gm_wait_is_over(gpumem_device *device, const struct gm_wait *wait);
/* Marks a stream for the last time: it may be destroyed afterwards, and is never queried again. If
 * no event can represent it, the whole context is waited for. */
void gm_wait_end(gpumem_device *device, struct gm_wait *wait);

/*
 * Marks the present end of each stream that the buffer names. Returns 1 if all have already passed.
 * Cannot fail. The device's context is current, and captures are protected: gm_current.
 */
int gm_waits_mark(gpumem_buffer *buffer);

/*
 * For memory that goes back in the order of its home stream: makes that stream wait for the others.
 * 0 when a free on it now comes after all of them; else everything is marked, and the memory must
 * wait for that.
 */
int gm_waits_join(gpumem_buffer *buffer);

/*
 * Whether all marks have passed; with `block`, sleeps until they have, holding no lock, but not for
 * what cannot be waited for (the end of a capture, another thread's stream).
 */
int gm_waits_passed(gpumem_buffer *buffer, int block);

/* Whether sleeping would help: only events are missing. */
int gm_waits_are_events(const gpumem_buffer *buffer);

/* Why the buffer is still held back, for a message. */
const char *gm_waits_reason(const gpumem_buffer *buffer);
const char *gm_wait_reason(const struct gm_wait *wait);

/*
 * A stream of ours that is ordered after the legacy stream's work so far, as every blocking stream
 * is; NULL if the driver has none. Used by one thread at a time, and returned.
 */
CUstream gm_take_helper(gpumem_device *device);
void gm_give_helper(gpumem_device *device, CUstream helper);
/* Whether this thread has taken it. */
int gm_is_helper(CUstream stream);

/* Destroys the unused events and stream that the device keeps. Its context is current. */
void gm_drop_events(gpumem_device *device);

#endif
