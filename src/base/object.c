#include "base/object.h"

#include "base/fork.h"

#include <stdatomic.h>
#include <stdlib.h>

/* Some tens of KiB at most. A use after destruction mostly follows soon. */
#define GRAVES 128u

static _Atomic(void *) graves[GRAVES];
static atomic_uint buried;

gpumem_status gm_object_check(unsigned generation, const char *name, const char *call) {
    if (generation == gm_fork_generation())
        return GPUMEM_OK;
    if (generation == GM_DESTROYED)
        return gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT,
                       "%s: `%s` was destroyed earlier (freed, closed)", call, name);
    if (gm_fork_was_before(generation))
        return gm_fail(GPUMEM_ERROR_FORKED,
                       "%s: the object was made before fork, by the parent; a child must use exec "
                       "and open the library itself",
                       call);
    return gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT,
                   "%s: `%s` is not an object of this library, or was destroyed long ago", call,
                   name);
}

void gm_bury(void *object) {
    /* A thread that has just been refused it may look at it again. */
    __atomic_store_n((unsigned *)object, GM_DESTROYED, __ATOMIC_RELAXED);
    unsigned grave = atomic_fetch_add_explicit(&buried, 1, memory_order_relaxed) % GRAVES;
    free(atomic_exchange_explicit(&graves[grave], object, memory_order_acq_rel));
}
