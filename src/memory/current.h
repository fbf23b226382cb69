/* Makes a device's context current for the length of a call and puts back what was. */
#ifndef GM_MEMORY_CURRENT_H
#define GM_MEMORY_CURRENT_H

#include "memory/objects.h"

struct gm_current {
    gpumem_device *device;
    int pushed;
};

/* On failure nothing is changed and leave must not be called. */
gpumem_status gm_current_enter(struct gm_current *current, gpumem_device *device);
void gm_current_leave(struct gm_current *current);

#endif
