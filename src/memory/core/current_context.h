/*
 * Makes a device's context current for the length of a call and puts back what was. The thread's
 * capture mode is relaxed meanwhile (memory/core/capture.h), so that nothing that is called in
 * between disturbs a stream capture.
 */
#ifndef GM_MEMORY_CURRENT_CONTEXT_H
#define GM_MEMORY_CURRENT_CONTEXT_H

#include "memory/core/capture.h"
#include "memory/core/objects.h"

struct gm_current {
    gpumem_device *device;
    int pushed;
    struct gm_relaxed relaxed;
};

/* On failure nothing is changed and leave must not be called. */
gpumem_status gm_current_enter(struct gm_current *current, gpumem_device *device);
/* The same without changing the capture mode: for calls that do not disturb captures (copies,
 * records, waits in a stream); saves two driver calls. */
gpumem_status gm_current_enter_strict(struct gm_current *current, gpumem_device *device);
void gm_current_leave(struct gm_current *current);

/* A context that is made current when it turns out that the driver is needed. Entering is five
 * driver calls, more than memory that is at hand costs altogether. */
struct gm_late {
    gpumem_device *device;
    int entered;
    struct gm_current current;
};

/* NULL: the context is current already. On failure the driver must not be called; a later attempt
 * may succeed. */
static inline gpumem_status gm_late_enter(struct gm_late *late) {
    if (!late || late->entered)
        return GPUMEM_OK;
    gpumem_status status = gm_current_enter(&late->current, late->device);
    late->entered = status == GPUMEM_OK;
    return status;
}

static inline void gm_late_leave(struct gm_late *late) {
    if (late->entered)
        gm_current_leave(&late->current);
}

#endif
