/*
 * The rolls of a resource: its buffers, for the snapshot. A buffer is on a roll from the moment it
 * has memory until just before that goes back. There are several rolls, so that threads that
 * allocate and free concurrently do not contend for one lock; buffer objects that a resource reuses
 * (gm_fast_ops) are on none.
 *
 * The lock is a flag, which costs half as much as a mutex: two are taken for each pair of an
 * allocation and a free. It is held for a few stores; only a snapshot holds it for longer, and a
 * thread that waits for that yields the processor.
 *
 * Lock order: a roll's lock comes after all others but those of inventory and JSON hooks, and no
 * driver call is made under it.
 */
#ifndef GM_MEMORY_BUFFER_ROLL_H
#define GM_MEMORY_BUFFER_ROLL_H

#include <gpumem/types.h>
#include <stdatomic.h>

#define GM_ROLLS 8

struct gm_roll {
    atomic_int locked;
    gpumem_buffer *first;
    char apart[64 - 2 * sizeof(void *)]; /* another cache line */
};

enum gm_listed {
    GM_LISTED_LIVE,
    GM_LISTED_FREED,    /* by its owner: a hold, an export, a view or queued work keeps it */
    GM_LISTED_DEFERRED, /* never had an owner: only queued work keeps it */
};

/* Of a buffer. */
struct gm_roll_entry {
    gpumem_buffer *next, **link; /* under the roll's lock: operations on neighbours write them
                                  * too */
    unsigned roll;
    int on;           /* a roll; written and read only by the owner */
    atomic_int state; /* enum gm_listed */
    CUstream stream;  /* of the allocation; GPUMEM_STREAM_NONE: none was named */
};

void gm_roll_add(gpumem_buffer *buffer, CUstream stream);
/* Does nothing if it is on none. */
void gm_roll_remove(gpumem_buffer *buffer);

/* Call these around a change of anything that a snapshot reads from the buffer. */
void gm_roll_lock(gpumem_buffer *buffer);
void gm_roll_unlock(gpumem_buffer *buffer);

/* Calls `visit` for each buffer of the resource as of one moment, with all of its rolls locked. */
void gm_rolls_visit(gpumem_resource *resource, void (*visit)(gpumem_buffer *, void *), void *data);

#endif
