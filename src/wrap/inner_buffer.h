/* Buffers of the wrapped resource, which a wrapper hands on as its own. */
#ifndef GM_WRAP_INNER_BUFFER_H
#define GM_WRAP_INNER_BUFFER_H

#include "memory/core/objects.h"

/*
 * For a wrapper's deallocate. `ordered`: the wrapper is stream-ordered, and the streams of its
 * buffer have been joined to `stream`. Else they have all passed. Either way `from` waits for none
 * of them: it would mark the present end of a stream that others have fed since, or that is gone.
 */
void gm_inner_free(gpumem_buffer *from, CUstream stream, int ordered);

#endif
