/* Finds a process's control file among its descriptors. */
#include "softgpu/checkpoint/find.h"

#include "base/descriptor.h"
#include "softgpu/process/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static bool has_name(int folder, const char *entry) {
    static const char wanted[] = "/memfd:" SG_CONTROL_MAGIC;
    char target[64];
    ssize_t size = readlinkat(folder, entry, target, sizeof target - 1);
    return size >= (ssize_t)sizeof wanted - 1 && memcmp(target, wanted, sizeof wanted - 1) == 0;
}

/* NULL if it is another file, or another process's: children inherit their parent's. */
static struct sg_control *map_file(int fd, int pid) {
    struct stat status;
    int seals = fcntl(fd, F_GET_SEALS);
    if (fstat(fd, &status) != 0 || status.st_size != (off_t)sizeof(struct sg_control) ||
        seals < 0 || !(seals & F_SEAL_SHRINK))
        return NULL;
    void *map = mmap(NULL, sizeof(struct sg_control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return NULL;
    struct sg_control *control = map;
    char state;
    uint64_t started;
    bool right = memcmp(control->magic, SG_CONTROL_MAGIC, sizeof control->magic) == 0 &&
                 control->pid == (uint32_t)pid &&
                 sg_process_status(control->pid, &state, &started) && state != 'Z' &&
                 started == control->started;
    if (right)
        return control;
    munmap(map, sizeof *control);
    return NULL;
}

static CUresult search(DIR *folder, int pid, struct sg_control **control) {
    const struct dirent *entry;
    while ((entry = readdir(folder))) {
        if (!has_name(dirfd(folder), entry->d_name))
            continue;
        int fd = gm_fd_open_at(dirfd(folder), entry->d_name, O_RDWR | O_NONBLOCK | O_NOCTTY);
        if (fd < 0)
            return CUDA_ERROR_NOT_SUPPORTED;
        *control = map_file(fd, pid);
        close(fd);
        if (*control)
            return CUDA_SUCCESS;
    }
    return CUDA_ERROR_NOT_INITIALIZED;
}

/* A zombie does not count. */
static bool is_process(int pid) {
    char state;
    uint64_t started;
    return pid > 0 && sg_process_status((uint64_t)pid, &state, &started) && state != 'Z' &&
           state != 'X';
}

/* A forked child must not use the driver, whatever its parent did: it has no control of its own. */
static CUresult own_control(struct sg_control **control) {
    if (!atomic_load(&sg_initialized) || atomic_load(&sg_forked))
        return CUDA_ERROR_NOT_INITIALIZED;
    *control = sg_control;
    return CUDA_SUCCESS;
}

CUresult sg_control_open(int pid, struct sg_control **control) {
    char path[64];
    if (pid == getpid())
        return own_control(control);
    if (!is_process(pid))
        return CUDA_ERROR_OPERATING_SYSTEM;
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *folder = gm_fd_folder(path);
    if (!folder)
        return errno == EACCES || errno == EPERM ? CUDA_ERROR_NOT_SUPPORTED
                                                 : CUDA_ERROR_OPERATING_SYSTEM;
    CUresult result = search(folder, pid, control);
    closedir(folder);
    return result;
}

bool sg_control_is_own(const struct sg_control *control) {
    return control->pid == (uint32_t)getpid();
}

void sg_control_close(struct sg_control *control) {
    if (!sg_control_is_own(control))
        munmap(control, sizeof *control);
}
