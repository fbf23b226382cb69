/*
 * Exact amounts of bytes, and file descriptors, over a connected Unix socket of type stream or
 * seqpacket. All waits of an exchange end at its deadline, however slowly the other side sends or
 * receives. PEER: it is gone, silent, too slow, or sends something unexpected.
 */
#ifndef GM_BASE_SOCKET_H
#define GM_BASE_SOCKET_H

#include "base/error.h"

#include <sys/types.h>

/* SCM_MAX_FD of the kernel. */
#define GM_SOCKET_MOST_FDS ((size_t)253)

/* Both ends must split a message into the same pieces, because seqpacket keeps boundaries. */
#define GM_SOCKET_PIECE ((size_t)32 << 10)

struct gm_deadline {
    int timeout_ms; /* negative: never */
    long long until_ms;
};

/* Begins now. */
struct gm_deadline gm_deadline_start(int timeout_ms);
/* At most that much later, and not after `other`. */
struct gm_deadline gm_deadline_within(const struct gm_deadline *other, int timeout_ms);
/* Milliseconds as for poll: 0 when it has passed, -1 for ever. */
int gm_deadline_left(const struct gm_deadline *deadline);

gpumem_status gm_socket_send(int socket, const void *data, size_t bytes,
                             const struct gm_deadline *deadline);
gpumem_status gm_socket_receive(int socket, void *data, size_t bytes,
                                const struct gm_deadline *deadline);

/* `bytes` is at most a piece, and not 0; `count` at most GM_SOCKET_MOST_FDS. */
gpumem_status gm_socket_send_fds(int socket, const void *data, size_t bytes, const int *fds,
                                 size_t count, const struct gm_deadline *deadline);

/* The sender of a message, as recorded by the kernel. */
struct gm_sender {
    pid_t pid; /* 0: unknown, or several; GM_SENDER_NONE: nothing received yet */
    uid_t uid; /* the real one; GM_USER_UNKNOWN: as for 0, but known for another PID namespace */
};

#define GM_SENDER_NONE  ((pid_t)-1)
#define GM_USER_UNKNOWN ((uid_t)-1)

/*
 * Sets whether the kernel records the senders on this connected socket from now on. Returns the
 * former setting. SO_PEERCRED will not do: it names the process that made the connection, for a
 * socket pair the one that made both ends, whoever was given one since.
 */
int gm_socket_name_senders(int socket, int on);

/* Receives exactly `count` descriptors (0: none may come), close-on-exec, owned by the caller; on
 * failure none is left open. *sender, which the caller initialises, becomes 0 if not everything
 * came from one process. */
gpumem_status gm_socket_receive_fds(int socket, void *data, size_t bytes, int *fds, size_t count,
                                    struct gm_sender *sender, const struct gm_deadline *deadline);

#endif
