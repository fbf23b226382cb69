#include "softgpu/memory/memfile.h"

#include "softgpu/core/config.h"
#include "softgpu/core/state.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static void log_failure(const char *what, uint64_t size) {
    sg_log(0, "%s of %llu bytes failed: %s", what, (unsigned long long)size, strerror(errno));
}

int sg_memfile_new(const char *name, uint64_t size) {
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) {
        log_failure("memfd_create for device memory", size);
        return -1;
    }
    if (!sg_memfile_grow(fd, size)) {
        close(fd);
        return -1;
    }
    return fd;
}

bool sg_memfile_grow(int fd, uint64_t size) {
    struct rlimit limit;
    struct stat status;
    if (fstat(fd, &status) == 0 && (uint64_t)status.st_size >= size)
        return true;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < size) {
        sg_log(0,
               "device memory needs a file of %llu bytes, the file size limit (ulimit -f) is %llu",
               (unsigned long long)size, (unsigned long long)limit.rlim_cur);
        return false;
    }
    if (ftruncate(fd, (off_t)size) != 0) {
        log_failure("ftruncate of device memory", size);
        return false;
    }
    return true;
}

void sg_memfile_punch(int fd, uint64_t offset, uint64_t size) {
    if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)size) != 0)
        log_failure("giving back memory", size);
}

static unsigned char *reserve(void *hint, size_t size, int flags) {
    void *at =
        mmap(hint, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

unsigned char *sg_addresses_reserve(size_t size, size_t align) {
    unsigned char *at = reserve(NULL, size, 0);
    if (at && ((uintptr_t)at & (align - 1)) == 0)
        return at;
    if (at)
        munmap(at, size);
    if (size + align < size) {
        errno = ENOMEM;
        at = NULL;
    } else {
        at = reserve(NULL, size + align, 0);
    }
    if (!at) {
        log_failure("reserving addresses", size);
        return NULL;
    }
    size_t before = (align - ((uintptr_t)at & (align - 1))) & (align - 1);
    if (before)
        munmap(at, before);
    if (align > before)
        munmap(at + before + size, align - before);
    return at + before;
}

bool sg_addresses_reserve_at(uintptr_t address, size_t size) {
    unsigned char *at = reserve((void *)address, size, MAP_FIXED_NOREPLACE);
    if (!at)
        return false;
    /* A kernel before 4.17 takes the address for a hint. */
    if ((uintptr_t)at != address) {
        munmap(at, size);
        return false;
    }
    return true;
}

bool sg_memfile_map_at(int fd, uint64_t offset, unsigned char *at, size_t size, int prot) {
    void *mapped = mmap(at, size, prot, MAP_SHARED | MAP_FIXED, fd, (off_t)offset);
    if (mapped == MAP_FAILED) {
        log_failure("mapping memory", size);
        return false;
    }
    return true;
}

unsigned char *sg_memfile_map(int fd, uint64_t offset, size_t size) {
    unsigned char *at = sg_addresses_reserve(size, SG_PAGE);
    if (!at)
        return NULL;
    if (!sg_memfile_map_at(fd, offset, at, size, PROT_READ | PROT_WRITE)) {
        munmap(at, size);
        return NULL;
    }
    return at;
}

void sg_addresses_clear(unsigned char *at, size_t size) {
    if (!reserve(at, size, MAP_FIXED))
        log_failure("unmapping memory", size);
}
