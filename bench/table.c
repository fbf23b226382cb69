#include "table.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

double bench_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *values, size_t count) {
    if (count == 0)
        return NAN;
    qsort(values, count, sizeof *values, compare);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

void bench_header(const char *title, const char *baseline) {
    printf("\n%s\n%-52s %12s %12s %8s\n", title, "", "measured", baseline, "ratio");
}

void bench_row(const char *what, double value, double baseline, const char *unit) {
    if (baseline > 0)
        printf("%-52s %12.3f %12.3f %8.3f  %s\n", what, value, baseline, value / baseline, unit);
    else
        printf("%-52s %12.3f %12s %8s  %s\n", what, value, "-", "-", unit);
}

gpumem_driver_info driver_info(const gpumem_driver *driver) {
    gpumem_driver_info info = {.size = sizeof info};
    (void)gpumem_driver_get_info(driver, &info); /* cannot fail with this size */
    return info;
}

void bench_fail(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fflush(stdout);
    fputs("bench: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

const char *bench_result(const gpumem_driver_api *cu, CUresult result) {
    const char *name = NULL;
    if (cu->cuGetErrorName(result, &name) == CUDA_SUCCESS && name)
        return name;
    return "an unknown result";
}
