#include "base/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

/* Lower ones are those that programs know by number. */
#define LOWEST 3

static void close_quietly(int fd) {
    int error = errno;
    close(fd);
    errno = error;
}

/*
 * The kernel gives the lowest free number, and there is no call that asks for a higher one at once.
 * Only moving the descriptor would leave a moment in which another thread could print into the new
 * file. So the free numbers are occupied by something that cannot be read or written: using them
 * meanwhile gives EBADF, as if they were closed. They are held until the last thread that is making
 * a descriptor is done.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned makers, held; /* under the lock; bits of the numbers held */

static void hold_standard(void) {
    for (int fd = 0; fd < LOWEST; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            continue;
        int place = open("/", O_PATH | O_CLOEXEC);
        if (place >= LOWEST)
            close(place);
        else if (place >= 0)
            held |= 1u << place;
    }
}

/* Another thread may have put its own file there with dup2, which must not be closed. */
static void release_standard(void) {
    for (int fd = 0; fd < LOWEST; fd++) {
        if (!(held & 1u << fd))
            continue;
        int flags = fcntl(fd, F_GETFL);
        if (flags >= 0 && (flags & O_PATH))
            close(fd);
    }
    held = 0;
}

/* A thread that is cancelled in between would hold them for ever. Returns the argument for
 * end(). */
static int begin(void) {
    int error = errno, cancelling;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelling);
    pthread_mutex_lock(&lock);
    makers++;
    hold_standard();
    pthread_mutex_unlock(&lock);
    errno = error;
    return cancelling;
}

static void end(int cancelling) {
    int error = errno;
    pthread_mutex_lock(&lock);
    if (--makers == 0)
        release_standard();
    pthread_mutex_unlock(&lock);
    pthread_setcancelstate(cancelling, &cancelling);
    errno = error;
}

static void before_fork(void) {
    pthread_mutex_lock(&lock);
}

static void in_parent(void) {
    pthread_mutex_unlock(&lock);
}

/* No other thread that was making descriptors exists here. */
static void in_child(void) {
    makers = 0;
    release_standard();
    pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void watch_forks(void) {
    pthread_atfork(before_fork, in_parent, in_child);
}

/* For one that was closed after they were taken, or while our other library held it. */
static int move(int fd) {
    if (fd < 0 || fd >= LOWEST)
        return fd;
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, LOWEST);
    close_quietly(fd);
    return moved;
}

int gm_fd_open_at(int folder, const char *name, int flags) {
    int cancelling = begin();
    int fd = openat(folder, name, flags | O_CLOEXEC);
    end(cancelling);
    return move(fd);
}

int gm_fd_open(const char *path, int flags, mode_t mode) {
    int cancelling = begin();
    int fd = open(path, flags | O_CLOEXEC, mode);
    end(cancelling);
    return move(fd);
}

int gm_fd_memory(const char *name) {
    int cancelling = begin();
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    end(cancelling);
    return move(fd);
}

int gm_fd_duplicate(int fd) {
    return fcntl(fd, F_DUPFD_CLOEXEC, LOWEST);
}

int gm_fd_keep(int fd) {
    fd = move(fd);
    if (fd < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) == 0)
        return fd;
    close_quietly(fd);
    return -1;
}

int gm_fd_epoll(void) {
    int cancelling = begin();
    int fd = epoll_create1(EPOLL_CLOEXEC);
    end(cancelling);
    return move(fd);
}

int gm_fd_socket(int flags) {
    int cancelling = begin();
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
    end(cancelling);
    return move(fd);
}

int gm_fd_accept(int listener) {
    int cancelling = begin();
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    end(cancelling);
    return move(fd);
}

FILE *gm_fd_stream(const char *path, const char *mode) {
    int flags = mode[0] == 'r' ? O_RDONLY : O_WRONLY | O_CREAT | O_TRUNC;
    int fd = gm_fd_open(path, flags, 0666);
    if (fd < 0)
        return NULL;
    FILE *stream = fdopen(fd, mode);
    if (!stream)
        close_quietly(fd);
    return stream;
}

DIR *gm_fd_folder(const char *path) {
    int fd = gm_fd_open(path, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0)
        return NULL;
    DIR *folder = fdopendir(fd);
    if (!folder)
        close_quietly(fd);
    return folder;
}

/* Where the descriptors of a message are; CMSG_DATA is not aligned for them. */
typedef void (*each_fd)(unsigned char *place);

static void close_one(unsigned char *place) {
    int fd;
    memcpy(&fd, place, sizeof fd);
    if (fd >= 0)
        close_quietly(fd);
}

static void move_one(unsigned char *place) {
    int fd;
    memcpy(&fd, place, sizeof fd);
    fd = move(fd);
    memcpy(place, &fd, sizeof fd);
}

/* 1 if each is a descriptor afterwards. */
static int for_each(struct msghdr *message, each_fd act) {
    int whole = 1;
    for (struct cmsghdr *h = CMSG_FIRSTHDR(message); h; h = CMSG_NXTHDR(message, h)) {
        if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;
            act(CMSG_DATA(h) + i * sizeof fd);
            memcpy(&fd, CMSG_DATA(h) + i * sizeof fd, sizeof fd);
            whole &= fd >= 0;
        }
    }
    return whole;
}

ssize_t gm_fd_read(int fd, void *bytes, size_t size) {
    size_t done = 0;
    while (done < size) {
        ssize_t got = read(fd, (char *)bytes + done, size - done);
        if (got == 0)
            break;
        if (got > 0)
            done += (size_t)got;
        else if (errno != EINTR)
            return -1;
    }
    return (ssize_t)done;
}

bool gm_fd_write(int fd, const void *bytes, size_t size) {
    size_t done = 0;
    while (done < size) {
        ssize_t written = write(fd, (const char *)bytes + done, size - done);
        if (written > 0)
            done += (size_t)written;
        else if (written == 0 || errno != EINTR)
            return false;
    }
    return true;
}

ssize_t gm_fd_receive(int socket, struct msghdr *message) {
    int cancelling = begin();
    ssize_t received = recvmsg(socket, message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    end(cancelling);
    if (received < 0 || for_each(message, move_one))
        return received;
    int error = errno;
    for_each(message, close_one);
    message->msg_controllen = 0;
    errno = error;
    return -1;
}
