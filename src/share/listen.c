/* The owner's side of connections by path. */
#include "base/cancel.h"
#include "base/descriptor.h"
#include "base/fork.h"
#include "base/kept_file.h"
#include "base/log.h"
#include "base/object.h"
#include "base/options.h"
#include "memory/core/driver_error.h"
#include "share/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FOLDER_MS 2000

/* ---- The folder of a socket file ------------------------------------------------------------- */

static const char *name_in(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/*
 * Opens the folder and locks it, so that among the listeners of this library only one at a time
 * checks, replaces or removes a socket file. The lock ends with the descriptor. -1 with errno.
 */
static int enter_folder(const char *path, const struct gm_deadline *deadline) {
    char folder[sizeof((struct sockaddr_un *)0)->sun_path + 2] = ".";
    size_t length = (size_t)(name_in(path) - path);
    if (length) {
        memcpy(folder, path, length);
        folder[length] = 0;
    }
    int fd = gm_fd_open(folder, O_RDONLY | O_DIRECTORY, 0);
    while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
        int error = errno;
        if ((error == EWOULDBLOCK || error == EINTR) && gm_deadline_left(deadline) != 0) {
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
            continue;
        }
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

/* Whether anybody listens at the address: a killed process leaves its file. */
static int is_stale(const struct sockaddr_un *address, socklen_t length) {
    int probe = gm_fd_socket(SOCK_NONBLOCK);
    if (probe < 0)
        return 0;
    int result = connect(probe, (const struct sockaddr *)address, length);
    int stale = result != 0 && errno == ECONNREFUSED;
    close(probe);
    return stale;
}

/* Removes a stale file of the caller's user. */
static gpumem_status remove_stale(int folder, const char *path, const struct sockaddr_un *address,
                                  socklen_t length) {
    struct stat about;
    if (fstatat(folder, name_in(path), &about, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? GPUMEM_OK
                               : gm_fail_system(GPUMEM_ERROR_SYSTEM, errno, "fstatat",
                                                "cannot listen at %s", path);
    if (!S_ISSOCK(about.st_mode))
        return gm_fail_system(GPUMEM_ERROR_SYSTEM, EEXIST, "bind",
                              "cannot listen at %s, which is a file and not a socket", path);
    if (about.st_uid != geteuid())
        return gm_fail_system(GPUMEM_ERROR_SYSTEM, EADDRINUSE, "bind",
                              "cannot listen at %s, which is a socket of user %d", path,
                              (int)about.st_uid);
    if (!is_stale(address, length))
        return gm_fail_system(GPUMEM_ERROR_SYSTEM, EADDRINUSE, "bind",
                              "another process is listening at %s", path);
    if (unlinkat(folder, name_in(path), 0) != 0 && errno != ENOENT)
        return gm_fail_system(GPUMEM_ERROR_SYSTEM, errno, "unlink",
                              "cannot replace the stale socket %s", path);
    return GPUMEM_OK;
}

/* ---- Listening ------------------------------------------------------------------------------- */

static gpumem_status cannot(const char *call, const char *path) {
    return gm_fail_system(GPUMEM_ERROR_SYSTEM, errno, call, "cannot listen at %s", path);
}

/* The umask has removed permissions. Uses a descriptor of the file itself, because the name may by
 * now belong to another. */
static gpumem_status note_file(gpumem_listener *made, int folder, const char *path,
                               unsigned permissions) {
    struct stat about;
    char link[40];
    gpumem_status status = GPUMEM_OK;
    int fd = gm_fd_open_at(folder, name_in(path), O_PATH | O_NOFOLLOW);
    if (fd < 0)
        return cannot("open", path);
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (fstat(fd, &about) != 0)
        status = cannot("fstat", path);
    else if (!S_ISSOCK(about.st_mode) || about.st_uid != geteuid())
        status = gm_fail(GPUMEM_ERROR_SYSTEM, "%s was replaced while it was created", path);
    else if ((about.st_mode & 0777) != permissions && chmod(link, permissions) != 0)
        status = cannot("chmod", path);
    made->device = about.st_dev;
    made->inode = about.st_ino;
    close(fd);
    return status;
}

/* The folder is locked. */
static gpumem_status bind_file(gpumem_listener *made, int folder, const char *path,
                               socklen_t length, unsigned permissions) {
    const struct sockaddr *address = (const struct sockaddr *)&made->address;
    (void)fchmod(made->socket.fd, permissions); /* bind grants no more than this */
    int result = bind(made->socket.fd, address, length);
    if (result != 0 && errno == EADDRINUSE) {
        gpumem_status status = remove_stale(folder, path, &made->address, length);
        if (status != GPUMEM_OK)
            return status;
        result = bind(made->socket.fd, address, length);
    }
    if (result != 0)
        return cannot("bind", path);
    gpumem_status status = note_file(made, folder, path, permissions);
    if (status != GPUMEM_OK)
        (void)unlinkat(folder, name_in(path), 0);
    return status;
}

static gpumem_status start(gpumem_listener *made, const char *path, unsigned backlog) {
    return listen(made->socket.fd, (int)backlog) == 0 ? GPUMEM_OK : cannot("listen", path);
}

static gpumem_status listen_at_file(gpumem_listener *made, const char *path, socklen_t length,
                                    const gpumem_connect_options *options) {
    const struct gm_deadline all = gm_deadline_start(options->timeout_ms),
                             soon = gm_deadline_within(&all, FOLDER_MS);
    int folder = enter_folder(path, &soon);
    if (folder < 0)
        return cannot("open", path);
    gpumem_status status = bind_file(made, folder, path, length, options->permissions);
    if (status == GPUMEM_OK) {
        status = start(made, path, options->backlog);
        if (status != GPUMEM_OK)
            (void)unlinkat(folder, name_in(path), 0);
    }
    close(folder);
    return status;
}

static gpumem_status listen_at_name(gpumem_listener *made, const char *path, socklen_t length,
                                    const gpumem_connect_options *options) {
    if (bind(made->socket.fd, (const struct sockaddr *)&made->address, length) == 0)
        return start(made, path, options->backlog);
    if (errno == EADDRINUSE)
        return gm_fail_system(GPUMEM_ERROR_SYSTEM, EADDRINUSE, "bind",
                              "another process is listening at %s", path);
    return cannot("bind", path);
}

static gpumem_status make_socket(gpumem_listener *made, const char *path) {
    int fd = gm_fd_socket(SOCK_NONBLOCK);
    if (fd >= 0 && gm_kept_file_set(fd, &made->socket))
        return gm_doorway_make(&made->doorway, fd);
    gpumem_status status = cannot("socket", path);
    if (fd >= 0)
        close(fd);
    return status;
}

/* Closes everything; connections stay. */
static void end(gpumem_listener *listener) {
    gm_doorway_end(&listener->doorway, listener->socket.fd);
    gm_kept_file_close(&listener->socket);
}

gpumem_status gpumem_listen(const char *path, const gpumem_connect_options *given,
                            gpumem_listener **listener) {
    GM_UNCANCELLED;
    static const char call[] = "gpumem_listen";
    gpumem_connect_options options;
    socklen_t length;
    GM_REQUIRE(listener, "%s: listener is NULL", call);
    gm_fork_watch();
    gpumem_listener *made = calloc(1, sizeof *made);
    if (!made)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a listener");
    made->generation = gm_fork_generation();
    made->socket = (struct gm_kept_file)GM_NO_KEPT_FILE;
    made->doorway.queue = -1;
    gpumem_status status = gm_connect_options(call, given, &options, &made->users);
    if (status == GPUMEM_OK)
        status = gm_connect_address(call, path, &made->address, &length);
    if (status == GPUMEM_OK)
        status = make_socket(made, path);
    if (status == GPUMEM_OK)
        status = path[0] == '@' ? listen_at_name(made, path, length, &options)
                                : listen_at_file(made, path, length, &options);
    if (status != GPUMEM_OK) {
        end(made);
        free(made);
        return status;
    }
    *listener = made;
    return GPUMEM_OK;
}

int gpumem_listener_descriptor(const gpumem_listener *listener) {
    return listener->doorway.queue;
}

/* Removes the file, unless it now belongs to another. */
static void remove_file(const gpumem_listener *listener) {
    const char *path = listener->address.sun_path;
    const struct gm_deadline soon = gm_deadline_start(FOLDER_MS);
    struct stat about;
    int folder = enter_folder(path, &soon);
    if (folder < 0)
        return;
    if (fstatat(folder, name_in(path), &about, AT_SYMLINK_NOFOLLOW) == 0 &&
        about.st_dev == listener->device && about.st_ino == listener->inode)
        (void)unlinkat(folder, name_in(path), 0);
    close(folder);
}

gpumem_status gpumem_listener_close(gpumem_listener *listener) {
    GM_UNCANCELLED;
    if (!listener)
        return GPUMEM_OK;
    GM_CHECK(listener, "gpumem_listener_close");
    if (listener->inode)
        remove_file(listener);
    end(listener);
    gm_bury(listener);
    return GPUMEM_OK;
}
