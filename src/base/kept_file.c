#include "base/kept_file.h"

#include "base/descriptor.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

bool gm_kept_file_set(int fd, struct gm_kept_file *file) {
    struct stat status;
    if (fstat(fd, &status) != 0)
        return false;
    *file = (struct gm_kept_file){fd, status.st_dev, status.st_ino};
    return true;
}

static bool is_open_as(const struct gm_kept_file *file, int fd) {
    struct gm_kept_file now;
    if (gm_kept_file_set(fd, &now) && now.device == file->device && now.inode == file->inode)
        return true;
    errno = EBADF;
    return false;
}

bool gm_kept_file_is_open(const struct gm_kept_file *file) {
    return is_open_as(file, file->fd);
}

/* Checks the duplicate, which nobody else can close. */
int gm_kept_file_duplicate(const struct gm_kept_file *file) {
    int fd = gm_fd_duplicate(file->fd);
    if (fd < 0 || is_open_as(file, fd))
        return fd;
    close(fd);
    errno = EBADF;
    return -1;
}

void gm_kept_file_close(struct gm_kept_file *file) {
    if (file->fd >= 0 && gm_kept_file_is_open(file))
        close(file->fd);
    *file = (struct gm_kept_file)GM_NO_KEPT_FILE;
}
