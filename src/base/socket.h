/*
 * Exact amounts of bytes, and file descriptors, over a connected Unix socket of type stream or
 * seqpacket. A wait on the other side ends after `timeout_ms` (negative: never). When the other
 * side is gone, silent or sends something else, that is PEER.
 */
#ifndef GM_BASE_SOCKET_H
#define GM_BASE_SOCKET_H

#include "base/error.h"

/* SCM_MAX_FD of the kernel. */
#define GM_SOCKET_MOST_FDS ((size_t)253)

/* Both ends must cut a message into the same pieces, since seqpacket keeps boundaries. */
#define GM_SOCKET_PIECE ((size_t)32 << 10)

gpumem_status gm_socket_send(int socket, const void *data, size_t bytes, int timeout_ms);
gpumem_status gm_socket_receive(int socket, void *data, size_t bytes, int timeout_ms);

/* `bytes` is at most a piece, and not 0; `count` at most GM_SOCKET_MOST_FDS. */
gpumem_status gm_socket_send_fds(int socket, const void *data, size_t bytes, const int *fds,
                                 size_t count, int timeout_ms);

/* Receives exactly `count` descriptors, close-on-exec, which are the caller's; on failure none is
 * left open. */
gpumem_status gm_socket_receive_fds(int socket, void *data, size_t bytes, int *fds, size_t count,
                                    int timeout_ms);

#endif
