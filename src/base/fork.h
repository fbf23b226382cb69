/* Which side of a fork this is: objects remember the generation that made them. */
#ifndef GM_BASE_FORK_H
#define GM_BASE_FORK_H

/* To be called before the first object is made. */
void gm_fork_watch(void);

/* Rises by one with each fork between the first process and this one; never 0. One atomic load:
 * getpid is a system call since glibc 2.25. */
unsigned gm_fork_generation(void);

/* Whether this is the generation of a parent, its parent and so on. */
int gm_fork_was_before(unsigned generation);

#endif
