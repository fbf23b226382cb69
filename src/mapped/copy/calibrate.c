/* Measures the kernels on a mapping, and the driver's copies for comparison. */
#include "mapped/copy/copy.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SAMPLES_LEAST 3
#define SAMPLES_MOST  64
/* A sample lasts long enough that the 20 ns of reading the clock do not matter. */
#define SAMPLE_NANOSECONDS 2000.0

/* One measurement: a copy of `bytes`, and what ensures that it is complete. */
struct run {
    const struct gm_copy_subject *subject;
    size_t bytes;
    unsigned direction;
    enum gm_copy_kernel kernel;
    gm_copy_driver_fn driver; /* NULL: the kernel */
    void *host;
};

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static bool copy(const struct run *run) {
    const struct gm_copy_subject *subject = run->subject;
    if (run->driver)
        return run->driver(subject->user, run->host, run->bytes);
    if (run->direction == GM_COPY_STORE) {
        gm_copy_store(run->kernel, subject->mapped, run->host, run->bytes);
        gm_copy_fence();
    } else {
        gm_copy_fence_load();
        gm_copy_load(run->kernel, run->host, subject->mapped, run->bytes);
    }
    return true;
}

static bool sample(const struct run *run, unsigned copies, double *nanoseconds) {
    double begin = now();
    for (unsigned i = 0; i < copies; i++)
        if (!copy(run))
            return false;
    *nanoseconds = (now() - begin) / copies;
    return true;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The lower quartile of several samples, after a warm-up: disturbances only add time. */
static bool measure(const struct run *run, double *quartile) {
    double samples[SAMPLES_MOST], once;
    if (!sample(run, 1, &once))
        return false;
    unsigned copies =
        once < SAMPLE_NANOSECONDS ? 1 + (unsigned)(SAMPLE_NANOSECONDS / (once + 1)) : 1;
    double end = now() + (double)run->subject->nanoseconds;
    unsigned count = 0;
    while (count < SAMPLES_LEAST || (count < SAMPLES_MOST && now() < end)) {
        if (!sample(run, copies, &samples[count]))
            return false;
        count++;
    }
    qsort(samples, count, sizeof samples[0], ascending);
    *quartile = samples[count / 4];
    return true;
}

/* `directions` are measured; anything not measured gets a negative time. */
static void measure_kernels(const struct gm_copy_subject *subject, size_t bytes,
                            unsigned directions, struct gm_copy_timing *timings) {
    struct run run = {.subject = subject, .bytes = bytes, .host = subject->pageable};
    for (unsigned i = 0; i < GM_COPY_KERNEL_COUNT; i++) {
        run.kernel = (enum gm_copy_kernel)i;
        timings[i] = (struct gm_copy_timing){.store = -1, .load = -1};
        run.direction = GM_COPY_STORE;
        if ((directions & GM_COPY_STORE) && gm_copy_kernel_can(run.kernel, GM_COPY_STORE))
            (void)measure(&run, &timings[i].store);
        run.direction = GM_COPY_LOAD;
        if ((directions & GM_COPY_LOAD) && gm_copy_kernel_can(run.kernel, GM_COPY_LOAD))
            (void)measure(&run, &timings[i].load);
    }
}

static bool measure_driver(const struct gm_copy_subject *subject, size_t bytes, void *host,
                           struct gm_copy_timing *timing) {
    struct run run = {.subject = subject, .bytes = bytes, .host = host};
    *timing = (struct gm_copy_timing){.store = -1, .load = -1};
    if (!host)
        return true;
    run.driver = subject->driver_store;
    if (run.driver && !measure(&run, &timing->store))
        return false;
    run.driver = subject->driver_load;
    return !run.driver || measure(&run, &timing->load);
}

/* Loads of 64 MiB over the bus take a second where the driver takes a millisecond: a direction in
 * which the driver is this much faster, whatever the host memory, is not measured at larger sizes.
 */
#define HOPELESS 8

static bool is_hopeless(const struct gm_copy_timings *timings, unsigned size, unsigned direction) {
    double best = -1;
    for (unsigned i = 0; i < GM_COPY_KERNEL_COUNT; i++) {
        double time = gm_copy_time_of(&timings->kernels[size][i], direction);
        if (time >= 0 && (best < 0 || time < best))
            best = time;
    }
    double pinned = gm_copy_time_of(&timings->driver_pinned[size], direction);
    double pageable = gm_copy_time_of(&timings->driver_pageable[size], direction);
    double slowest = pinned > pageable ? pinned : pageable;
    return best >= 0 && pageable >= 0 && best > HOPELESS * slowest;
}

static bool sizes_are_good(const struct gm_copy_subject *subject, const size_t *sizes,
                           unsigned count) {
    if (count == 0 || count > GM_COPY_CLASS_LIMIT || sizes[count - 1] > subject->size)
        return false;
    for (unsigned i = 0; i < count; i++)
        if (sizes[i] == 0 || (i > 0 && sizes[i] <= sizes[i - 1]))
            return false;
    return true;
}

enum gm_copy_outcome gm_copy_calibrate(const struct gm_copy_subject *subject, const size_t *sizes,
                                       unsigned count, struct gm_copy_plan *plan,
                                       struct gm_copy_timings *timings) {
    struct gm_copy_timings measured;
    if (!sizes_are_good(subject, sizes, count))
        return GM_COPY_BAD_SIZES;
    memset(&measured, 0, sizeof measured);
    unsigned directions = GM_COPY_STORE | GM_COPY_LOAD;
    for (unsigned i = 0; i < count; i++) {
        measure_kernels(subject, sizes[i], directions, measured.kernels[i]);
        if (!measure_driver(subject, sizes[i], subject->pinned, &measured.driver_pinned[i]) ||
            !measure_driver(subject, sizes[i], subject->pageable, &measured.driver_pageable[i]))
            return GM_COPY_DRIVER_FAILED;
        for (unsigned direction = GM_COPY_STORE; direction <= GM_COPY_LOAD; direction++)
            if (is_hopeless(&measured, i, direction))
                directions &= ~direction;
    }
    *plan = gm_copy_plan_of(&measured, sizes, count);
    if (timings)
        *timings = measured;
    return GM_COPY_MEASURED;
}
