#include "descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* O_PATH: reading and writing fail with EBADF, as on a closed descriptor. */
void cli_hold_standard(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            continue;
        int place = open("/", O_PATH | O_CLOEXEC);
        if (place > STDERR_FILENO)
            close(place);
    }
}

FILE *cli_open_text(const char *path) {
    return fopen(path, "re");
}

FILE *cli_make_text(const char *path) {
    return fopen(path, "we");
}

DIR *cli_open_folder(const char *path) {
    return opendir(path);
}

int cli_make_memory(const char *name) {
    return memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

FILE *cli_make_memory_text(const char *name) {
    int memory = cli_make_memory(name);
    FILE *file = memory >= 0 ? fdopen(memory, "r+") : NULL;
    if (!file && memory >= 0)
        close(memory);
    return file;
}

int cli_make_unnamed(void) {
    const char *folder = getenv("TMPDIR");
    int fd = open(folder && folder[0] ? folder : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    return fd >= 0 ? fd : cli_make_memory("gpumem");
}

int cli_make_pair(int floor, int pair[2]) {
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return errno;
    for (int i = 0; i < 2; i++) {
        if (pair[i] > floor)
            continue;
        int moved = fcntl(pair[i], F_DUPFD_CLOEXEC, floor + 1);
        int error = errno;
        close(pair[i]);
        pair[i] = moved;
        if (moved < 0) {
            close(pair[1 - i]);
            return error;
        }
    }
    return 0;
}
