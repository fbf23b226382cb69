#include "base/cache_file.h"

#include "base/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER "gpumem"
/* Precedes the text: the checksum of the rest, in hexadecimal. */
#define HEAD ((size_t)17)

/* FNV-1a: protects against truncated or mixed-up files, not against deceit. */
static uint64_t checksum(const char *text, size_t length) {
    uint64_t sum = 0xcbf29ce484222325u;
    for (size_t i = 0; i < length; i++)
        sum = (sum ^ (unsigned char)text[i]) * 0x100000001b3u;
    return sum;
}

/* The cache folder; none if the path is relative, which the specification says to ignore. */
static int base_folder(char *path, size_t room) {
    const char *cache = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
    int length = -1;
    if (cache && cache[0] == '/')
        length = snprintf(path, room, "%s", cache);
    else if (home && home[0] == '/')
        length = snprintf(path, room, "%s/.cache", home);
    return length > 0 && (size_t)length < room;
}

static int path_of(const char *name, char *path, size_t room) {
    char base[PATH_MAX];
    if (!base_folder(base, sizeof base))
        return 0;
    int length = snprintf(path, room, "%s/" FOLDER "/%s", base, name);
    return length > 0 && (size_t)length < room;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static int is_ours(int fd) {
    struct stat about;
    return fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_uid == geteuid() &&
           !(about.st_mode & (S_IWGRP | S_IWOTH)) && about.st_size > (off_t)HEAD &&
           about.st_size < (off_t)(HEAD + GM_CACHE_MOST);
}

/* Whether the file's bytes are a text with its checksum before it. */
static int is_whole(const char *bytes, size_t length) {
    char head[HEAD + 1];
    if (length <= HEAD || memchr(bytes, 0, length))
        return 0;
    snprintf(head, sizeof head, "%016" PRIx64 "\n", checksum(bytes + HEAD, length - HEAD));
    return memcmp(bytes, head, HEAD) == 0;
}

int gm_cache_read(const char *name, char *text, size_t room) {
    char path[PATH_MAX], bytes[HEAD + GM_CACHE_MOST];
    ssize_t length = -1;
    if (!path_of(name, path, sizeof path))
        return 0;
    /* Does not block on a FIFO of that name, nor follow a link. */
    int fd = gm_fd_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0)
        return 0;
    if (is_ours(fd)) /* files change by being replaced, not while they are read */
        length = gm_fd_read(fd, bytes, sizeof bytes);
    close(fd);
    if (length < 0 || !is_whole(bytes, (size_t)length) || (size_t)length - HEAD >= room)
        return 0;
    memcpy(text, bytes + HEAD, (size_t)length - HEAD);
    text[(size_t)length - HEAD] = 0;
    return 1;
}

/* ---- Writing --------------------------------------------------------------------------------- */

static int make_folders(void) {
    char path[PATH_MAX + sizeof "/" FOLDER];
    if (!base_folder(path, PATH_MAX))
        return 0;
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return 0;
    strcat(path, "/" FOLDER);
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

static int write_all(int fd, const char *text) {
    char bytes[HEAD + GM_CACHE_MOST];
    int length =
        snprintf(bytes, sizeof bytes, "%016" PRIx64 "\n%s", checksum(text, strlen(text)), text);
    return length > 0 && (size_t)length < sizeof bytes && gm_fd_write(fd, bytes, (size_t)length);
}

/* Under a temporary name first, so that readers find either the whole new file or the former
 * one. */
static int replace(const char *path, const char *text) {
    char beside[PATH_MAX + 32];
    static _Atomic unsigned number;
    snprintf(beside, sizeof beside, "%s.%ld.%u", path, (long)getpid(), number++);
    int fd = gm_fd_open(beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (fd < 0)
        return 0;
    int written = write_all(fd, text);
    if (close(fd) == 0 && written && rename(beside, path) == 0)
        return 1;
    unlink(beside);
    return 0;
}

int gm_cache_write(const char *name, const char *text) {
    char path[PATH_MAX];
    if (strlen(text) == 0 || strlen(text) >= GM_CACHE_MOST)
        return 0;
    return path_of(name, path, sizeof path) && make_folders() && replace(path, text);
}
