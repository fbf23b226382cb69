/*
 * Views: a part of a buffer as a buffer of its own, at the same address.
 */
#ifndef GPUMEM_VIEW_H
#define GPUMEM_VIEW_H

#include <gpumem/buffer.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Makes a view of `bytes` bytes, more than 0, from `offset` on. It is freed with
 * gpumem_buffer_free, and holds the buffer until then: the buffer can grow, but shrinking returns
 * BUSY, and a free takes effect when the last view is freed. Streams named for the view (by
 * gpumem_buffer_use, a copy, the free) are named for the buffer. A view of a view is a view of the
 * buffer itself; the first may be freed before the second. A view cannot grow, shrink or be
 * exported, counts in no statistics, and has the buffer's resource. Thread-safe, as
 * gpumem_buffer_hold: different threads may make, use and free views of one buffer at once, even
 * while the buffer itself is used. gpumem_buffer_attributes.viewed is the buffer. INVALID_ARGUMENT:
 * outside the buffer, or where memory was decommitted (gpumem_buffer_decommit). OUT_OF_HOST_MEMORY.
 * Does not block, except during a shrink that is unmapping. No driver call.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_buffer_view(gpumem_buffer *buffer, size_t offset,
                                                              size_t bytes, gpumem_buffer **view);

#ifdef __cplusplus
}
#endif

#endif
