#include "softgpu/external/semaphore_fd.h"

#include "base/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

_Static_assert(sizeof(softgpu_semaphore) <= SOFTGPU_SEMAPHORE_SIZE, "it fits its file");

int sg_semaphore_fd_new(softgpu_semaphore_kind kind, uint64_t value) {
    softgpu_semaphore fresh = {.magic = SOFTGPU_SEMAPHORE_MAGIC,
                               .version = SOFTGPU_SEMAPHORE_VERSION,
                               .kind = (uint32_t)kind,
                               .value = value};
    if (kind != SOFTGPU_SEMAPHORE_BINARY && kind != SOFTGPU_SEMAPHORE_TIMELINE) {
        errno = EINVAL;
        return -1;
    }
    int fd = gm_fd_memory("softgpu semaphore");
    if (fd < 0)
        return -1;
    if (ftruncate(fd, SOFTGPU_SEMAPHORE_SIZE) == 0 &&
        pwrite(fd, &fresh, sizeof fresh, 0) == (ssize_t)sizeof fresh &&
        fcntl(fd, F_ADD_SEALS, SEALS) == 0)
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

static bool is_semaphore(const softgpu_semaphore *semaphore) {
    return memcmp(semaphore->magic, SOFTGPU_SEMAPHORE_MAGIC, sizeof SOFTGPU_SEMAPHORE_MAGIC) == 0 &&
           semaphore->version == SOFTGPU_SEMAPHORE_VERSION &&
           (semaphore->kind == SOFTGPU_SEMAPHORE_BINARY ||
            semaphore->kind == SOFTGPU_SEMAPHORE_TIMELINE);
}

/* Sealed, so that nobody can truncate the file under a mapping. */
softgpu_semaphore *sg_semaphore_fd_map(int fd) {
    struct stat status;
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &status) != 0 ||
        status.st_size != SOFTGPU_SEMAPHORE_SIZE)
        return NULL;
    softgpu_semaphore *map =
        mmap(NULL, SOFTGPU_SEMAPHORE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return NULL;
    if (is_semaphore(map))
        return map;
    munmap(map, SOFTGPU_SEMAPHORE_SIZE);
    return NULL;
}

void sg_semaphore_fd_unmap(softgpu_semaphore *semaphore) {
    munmap(semaphore, SOFTGPU_SEMAPHORE_SIZE);
}

void sg_semaphore_fd_signal(softgpu_semaphore *semaphore, uint64_t value) {
    if (semaphore->kind == SOFTGPU_SEMAPHORE_BINARY)
        value = 1;
    __atomic_store_n(&semaphore->value, value, __ATOMIC_RELEASE);
}

bool sg_semaphore_fd_take(softgpu_semaphore *semaphore, uint64_t value) {
    if (semaphore->kind == SOFTGPU_SEMAPHORE_TIMELINE)
        return __atomic_load_n(&semaphore->value, __ATOMIC_ACQUIRE) >= value;
    uint64_t signaled = 1;
    return __atomic_compare_exchange_n(&semaphore->value, &signaled, 0, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
}
