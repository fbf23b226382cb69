/* Plans: the default, and the one derived from timings. */
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

/* Stores use one instruction per line where there is one, and plain words below a line, where
 * streaming gains nothing. On an H200 stores cross a PCIe 5 bus at 17 to 20 GB/s, which the driver
 * beats from pinned memory only: 47 us against 53 for 1 MiB, a third of the time for 16. Reads of
 * mapped memory cost a hundred times what the driver's copy costs from a few KiB on: 68 us for 4
 * KiB against 6. */
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
        .store = {.pinned = 1 << 20, .pageable = GM_COPY_NEVER},
        .load = {.pinned = 512, .pageable = 512},
    };
}

const struct gm_copy_class *gm_copy_plan_class(const struct gm_copy_plan *plan, uint64_t bytes) {
    unsigned at = 0;
    while (at + 1 < plan->class_count && bytes > plan->classes[at].bytes)
        at++;
    return &plan->classes[at];
}

/* If none was measured, the kernel of the previous size. */
static enum gm_copy_kernel fastest(const struct gm_copy_timing *timings, unsigned direction,
                                   enum gm_copy_kernel before) {
    enum gm_copy_kernel found = GM_COPY_KERNEL_COUNT;
    for (unsigned i = 0; i < GM_COPY_KERNEL_COUNT; i++) {
        double time = gm_copy_time_of(&timings[i], direction);
        if (time >= 0 &&
            (found == GM_COPY_KERNEL_COUNT || time < gm_copy_time_of(&timings[found], direction)))
            found = (enum gm_copy_kernel)i;
    }
    return found == GM_COPY_KERNEL_COUNT ? before : found;
}

/* How much longer the driver takes than the class's kernel, by the timings. */
static double lead_of(const struct gm_copy_timings *timings, const struct gm_copy_timing *driver,
                      const struct gm_copy_plan *plan, unsigned size, unsigned direction) {
    enum gm_copy_kernel kernel =
        direction == GM_COPY_STORE ? plan->classes[size].store : plan->classes[size].load;
    return gm_copy_time_of(&driver[size], direction) -
           gm_copy_time_of(&timings->kernels[size][kernel], direction);
}

/*
 * The size from which the driver is faster. Above it the driver is faster at every measured size,
 * or nothing else was measured. Between that size and the previous one, where the driver was
 * slower, times are taken as straight lines, which they nearly are: a constant, plus a cost per
 * byte.
 */
static uint64_t cutover(const struct gm_copy_timings *timings, const struct gm_copy_timing *driver,
                        const struct gm_copy_plan *plan, const size_t *sizes, unsigned direction) {
    unsigned first = plan->class_count;
    for (; first > 0; first--) {
        unsigned size = first - 1;
        const struct gm_copy_class *class = &plan->classes[size];
        enum gm_copy_kernel kernel = direction == GM_COPY_STORE ? class->store : class->load;
        if (gm_copy_time_of(&driver[size], direction) < 0)
            break;
        if (gm_copy_time_of(&timings->kernels[size][kernel], direction) >= 0 &&
            lead_of(timings, driver, plan, size, direction) >= 0)
            break;
    }
    if (first == plan->class_count)
        return GM_COPY_NEVER;
    if (first == 0 || gm_copy_time_of(&driver[first - 1], direction) < 0)
        return sizes[first];
    double ahead = lead_of(timings, driver, plan, first - 1, direction);
    double behind = -lead_of(timings, driver, plan, first, direction);
    double part = ahead / (ahead + behind);
    return sizes[first - 1] + 1 + (uint64_t)(part * (double)(sizes[first] - sizes[first - 1] - 1));
}

struct gm_copy_plan gm_copy_plan_of(const struct gm_copy_timings *timings, const size_t *sizes,
                                    unsigned count) {
    struct gm_copy_plan plan = {.class_count = count};
    struct gm_copy_class before = {.store = GM_COPY_PLAIN, .load = GM_COPY_PLAIN};
    for (unsigned i = 0; i < count; i++) {
        before = (struct gm_copy_class){
            .bytes = sizes[i],
            .store = fastest(timings->kernels[i], GM_COPY_STORE, before.store),
            .load = fastest(timings->kernels[i], GM_COPY_LOAD, before.load),
        };
        plan.classes[i] = before;
    }
    plan.store.pinned = cutover(timings, timings->driver_pinned, &plan, sizes, GM_COPY_STORE);
    plan.store.pageable = cutover(timings, timings->driver_pageable, &plan, sizes, GM_COPY_STORE);
    plan.load.pinned = cutover(timings, timings->driver_pinned, &plan, sizes, GM_COPY_LOAD);
    plan.load.pageable = cutover(timings, timings->driver_pageable, &plan, sizes, GM_COPY_LOAD);
    return plan;
}
