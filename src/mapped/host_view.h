/* Views of virtual buffers that the CPU has mapped. */
#ifndef GM_MAPPED_HOST_VIEW_H
#define GM_MAPPED_HOST_VIEW_H

#include "mapped/mapper.h"

/* How the CPU reaches a host view or a part of one; NULL: it is another buffer. */
struct gm_mapper *gm_host_view_mapper(const gpumem_buffer *buffer);

#endif
