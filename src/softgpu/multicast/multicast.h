/* Multicast objects, as the other chapters see them: memory with operations (address/object.h). */
#ifndef SG_MULTICAST_MULTICAST_H
#define SG_MULTICAST_MULTICAST_H

#include "softgpu/core/chapter.h"

extern const struct sg_chapter sg_multicast_chapter;

#endif
