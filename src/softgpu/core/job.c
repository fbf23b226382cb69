#include "softgpu/core/job.h"

#include "base/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_bool refused;

bool sg_job_known(void) {
    const char *path = secure_getenv("SOFTGPU_JOB");
    return path && path[0] && !atomic_load(&refused);
}

/* Opened for each note: the application could close a descriptor that is kept open and reuse its
 * number. */
void sg_job_note(char what) {
    int saved = errno;
    const char *path = secure_getenv("SOFTGPU_JOB");
    int fd = path && path[0] ? gm_fd_open(path, O_WRONLY | O_APPEND, 0) : -1;
    if (fd < 0 || write(fd, &what, 1) != 1)
        atomic_store(&refused, true);
    if (fd >= 0)
        close(fd);
    errno = saved;
}
