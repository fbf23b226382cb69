/*
 * The number of threads that touch fresh pages fastest: measured on real slabs, remembered for the
 * process and, by CPU, driver and GPU, for later ones (base/cache_file).
 */
#ifndef GM_MEMORY_TOUCH_CALIBRATION_H
#define GM_MEMORY_TOUCH_CALIBRATION_H

#include "memory/core/objects.h"
#include "memory/host/touch_pages.h"

/* The number known for the device's machine, or the default. Reads small files at the first
 * call. */
unsigned gm_touch_threads(gpumem_device *device, gpumem_measured *measured);

/* As gm_touch, with the fastest known number of threads; if it is not known and there is enough to
 * touch, it is measured with the first part. */
int gm_touch_measured(gpumem_device *device, void *base, size_t bytes, enum gm_touch_way way);

/* ---- Parts, apart for tests ------------------------------------------------------------------ */

#define GM_MOST_CANDIDATES ((size_t)4)

/* Numbers of threads worth trying if `most` is the greatest: its successive halves, ascending. */
size_t gm_calibration_candidates(unsigned most, unsigned counts[GM_MOST_CANDIDATES]);

/* The greatest number, which is the last, unless another is more than 5 % faster. The times are for
 * equal work. */
unsigned gm_calibration_choose(const unsigned *counts, const uint64_t *times, size_t count);

/* Only for tests: forgets what the process knows, and measures on slabs of `least` bytes in parts
 * of `part`; 0: the defaults. Not thread-safe. */
void gm_calibration_for_tests(size_t least, size_t part);

#endif
