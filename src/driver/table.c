/* The rows of functions.def as data. */
#include <gpumem/driver.h>

#define PLAIN GPUMEM_FN_PLAIN
#define PTDS  GPUMEM_FN_PTDS
#define PTSZ  GPUMEM_FN_PTSZ

static const gpumem_driver_fn_info rows[GPUMEM_FN_COUNT] = {
#define CU_FN(symbol, name, version, kind, params, args) {#symbol, #name, version, kind},
#include <gpumem/functions.def>
};

const gpumem_driver_fn_info *gpumem_driver_fn_info_get(gpumem_driver_fn fn) {
    return (unsigned)fn < GPUMEM_FN_COUNT ? &rows[fn] : NULL;
}
