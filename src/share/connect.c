#include "base/cancel.h"
#include "base/descriptor.h"
#include "base/options.h"
#include "memory/core/driver_error.h"
#include "share/greeting.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static gpumem_status refused(const char *path, int error) {
    switch (error) {
    case ENOENT:
    case ECONNREFUSED:
        return gm_fail_system(GPUMEM_ERROR_PEER, error, "connect", "nobody listens at %s", path);
    case EAGAIN:
        return gm_fail_system(GPUMEM_ERROR_PEER, error, "connect",
                              "the listener at %s does not accept", path);
    case EPROTOTYPE:
        return gm_fail_system(GPUMEM_ERROR_PEER, error, "connect",
                              "the listener at %s speaks another protocol", path);
    case EACCES:
    case EPERM:
        return gm_fail_system(GPUMEM_ERROR_NOT_PERMITTED, error, "connect",
                              "this user has no permission to open the socket %s", path);
    default:
        return gm_fail_system(GPUMEM_ERROR_SYSTEM, error, "connect", "cannot connect to %s", path);
    }
}

/* If the listener's queue is full, a connect waits as long as a send would. */
static void bound_sends(int connection, int milliseconds) {
    struct timeval most = {0};
    if (milliseconds >= 0) {
        most.tv_sec = milliseconds / 1000;
        most.tv_usec = milliseconds % 1000 * 1000;
        if (!milliseconds)
            most.tv_usec = 1; /* 0 would be for ever */
    }
    (void)setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
}

static gpumem_status open_path(int connection, const char *path, const struct sockaddr_un *address,
                               socklen_t length, const struct gm_deadline *deadline) {
    int result;
    do {
        bound_sends(connection, gm_deadline_left(deadline));
        result = connect(connection, (const struct sockaddr *)address, length);
    } while (result != 0 && errno == EINTR);
    int error = errno;
    bound_sends(connection, -1);
    return result == 0 ? GPUMEM_OK : refused(path, error);
}

/* Checked before anything is sent to the listener. */
static gpumem_status check_listener(int connection, const char *path,
                                    const struct gm_users *users) {
    unsigned user = gm_connection_user(connection);
    if (gm_users_have(users, user))
        return GPUMEM_OK;
    return gm_fail(GPUMEM_ERROR_NOT_PERMITTED,
                   "the listener at %s is of user %d, who is not allowed", path, (int)user);
}

static gpumem_status write_peer(const struct gm_sender *other, gpumem_connection_peer *peer) {
    const gpumem_connection_peer filled = {
        .size = sizeof filled, .pid = other->pid, .user = other->uid};
    return peer ? GM_RESULT_WRITE(gpumem_connection_peer, peer, &filled) : GPUMEM_OK;
}

gpumem_status gpumem_connect(const char *path, const gpumem_connect_options *given, int *connection,
                             gpumem_connection_peer *peer) {
    GM_UNCANCELLED;
    static const char call[] = "gpumem_connect";
    gpumem_connect_options options;
    struct gm_users users;
    struct sockaddr_un address;
    socklen_t length;
    GM_REQUIRE(connection, "%s: connection is NULL", call);
    gpumem_status status = gm_connect_options(call, given, &options, &users);
    if (status == GPUMEM_OK)
        status = gm_connect_address(call, path, &address, &length);
    if (status != GPUMEM_OK)
        return status;
    const struct gm_deadline deadline = gm_deadline_start(options.timeout_ms);
    struct gm_sender other;
    int made = gm_fd_socket(0);
    if (made < 0)
        return gm_fail_system(GPUMEM_ERROR_SYSTEM, errno, "socket", "cannot connect to %s", path);
    status = open_path(made, path, &address, length, &deadline);
    if (status == GPUMEM_OK)
        status = check_listener(made, path, &users);
    if (status == GPUMEM_OK)
        status = gm_greet_first(made, &users, &deadline, &other);
    if (status == GPUMEM_OK)
        status = write_peer(&other, peer);
    if (status != GPUMEM_OK) {
        close(made);
        return status;
    }
    *connection = made;
    return GPUMEM_OK;
}
