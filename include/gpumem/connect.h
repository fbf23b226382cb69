/*
 * Connections for sharing (gpumem/share.h) over Unix sockets: an owner listens at a path, importers
 * connect, and each side learns from the kernel who the other is before anything is shared.
 *
 * A path that begins with '@' is an abstract name (unix(7)): it is not a file, disappears with the
 * listener, and can be taken first by anybody on the machine, so its only protection is the user
 * check. Any other path is a file, which only users with permission can open.
 *
 * Trust. A process is accepted if its user, both when it connects or listens (SO_PEERCRED) and when
 * it greets (SCM_CREDENTIALS), is among those named; by default the caller's own. Both sides check
 * this. It keeps other users out; processes of the same user can control each other anyway. The
 * data shared afterwards is checked by its own rules.
 *
 * A connection is a plain descriptor, close-on-exec: the caller polls it, passes it to the calls of
 * gpumem/share.h, and closes it with close(2). The functions are thread-safe. No
 * driver call.
 */
#ifndef GPUMEM_CONNECT_H
#define GPUMEM_CONNECT_H

#include <gpumem/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Waits for connections at a path, or at an abstract name. */
typedef struct gpumem_listener gpumem_listener;

/* Options of gpumem_listen, gpumem_accept and gpumem_connect. */
typedef struct gpumem_connect_options {
    size_t size;
    int timeout_ms;        /* of each call; 0: 30 s; negative: no timeout */
    const unsigned *users; /* user ids to accept; read only during the call */
    size_t user_count;     /* 0: the caller's real and effective user */
    unsigned permissions;  /* listen: of the file, at most 0777; 0: 0600, or 0666 with `users` */
    unsigned backlog;      /* listen: connections waiting to be accepted; 0: 64 */
} gpumem_connect_options;
#define GPUMEM_CONNECT_OPTIONS(...) GPUMEM_OPTIONS(gpumem_connect_options, __VA_ARGS__)

/* The process at the other end. */
typedef struct gpumem_connection_peer {
    size_t size;
    int pid;       /* 0: in another PID namespace */
    unsigned user; /* its real user id, recorded by the kernel when it greeted */
} gpumem_connection_peer;

/*
 * Listens at `path` (at most 107 bytes). A stale socket file (its owner was killed) is replaced; a
 * file that is not a socket, or belongs to another user, never is. SYSTEM: another process is
 * already listening there (EADDRINUSE), or an error as from open(2). INVALID_ARGUMENT: a path that
 * is empty or too long, more than 64 users, invalid permissions. May block briefly while others
 * start listening in the same directory. The caller closes the listener.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_listen(const char *path,
                                                         const gpumem_connect_options *options,
                                                         gpumem_listener **listener);

/* The descriptor to poll for connections: readable when gpumem_accept has something to do, though
 * not always a process to return. It belongs to the listener. Cannot fail. */
GPUMEM_API int gpumem_listener_descriptor(const gpumem_listener *listener);

/*
 * Waits for the next process that may connect, and greets it. Connections of other processes are
 * closed and logged (GPUMEM_LOG_WARNING) with their user; so are those that do not greet within 2 s
 * (GPUMEM_LOG_INFO). Up to 64 greet at the same time, so that a silent peer does not keep the rest
 * waiting. The users were set by gpumem_listen; of `options` only timeout_ms is used, and covers
 * the whole call: afterwards no connection is taken. One that was taken and has not greeted yet is
 * left to the next call, with all of its 2 s; without a next call it stays open until the listener
 * is closed. `peer` may be NULL; else set its `size`. PEER: nobody connected in time. SYSTEM:
 * descriptor limit. Blocks. Several threads may accept.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_accept(gpumem_listener *listener,
                                                         const gpumem_connect_options *options,
                                                         int *connection,
                                                         gpumem_connection_peer *peer);

/* Stops listening and removes the file, if it is still the listener's. Connections stay open. NULL
 * is allowed. Not while a thread accepts. */
GPUMEM_API gpumem_status gpumem_listener_close(gpumem_listener *listener);

/*
 * Connects to the listener at `path`, and greets it. PEER: nobody listens there, or the listener
 * does not accept within the timeout, speaks another protocol, or refuses this user. NOT_PERMITTED:
 * the listener's user is not among `users`, or the file cannot be opened for lack of permission.
 * `peer` as for accept. INVALID_ARGUMENT as listen. Blocks.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_connect(const char *path,
                                                          const gpumem_connect_options *options,
                                                          int *connection,
                                                          gpumem_connection_peer *peer);

#ifdef __cplusplus
}
#endif

#endif
