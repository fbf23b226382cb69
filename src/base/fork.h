/* Which side of a fork this is: objects remember the generation that made them. */
#ifndef GM_BASE_FORK_H
#define GM_BASE_FORK_H

#include "base/error.h"

/* To be called before the first object is made. */
void gm_fork_watch(void);

/* Counts the forks between the first process and this one. One atomic load: getpid is a system
 * call since glibc 2.25. */
unsigned gm_fork_generation(void);

/* OK, or FORKED when `generation` is not this process's. `call` begins the message. */
gpumem_status gm_fork_check(unsigned generation, const char *call);

#endif
