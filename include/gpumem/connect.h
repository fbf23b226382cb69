/*
 * Connections for sharing (gpumem/share.h) by the path of a Unix socket: an owner listens,
 * importers connect, and each learns from the kernel who the other is before anything is shared.
 *
 * A path that begins with '@' is an abstract name (unix(7)): it is no file, ends with the listener,
 * and can be taken by anybody on the machine who is faster, so that what protects it is the check
 * of the user alone. Any other path is a file, which only the users that are allowed can open.
 *
 * Whom to trust. A process is let in when its user, both as it connects or listens (SO_PEERCRED)
 * and as it greets (SCM_CREDENTIALS), is among those named; by default the caller's own. That is
 * checked on both sides. It keeps other users out; processes of one user can do with each other
 * what they like anyway. What is shared afterwards is checked by its own rules.
 *
 * A connection is a plain descriptor, close-on-exec: the caller polls it, hands it to the calls of
 * gpumem/share.h, and closes it (gpumem_disconnect, or close(2)). The functions are thread-safe. No
 * driver call.
 */
#ifndef GPUMEM_CONNECT_H
#define GPUMEM_CONNECT_H

#include <gpumem/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpumem_listener gpumem_listener;

typedef struct gpumem_connect_options {
    size_t size;
    int timeout_ms;        /* of each call; 0: 30 s; negative: none */
    const unsigned *users; /* user ids that are let in; read during the call that is given them */
    size_t user_count;     /* 0: the caller's real and effective user */
    unsigned permissions;  /* listen: of the file, at most 0777; 0: 0600, and 0666 with `users` */
    unsigned backlog;      /* listen: connections that wait to be accepted; 0: 64 */
} gpumem_connect_options;
#define GPUMEM_CONNECT_OPTIONS(...) GPUMEM_OPTIONS(gpumem_connect_options, __VA_ARGS__)

/* Who is at the other end. */
typedef struct gpumem_connection_peer {
    size_t size;
    int pid;       /* 0: of another pid namespace */
    unsigned user; /* its real user id, as the kernel wrote it down when it greeted */
} gpumem_connection_peer;

/*
 * Listens at `path` (at most 107 bytes). A socket file that nobody listens at any more (its owner
 * was killed) is replaced; a file that is no socket, or another user's, never is. SYSTEM: somebody
 * listens there already (EADDRINUSE), or what open(2) could answer. INVALID_ARGUMENT: a path that
 * is empty or too long, more than 64 users, permissions that are none. May block for a moment, when
 * others listen in the same folder just now. The caller closes the listener.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_listen(const char *path,
                                                         const gpumem_connect_options *options,
                                                         gpumem_listener **listener);

/* The descriptor to be polled for connections; it stays the listener's. Cannot fail. */
GPUMEM_API int gpumem_listener_descriptor(const gpumem_listener *listener);

/*
 * Waits for the next process that is let in, and greets it. Others are closed, and a line of the
 * log (GPUMEM_LOG_WARNING) says who it was; so are those that do not greet within 2 s, so that a
 * silent one does not keep the rest out. Whom the listener lets in was said at gpumem_listen; of
 * `options` timeout_ms alone counts, and is for all of it. `peer` may be NULL; its `size` is to be
 * set. PEER: nobody came in time. SYSTEM: descriptor limit. Blocks. Several threads may accept.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_accept(gpumem_listener *listener,
                                                         const gpumem_connect_options *options,
                                                         int *connection,
                                                         gpumem_connection_peer *peer);

/* Stops listening; a file is removed, if it is still the listener's own. Connections stay. NULL is
 * allowed. Not while a thread accepts. */
GPUMEM_API gpumem_status gpumem_listener_close(gpumem_listener *listener);

/*
 * Connects to who listens at `path`, and greets. PEER: nobody listens there, it does not accept
 * within the timeout, it speaks another protocol, or it lets this user not in. NOT_PERMITTED: the
 * listener is a process of a user who is not among `users`, or the file may not be opened. `peer`
 * as for accept. INVALID_ARGUMENT as listen. Blocks.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_connect(const char *path,
                                                          const gpumem_connect_options *options,
                                                          int *connection,
                                                          gpumem_connection_peer *peer);

/* Closes a connection, as close(2) does. INVALID_ARGUMENT for what is no open descriptor. */
GPUMEM_API gpumem_status gpumem_disconnect(int connection);

#ifdef __cplusplus
}
#endif

#endif
