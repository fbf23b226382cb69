/*
 * Cancelling a thread (pthread_cancel) within a call. Most functions that wait, read or write are
 * cancellation points, and a thread that ended there would leave locks held, buffers lost, and
 * other threads using its stack. So no library call contains one: a call from the program disables
 * cancellation on entry and restores the former state on exit. A request stays pending meanwhile
 * and takes effect at the program's next cancellation point.
 */
#ifndef GM_BASE_CANCEL_H
#define GM_BASE_CANCEL_H

#include <pthread.h>

/* Returns the former state, which the same thread must restore. */
static inline int gm_cancel_disable(void) {
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

static inline void gm_cancel_restore(int before) {
    int unused;
    pthread_setcancelstate(before, &unused);
}

static inline void gm_cancel_leave(const int *before) {
    gm_cancel_restore(*before);
}

/* First in a function that a program calls: all of it runs uncancelled, whichever way it ends. */
#define GM_UNCANCELLED                                                                             \
    __attribute__((cleanup(gm_cancel_leave), unused)) const int gm_cancel_before_ =                \
        gm_cancel_disable()

#endif
