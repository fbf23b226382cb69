/*
 * Objects that the program has closed for later: resources, devices, opened libraries. Each is
 * ended, without waiting, by whoever gives back the last of what it has.
 *
 * A call that may give something back is a guest from gm_closing_enter to gm_closing_leave: while
 * there are guests nothing is ended, and the last one to leave looks what can be. So a guest may
 * touch an object after it has given back the last of it. Calls without a guest are those that
 * cannot meet a closed object: docs/architecture.md.
 */
#ifndef GM_MEMORY_CLOSING_H
#define GM_MEMORY_CLOSING_H

#include "memory/core/objects.h"

/* Whether anything is closed and has not ended. */
extern atomic_size_t gm_closing_count;

int gm_closing_enter_now(void);
void gm_closing_leave_now(void);

/* The result is for gm_closing_leave. May be nested. */
static inline int gm_closing_enter(void) {
    return atomic_load_explicit(&gm_closing_count, memory_order_relaxed) ? gm_closing_enter_now()
                                                                         : 0;
}

/* Nothing that may have been closed may be touched afterwards. Keeps the recorded error. */
static inline void gm_closing_leave(int entered) {
    if (entered)
        gm_closing_leave_now();
}

#endif
