#include "memory/core/bound.h"

#include "base/error.h"

/* `held`: what it was. */
static int try_it(struct gm_bound *bound, size_t bytes, uint64_t *held) {
    *held = atomic_load(&bound->held);
    do {
        if (bytes > bound->maximum - *held)
            return 0;
    } while (!atomic_compare_exchange_weak(&bound->held, held, *held + bytes));
    return 1;
}

int gm_bound_try(struct gm_bound *bound, size_t bytes) {
    uint64_t held;
    return try_it(bound, bytes, &held);
}

gpumem_status gm_bound_take(struct gm_bound *bound, size_t bytes) {
    uint64_t held;
    if (!bound || try_it(bound, bytes, &held))
        return GPUMEM_OK;
    return gm_fail(GPUMEM_ERROR_OUT_OF_CAPACITY,
                   "%zu bytes more would bring the %s resource from %llu over its maximum of %llu",
                   bytes, bound->kind, (unsigned long long)held,
                   (unsigned long long)bound->maximum);
}

void gm_bound_give(struct gm_bound *bound, size_t bytes) {
    if (bound)
        atomic_fetch_sub(&bound->held, bytes);
}
