/*
 * Views: a part of a buffer as a buffer of its own, at the address that it has anyway.
 */
#ifndef GPUMEM_VIEW_H
#define GPUMEM_VIEW_H

#include <gpumem/buffer.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The `bytes` bytes, more than 0, from `offset` on. The view is freed with gpumem_buffer_free, and
 * holds the buffer until then: shrinking answers BUSY, growing goes on, and a free of the buffer
 * takes effect at the last view's. Streams that are named for the view (by gpumem_buffer_use, a
 * copy, the free) are named for the buffer. A view of a view is one of the buffer itself; the first
 * may be freed before. A view cannot grow, shrink or be exported, counts in no statistics, and its
 * resource is that of the buffer.
 * Thread-safe, as gpumem_buffer_hold: views of one buffer may be made, used and freed by different
 * threads at once, also beside the buffer's own use. INVALID_ARGUMENT: outside the buffer.
 * OUT_OF_HOST_MEMORY. Does not block, but for a shrink that is just unmapping. No driver call.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_buffer_view(gpumem_buffer *buffer, size_t offset,
                                                              size_t bytes, gpumem_buffer **view);

/* Of a view the buffer that has the memory; else NULL. Cannot fail; no driver call. */
GPUMEM_API gpumem_buffer *gpumem_buffer_viewed(const gpumem_buffer *buffer);

#ifdef __cplusplus
}
#endif

#endif
