#include "softgpu/address/memfile.h"

#include "base/descriptor.h"
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
    sg_log(SG_LOG_ERROR, "%s of %llu bytes failed: %s", what, (unsigned long long)size,
           strerror(errno));
}

bool sg_memfile_new(const char *name, uint64_t size, struct gm_kept_file *file) {
    int fd = gm_fd_memory(name);
    if (fd < 0) {
        log_failure("memfd_create for device memory", size);
        return false;
    }
    struct gm_kept_file made;
    if (!gm_kept_file_set(fd, &made) || !sg_memfile_grow(&made, size)) {
        close(fd);
        return false;
    }
    *file = made;
    return true;
}

bool sg_memfile_grow(const struct gm_kept_file *file, uint64_t size) {
    struct rlimit limit;
    struct stat status;
    if (!gm_kept_file_is_open(file) || fstat(file->fd, &status) != 0) {
        log_failure("growing device memory, whose descriptor somebody has closed,", size);
        return false;
    }
    if ((uint64_t)status.st_size >= size)
        return true;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < size) {
        sg_log(SG_LOG_ERROR,
               "device memory needs a file of %llu bytes, the file size limit (ulimit -f) is %llu",
               (unsigned long long)size, (unsigned long long)limit.rlim_cur);
        return false;
    }
    if (ftruncate(file->fd, (off_t)size) != 0) {
        log_failure("ftruncate of device memory", size);
        return false;
    }
    return true;
}

/* Uses the mapping, because nobody can put another file under it. The kernel refuses this for
 * locked pages, as under mlockall; for those the descriptor is used. */
bool sg_memfile_give_back(const struct gm_kept_file *file, uint64_t offset, unsigned char *view,
                          size_t size) {
    const int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    if (madvise(view, size, MADV_REMOVE) == 0)
        return true;
    if (gm_kept_file_is_open(file) && fallocate(file->fd, mode, (off_t)offset, (off_t)size) == 0)
        return true;
    log_failure("giving back memory", size);
    return false;
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
        sg_addresses_end(at, size);
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
        sg_addresses_end(at, before);
    if (align > before)
        sg_addresses_end(at + before + size, align - before);
    return at + before;
}

bool sg_addresses_reserve_at(uintptr_t address, size_t size) {
    unsigned char *at = reserve((void *)address, size, MAP_FIXED_NOREPLACE);
    if (!at)
        return false;
    /* Kernels before 4.17 treat the address as a hint. */
    if ((uintptr_t)at != address) {
        sg_addresses_end(at, size);
        return false;
    }
    return true;
}

bool sg_memfile_map_at(const struct gm_kept_file *file, uint64_t offset, unsigned char *at,
                       size_t size, int prot) {
    if (gm_kept_file_is_open(file) &&
        mmap(at, size, prot, MAP_SHARED | MAP_FIXED, file->fd, (off_t)offset) != MAP_FAILED)
        return true;
    log_failure("mapping memory", size);
    return false;
}

/* An old size of 0 asks for a second mapping of shared pages. */
bool sg_view_map_at(unsigned char *view, unsigned char *at, size_t size, int prot) {
    if (mremap(view, 0, size, MREMAP_MAYMOVE | MREMAP_FIXED, at) == MAP_FAILED) {
        log_failure("mapping memory once more", size);
        return false;
    }
    if (prot == (PROT_READ | PROT_WRITE) || mprotect(at, size, prot) == 0)
        return true;
    log_failure("protecting memory", size);
    sg_addresses_clear(at, size);
    return false;
}

void sg_addresses_end(unsigned char *at, size_t size) {
    if (munmap(at, size) != 0)
        log_failure("unmapping memory", size);
}

unsigned char *sg_memfile_map(const struct gm_kept_file *file, uint64_t offset, size_t size) {
    unsigned char *at = sg_addresses_reserve(size, SG_PAGE);
    if (!at)
        return NULL;
    if (!sg_memfile_map_at(file, offset, at, size, PROT_READ | PROT_WRITE)) {
        sg_addresses_end(at, size);
        return NULL;
    }
    return at;
}

void sg_addresses_clear(unsigned char *at, size_t size) {
    if (!reserve(at, size, MAP_FIXED))
        log_failure("unmapping memory", size);
}
