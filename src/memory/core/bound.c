#include "memory/core/bound.h"

#include "base/error.h"

gpumem_status gm_bound_take(struct gm_bound *bound, size_t bytes) {
    if (!bound)
        return GPUMEM_OK;
    uint64_t held = atomic_load(&bound->held);
    do {
        if (bytes > bound->maximum - held)
            return gm_fail(GPUMEM_ERROR_OUT_OF_CAPACITY,
                           "%zu bytes more would bring the %s resource from %llu over its maximum "
                           "of %llu",
                           bytes, bound->kind, (unsigned long long)held,
                           (unsigned long long)bound->maximum);
    } while (!atomic_compare_exchange_weak(&bound->held, &held, held + bytes));
    return GPUMEM_OK;
}

void gm_bound_give(struct gm_bound *bound, size_t bytes) {
    if (bound)
        atomic_fetch_sub(&bound->held, bytes);
}
