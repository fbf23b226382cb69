/* Host memory of the application that is pinned after allocation. */
#include "softgpu/address/window.h"
#include "softgpu/core/calls.h"
#include "softgpu/core/config.h"
#include "softgpu/memory/allocation.h"
#include "softgpu/stream/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* IOMEMORY is for the registers of other devices, and is refused for ordinary pages. softgpu has no
 * bus through which to reach such registers. */
#define REGISTER_FLAGS                                                                             \
    (CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY)

/* What a process can have. More is not supported on an H200, whatever is registered already. */
#define MOST_BYTES ((size_t)1 << 47)

/* Linux 5.14; older headers lack them. */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

/* Tries it on a page that is certainly readable. */
static bool can_populate(void) {
    static const char readable[1];
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uintptr_t start = (uintptr_t)readable & ~(uintptr_t)(page - 1);
    return madvise((void *)start, page, MADV_POPULATE_READ) == 0;
}

/* Whether all of it is mapped, for kernels that cannot populate. */
static bool is_mapped(unsigned char *start, size_t size, size_t page) {
    unsigned char resident[1024];
    for (size_t done = 0; done < size; done += sizeof resident * page) {
        size_t part = size - done < sizeof resident * page ? size - done : sizeof resident * page;
        if (mincore(start + done, part, resident) != 0)
            return false;
    }
    return true;
}

/* Pinning faults in every page and needs the right to write; softgpu needs to know only that the
 * pages exist, and populating them answers that without a fault. */
static bool pin(CUdeviceptr address, size_t size, bool read_only) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    CUdeviceptr first = address & ~(CUdeviceptr)(page - 1);
    size_t whole = (size_t)((address + size + page - 1) & ~(CUdeviceptr)(page - 1)) - (size_t)first;
    unsigned char *start = (unsigned char *)(uintptr_t)first;
    if (madvise(start, whole, read_only ? MADV_POPULATE_READ : MADV_POPULATE_WRITE) == 0)
        return true;
    /* EINVAL: the pages are read-only, or the kernel does not know the advice. */
    if (errno == EINVAL && madvise(start, whole, MADV_POPULATE_READ) != 0 && errno == EINVAL &&
        !can_populate() && is_mapped(start, whole, page))
        return true;
    sg_log(SG_LOG_WARNING, "cuMemHostRegister: %zu bytes at %p cannot be pinned: %s", size,
           (void *)start, strerror(errno));
    return false;
}

static bool allows(const struct sg_range *range, CUdeviceptr address, size_t size,
                   unsigned rights) {
    (void)address, (void)size;
    return !(rights & SG_WRITE) || !(range->flags & CU_MEMHOSTREGISTER_READ_ONLY);
}

static void describe(const struct sg_range *range, struct sg_range_facts *facts) {
    uint64_t mask = (uint64_t)sysconf(_SC_PAGESIZE) - 1;
    facts->mapping_base = range->start & ~mask;
    facts->mapping_size = ((range->start + range->size + mask) & ~mask) - facts->mapping_base;
    facts->rights = range->flags & CU_MEMHOSTREGISTER_READ_ONLY ? SG_READ : SG_READ | SG_WRITE;
    /* That it is read-only is not reported. */
    facts->host_flags = (int)(range->flags & SG_HOST_FLAGS);
}

static void end(struct sg_range *range) {
    sg_range_remove(range);
    sg_context_unref(range->context);
    free(range);
}

static const struct sg_range_ops registration_ops = {
    .name = "host registration",
    .end = end,
    .allows = allows,
    .describe = describe,
    .pinned = true,
};

/* The first range that shares a byte with [address, address + size), or NULL. */
static struct sg_range *overlap(CUdeviceptr address, size_t size) {
    struct sg_range *range = sg_range_find(address);
    if (range)
        return range;
    range = sg_range_from(address);
    return range && range->start - address < size ? range : NULL;
}

static CUresult check_range(CUdeviceptr address, size_t size, unsigned flags) {
    if (address == 0 || size == 0 || address + size < address ||
        (flags & ~(unsigned)(REGISTER_FLAGS | CU_MEMHOSTREGISTER_IOMEMORY)) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (size > MOST_BYTES)
        return CUDA_ERROR_NOT_SUPPORTED;
    const struct sg_range *other = overlap(address, size);
    if (other)
        return other->ops == &registration_ops ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
                                               : CUDA_ERROR_INVALID_VALUE;
    if (flags & CU_MEMHOSTREGISTER_IOMEMORY)
        return CUDA_ERROR_INVALID_VALUE;
    if (size > (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE))
        return CUDA_ERROR_OUT_OF_MEMORY;
    bool read_only = (flags & CU_MEMHOSTREGISTER_READ_ONLY) != 0;
    return sg_window_find(address) || !pin(address, size, read_only) ? CUDA_ERROR_INVALID_VALUE
                                                                     : CUDA_SUCCESS;
}

CUresult sg_cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags) {
    struct sg_context *context;
    CUdeviceptr address = (CUdeviceptr)(uintptr_t)p;
    CUresult result = sg_context_current(&context);
    if (result == CUDA_SUCCESS)
        result = check_range(address, bytesize, Flags);
    if (result != CUDA_SUCCESS)
        return result;
    struct sg_range *range = malloc(sizeof *range);
    if (!range)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *range = (struct sg_range){.start = address,
                               .size = bytesize,
                               .ops = &registration_ops,
                               .device = -1,
                               .context = context,
                               .flags = Flags | CU_MEMHOSTREGISTER_DEVICEMAP};
    sg_range_insert(range);
    sg_context_ref(context);
    return CUDA_SUCCESS;
}

CUresult sg_cuMemHostRegister(void *p, size_t bytesize, unsigned int Flags) {
    return sg_cuMemHostRegister_v2(p, bytesize, Flags);
}

CUresult sg_cuMemHostUnregister(void *p) {
    CUdeviceptr address = (CUdeviceptr)(uintptr_t)p;
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sg_range_find(address))
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    struct sg_range *range = sg_range_at(address, &registration_ops);
    if (!range)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sg_allocation_wait(&range);
    if (result == CUDA_SUCCESS)
        end(range);
    return result;
}
