/* Copies of rows. */
#include "base/cancel.h"
#include "memory/copy/copy.h"

/* Bytes from the start of the first row to the end of the last one. */
static gpumem_status extent_of(const gpumem_rows *rows, size_t pitch, size_t *extent) {
    size_t gaps;
    GM_REQUIRE(pitch >= rows->width, "copy of rows: a pitch of %zu is less than the width %zu",
               pitch, rows->width);
    GM_REQUIRE(!__builtin_mul_overflow(rows->count - 1, pitch, &gaps) &&
                   !__builtin_add_overflow(gaps, rows->width, extent),
               "copy of rows: no memory has %zu rows of pitch %zu", rows->count, pitch);
    return GPUMEM_OK;
}

/* The rows with defaults filled in, and their extent on either side. */
struct plan {
    gpumem_rows rows;
    size_t to_extent, from_extent;
    int empty;
};

static gpumem_status make_plan(const gpumem_rows *rows, const char *call, struct plan *plan) {
    GM_REQUIRE(rows, "%s: rows is NULL", call);
    *plan = (struct plan){.rows = *rows, .empty = !rows->width || !rows->count};
    if (plan->empty)
        return GPUMEM_OK;
    if (!plan->rows.to_pitch)
        plan->rows.to_pitch = rows->width;
    if (!plan->rows.from_pitch)
        plan->rows.from_pitch = rows->width;
    gpumem_status status = extent_of(&plan->rows, plan->rows.to_pitch, &plan->to_extent);
    return status == GPUMEM_OK ? extent_of(&plan->rows, plan->rows.from_pitch, &plan->from_extent)
                               : status;
}

/* Both sides are named by address alone: the driver's typed copies refuse memory of a host pool. */
static gpumem_status queue(gpumem_device *device, CUdeviceptr to, CUdeviceptr from,
                           const struct plan *plan, CUstream stream) {
    const gpumem_rows *rows = &plan->rows;
    if (rows->to_pitch == rows->width && rows->from_pitch == rows->width)
        return gm_copy_addresses(device, to, from, plan->to_extent, stream);
    const CUDA_MEMCPY2D copy = {
        .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
        .srcDevice = from,
        .srcPitch = rows->from_pitch,
        .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
        .dstDevice = to,
        .dstPitch = rows->to_pitch,
        .WidthInBytes = rows->width,
        .Height = rows->count,
    };
    GM_IN_CONTEXT(device, cu->cuMemcpy2DAsync_v2(&copy, stream), "cuMemcpy2DAsync",
                  "cannot copy %zu rows of %zu bytes", rows->count, rows->width);
}

gpumem_status gpumem_buffer_write_2d(gpumem_buffer *buffer, size_t offset, const void *host,
                                     const gpumem_rows *rows, CUstream stream) {
    GM_UNCANCELLED;
    const char *call = "gpumem_buffer_write_2d";
    struct plan plan;
    gpumem_status status = make_plan(rows, call, &plan);
    if (status == GPUMEM_OK)
        status = gm_copy_writes(buffer, offset, plan.to_extent, stream, call);
    if (status != GPUMEM_OK || plan.empty)
        return status;
    GM_REQUIRE(host, "%s: host is NULL", call);
    return queue(buffer->resource->device, buffer->allocation.pointer + offset,
                 (CUdeviceptr)(uintptr_t)host, &plan, stream);
}

gpumem_status gpumem_buffer_read_2d(gpumem_buffer *buffer, size_t offset, void *host,
                                    const gpumem_rows *rows, CUstream stream) {
    GM_UNCANCELLED;
    const char *call = "gpumem_buffer_read_2d";
    struct plan plan;
    gpumem_status status = make_plan(rows, call, &plan);
    if (status == GPUMEM_OK)
        status = gm_copy_reads(buffer, offset, plan.from_extent, stream, call);
    if (status != GPUMEM_OK || plan.empty)
        return status;
    GM_REQUIRE(host, "%s: host is NULL", call);
    return queue(buffer->resource->device, (CUdeviceptr)(uintptr_t)host,
                 buffer->allocation.pointer + offset, &plan, stream);
}

static gpumem_status queue_between_devices(const gpumem_buffer *to, size_t to_offset,
                                           const gpumem_buffer *from, size_t from_offset,
                                           const struct plan *plan, CUstream stream) {
    const gpumem_rows *rows = &plan->rows;
    gpumem_device *there = to->resource->device, *here = from->resource->device;
    const CUDA_MEMCPY3D_PEER copy = {
        .srcMemoryType = CU_MEMORYTYPE_DEVICE,
        .srcDevice = from->allocation.pointer + from_offset,
        .srcContext = here->context,
        .srcPitch = rows->from_pitch,
        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
        .dstDevice = to->allocation.pointer + to_offset,
        .dstContext = there->context,
        .dstPitch = rows->to_pitch,
        .WidthInBytes = rows->width,
        .Height = rows->count,
        .Depth = 1,
    };
    GM_IN_CONTEXT(there, cu->cuMemcpy3DPeerAsync(&copy, stream), "cuMemcpy3DPeerAsync",
                  "cannot copy %zu rows of %zu bytes from device %d to device %d", rows->count,
                  rows->width, here->ordinal, there->ordinal);
}

gpumem_status gpumem_buffer_copy_2d(gpumem_buffer *to, size_t to_offset, gpumem_buffer *from,
                                    size_t from_offset, const gpumem_rows *rows, CUstream stream) {
    GM_UNCANCELLED;
    struct plan plan;
    gpumem_status status = make_plan(rows, "gpumem_buffer_copy_2d", &plan);
    if (status == GPUMEM_OK)
        status =
            gm_copy_writes(to, to_offset, plan.to_extent, stream, "gpumem_buffer_copy_2d (to)");
    if (status == GPUMEM_OK)
        status = gm_copy_reads(from, from_offset, plan.from_extent, stream,
                               "gpumem_buffer_copy_2d (from)");
    if (status != GPUMEM_OK || plan.empty)
        return status;
    GM_REQUIRE(to->resource->device->library == from->resource->device->library,
               "gpumem_buffer_copy_2d: the buffers belong to two opened libraries");
    if (gm_copy_is_between_devices(to, from))
        return queue_between_devices(to, to_offset, from, from_offset, &plan, stream);
    return queue(to->resource->device, to->allocation.pointer + to_offset,
                 from->allocation.pointer + from_offset, &plan, stream);
}
