/*
 * The rolls of a resource: its buffers, for the snapshot. A buffer is on a roll from the moment in
 * which its memory is there until the moment before it goes back. Several rolls, so that threads
 * that allocate and free side by side do not meet at one lock; buffers that a resource hands out
 * many times (gm_fast_ops) are on none.
 *
 * The lock is a flag, half as dear as a mutex: two are taken for each pair of an allocation and a
 * free. It is held for a few stores; only a snapshot has it for longer, and who waits for that
 * gives the processor up.
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
    gpumem_buffer *next, **link; /* under the roll's lock: neighbours write them too */
    unsigned roll;
    int on;           /* a roll; the owner's to write and read */
    atomic_int state; /* enum gm_listed */
    CUstream stream;  /* of allocation; GPUMEM_STREAM_NONE: none was named */
};

void gm_roll_add(gpumem_buffer *buffer, CUstream stream);
/* Nothing happens when it is on none. */
void gm_roll_remove(gpumem_buffer *buffer);

/* Around a change of what the snapshot reads of the buffer. */
void gm_roll_lock(gpumem_buffer *buffer);
void gm_roll_unlock(gpumem_buffer *buffer);

/* Calls `visit` for each buffer of the resource as of one moment, with all of its rolls locked. */
void gm_rolls_visit(gpumem_resource *resource, void (*visit)(gpumem_buffer *, void *), void *data);

#endif
