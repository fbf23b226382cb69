/* The most memory that a resource may hold, kept by who takes memory from the driver for it. */
#ifndef GM_MEMORY_BOUND_H
#define GM_MEMORY_BOUND_H

#include <gpumem/status.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct gm_bound {
    const char *kind; /* of the resource */
    uint64_t maximum;
    _Atomic uint64_t held; /* never more than the maximum */
};

/* To be called before the driver is asked: OUT_OF_CAPACITY where it would be too much. NULL: there
 * is no bound. */
gpumem_status gm_bound_take(struct gm_bound *bound, size_t bytes);
/* The same for callers with a message of their own: whether there was room. */
int gm_bound_try(struct gm_bound *bound, size_t bytes);
/* When the driver has the memory back. */
void gm_bound_give(struct gm_bound *bound, size_t bytes);

#endif
