/* How two processes that met by a path learn who the other is. */
#ifndef GM_SHARE_GREETING_H
#define GM_SHARE_GREETING_H

#include "base/socket.h"

#include <gpumem/connect.h>
#include <sys/socket.h>
#include <sys/un.h>

#define GM_MOST_USERS 64

/* Who is let in. */
struct gm_users {
    unsigned ids[GM_MOST_USERS];
    size_t count;
};

/* Options with defaults; INVALID_ARGUMENT for what cannot be. */
gpumem_status gm_connect_options(const char *call, const gpumem_connect_options *given,
                                 gpumem_connect_options *options, struct gm_users *users);

/* INVALID_ARGUMENT for a path that fits no address. */
gpumem_status gm_connect_address(const char *call, const char *path, struct sockaddr_un *address,
                                 socklen_t *length);

int gm_users_have(const struct gm_users *users, unsigned user);

/* Who made the other end: its effective user. Nobody's number where the kernel does not say. */
unsigned gm_connection_user(int connection);

/*
 * The two sides of a greeting, over a fresh connection. They answer who the other is.
 * NOT_PERMITTED: none of `users`; the other side is told. PEER: it is no such process, or did not
 * let us in.
 */
gpumem_status gm_greet_first(int connection, const struct gm_users *users,
                             const struct gm_deadline *deadline, struct gm_sender *other);
gpumem_status gm_greet_back(int connection, const struct gm_users *users,
                            const struct gm_deadline *deadline, struct gm_sender *other);
/* Instead of greeting back. Does not wait. */
void gm_turn_away(int connection);

#endif
