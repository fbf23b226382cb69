/* Which process sent an export; its own claim is not trusted. */
#ifndef GM_SHARE_PEER_H
#define GM_SHARE_PEER_H

#include "base/socket.h"

struct gm_peer {
    pid_t pid; /* 0: unknown to the kernel */
    uid_t uid;
    unsigned long long start; /* of the process, in clock ticks since boot; PIDs are reused */
};

/* Reads a file of /proc. Without it the peer is unknown. */
struct gm_peer gm_peer_of(const struct gm_sender *sender);

/* False for an unknown peer. */
int gm_peer_equal(const struct gm_peer *a, const struct gm_peer *b);

/* Identifies the connection: while this end is open, no other socket has its number. */
struct gm_connection {
    dev_t device;
    ino_t inode; /* 0: none */
};

/* INVALID_ARGUMENT: not an open descriptor. */
gpumem_status gm_connection_of(int socket, struct gm_connection *connection);
int gm_connection_equal(const struct gm_connection *a, const struct gm_connection *b);

#endif
