/*
 * The plans in use, shared by the whole process: one for each machine, device and method. A plan is
 * the default until one is found in the user's cache folder, or measured. Plans are never freed, so
 * that a copy reads its plan without a lock; each repeated measurement costs some hundred bytes.
 */
#ifndef GM_MAPPED_PLANS_H
#define GM_MAPPED_PLANS_H

#include "mapped/copy/copy.h"
#include "memory/core/objects.h"

#include <gpumem/mapped.h>

#define GM_PLAN_WIDTHS 65 /* a size has 0 to 64 bits */

struct gm_kept_plan {
    struct gm_copy_plan plan;
    unsigned char first_class[GM_PLAN_WIDTHS]; /* of the sizes with so many bits */
    gpumem_measured measured;
    const struct gm_kept_plan *before; /* the one in use before */
};

struct gm_plans {
    struct gm_copy_key key;
    _Atomic(const struct gm_kept_plan *) now; /* never NULL */
    struct gm_plans *next;
};

/* The plans of the device and method, valid for as long as the process runs. Reads small files the
 * first time. Cannot fail: without memory for a new entry, the default. The context must be
 * current. */
struct gm_plans *gm_plans_of(gpumem_device *device, gpumem_mapped_method method);

static inline const struct gm_kept_plan *gm_plan_now(const struct gm_plans *plans) {
    return atomic_load_explicit(&((struct gm_plans *)(uintptr_t)plans)->now, memory_order_acquire);
}

/* As gm_copy_plan_class, without a search through the smaller classes. */
static inline const struct gm_copy_class *gm_plan_class(const struct gm_kept_plan *kept,
                                                        uint64_t bytes) {
    unsigned at = kept->first_class[bytes ? 64 - __builtin_clzll(bytes) : 0];
    while (at + 1 < kept->plan.class_count && bytes > kept->plan.classes[at].bytes)
        at++;
    return &kept->plan.classes[at];
}

/* Applies to all copies that start afterwards. OUT_OF_HOST_MEMORY: it could not be noted. */
gpumem_status gm_plans_take(struct gm_plans *plans, const struct gm_copy_plan *plan,
                            gpumem_measured measured);
/* Saves the plan for later processes, if possible. */
void gm_plans_keep(const struct gm_plans *plans, const struct gm_copy_plan *plan);

/* For tests only: the next resource finds its plans as in a new process. Not thread-safe. */
void gm_plans_for_tests(void);

#endif
