/* Buffers of the wrapped resource, which a wrapper hands out as its own. */
#ifndef GM_WRAP_INNER_BUFFER_H
#define GM_WRAP_INNER_BUFFER_H

#include "memory/core/objects.h"

/*
 * For a wrapper's deallocate. `ordered`: the wrapper is stream-ordered, and the streams of its
 * buffer have been joined to `stream`. Otherwise they have all passed. In either case `from` must
 * not wait for them: it would mark the present end of a stream that has been given more work since,
 * or that is gone.
 */
void gm_inner_free(gpumem_buffer *from, CUstream stream, int ordered);

#endif
