/* Plain allocations of device memory and of pinned host memory: a range backed by bytes. */
#ifndef SG_MEMORY_ALLOCATION_H
#define SG_MEMORY_ALLOCATION_H

#include "softgpu/address/backing.h"
#include "softgpu/address/range.h"
#include "softgpu/context/context.h"
#include "softgpu/core/chapter.h"
#include "softgpu/process/live.h"

/* Flags that the application requests and can query. */
#define SG_HOST_FLAGS                                                                              \
    ((unsigned)(CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP |                             \
                CU_MEMHOSTALLOC_WRITECOMBINED))

/* What range->owner is. */
struct sg_allocation {
    struct sg_range range;
    struct sg_backing backing;
    bool exported; /* ipc/: a handle names it, through `live` */
    struct sg_live live;
    struct sg_allocation *kept_next; /* quarantine.c's */
};

/* `size` bytes on `device` (-1: pinned host memory), accessible to every device, owned by `context`
 * (referenced). All or nothing. */
CUresult sg_allocate(struct sg_context *context, int device, size_t size, unsigned flags,
                     struct sg_range **range);
/* The same on the context's device for variables of a module: the range is marked as such, and the
 * application cannot free it. Alignments greater than a page are not honoured. */
CUresult sg_allocate_variable(struct sg_context *context, size_t size, uint64_t alignment,
                              struct sg_range **range);
void sg_allocation_free(struct sg_range *range);
/* Pinned host memory. */
extern const struct sg_range_ops sg_host_allocation_ops;
/* The device memory allocation whose range this is; NULL for any other range. */
struct sg_allocation *sg_device_allocation_of(const struct sg_range *range);

/* Waits for the work of the range's context, as cuMemFree and its kin do, and looks the range up
 * again. INVALID_VALUE when another thread freed it meanwhile; else the context's own error. */
CUresult sg_allocation_wait(struct sg_range **range);

/* Frees what belongs to a context. VMM and pool memory belongs to no context and remains. */
void sg_memory_context_end(struct sg_context *context);

extern const struct sg_chapter sg_memory_chapter;

#endif
