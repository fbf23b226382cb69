/* The driver's functions as data: what functions.def lists, found by symbol and by name. */
#ifndef SG_CORE_ROWS_H
#define SG_CORE_ROWS_H

#include <gpumem/driver.h>
#include <stdint.h>

struct sg_row {
    const char *symbol;
    const char *name;
    int version;
    gpumem_driver_fn_kind kind;
};
extern const struct sg_row sg_rows[GPUMEM_FN_COUNT];

/* The row that exports `symbol`, or GPUMEM_FN_COUNT. */
gpumem_driver_fn sg_row_find(const char *symbol);
/* The first row of a name for cuGetProcAddress (others follow it), or GPUMEM_FN_COUNT. */
gpumem_driver_fn sg_name_find(const char *name);

/* The first two arguments as numbers. */
struct sg_arguments {
    uintptr_t first, second;
};

#endif
