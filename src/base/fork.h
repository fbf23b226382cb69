/* Tells the sides of a fork apart: objects remember the generation that made them. */
#ifndef GM_BASE_FORK_H
#define GM_BASE_FORK_H

/* Call this before the first object is made. */
void gm_fork_watch(void);

/* One more for each fork between the first process and this one; never 0. One atomic load: getpid
 * is a system call since glibc 2.25. */
unsigned gm_fork_generation(void);

/* Whether this is the generation of a parent, its parent and so on. */
int gm_fork_was_before(unsigned generation);

#endif
