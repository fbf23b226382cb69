#include "softgpu/ipc/process.h"

#include "softgpu/core/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool sg_process_status(uint64_t pid, char *state, uint64_t *start) {
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%llu/stat", (unsigned long long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t size = read(fd, text, sizeof text - 1);
    close(fd);
    if (size <= 0)
        return false;
    text[size] = 0;
    /* The name in parentheses may hold anything; fields are counted from its end. Start is the
     * 22nd. */
    const char *field = strrchr(text, ')');
    unsigned long long ticks;
    if (!field || sscanf(field + 1,
                         " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                         "%*s %llu",
                         state, &ticks) != 2)
        return false;
    *start = ticks;
    return true;
}

bool sg_process_fd_name(const struct gm_kept_file *file, struct sg_process_fd *name) {
    char state;
    *name = (struct sg_process_fd){
        .pid = (uint32_t)getpid(), .fd = (uint32_t)file->fd, .inode = file->inode};
    if (!gm_kept_file_is_open(file)) {
        sg_log(1, "memory cannot be named to other processes: somebody has closed descriptor %d",
               file->fd);
        return false;
    }
    return sg_process_status(name->pid, &state, &name->started);
}

static bool is_alive(const struct sg_process_fd *name) {
    char state;
    uint64_t started;
    return sg_process_status(name->pid, &state, &started) && started == name->started;
}

int sg_process_fd_open_other(const struct sg_process_fd *name, uint32_t fd, int flags) {
    char path[64];
    if (!is_alive(name))
        return -1;
    snprintf(path, sizeof path, "/proc/%u/fd/%u", name->pid, fd);
    int opened = open(path, flags | O_CLOEXEC);
    if (opened < 0)
        sg_log(1, "cannot open a descriptor of process %u: %s", name->pid, strerror(errno));
    return opened;
}

int sg_process_fd_open(const struct sg_process_fd *name) {
    struct stat status;
    int fd = sg_process_fd_open_other(name, name->fd, O_RDWR);
    if (fd < 0)
        return -1;
    if (fstat(fd, &status) == 0 && status.st_ino == name->inode)
        return fd;
    close(fd);
    return -1;
}

bool sg_process_fd_own(const struct sg_process_fd *name) {
    return name->pid == (uint32_t)getpid() && is_alive(name);
}
