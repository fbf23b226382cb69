/* Taking connections, and waiting for those who greet. */
#include "base/cancel.h"
#include "base/descriptor.h"
#include "base/log.h"
#include "base/options.h"
#include "memory/core/driver_error.h"
#include "share/listener.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#define GREETING_MS 2000

/* In place of a newcomer's number. */
#define SOCKET GM_MOST_NEWCOMERS

/* ---- The doorway; the lock is held, except where it is made and ended ------------------------ */

/* Connections are looked for while there is room for one. False if `queue` is not, or no longer, an
 * instance that has this socket: another has its number now. */
static bool watch_socket(const struct gm_doorway *doorway, int socket, int operation) {
    struct epoll_event event = {.events = doorway->count < GM_MOST_NEWCOMERS ? EPOLLIN : 0,
                                .data.u32 = SOCKET};
    return epoll_ctl(doorway->queue, operation, socket, &event) == 0;
}

gpumem_status gm_doorway_make(struct gm_doorway *doorway, int socket) {
    doorway->queue = gm_fd_epoll();
    if (doorway->queue < 0)
        return gm_fail_system(GPUMEM_ERROR_SYSTEM, errno, "epoll_create1", "cannot listen");
    if (!watch_socket(doorway, socket, EPOLL_CTL_ADD)) {
        gpumem_status status =
            gm_fail_system(GPUMEM_ERROR_SYSTEM, errno, "epoll_ctl", "cannot listen");
        close(doorway->queue);
        doorway->queue = -1;
        return status;
    }
    pthread_mutex_init(&doorway->lock, NULL);
    for (unsigned i = 0; i < GM_MOST_NEWCOMERS; i++)
        doorway->newcomers[i].connection = (struct gm_kept_file)GM_NO_KEPT_FILE;
    return GPUMEM_OK;
}

void gm_doorway_end(struct gm_doorway *doorway, int socket) {
    if (doorway->queue < 0)
        return;
    for (unsigned i = 0; i < GM_MOST_NEWCOMERS; i++)
        gm_kept_file_close(&doorway->newcomers[i].connection);
    doorway->count = 0;
    if (watch_socket(doorway, socket, EPOLL_CTL_MOD))
        close(doorway->queue);
    doorway->queue = -1;
    pthread_mutex_destroy(&doorway->lock);
}

/* Edge-triggered: one who sends half a greeting is not reported again before there is more. */
static bool watch_newcomer(const struct gm_doorway *doorway, unsigned number) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data.u32 = number};
    return epoll_ctl(doorway->queue, EPOLL_CTL_ADD, doorway->newcomers[number].connection.fd,
                     &event) == 0;
}

/* The caller owns the connection; -1 if other code has closed it. */
static int take_out(gpumem_listener *listener, unsigned number) {
    struct gm_doorway *doorway = &listener->doorway;
    struct gm_kept_file *connection = &doorway->newcomers[number].connection;
    int fd = gm_kept_file_is_open(connection) ? connection->fd : -1;
    if (fd >= 0)
        (void)epoll_ctl(doorway->queue, EPOLL_CTL_DEL, fd, NULL);
    *connection = (struct gm_kept_file)GM_NO_KEPT_FILE;
    if (doorway->count-- == GM_MOST_NEWCOMERS)
        (void)watch_socket(doorway, listener->socket.fd, EPOLL_CTL_MOD);
    return fd;
}

static gpumem_status put_in(gpumem_listener *listener, int fd) {
    struct gm_doorway *doorway = &listener->doorway;
    unsigned number = 0;
    while (doorway->newcomers[number].connection.fd >= 0)
        number++;
    struct gm_newcomer *newcomer = &doorway->newcomers[number];
    newcomer->greets_by = gm_deadline_start(GREETING_MS);
    if (gm_kept_file_set(fd, &newcomer->connection) && watch_newcomer(doorway, number)) {
        if (++doorway->count == GM_MOST_NEWCOMERS)
            (void)watch_socket(doorway, listener->socket.fd, EPOLL_CTL_MOD);
        return GPUMEM_OK;
    }
    gpumem_status status = gm_fail_system(GPUMEM_ERROR_SYSTEM, errno, "epoll_ctl",
                                          "cannot wait for a connection's greeting");
    newcomer->connection = (struct gm_kept_file)GM_NO_KEPT_FILE;
    close(fd);
    return status;
}

/* What came of a look. */
struct next {
    int greeter;     /* a connection to be greeted, which the caller owns, or -1 */
    int stranger;    /* one whose user is not accepted, likewise */
    unsigned silent; /* that many were closed */
    bool wait;       /* nothing has happened */
    int wait_ms;     /* for that long at most; -1: no limit */
};

/* There may be none any more: whoever it was is gone, or another thread took it. */
static gpumem_status take_connection(gpumem_listener *listener, struct next *next) {
    if (listener->doorway.count == GM_MOST_NEWCOMERS)
        return GPUMEM_OK;
    int fd = gm_fd_accept(listener->socket.fd);
    if (fd < 0 && (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR))
        return GPUMEM_OK;
    if (fd < 0)
        return gm_fail_system(GPUMEM_ERROR_SYSTEM, errno, "accept", "cannot accept a connection");
    if (gm_users_have(&listener->users, gm_connection_user(fd)))
        return put_in(listener, fd);
    next->stranger = fd;
    return GPUMEM_OK;
}

/* Closes those whose time has passed. */
static void end_silent(gpumem_listener *listener, struct next *next) {
    next->wait_ms = -1;
    for (unsigned i = 0; i < GM_MOST_NEWCOMERS; i++) {
        const struct gm_newcomer *newcomer = &listener->doorway.newcomers[i];
        if (newcomer->connection.fd < 0)
            continue;
        int left = gm_deadline_left(&newcomer->greets_by);
        if (left > 0) {
            next->wait_ms = next->wait_ms < 0 || left < next->wait_ms ? left : next->wait_ms;
            continue;
        }
        next->silent++;
        int fd = take_out(listener, i);
        if (fd >= 0)
            close(fd);
    }
}

/* ---- Accepting ------------------------------------------------------------------------------- */

static void say_closed(gpumem_status status) {
    gm_log(status == GPUMEM_ERROR_NOT_PERMITTED ? GPUMEM_LOG_WARNING : GPUMEM_LOG_INFO,
           "a connection was closed: %s", gpumem_last_error()->message);
}

/* With the lock. Looks at one thing that has happened. */
static gpumem_status look(gpumem_listener *listener, struct next *next) {
    struct epoll_event event;
    *next = (struct next){.greeter = -1, .stranger = -1};
    int count = epoll_wait(listener->doorway.queue, &event, 1, 0);
    if (count < 0 && errno != EINTR)
        return gm_fail_system(GPUMEM_ERROR_SYSTEM, errno, "epoll_wait", "cannot accept");
    if (count <= 0) {
        next->wait = true;
        end_silent(listener, next);
        return GPUMEM_OK;
    }
    if (event.data.u32 == SOCKET)
        return take_connection(listener, next);
    const struct gm_newcomer *newcomer = &listener->doorway.newcomers[event.data.u32];
    if (newcomer->connection.fd < 0) /* other code had closed it, and a forked child has it yet */
        return GPUMEM_OK;
    if ((event.events & ~(uint32_t)EPOLLIN) || gm_greeting_is_there(newcomer->connection.fd))
        next->greeter = take_out(listener, event.data.u32);
    return GPUMEM_OK;
}

/* Whether it is accepted; if not, it is informed, if it listens. Nothing is waited for: the
 * greeting is there, or its sender is gone. */
static bool let_in(const gpumem_listener *listener, int connection, struct gm_sender *other) {
    const struct gm_deadline soon = gm_deadline_start(GREETING_MS);
    gpumem_status status = gm_greet_back(connection, &listener->users, &soon, other);
    if (status == GPUMEM_OK)
        return true;
    say_closed(status);
    if (status == GPUMEM_ERROR_NOT_PERMITTED)
        gm_turn_away(connection);
    close(connection);
    return false;
}

/* Without the lock: the program's own function may receive the log. */
static void report(const struct next *next) {
    for (unsigned i = 0; i < next->silent; i++)
        say_closed(gm_fail(GPUMEM_ERROR_PEER, "it did not greet within %d ms", GREETING_MS));
    if (next->stranger < 0)
        return;
    say_closed(gm_fail(GPUMEM_ERROR_NOT_PERMITTED, "a process of user %d is not accepted",
                       (int)gm_connection_user(next->stranger)));
    gm_turn_away(next->stranger);
    close(next->stranger);
}

static gpumem_status await(const gpumem_listener *listener, const struct gm_deadline *deadline,
                           int most_ms) {
    struct pollfd entry = {.fd = listener->doorway.queue, .events = POLLIN};
    int left = gm_deadline_left(deadline);
    if (left < 0 || (most_ms >= 0 && most_ms < left))
        left = most_ms;
    if (poll(&entry, 1, left) >= 0 || errno == EINTR)
        return GPUMEM_OK;
    return gm_fail_system(GPUMEM_ERROR_SYSTEM, errno, "poll", "cannot accept");
}

/* Nothing is begun after the deadline, but one thing is done by each call: calls with a short
 * time-out, one after another, let everybody in. */
static gpumem_status accept_one(gpumem_listener *listener, const struct gm_deadline *deadline,
                                int *connection, struct gm_sender *other) {
    struct gm_error_record before;
    gm_error_save(&before);
    for (;;) {
        struct next next;
        pthread_mutex_lock(&listener->doorway.lock);
        gpumem_status status = look(listener, &next);
        pthread_mutex_unlock(&listener->doorway.lock);
        if (status != GPUMEM_OK)
            return status;
        report(&next);
        if (next.greeter >= 0 && let_in(listener, next.greeter, other)) {
            *connection = next.greeter;
            return GPUMEM_OK;
        }
        gm_error_restore(&before); /* rejecting one is not a failure of the call */
        if (gm_deadline_left(deadline) == 0)
            return gm_fail(GPUMEM_ERROR_PEER, "nobody connected within %d ms",
                           deadline->timeout_ms);
        if (next.wait)
            status = await(listener, deadline, next.wait_ms);
        if (status != GPUMEM_OK)
            return status;
    }
}

/* Also where another file of the program has the number of one of them. */
static gpumem_status check_descriptors(gpumem_listener *listener) {
    struct gm_doorway *doorway = &listener->doorway;
    pthread_mutex_lock(&doorway->lock);
    int lost = !gm_kept_file_is_open(&listener->socket)                     ? listener->socket.fd
               : !watch_socket(doorway, listener->socket.fd, EPOLL_CTL_MOD) ? doorway->queue
                                                                            : -1;
    pthread_mutex_unlock(&doorway->lock);
    if (lost < 0)
        return GPUMEM_OK;
    return gm_fail_system(GPUMEM_ERROR_SYSTEM, EBADF, "accept",
                          "descriptor %d of the listener was closed by other code", lost);
}

gpumem_status gpumem_accept(gpumem_listener *listener, const gpumem_connect_options *given,
                            int *connection, gpumem_connection_peer *peer) {
    GM_UNCANCELLED;
    gpumem_connect_options options;
    struct gm_users unused;
    struct gm_sender other;
    GM_CHECK(listener, "gpumem_accept");
    GM_REQUIRE(connection, "gpumem_accept: connection is NULL");
    gpumem_status status = gm_connect_options("gpumem_accept", given, &options, &unused);
    if (status == GPUMEM_OK)
        status = check_descriptors(listener);
    if (status != GPUMEM_OK)
        return status;
    const struct gm_deadline deadline = gm_deadline_start(options.timeout_ms);
    int made = -1;
    status = accept_one(listener, &deadline, &made, &other);
    if (status != GPUMEM_OK)
        return status;
    const gpumem_connection_peer filled = {
        .size = sizeof filled, .pid = other.pid, .user = other.uid};
    if (peer)
        status = GM_RESULT_WRITE(gpumem_connection_peer, peer, &filled);
    if (status != GPUMEM_OK) {
        close(made);
        return status;
    }
    *connection = made;
    return GPUMEM_OK;
}
