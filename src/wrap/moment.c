/* The current time and thread. */
#include "base/fork.h"
#include "wrap/wrapper.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The kernel is asked once per thread; a fork gives the thread a new id. */
uint64_t gm_thread_id(void) {
    static _Thread_local struct {
        unsigned generation;
        uint64_t id;
    } known;
    unsigned generation = gm_fork_generation();
    if (known.generation != generation) {
        known.id = (uint64_t)syscall(SYS_gettid);
        known.generation = generation;
    }
    return known.id;
}

uint64_t gm_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
