/* Calls that must succeed for a benchmark to continue: of the library, and of the bare driver. */
#ifndef BENCH_CHECK_H
#define BENCH_CHECK_H

#include "table.h"

#include <gpumem/driver.h>
#include <gpumem/gpumem.h>

static inline void ok(gpumem_status status, const char *what) {
    if (status != GPUMEM_OK)
        bench_fail("%s: %s", what, gpumem_last_error()->message);
}

static inline void bench_must(const gpumem_driver_api *cu, CUresult result, const char *what) {
    if (result != CUDA_SUCCESS)
        bench_fail("%s answered %s", what, bench_result(cu, result));
}

/* Uses the program's own `cu`. */
#define MUST(call, what) bench_must(cu, (call), (what))

#endif
