#include "base/socket.h"

#include "base/descriptor.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static gpumem_status lost(const char *call, int error) {
    if (error == EBADF || error == ENOTSOCK || error == EINVAL || error == ENOTCONN ||
        error == EOPNOTSUPP)
        return gm_fail_system(GPUMEM_ERROR_INVALID_ARGUMENT, error, call,
                              "not a connected Unix socket");
    if (error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS)
        return gm_fail_system(GPUMEM_ERROR_SYSTEM, error, call, "cannot talk to the other process");
    return gm_fail_system(GPUMEM_ERROR_PEER, error, call, "the other process is gone");
}

static gpumem_status hung_up(void) {
    return gm_fail(GPUMEM_ERROR_PEER, "the other process has closed the connection");
}

static long long now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

struct gm_deadline gm_deadline_start(int timeout_ms) {
    return (struct gm_deadline){timeout_ms, now_ms() + timeout_ms};
}

struct gm_deadline gm_deadline_within(const struct gm_deadline *other, int timeout_ms) {
    struct gm_deadline sooner = gm_deadline_start(timeout_ms);
    if (other->timeout_ms >= 0 && other->until_ms < sooner.until_ms)
        return *other;
    return sooner;
}

int gm_deadline_left(const struct gm_deadline *deadline) {
    if (deadline->timeout_ms < 0)
        return -1;
    long long ms = deadline->until_ms - now_ms();
    return ms > 0 ? (int)ms : 0;
}

static gpumem_status too_late(const struct gm_deadline *deadline) {
    return gm_fail(GPUMEM_ERROR_PEER, "the other process did not respond within %d ms",
                   deadline->timeout_ms);
}

/* Fails once the deadline has passed, even if something is ready: otherwise bytes sent one by one,
 * each just in time, could prolong the exchange at will. */
static gpumem_status wait_for(int socket, short what, const struct gm_deadline *deadline) {
    for (;;) {
        struct pollfd entry = {.fd = socket, .events = what};
        int left = gm_deadline_left(deadline);
        if (left == 0)
            return too_late(deadline);
        int ready = poll(&entry, 1, left);
        if (ready > 0 && (entry.revents & POLLNVAL))
            return lost("poll", EBADF);
        if (ready > 0)
            return GPUMEM_OK;
        if (ready < 0 && errno != EINTR)
            return lost("poll", errno);
    }
}

/* The first try neither waits nor checks the deadline, so that a decision can be reported even
 * after it. */
static gpumem_status send_message(int socket, const struct msghdr *given, size_t *sent,
                                  const struct gm_deadline *deadline) {
    for (;;) {
        ssize_t n = sendmsg(socket, given, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n >= 0) {
            *sent = (size_t)n;
            return GPUMEM_OK;
        }
        if (errno == EINTR)
            continue;
        if (errno == ETOOMANYREFS) {
            /* More descriptors in flight than may be open: the other side must receive some
             * first. */
            if (gm_deadline_left(deadline) == 0)
                return gm_fail_system(GPUMEM_ERROR_PEER, ETOOMANYREFS, "sendmsg",
                                      "the other process does not accept descriptors");
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
            continue;
        }
        if (errno != EAGAIN)
            return lost("sendmsg", errno);
        gpumem_status status = wait_for(socket, POLLOUT, deadline);
        if (status != GPUMEM_OK)
            return status;
    }
}

/* Even after a failure the message may have brought descriptors: an empty seqpacket, which looks
 * like a hang-up, can carry some. */
static gpumem_status receive_message(int socket, struct msghdr *message, size_t *received,
                                     const struct gm_deadline *deadline) {
    size_t room = message->msg_controllen;
    message->msg_controllen = 0;
    for (;;) {
        gpumem_status status = wait_for(socket, POLLIN, deadline);
        if (status != GPUMEM_OK)
            return status;
        message->msg_controllen = room;
        ssize_t n = gm_fd_receive(socket, message);
        if (n > 0) {
            *received = (size_t)n;
            return GPUMEM_OK;
        }
        if (n == 0)
            return hung_up();
        message->msg_controllen = 0;
        if (errno != EAGAIN && errno != EINTR)
            return lost("recvmsg", errno);
    }
}

static gpumem_status send_piece(int socket, const unsigned char *data, size_t bytes, void *control,
                                size_t control_bytes, const struct gm_deadline *deadline) {
    while (bytes) {
        struct iovec part = {.iov_base = (void *)(uintptr_t)data, .iov_len = bytes};
        struct msghdr message = {.msg_iov = &part,
                                 .msg_iovlen = 1,
                                 .msg_control = control,
                                 .msg_controllen = control_bytes};
        size_t sent = 0;
        gpumem_status status = send_message(socket, &message, &sent, deadline);
        if (status != GPUMEM_OK)
            return status;
        data += sent;
        bytes -= sent;
        if (bytes && gm_deadline_left(deadline) == 0)
            return too_late(deadline);
        control = NULL; /* the descriptors went with the first byte */
        control_bytes = 0;
    }
    return GPUMEM_OK;
}

gpumem_status gm_socket_send(int socket, const void *data, size_t bytes,
                             const struct gm_deadline *deadline) {
    const unsigned char *at = data;
    while (bytes) {
        size_t piece = bytes < GM_SOCKET_PIECE ? bytes : GM_SOCKET_PIECE;
        gpumem_status status = send_piece(socket, at, piece, NULL, 0, deadline);
        if (status != GPUMEM_OK)
            return status;
        at += piece;
        bytes -= piece;
    }
    return GPUMEM_OK;
}

#ifndef SCM_PIDFD
#define SCM_PIDFD 0x04 /* Linux 6.5 */
#endif

/* The longest other item that can come is a security label. */
union control {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(GM_SOCKET_MOST_FDS * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred)) +
               CMSG_SPACE(sizeof(int)) + CMSG_SPACE(512)];
};

int gm_socket_name_senders(int socket, int on) {
    int before = 0;
    socklen_t size = sizeof before;
    if (getsockopt(socket, SOL_SOCKET, SO_PASSCRED, &before, &size) != 0)
        return 0;
    if (!before != !on)
        (void)setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
    return before;
}

gpumem_status gm_socket_send_fds(int socket, const void *data, size_t bytes, const int *fds,
                                 size_t count, const struct gm_deadline *deadline) {
    union control control;
    memset(&control, 0, sizeof control);
    struct msghdr message = {
        .msg_control = &control,
        .msg_controllen = CMSG_SPACE(count * sizeof(int)),
    };
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(count * sizeof(int));
    memcpy(CMSG_DATA(header), fds, count * sizeof(int));
    return send_piece(socket, data, bytes, &control, message.msg_controllen, deadline);
}

gpumem_status gm_socket_receive(int socket, void *data, size_t bytes,
                                const struct gm_deadline *deadline) {
    unsigned char *at = data;
    while (bytes) {
        size_t piece = bytes < GM_SOCKET_PIECE ? bytes : GM_SOCKET_PIECE;
        struct iovec part = {.iov_base = at, .iov_len = piece};
        /* No room for descriptors: the kernel closes those that come uninvited. */
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
        size_t received = 0;
        gpumem_status status = receive_message(socket, &message, &received, deadline);
        if (status != GPUMEM_OK)
            return status;
        if (message.msg_flags & MSG_TRUNC)
            return gm_fail(GPUMEM_ERROR_PEER, "the other process speaks another protocol");
        at += received;
        bytes -= received;
    }
    return GPUMEM_OK;
}

static void close_all(const int *fds, size_t count) {
    for (size_t i = 0; i < count; i++)
        close(fds[i]);
}

static void note_sender(struct gm_sender *sender, struct ucred now) {
    if (sender->pid == GM_SENDER_NONE)
        *sender = (struct gm_sender){now.pid, now.uid};
    else if (sender->pid != now.pid || sender->uid != now.uid)
        *sender = (struct gm_sender){0, GM_USER_UNKNOWN};
}

static void take_sender(struct msghdr *message, struct gm_sender *sender) {
    struct ucred now = {.pid = 0, .uid = GM_USER_UNKNOWN}; /* not 0, which is root */
    for (struct cmsghdr *h = CMSG_FIRSTHDR(message); h; h = CMSG_NXTHDR(message, h))
        if (h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_CREDENTIALS)
            memcpy(&now, CMSG_DATA(h), sizeof now);
    note_sender(sender, now);
}

/* Takes the descriptors out of a message. Closes those for which there is no room, and those that
 * identify the sender, which the socket's owner had requested. */
static size_t take_fds(struct msghdr *message, int *fds, size_t have, size_t room) {
    for (struct cmsghdr *h = CMSG_FIRSTHDR(message); h; h = CMSG_NXTHDR(message, h)) {
        if (h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_PIDFD) {
            int fd;
            memcpy(&fd, CMSG_DATA(h), sizeof fd);
            if (fd >= 0)
                close(fd);
        }
        if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(h) + i * sizeof(int), sizeof fd);
            if (have < room)
                fds[have++] = fd;
            else {
                close(fd);
                have = room + 1; /* too many: the caller refuses */
            }
        }
    }
    return have;
}

gpumem_status gm_socket_receive_fds(int socket, void *data, size_t bytes, int *fds, size_t count,
                                    struct gm_sender *sender, const struct gm_deadline *deadline) {
    unsigned char *at = data;
    size_t have = 0;
    int cut = 0;
    gpumem_status status = GPUMEM_OK;
    while (bytes && have <= count) {
        union control control;
        struct iovec part = {.iov_base = at, .iov_len = bytes};
        struct msghdr message = {.msg_iov = &part,
                                 .msg_iovlen = 1,
                                 .msg_control = &control,
                                 .msg_controllen = sizeof control};
        size_t received = 0;
        status = receive_message(socket, &message, &received, deadline);
        have = take_fds(&message, fds, have, count);
        if (status != GPUMEM_OK)
            break;
        take_sender(&message, sender);
        cut |= message.msg_flags & MSG_CTRUNC;
        at += received;
        bytes -= received;
    }
    if (status == GPUMEM_OK && have == count)
        return GPUMEM_OK;
    close_all(fds, have < count ? have : count);
    if (status != GPUMEM_OK)
        return status;
    if (cut)
        return gm_fail_system(GPUMEM_ERROR_SYSTEM, EMFILE, "recvmsg",
                              "no room for %zu more descriptors (see ulimit -n)", count);
    return gm_fail(GPUMEM_ERROR_DATA, "the other process sent %s descriptors than the %zu promised",
                   have > count ? "more" : "fewer", count);
}
