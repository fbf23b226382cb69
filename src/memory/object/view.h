/* The internals of views. */
#ifndef GM_MEMORY_VIEW_H
#define GM_MEMORY_VIEW_H

#include "memory/core/objects.h"

/* The last reference to a view is gone: releases its buffer. */
void gm_view_end(gpumem_buffer *view);

#endif
