/* Reading and writing memory that the CPU reaches. */
#include "base/cancel.h"
#include "mapped/incoherent.h"
#include "mapped/mapper.h"
#include "memory/core/driver_error.h"
#include "memory/object/buffer.h"

#include <stdatomic.h>
#include <string.h>

static gpumem_status find(gpumem_buffer *buffer, size_t offset, size_t bytes, const char *call,
                          unsigned char **begin) {
    GM_CHECK(buffer, call);
    gpumem_status status = gm_buffer_range(buffer, offset, bytes, call);
    if (status != GPUMEM_OK)
        return status;
    unsigned char *base = buffer->allocation.host_pointer;
    if (!base)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "%s: the CPU does not reach memory of a %s resource", call,
                       (buffer->root ? buffer->root : buffer)->resource->kind);
    *begin = base + offset;
    return GPUMEM_OK;
}

static gpumem_status flush(const void *begin, size_t bytes) {
    gm_mapped_fence();
    return gm_incoherent_flush(begin, bytes);
}

gpumem_status gpumem_mapped_write(gpumem_buffer *buffer, size_t offset, const void *data,
                                  size_t bytes) {
    GM_UNCANCELLED;
    unsigned char *begin;
    gpumem_status status = find(buffer, offset, bytes, "gpumem_mapped_write", &begin);
    if (status != GPUMEM_OK || !bytes)
        return status;
    GM_REQUIRE(data, "gpumem_mapped_write: data is NULL");
    if (buffer->read_only)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED, "gpumem_mapped_write: the memory is read-only");
    memcpy(begin, data, bytes);
    return flush(begin, bytes);
}

gpumem_status gpumem_mapped_read(gpumem_buffer *buffer, size_t offset, void *data, size_t bytes) {
    GM_UNCANCELLED;
    unsigned char *begin;
    gpumem_status status = find(buffer, offset, bytes, "gpumem_mapped_read", &begin);
    if (status != GPUMEM_OK || !bytes)
        return status;
    GM_REQUIRE(data, "gpumem_mapped_read: data is NULL");
    status = gm_incoherent_invalidate(begin, bytes);
    if (status == GPUMEM_OK)
        memcpy(data, begin, bytes);
    return status;
}

gpumem_status gpumem_mapped_flush(gpumem_buffer *buffer, size_t offset, size_t bytes) {
    GM_UNCANCELLED;
    unsigned char *begin;
    gpumem_status status = find(buffer, offset, bytes, "gpumem_mapped_flush", &begin);
    return status == GPUMEM_OK && bytes ? flush(begin, bytes) : status;
}

gpumem_status gpumem_mapped_invalidate(gpumem_buffer *buffer, size_t offset, size_t bytes) {
    GM_UNCANCELLED;
    unsigned char *begin;
    gpumem_status status = find(buffer, offset, bytes, "gpumem_mapped_invalidate", &begin);
    return status == GPUMEM_OK && bytes ? gm_incoherent_invalidate(begin, bytes) : status;
}

gpumem_status gpumem_mapped_publish(gpumem_buffer *buffer, size_t offset, const void *data,
                                    size_t bytes, size_t flag_offset, uint32_t value) {
    GM_UNCANCELLED;
    unsigned char *flag;
    gpumem_status status = find(buffer, flag_offset, sizeof value, "gpumem_mapped_publish", &flag);
    if (status != GPUMEM_OK)
        return status;
    GM_REQUIRE((uintptr_t)flag % sizeof value == 0,
               "gpumem_mapped_publish: flag_offset %zu is not aligned to %zu", flag_offset,
               sizeof value);
    GM_REQUIRE(flag_offset >= offset + bytes || offset >= flag_offset + sizeof value,
               "gpumem_mapped_publish: the flag at %zu lies in the payload", flag_offset);
    status = gpumem_mapped_write(buffer, offset, data, bytes);
    if (status != GPUMEM_OK)
        return status;
    __atomic_store_n((uint32_t *)(void *)flag, value, __ATOMIC_RELEASE);
    return flush(flag, sizeof value);
}
