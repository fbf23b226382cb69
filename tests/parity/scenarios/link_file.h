/* Inputs of the linker from files. */
#ifndef PARITY_LINK_FILE_H
#define PARITY_LINK_FILE_H

#include "../parity.h"
#include "temporary.h"

static inline void add_file(const char *cls, CUlinkState s, CUjitInputType type, const void *data,
                            size_t size) {
    char path[TEMPORARY_ROOM];
    int fd = temporary_file(path, "parity-link");
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) {
        par_see("setup", "SETUP_FAILED file");
        return;
    }
    CALL(cuLinkAddFile_v2, cls, (s, type, path, 0, NULL, NULL));
    close(fd);
    unlink(path);
}

#endif
