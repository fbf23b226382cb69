/*
 * How many threads touch fresh pages the fastest: measured on real slabs, remembered for the
 * process and, by CPU, driver and GPU, for later ones (base/cache_file).
 */
#ifndef GM_MEMORY_TOUCH_CALIBRATION_H
#define GM_MEMORY_TOUCH_CALIBRATION_H

#include "memory/core/objects.h"
#include "memory/host/touch_pages.h"

/* What is known of the device's machine, or the default. Reads small files, at the first call. */
unsigned gm_touch_threads(gpumem_device *device, gpumem_measured *measured);

/* As gm_touch, with as many threads as are known to be the fastest; where nothing is known and
 * there is enough to touch, it is found out with the first part of it. */
int gm_touch_measured(gpumem_device *device, void *base, size_t bytes, enum gm_touch_way way);

/* ---- Parts, apart for tests ------------------------------------------------------------------ */

#define GM_MOST_CANDIDATES ((size_t)4)

/* Counts of threads that are worth trying where `most` is the greatest: halves of it, rising. */
size_t gm_calibration_candidates(unsigned most, unsigned counts[GM_MOST_CANDIDATES]);

/* The greatest count, which is the last, unless another one is more than 5 % faster: then that.
 * Times are of equal work. */
unsigned gm_calibration_choose(const unsigned *counts, const uint64_t *times, size_t count);

/* For tests alone: forgets what the process knows, and measures on slabs of `least` bytes in parts
 * of `part`; 0: the usual ones. Not thread-safe. */
void gm_calibration_for_tests(size_t least, size_t part);

#endif
