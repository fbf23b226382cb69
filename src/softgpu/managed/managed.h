/*
 * Managed memory: real bytes at one address for the CPU and all devices, as pinned memory is here,
 * and what the application declared about each page. Nothing migrates. Everything needs the lock.
 */
#ifndef SG_MANAGED_MANAGED_H
#define SG_MANAGED_MANAGED_H

#include "softgpu/address/range.h"
#include "softgpu/context/context.h"
#include "softgpu/managed/pages.h"
#include "softgpu/stream/stream.h"

/*
 * `size` bytes that belong to `context` (referenced; NULL for none), a range whose `device` is the
 * context's, or 0. `flags`: CU_MEM_ATTACH_GLOBAL or CU_MEM_ATTACH_HOST, checked by the caller. All
 * or nothing.
 */
CUresult sg_managed_allocate(struct sg_context *context, size_t size, unsigned flags, bool variable,
                             struct sg_range **range);
extern const struct sg_range_ops sg_managed_ops;

/* The pages that contain [address, address + size), when all of it is managed memory of one
 * allocation; else NULL. */
struct sg_pages *sg_managed_pages(CUdeviceptr address, size_t size);

/* Only work of `stream` (referenced) uses it, or with NULL the work that `flags` name. Ends with
 * the stream, which restores the flags the allocation was made with. */
void sg_managed_attach(struct sg_range *range, unsigned flags, struct sg_stream *stream);

#endif
