#include "memory/copy/copy.h"

#include "base/cancel.h"
#include "memory/virtual/virtual_resource.h"

gpumem_status gm_copy_check(gpumem_buffer *buffer, size_t offset, size_t bytes, int writes,
                            const char *call) {
    GM_CHECK(buffer, call);
    if (writes && buffer->read_only)
        return gm_fail(GPUMEM_ERROR_NOT_PERMITTED, "%s: the buffer is read-only", call);
    gpumem_status status = gm_buffer_range(buffer, offset, bytes, call);
    return status == GPUMEM_OK ? gm_virtual_permits(buffer, offset, bytes, writes, call) : status;
}

gpumem_status gm_copy_reads(gpumem_buffer *buffer, size_t offset, size_t bytes, CUstream stream,
                            const char *call) {
    gpumem_status status = gm_copy_check(buffer, offset, bytes, 0, call);
    return status == GPUMEM_OK && bytes ? gpumem_buffer_use(buffer, stream) : status;
}

gpumem_status gm_copy_writes(gpumem_buffer *buffer, size_t offset, size_t bytes, CUstream stream,
                             const char *call) {
    gpumem_status status = gm_copy_check(buffer, offset, bytes, 1, call);
    return status == GPUMEM_OK && bytes ? gpumem_buffer_use(buffer, stream) : status;
}

/* The driver sets no bytes that it does not know. */
gpumem_status gm_copy_fills(gpumem_buffer *buffer, size_t offset, size_t bytes, CUstream stream,
                            const char *call) {
    GM_CHECK(buffer, call);
    const gpumem_resource *resource = (buffer->root ? buffer->root : buffer)->resource;
    if (resource == resource->device->hidden[GM_HIDDEN_FOREIGN_HOST])
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "%s: only the CPU uses this memory; fill it through its host pointer", call);
    return gm_copy_writes(buffer, offset, bytes, stream, call);
}

int gm_copy_is_between_devices(const gpumem_buffer *to, const gpumem_buffer *from) {
    return to->resource->device != from->resource->device && !to->allocation.host_pointer &&
           !from->allocation.host_pointer;
}

static gpumem_status copy_between_devices(gpumem_buffer *to, size_t to_offset, gpumem_buffer *from,
                                          size_t from_offset, size_t bytes, CUstream stream) {
    gpumem_device *there = to->resource->device, *here = from->resource->device;
    GM_IN_CONTEXT(there,
                  cu->cuMemcpyPeerAsync(to->allocation.pointer + to_offset, there->context,
                                        from->allocation.pointer + from_offset, here->context,
                                        bytes, stream),
                  "cuMemcpyPeerAsync", "cannot copy %zu bytes from device %d to device %d", bytes,
                  here->ordinal, there->ordinal);
}

/*
 * Host memory is named by its address, as unified addressing has it: the driver's typed copies
 * refuse memory of a host pool on either side, the others accept it (recorded on an H200).
 */
gpumem_status gpumem_buffer_write(gpumem_buffer *buffer, size_t offset, const void *host,
                                  size_t bytes, CUstream stream) {
    GM_UNCANCELLED;
    gpumem_status status = gm_copy_writes(buffer, offset, bytes, stream, "gpumem_buffer_write");
    if (status != GPUMEM_OK || bytes == 0)
        return status;
    GM_REQUIRE(host, "gpumem_buffer_write: host is NULL");
    GM_IN_CONTEXT(buffer->resource->device,
                  cu->cuMemcpyAsync(buffer->allocation.pointer + offset,
                                    (CUdeviceptr)(uintptr_t)host, bytes, stream),
                  "cuMemcpyAsync", "cannot copy %zu bytes into a buffer", bytes);
}

gpumem_status gpumem_buffer_read(gpumem_buffer *buffer, size_t offset, void *host, size_t bytes,
                                 CUstream stream) {
    GM_UNCANCELLED;
    gpumem_status status = gm_copy_reads(buffer, offset, bytes, stream, "gpumem_buffer_read");
    if (status != GPUMEM_OK || bytes == 0)
        return status;
    GM_REQUIRE(host, "gpumem_buffer_read: host is NULL");
    GM_IN_CONTEXT(buffer->resource->device,
                  cu->cuMemcpyAsync((CUdeviceptr)(uintptr_t)host,
                                    buffer->allocation.pointer + offset, bytes, stream),
                  "cuMemcpyAsync", "cannot copy %zu bytes from a buffer", bytes);
}

gpumem_status gm_copy_addresses(gpumem_device *device, CUdeviceptr to, CUdeviceptr from,
                                size_t bytes, CUstream stream) {
    GM_IN_CONTEXT(device, cu->cuMemcpyAsync(to, from, bytes, stream), "cuMemcpyAsync",
                  "cannot copy %zu bytes", bytes);
}

gpumem_status gpumem_buffer_copy(gpumem_buffer *to, size_t to_offset, gpumem_buffer *from,
                                 size_t from_offset, size_t bytes, CUstream stream) {
    GM_UNCANCELLED;
    gpumem_status status = gm_copy_writes(to, to_offset, bytes, stream, "gpumem_buffer_copy (to)");
    if (status == GPUMEM_OK)
        status = gm_copy_reads(from, from_offset, bytes, stream, "gpumem_buffer_copy (from)");
    if (status != GPUMEM_OK || bytes == 0)
        return status;
    GM_REQUIRE(to->resource->device->library == from->resource->device->library,
               "gpumem_buffer_copy: the buffers belong to two opened libraries");
    if (gm_copy_is_between_devices(to, from))
        return copy_between_devices(to, to_offset, from, from_offset, bytes, stream);
    return gm_copy_addresses(to->resource->device, to->allocation.pointer + to_offset,
                             from->allocation.pointer + from_offset, bytes, stream);
}

size_t gm_fill_step(const gpumem_buffer *buffer, size_t offset, size_t bytes) {
    const gpumem_buffer *root = buffer->root ? buffer->root : buffer;
    const struct gm_virtual_resource *v = gm_virtual_behind(root->resource);
    if (!v || v->prop.location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        return bytes;
    const struct gm_extent *extent = &((const struct gm_range *)root->allocation.cookie)->extent;
    size_t from = offset + (size_t)(buffer->allocation.pointer - root->allocation.pointer), end = 0;
    for (size_t i = 0; i < extent->count && end <= from; i++)
        end += extent->chunks[i].bytes;
    return end > from && end - from < bytes ? end - from : bytes;
}

static gpumem_status fill(gpumem_device *device, CUdeviceptr to, size_t bytes, unsigned char value,
                          CUstream stream) {
    GM_IN_CONTEXT(device, cu->cuMemsetD8Async(to, value, bytes, stream), "cuMemsetD8Async",
                  "cannot fill %zu bytes", bytes);
}

gpumem_status gpumem_buffer_fill(gpumem_buffer *buffer, size_t offset, size_t bytes,
                                 unsigned char value, CUstream stream) {
    GM_UNCANCELLED;
    gpumem_status status = gm_copy_fills(buffer, offset, bytes, stream, "gpumem_buffer_fill");
    for (size_t step; status == GPUMEM_OK && bytes; offset += step, bytes -= step) {
        step = gm_fill_step(buffer, offset, bytes);
        status = fill(buffer->resource->device, buffer->allocation.pointer + offset, step, value,
                      stream);
    }
    return status;
}
