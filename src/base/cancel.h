/*
 * Cancelling a thread (pthread_cancel) within a call. Most of what waits, reads or writes is a
 * cancellation point, and a thread that ended there would leave locks held, buffers that nobody
 * knows, and threads that use its stack. So no call is one inside: whoever comes in from the
 * program disables cancelling and restores what was there on the way out. A request stays pending
 * meanwhile and takes effect at the program's next cancellation point.
 */
#ifndef GM_BASE_CANCEL_H
#define GM_BASE_CANCEL_H

#include <pthread.h>

/* What it was before, to be given to gm_cancel_restore by the same thread. */
static inline int gm_cancel_disable(void) {
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

static inline void gm_cancel_restore(int before) {
    int unused;
    pthread_setcancelstate(before, &unused);
}

#endif
