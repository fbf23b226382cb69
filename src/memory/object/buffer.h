/* The internals of buffers, for deferred frees, copies and sharing. */
#ifndef GM_MEMORY_BUFFER_H
#define GM_MEMORY_BUFFER_H

#include "base/options.h"
#include "memory/core/objects.h"

/*
 * Whether a quick way, which reads a caller's options in place, knows all that is in them: the
 * struct is that of the first release. A later one, and a size that is wrong, is for the usual way.
 */
static inline int gm_buffer_options_are_first(const gpumem_buffer_options *given) {
    return given->size == GM_FIRST_SIZE_gpumem_buffer_options;
}

/* A buffer of `resource` without memory yet; the stream is that of the allocation. */
gpumem_status gm_buffer_make(gpumem_resource *resource, CUstream stream, gpumem_buffer **buffer);
void gm_buffer_discard(gpumem_buffer *buffer);

/* The same in two steps, for an object that is part of another one. */
void gm_buffer_init(gpumem_buffer *buffer, gpumem_resource *resource, CUstream stream);
void gm_buffer_clear(gpumem_buffer *buffer);

/* The buffer for which the thread is getting memory, for resources that need to know it: those that
 * map memory in chunks. */
extern _Thread_local gpumem_buffer *gm_buffer_in_making;

/* Memory that did not come by an allocation becomes the buffer's, which is its resource's from here
 * on: what gm_buffer_make made, whole. */
void gm_buffer_attach(gpumem_buffer *buffer, const gpumem_allocation *allocation);

/* Counts a buffer whose allocation has been filled in. */
void gm_buffer_count(gpumem_buffer *buffer);

/*
 * Holds back memory of a stream-ordered resource that could not be given back on `stream`, until
 * that stream can be queried or its capture has ended. 0, or -1 without memory to record it.
 */
int gm_buffer_put_off(gpumem_resource *resource, const gpumem_allocation *allocation,
                      CUstream stream);

/* The stream in whose order stream-ordered memory goes back. */
CUstream gm_buffer_home(const gpumem_buffer *buffer);

/* Gives the memory back now, in order of `stream`, and destroys the object. */
void gm_buffer_finish(gpumem_buffer *buffer, CUstream stream);

/* Makes room for that many more streams; 0, or -1 without memory. The lock is held. */
int gm_buffer_reserve_waits(gpumem_buffer *buffer, size_t more);

/* Takes one more reference, waiting for a shrink in progress. */
void gm_buffer_ref(gpumem_buffer *buffer);

/* Called before memory of a buffer goes away: BUSY while others hold it; else waits, with no lock
 * held, for the streams that use it, including `stream`. `what` names the operation in the message:
 * "shrink".
 */
gpumem_status gm_buffer_not_held(const gpumem_buffer *buffer, const char *what);
gpumem_status gm_buffer_wait(gpumem_buffer *buffer, CUstream stream, const char *what);

/* Records a changed size or memory. */
void gm_buffer_take_over(gpumem_buffer *buffer, const gpumem_allocation *changed);

/* Records a new place. The former addresses no longer belong to the buffer. */
void gm_buffer_moved(gpumem_buffer *buffer, CUdeviceptr address, size_t capacity);

/* Drops a reference; at the last the memory goes back or waits for queued work. */
void gm_buffer_unref(gpumem_buffer *buffer);

/* The buffer that has the memory: for a buffer of a user's wrapper, the wrapped resource's buffer,
 * if it is all of that. NULL if the wrapper names none. */
gpumem_buffer *gm_buffer_innermost(gpumem_buffer *buffer);

/* NOT_SUPPORTED, with what to do, where the buffer shares its memory with others of a slab; `what`
 * is what it cannot: "grow". */
gpumem_status gm_buffer_not_in_slab(const gpumem_buffer *buffer, const char *what);

/* Checks that [offset, offset + bytes) is in the buffer, and that it has memory. */
gpumem_status gm_buffer_range(const gpumem_buffer *buffer, size_t offset, size_t bytes,
                              const char *call);

/* The physical handles of a buffer; 1 where they are not known. */
size_t gm_buffer_chunks(const gpumem_buffer *buffer);

#endif
