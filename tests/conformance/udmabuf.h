/*
 * A stand-in for /dev/udmabuf, for machines that lack it. Included by one file of a program, it
 * takes the place of open and ioctl in the whole process, the driver under test included; where the
 * kernel's device opens, that one is used and nothing stands in.
 *
 * It keeps the kernel's contract (linux/udmabuf.h, and what drivers/dma-buf/udmabuf.c checks):
 * items are memory files sealed against shrinking and not against writing, offsets and sizes are
 * whole pages inside the file, at most 1024 items and 64 MiB in all, and the answer is a descriptor
 * of its own. What it cannot be is one mapping, nor can it hold pages that their file gives up:
 * udmabuf_map puts pieces of the files together where the kernel's buffer is mapped at once.
 */
#ifndef TEST_UDMABUF_H
#define TEST_UDMABUF_H

#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define UDMABUF_DEVICE     "/dev/udmabuf"
#define UDMABUF_STAND_IN   "udmabuf stand-in"
#define UDMABUF_LIST_LIMIT 1024u
#define UDMABUF_SIZE_LIMIT ((uint64_t)64 << 20)
#define UDMABUF_BUFFERS    64

struct udmabuf_buffer {
    int fd; /* 0: free */
    uint32_t count;
    struct udmabuf_create_item *items; /* their files are duplicates */
};

static struct udmabuf_buffer udmabuf_buffers[UDMABUF_BUFFERS];
static bool udmabuf_may_stand_in; /* for files that ask for it */
static bool udmabuf_stands_in;    /* the device was opened, and there is none */
static int udmabuf_failure;       /* the next request fails with this errno */

/* ---- The device ------------------------------------------------------------------------------ */

static int udmabuf_open(int flags) {
    int fd = (int)syscall(SYS_openat, AT_FDCWD, UDMABUF_DEVICE, flags, 0);
    if (!udmabuf_may_stand_in)
        return fd;
    udmabuf_stands_in = fd < 0;
    return fd >= 0 ? fd : memfd_create(UDMABUF_STAND_IN, flags & O_CLOEXEC ? MFD_CLOEXEC : 0);
}

static bool udmabuf_is_stand_in(int fd) {
    static const char wanted[] = "/memfd:" UDMABUF_STAND_IN " ";
    char path[32] = "/proc/self/fd/", target[64], digits[12];
    size_t length = strlen(path), count = 0;
    if (fd < 0)
        return false;
    do
        digits[count++] = (char)('0' + fd % 10);
    while ((fd /= 10) > 0);
    while (count > 0)
        path[length++] = digits[--count];
    path[length] = '\0';
    ssize_t size = readlink(path, target, sizeof target);
    return size >= (ssize_t)sizeof wanted - 1 && memcmp(target, wanted, sizeof wanted - 1) == 0;
}

static int udmabuf_check_file(const struct udmabuf_create_item *item) {
    struct stat status;
    int seals = fcntl((int)item->memfd, F_GET_SEALS);
    if (seals < 0)
        return EBADFD;
    if ((seals & F_SEAL_SHRINK) == 0 || (seals & F_SEAL_WRITE) != 0)
        return EINVAL;
    if (fstat((int)item->memfd, &status) != 0)
        return EBADFD;
    uint64_t end = (uint64_t)status.st_size;
    return item->offset <= end && item->size <= end - item->offset ? 0 : EINVAL;
}

static int udmabuf_check(const struct udmabuf_create_item *items, uint32_t count) {
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), total = 0;
    if (count > UDMABUF_LIST_LIMIT)
        return EINVAL;
    for (uint32_t i = 0; i < count; i++) {
        if (items[i].offset % page != 0 || items[i].size % page != 0 ||
            items[i].size > UDMABUF_SIZE_LIMIT - total)
            return EINVAL;
        total += items[i].size;
    }
    if (total == 0)
        return EINVAL;
    for (uint32_t i = 0; i < count; i++) {
        int error = udmabuf_check_file(&items[i]);
        if (error)
            return error;
    }
    return 0;
}

static struct udmabuf_buffer *udmabuf_find(int fd) {
    for (size_t i = 0; i < UDMABUF_BUFFERS; i++)
        if (udmabuf_buffers[i].fd == fd)
            return &udmabuf_buffers[i];
    return NULL;
}

static void udmabuf_drop(struct udmabuf_buffer *buffer) {
    for (uint32_t i = 0; i < buffer->count; i++)
        close((int)buffer->items[i].memfd);
    free(buffer->items);
    *buffer = (struct udmabuf_buffer){0};
}

static int udmabuf_create(const struct udmabuf_create_item *items, uint32_t count, uint32_t flags) {
    struct udmabuf_buffer *buffer = udmabuf_find(0);
    int error = udmabuf_failure ? udmabuf_failure : udmabuf_check(items, count);
    udmabuf_failure = 0;
    if (!error && !buffer)
        error = ENOMEM;
    if (error) {
        errno = error;
        return -1;
    }
    buffer->items = calloc(count, sizeof *buffer->items);
    buffer->fd = memfd_create("dmabuf", flags & UDMABUF_FLAGS_CLOEXEC ? MFD_CLOEXEC : 0);
    for (; buffer->items && buffer->count < count; buffer->count++) {
        struct udmabuf_create_item item = items[buffer->count];
        item.memfd = (uint32_t)fcntl((int)item.memfd, F_DUPFD_CLOEXEC, 3);
        buffer->items[buffer->count] = item;
    }
    return buffer->fd;
}

static int udmabuf_request(unsigned long request, const void *argument) {
    if (request == UDMABUF_CREATE_LIST) {
        const struct udmabuf_create_list *list = argument;
        return udmabuf_create(list->list, list->count, list->flags);
    }
    if (request == UDMABUF_CREATE) {
        const struct udmabuf_create *one = argument;
        struct udmabuf_create_item item = {
            .memfd = one->memfd, .offset = one->offset, .size = one->size};
        return udmabuf_create(&item, 1, one->flags);
    }
    errno = ENOTTY;
    return -1;
}

/* ---- For the tests --------------------------------------------------------------------------- */

static unsigned char *udmabuf_map_pieces(const struct udmabuf_buffer *buffer, size_t size) {
    unsigned char *all =
        mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    size_t at = 0;
    for (uint32_t i = 0; all != MAP_FAILED && i < buffer->count && at < size; i++) {
        size_t piece = (size_t)buffer->items[i].size;
        piece = piece < size - at ? piece : size - at;
        if (mmap(all + at, piece, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                 (int)buffer->items[i].memfd, (off_t)buffer->items[i].offset) == MAP_FAILED)
            break;
        at += piece;
    }
    if (all != MAP_FAILED && at == size)
        return all;
    if (all != MAP_FAILED)
        munmap(all, size);
    return NULL;
}

/* The first `size` bytes of a buffer, to be unmapped with munmap; NULL when they cannot be mapped.
 */
static inline unsigned char *udmabuf_map(int fd, size_t size) {
    const struct udmabuf_buffer *buffer = udmabuf_find(fd);
    if (buffer)
        return udmabuf_map_pieces(buffer, size);
    void *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return map == MAP_FAILED ? NULL : map;
}

/* A stand-in's buffer has descriptors beside its own. */
static inline void udmabuf_close(int fd) {
    struct udmabuf_buffer *buffer = udmabuf_find(fd);
    if (buffer)
        udmabuf_drop(buffer);
    close(fd);
}

/* ---- What takes the place of libc's ---------------------------------------------------------- */

/* By their symbols: the headers may have macros and inline functions of these names. */
int udmabuf_any_open(const char *path, int flags, ...) __asm__("open");
int udmabuf_any_open64(const char *path, int flags, ...) __asm__("open64");
int udmabuf_any_ioctl(int fd, unsigned long request, ...) __asm__("ioctl");

static int udmabuf_open_any(const char *path, int flags, va_list rest) {
    bool makes = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
    unsigned mode = makes ? va_arg(rest, unsigned) : 0;
    return strcmp(path, UDMABUF_DEVICE) == 0
               ? udmabuf_open(flags)
               : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int udmabuf_any_open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    int fd = udmabuf_open_any(path, flags, rest);
    va_end(rest);
    return fd;
}

int udmabuf_any_open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    int fd = udmabuf_open_any(path, flags | O_LARGEFILE, rest);
    va_end(rest);
    return fd;
}

int udmabuf_any_ioctl(int fd, unsigned long request, ...) {
    va_list rest;
    va_start(rest, request);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    return udmabuf_is_stand_in(fd) ? udmabuf_request(request, argument)
                                   : (int)syscall(SYS_ioctl, fd, request, argument);
}

#endif
