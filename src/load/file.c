#include "load/file.h"

#include "base/descriptor.h"
#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

static gpumem_status check_kind(const char *path, const struct stat *status) {
    if (S_ISDIR(status->st_mode))
        return gm_fail_system(GPUMEM_ERROR_SYSTEM, EISDIR, "open", "cannot load %s", path);
    if (!S_ISREG(status->st_mode))
        return gm_fail_system(GPUMEM_ERROR_SYSTEM, EINVAL, "open",
                              "cannot load %s, which is not a regular file", path);
    if (status->st_size == 0)
        return gm_fail_system(GPUMEM_ERROR_SYSTEM, ENODATA, "open",
                              "cannot load %s, which is empty", path);
    return GPUMEM_OK;
}

gpumem_status gm_file_open(const char *path, struct gm_file *file) {
    /* O_NONBLOCK: opening a FIFO would wait for a writer before it can be refused. */
    int fd = gm_fd_open(path, O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0)
        return gm_fail_system(GPUMEM_ERROR_SYSTEM, errno, "open", "cannot open %s", path);
    struct gm_file opened = {.fd = fd, .path = path};
    gpumem_status status = GPUMEM_OK;
    if (fstat(fd, &opened.opened) != 0)
        status = gm_fail_system(GPUMEM_ERROR_SYSTEM, errno, "fstat", "cannot examine %s", path);
    else
        status = check_kind(path, &opened.opened);
    if (status != GPUMEM_OK) {
        close(fd);
        return status;
    }
    opened.size = (uint64_t)opened.opened.st_size;
    *file = opened;
    return GPUMEM_OK;
}

void gm_file_close(struct gm_file *file) {
    close(file->fd);
    file->fd = -1;
}

gpumem_status gm_file_read(const struct gm_file *file, uint64_t offset, void *to, size_t bytes) {
    size_t done = 0;
    while (done < bytes) {
        ssize_t n = pread(file->fd, (char *)to + done, bytes - done, (off_t)(offset + done));
        if (n > 0) {
            done += (size_t)n;
        } else if (n == 0) {
            return gm_fail(GPUMEM_ERROR_DATA,
                           "%s shrank while it was read: it had %" PRIu64
                           " bytes and now ends at %" PRIu64,
                           file->path, file->size, offset + done);
        } else if (errno != EINTR) {
            return gm_fail_system(GPUMEM_ERROR_SYSTEM, errno, "pread",
                                  "cannot read %s at byte %" PRIu64, file->path, offset + done);
        }
    }
    return GPUMEM_OK;
}

gpumem_status gm_file_check_unchanged(const struct gm_file *file) {
    struct stat now;
    if (fstat(file->fd, &now) != 0)
        return gm_fail_system(GPUMEM_ERROR_SYSTEM, errno, "fstat", "cannot examine %s", file->path);
    if (now.st_size != file->opened.st_size)
        return gm_fail(GPUMEM_ERROR_DATA,
                       "%s %s while it was read: from %" PRIu64 " to %" PRIu64 " bytes", file->path,
                       now.st_size > file->opened.st_size ? "grew" : "shrank", file->size,
                       (uint64_t)now.st_size);
    if (now.st_mtim.tv_sec != file->opened.st_mtim.tv_sec ||
        now.st_mtim.tv_nsec != file->opened.st_mtim.tv_nsec)
        return gm_fail(GPUMEM_ERROR_DATA, "%s was written to while it was read", file->path);
    return GPUMEM_OK;
}
