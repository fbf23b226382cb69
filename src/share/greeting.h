/* How two processes that connected by a path identify each other. */
#ifndef GM_SHARE_GREETING_H
#define GM_SHARE_GREETING_H

#include "base/socket.h"

#include <gpumem/connect.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

#define GM_MOST_USERS 64

/* The users that are accepted. */
struct gm_users {
    unsigned ids[GM_MOST_USERS];
    size_t count;
};

/* Options with defaults; INVALID_ARGUMENT for invalid ones. */
gpumem_status gm_connect_options(const char *call, const gpumem_connect_options *given,
                                 gpumem_connect_options *options, struct gm_users *users);

/* INVALID_ARGUMENT for a path that does not fit in an address. */
gpumem_status gm_connect_address(const char *call, const char *path, struct sockaddr_un *address,
                                 socklen_t *length);

int gm_users_have(const struct gm_users *users, unsigned user);

/* The effective user of the process that made the other end; an invalid user if the kernel does not
 * know. */
unsigned gm_connection_user(int connection);

/*
 * The two sides of a greeting, over a fresh connection. They return the identity of the other side.
 * NOT_PERMITTED: not one of `users`; the other side is informed. PEER: not such a process, or it
 * rejected us.
 */
gpumem_status gm_greet_first(int connection, const struct gm_users *users,
                             const struct gm_deadline *deadline, struct gm_sender *other);
gpumem_status gm_greet_back(int connection, const struct gm_users *users,
                            const struct gm_deadline *deadline, struct gm_sender *other);
/* Rejects instead of greeting back. Does not wait. */
void gm_turn_away(int connection);

/* Whether as much has arrived as a greeting has bytes. */
bool gm_greeting_is_there(int connection);

#endif
