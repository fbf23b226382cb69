#include "softgpu/core/state.h"

#include <errno.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

atomic_bool sg_forked;
atomic_bool sg_exiting;
atomic_bool sg_initialized;

struct sg_thread *sg_thread(void) {
    static _Thread_local struct sg_thread self;
    return &self;
}

void sg_lock(void) {
    pthread_mutex_lock(&lock);
}

void sg_unlock(void) {
    pthread_mutex_unlock(&lock);
}

void sg_wait(pthread_cond_t *cond, uint64_t nanoseconds) {
    if (nanoseconds == 0) {
        pthread_cond_wait(cond, &lock);
        return;
    }
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    uint64_t ns = (uint64_t)until.tv_nsec + nanoseconds;
    until.tv_sec += (time_t)(ns / 1000000000u);
    until.tv_nsec = (long)(ns % 1000000000u);
    pthread_cond_clockwait(cond, &lock, CLOCK_MONOTONIC, &until);
}

uint64_t sg_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void sg_call_out(bool as_host_function, void (*function)(void *user), void *user) {
    struct sg_thread *thread = sg_thread();
    bool in_call = thread->in_call, in_host_function = thread->in_host_function;
    thread->in_call = false;
    thread->in_host_function = in_host_function || as_host_function;
    sg_unlock();
    function(user);
    sg_lock();
    thread->in_call = in_call;
    thread->in_host_function = in_host_function;
}
