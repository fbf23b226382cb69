/* A listener: where it listens, and whom it is letting in. */
#ifndef GM_SHARE_LISTENER_H
#define GM_SHARE_LISTENER_H

#include "base/kept_file.h"
#include "share/greeting.h"

#include <pthread.h>

/* At a time, for all callers of gpumem_accept together: silent ones may not use up the process's
 * descriptors. */
#define GM_MOST_NEWCOMERS 64

/* A connection that was taken and has not greeted yet. */
struct gm_newcomer {
    struct gm_kept_file connection; /* none: the place is free */
    struct gm_deadline greets_by;
};

/*
 * Newcomers greet at the same time, each within its own time, whichever call of gpumem_accept took
 * them: what one call has no time to wait for is left to the next. So the descriptor that programs
 * poll is an epoll instance, with the socket and all newcomers in it.
 */
struct gm_doorway {
    int queue;            /* -1: none */
    pthread_mutex_t lock; /* guards the rest */
    unsigned count;
    struct gm_newcomer newcomers[GM_MOST_NEWCOMERS];
};

struct gpumem_listener {
    unsigned generation;
    struct gm_kept_file socket;
    struct gm_users users;
    dev_t device; /* of its file; an inode of 0: an abstract name */
    ino_t inode;
    struct sockaddr_un address;
    struct gm_doorway doorway;
};

/* SYSTEM: descriptor limit. */
gpumem_status gm_doorway_make(struct gm_doorway *doorway, int socket);
/* Closes the newcomers. Does nothing for one that was not made. */
void gm_doorway_end(struct gm_doorway *doorway, int socket);

#endif
