/*
 * The plans in use, for all of the process: one for each machine, device and method. A plan is the
 * default until one is found in the user's cache folder, or measured. Nothing of them is ever given
 * back, so that a copy reads its plan without a lock; who measures again and again keeps some
 * hundred bytes each time.
 */
#ifndef GM_MAPPED_PLANS_H
#define GM_MAPPED_PLANS_H

#include "mapped/copy/copy.h"
#include "memory/core/objects.h"

#include <gpumem/mapped.h>

struct gm_kept_plan {
    struct gm_copy_plan plan;
    gpumem_measured measured;
    const struct gm_kept_plan *before; /* what was in use until then */
};

struct gm_plans {
    struct gm_copy_key key;
    _Atomic(const struct gm_kept_plan *) now; /* never NULL */
    struct gm_plans *next;
};

/* Those of the device and method, to be kept for as long as the process runs. Reads small files the
 * first time. Cannot fail: without memory to note them, the default. The context is current. */
struct gm_plans *gm_plans_of(gpumem_device *device, gpumem_mapped_method method);

static inline const struct gm_kept_plan *gm_plan_now(const struct gm_plans *plans) {
    return atomic_load_explicit(&((struct gm_plans *)(uintptr_t)plans)->now, memory_order_acquire);
}

/* From here on for all copies that begin, unless it cannot be noted: OUT_OF_HOST_MEMORY. */
gpumem_status gm_plans_take(struct gm_plans *plans, const struct gm_copy_plan *plan,
                            gpumem_measured measured);
/* For later processes; where that is not possible, it is not kept. */
void gm_plans_keep(const struct gm_plans *plans, const struct gm_copy_plan *plan);

/* For tests alone: the next resource finds its plans as in a new process. Not thread-safe. */
void gm_plans_for_tests(void);

#endif
