/* The internals of views. */
#ifndef GM_MEMORY_VIEW_H
#define GM_MEMORY_VIEW_H

#include "memory/core/describe.h"
#include "memory/core/objects.h"

/* Makes `view`, a new buffer of a hidden resource, a view of these bytes of `root`, which it holds.
 * When the view ends, the resource's deallocate function is called first. */
gpumem_status gm_view_attach(gpumem_buffer *view, gpumem_buffer *root, size_t offset, size_t bytes,
                             const char *call);

/* The last reference to a view is gone: releases its buffer. */
void gm_view_end(gpumem_buffer *view);

/* Of a view's JSON: what it is a view of. The buffer is held by the view. */
void gm_view_describe(const gpumem_buffer *view, struct gm_json *json);

#endif
