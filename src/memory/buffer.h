/* The inner side of buffers, for deferred frees, copies and sharing. */
#ifndef GM_MEMORY_BUFFER_H
#define GM_MEMORY_BUFFER_H

#include "memory/objects.h"

/* A buffer of `resource` without memory yet; the stream is that of allocation. */
gpumem_status gm_buffer_make(gpumem_resource *resource, CUstream stream, gpumem_buffer **buffer);
void gm_buffer_discard(gpumem_buffer *buffer);

/* The same in two steps, for an object that is part of another one. */
void gm_buffer_init(gpumem_buffer *buffer, gpumem_resource *resource, CUstream stream);
void gm_buffer_clear(gpumem_buffer *buffer);

/* The buffer that the thread is getting memory for, where the resource wants to know it: what is
 * mapped in chunks. */
extern _Thread_local gpumem_buffer *gm_buffer_in_making;

/* Counts a buffer whose allocation has been filled in. */
void gm_buffer_count(gpumem_buffer *buffer);

/*
 * Holds back memory of a stream-ordered resource that could not be given back on `stream`, until
 * that stream tells or its capture has ended. 0, or -1 without memory to note it.
 */
int gm_buffer_put_off(gpumem_resource *resource, const gpumem_allocation *allocation,
                      CUstream stream);

/* The stream in whose order stream-ordered memory goes back. */
CUstream gm_buffer_home(const gpumem_buffer *buffer);

/* Gives the memory back now, in order of `stream`, and ends the object. */
void gm_buffer_finish(gpumem_buffer *buffer, CUstream stream);

/* Room for so many more streams than are named; 0, or -1 without memory. The lock is held. */
int gm_buffer_reserve_waits(gpumem_buffer *buffer, size_t more);

/* Takes one more reference, but not in the middle of a shrink. */
void gm_buffer_ref(gpumem_buffer *buffer);

/* Before memory goes away under a buffer: BUSY while others hold it; then, with no lock held, waits
 * for the streams that use it, `stream` among them. `what` is what cannot be done then: "shrink".
 */
gpumem_status gm_buffer_not_held(const gpumem_buffer *buffer, const char *what);
gpumem_status gm_buffer_wait(gpumem_buffer *buffer, CUstream stream, const char *what);

/* Notes a changed size or memory. */
void gm_buffer_take_over(gpumem_buffer *buffer, const gpumem_allocation *changed);

/* Notes another place. The former addresses are no longer the buffer's. */
void gm_buffer_moved(gpumem_buffer *buffer, CUdeviceptr address, size_t capacity);

/* Drops a reference; at the last the memory goes back or waits for queued work. */
void gm_buffer_unref(gpumem_buffer *buffer);

/* The buffer that holds the memory: for that of a user's wrapper the one of the wrapped resource
 * which it is the whole of. NULL when the wrapper names none. */
gpumem_buffer *gm_buffer_innermost(gpumem_buffer *buffer);

/* NOT_SUPPORTED, with what to do, where the buffer shares its memory with others of a slab; `what`
 * is what it cannot: "grow". */
gpumem_status gm_buffer_not_in_slab(const gpumem_buffer *buffer, const char *what);

/* Checks that [offset, offset + bytes) lies in the buffer, and that memory is behind it. */
gpumem_status gm_buffer_range(const gpumem_buffer *buffer, size_t offset, size_t bytes,
                              const char *call);

#endif
