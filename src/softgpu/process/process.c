#include "softgpu/process/process.h"

#include "base/descriptor.h"
#include "softgpu/core/config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool sg_process_status(uint64_t pid, char *state, uint64_t *start) {
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%llu/stat", (unsigned long long)pid);
    int fd = gm_fd_open(path, O_RDONLY, 0);
    if (fd < 0)
        return false;
    ssize_t size = read(fd, text, sizeof text - 1);
    close(fd);
    if (size <= 0)
        return false;
    text[size] = 0;
    /* The name in parentheses may contain anything, so fields are counted from its end. The start
     * time is the 22nd. */
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
        sg_log(SG_LOG_WARNING,
               "memory cannot be named to other processes: somebody has closed descriptor %d",
               file->fd);
        return false;
    }
    return sg_process_status(name->pid, &state, &name->started);
}

/* ---- Processes in one word ------------------------------------------------------------------- */

/* The kernel's largest id is 2^22 - 1. Ticks of 1/100 s fill the rest in 1,394 years. */
#define PID_BITS 22
#define PID_MASK (((uint64_t)1 << PID_BITS) - 1)

/* Without /proc a process is known by its id alone. */
uint64_t sg_process_self(void) {
    static uint64_t name;
    static pid_t named;
    char state;
    uint64_t start = 0;
    pid_t pid = getpid();
    if (named != pid) {
        if (!sg_process_status((uint64_t)pid, &state, &start))
            start = 0;
        name = start << PID_BITS | ((uint64_t)pid & PID_MASK);
        named = pid;
    }
    return name;
}

bool sg_process_ended(uint64_t name) {
    char state;
    uint64_t start, pid = name & PID_MASK, since = name >> PID_BITS;
    if (!sg_process_status(pid, &state, &start))
        return kill((pid_t)pid, 0) != 0 && errno == ESRCH;
    return state == 'Z' || state == 'X' ||
           (since != 0 && since != (start & UINT64_MAX >> PID_BITS));
}

/* ---- Their descriptors ----------------------------------------------------------------------- */

static bool is_alive(const struct sg_process_fd *name) {
    char state;
    uint64_t started;
    return sg_process_status(name->pid, &state, &started) && started == name->started;
}

/* The number may refer to a FIFO by now, and opening that would wait for its other end. Whether the
 * process is still the same is checked afterwards: if it is, it was when the descriptor was opened.
 */
int sg_process_fd_open_other(const struct sg_process_fd *name, uint32_t fd, int flags) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/fd/%u", name->pid, fd);
    int opened = gm_fd_open(path, flags | O_NONBLOCK | O_NOCTTY, 0);
    if (opened < 0) {
        sg_log(SG_LOG_WARNING, "cannot open a descriptor of process %u: %s", name->pid,
               strerror(errno));
        return -1;
    }
    if (is_alive(name))
        return opened;
    close(opened);
    return -1;
}

/* Inode numbers of memory files are independent of those of other file systems. A tmpfs file has
 * seals too, but always the one against further seals. */
static bool is_memory_file(int fd) {
    int seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && seals != F_SEAL_SEAL;
}

int sg_process_fd_open(const struct sg_process_fd *name) {
    struct stat status;
    int fd = sg_process_fd_open_other(name, name->fd, O_RDWR);
    if (fd < 0)
        return -1;
    if (fstat(fd, &status) == 0 && status.st_ino == name->inode && is_memory_file(fd))
        return fd;
    close(fd);
    return -1;
}

bool sg_process_fd_own(const struct sg_process_fd *name) {
    return name->pid == (uint32_t)getpid() && is_alive(name);
}
