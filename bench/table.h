/* What the benchmarks share: a clock, medians, and a table of rows with the ratio to a baseline. */
#ifndef BENCH_TABLE_H
#define BENCH_TABLE_H

#include <gpumem/driver.h>
#include <stddef.h>

/* Seconds of the monotonic clock. */
double bench_now(void);

/* The median; sorts `values`. NAN if there are none. */
double bench_median(double *values, size_t count);

void bench_header(const char *title, const char *baseline);
/* One row: value, baseline and value / baseline; `unit` applies to the first two. A baseline of 0
 * is left out. Rows of failed runs are not printed: a failed run is not a time. */
void bench_row(const char *what, double value, double baseline, const char *unit);

/* "CUDA_ERROR_OUT_OF_MEMORY"; "an unknown result" if the driver has no name for it. */
const char *bench_result(const gpumem_driver_api *cu, CUresult result);

/* What is loaded. */
gpumem_driver_info driver_info(const gpumem_driver *driver);

/* Prints the message and ends the program with status 1. */
_Noreturn void bench_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
