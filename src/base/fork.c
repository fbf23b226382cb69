#include "base/fork.h"

#include <pthread.h>
#include <stdatomic.h>

/* The first process's. Memory that is not an object rarely begins with this value. */
#define FIRST 0x6d670001u

static atomic_uint generation = FIRST;
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

int gm_fork_was_before(unsigned made_in) {
    return made_in >= FIRST && made_in < gm_fork_generation();
}
