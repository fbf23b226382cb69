/* How threads wait in a ring: up to a time-out, and polling for events. */
#include "mapped/ring.h"

#define SECOND 1000000000L

static struct timespec after(long long nanoseconds) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    nanoseconds += time.tv_nsec;
    time.tv_sec += (time_t)(nanoseconds / SECOND);
    time.tv_nsec = (long)(nanoseconds % SECOND);
    return time;
}

static bool is_before(const struct timespec *time, const struct timespec *other) {
    return time->tv_sec != other->tv_sec ? time->tv_sec < other->tv_sec
                                         : time->tv_nsec < other->tv_nsec;
}

struct gm_ring_until gm_ring_until(int timeout_ms) {
    struct gm_ring_until until = {.timeout_ms = timeout_ms};
    if (timeout_ms > 0)
        until.time = after((long long)timeout_ms * 1000000);
    return until;
}

bool gm_ring_sleep(gpumem_ring *ring, pthread_cond_t *cond, const struct gm_ring_until *until,
                   long most_ns) {
    const struct timespec now = after(0);
    bool ends = until->timeout_ms >= 0;
    if (ends && (until->timeout_ms == 0 || !is_before(&now, &until->time)))
        return false;
    struct timespec wake = until->time;
    if (most_ns) {
        const struct timespec soon = after(most_ns);
        if (!ends || is_before(&soon, &wake))
            wake = soon;
    }
    ring->waiting++;
    if (ends || most_ns)
        pthread_cond_timedwait(cond, &ring->lock, &wake);
    else
        pthread_cond_wait(cond, &ring->lock);
    ring->waiting--;
    return true;
}

void gm_ring_init_waiting(gpumem_ring *ring) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&ring->lock, NULL);
    pthread_cond_init(&ring->space, &attributes);
    pthread_cond_init(&ring->ready, &attributes);
    pthread_condattr_destroy(&attributes);
}

void gm_ring_end_waiting(gpumem_ring *ring) {
    pthread_cond_destroy(&ring->space);
    pthread_cond_destroy(&ring->ready);
    pthread_mutex_destroy(&ring->lock);
}
