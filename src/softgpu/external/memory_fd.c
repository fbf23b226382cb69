#include "softgpu/external/memory_fd.h"

#include "softgpu/address/phys.h"
#include "softgpu/external/internal.h"
#include "softgpu/memory/allocation.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* The size of a memory file that nobody can truncate under us, or 0. */
static uint64_t sealed_size(int fd) {
    struct stat status;
    int seals = fcntl(fd, F_GET_SEALS);
    bool sealed = seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && (seals & F_SEAL_WRITE) == 0;
    return sealed && fstat(fd, &status) == 0 && status.st_size > 0 ? (uint64_t)status.st_size : 0;
}

/* Where the memory begins in a file of `size` bytes: after llvmpipe's header, or at 0. */
static uint64_t start_of(int fd, uint64_t size) {
    struct sg_llvmpipe_header header;
    bool read = pread(fd, &header, sizeof header, 0) == (ssize_t)sizeof header;
    bool known = read && header.file == size && header.data >= sizeof header &&
                 header.data < size && header.data % sizeof(void *) == 0;
    return known ? header.data : 0;
}

static CUresult open_file(int fd, int device, uint64_t size, struct sg_external_bytes *bytes) {
    CUmemAllocationProp prop = sg_plain_prop(device);
    uint64_t start = start_of(fd, size);
    /* There is nothing after the end of the file, and no range extends there. */
    size_t pages = (size_t)((size + SG_PAGE - 1) / SG_PAGE * SG_PAGE);
    struct gm_kept_file file;
    if (!gm_kept_file_set(fd, &file))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = sg_phys_create_in(&file, 0, &prop, pages, true, &bytes->phys);
    bytes->offset = (size_t)start;
    bytes->size = (size_t)(size - start);
    return result;
}

CUresult sg_external_open(int fd, int device, struct sg_external_bytes *bytes) {
    if (sg_phys_exported(fd)) {
        CUresult result = sg_phys_import(fd, &bytes->phys);
        bytes->offset = 0;
        bytes->size = result == CUDA_SUCCESS ? bytes->phys->size : 0;
        return result;
    }
    uint64_t size = sealed_size(fd);
    if (size != 0)
        return open_file(fd, device, size, bytes);
    sg_log(SG_LOG_WARNING, "descriptor %d is no memory file sealed against shrinking", fd);
    return SG_EXTERNAL_WRONG_FD;
}
