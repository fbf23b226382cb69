/* Plans: the one that needs no measurement, and the one that timings ask for. */
#include "mapped/copy/copy.h"

#define LINE 64

/* The first of the preferred kernels that this CPU has. */
static enum gm_copy_kernel best(const enum gm_copy_kernel *preferred, unsigned count,
                                unsigned direction) {
    for (unsigned i = 0; i < count; i++)
        if (gm_copy_kernel_can(preferred[i], direction))
            return preferred[i];
    return GM_COPY_PLAIN;
}

/* Stores: one instruction for a line where there is one. Plain below a line, where streaming gains
 * nothing. Reads of mapped memory cost a hundred times what the driver's copy costs from a few KiB
 * on: 68 us for 4 KiB on an H200 against 6. */
struct gm_copy_plan gm_copy_plan_default(void) {
    static const enum gm_copy_kernel widest[] = {GM_COPY_AVX512, GM_COPY_AVX2, GM_COPY_SSE41,
                                                 GM_COPY_SSE2};
    const unsigned count = sizeof widest / sizeof widest[0];
    return (struct gm_copy_plan){
        .classes = {{.bytes = LINE, .store = GM_COPY_PLAIN, .load = GM_COPY_PLAIN},
                    {.bytes = UINT64_MAX,
                     .store = best(widest, count, GM_COPY_STORE),
                     .load = best(widest, count, GM_COPY_LOAD)}},
        .class_count = 2,
        .store = {.pinned = GM_COPY_NEVER, .pageable = GM_COPY_NEVER},
        .load = {.pinned = 512, .pageable = 512},
    };
}

const struct gm_copy_class *gm_copy_plan_class(const struct gm_copy_plan *plan, uint64_t bytes) {
    unsigned at = 0;
    while (at + 1 < plan->class_count && bytes > plan->classes[at].bytes)
        at++;
    return &plan->classes[at];
}

/* One direction of a table of timings. */
static double time_of(const struct gm_copy_timing *timing, unsigned direction) {
    return direction == GM_COPY_STORE ? timing->store : timing->load;
}

static enum gm_copy_kernel fastest(const struct gm_copy_timing *timings, unsigned direction) {
    enum gm_copy_kernel found = GM_COPY_PLAIN;
    for (unsigned i = 0; i < GM_COPY_KERNEL_COUNT; i++) {
        double time = time_of(&timings[i], direction);
        if (time >= 0 && time < time_of(&timings[found], direction))
            found = (enum gm_copy_kernel)i;
    }
    return found;
}

/*
 * The smallest measured size from which on the driver is faster at every measured size. From that
 * size on, not from between two of them: below it mapped access was seen to be as fast.
 */
static uint64_t cutover(const struct gm_copy_timings *timings, const struct gm_copy_timing *driver,
                        const struct gm_copy_plan *plan, const size_t *sizes, unsigned direction) {
    uint64_t from = GM_COPY_NEVER;
    for (unsigned i = plan->class_count; i-- > 0;) {
        enum gm_copy_kernel kernel =
            direction == GM_COPY_STORE ? plan->classes[i].store : plan->classes[i].load;
        double ours = time_of(&timings->kernels[i][kernel], direction);
        double theirs = time_of(&driver[i], direction);
        if (theirs < 0 || theirs >= ours)
            break;
        from = sizes[i];
    }
    return from;
}

struct gm_copy_plan gm_copy_plan_of(const struct gm_copy_timings *timings, const size_t *sizes,
                                    unsigned count) {
    struct gm_copy_plan plan = {.class_count = count};
    for (unsigned i = 0; i < count; i++)
        plan.classes[i] = (struct gm_copy_class){
            .bytes = sizes[i],
            .store = fastest(timings->kernels[i], GM_COPY_STORE),
            .load = fastest(timings->kernels[i], GM_COPY_LOAD),
        };
    plan.store.pinned = cutover(timings, timings->driver_pinned, &plan, sizes, GM_COPY_STORE);
    plan.store.pageable = cutover(timings, timings->driver_pageable, &plan, sizes, GM_COPY_STORE);
    plan.load.pinned = cutover(timings, timings->driver_pinned, &plan, sizes, GM_COPY_LOAD);
    plan.load.pageable = cutover(timings, timings->driver_pageable, &plan, sizes, GM_COPY_LOAD);
    return plan;
}
