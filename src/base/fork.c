#include "base/fork.h"

#include <pthread.h>
#include <stdatomic.h>

static atomic_uint generation;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void in_child(void) {
    atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed);
}

static void install(void) {
    pthread_atfork(NULL, NULL, in_child);
}

void gm_fork_watch(void) {
    pthread_once(&once, install);
}

unsigned gm_fork_generation(void) {
    return atomic_load_explicit(&generation, memory_order_relaxed);
}

gpumem_status gm_fork_check(unsigned made_in, const char *call) {
    if (made_in == gm_fork_generation())
        return GPUMEM_OK;
    return gm_fail(GPUMEM_ERROR_FORKED,
                   "%s: the object was made before fork, by the parent; a child must start anew "
                   "with exec",
                   call);
}
