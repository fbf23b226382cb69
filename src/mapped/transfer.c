/* Reading and writing memory that the CPU reaches. */
#include "base/cancel.h"
#include "mapped/resource.h"
#include "memory/buffer.h"
#include "memory/driver_error.h"

#include <stdatomic.h>
#include <string.h>

/* The bytes, which are in the buffer and the CPU's to reach. `from` is where they begin in the
 * buffer that has the memory. */
struct target {
    unsigned char *bytes;
    struct gm_host_range *range; /* or NULL: coherent */
    size_t from;
};

static gpumem_status find(gpumem_buffer *buffer, size_t offset, size_t bytes, const char *call,
                          struct target *target) {
    GM_CHECK(buffer, call);
    gpumem_status status = gm_buffer_range(buffer, offset, bytes, call);
    if (status != GPUMEM_OK)
        return status;
    const gpumem_buffer *root = buffer->root ? buffer->root : buffer;
    unsigned char *base = buffer->allocation.host_pointer;
    if (!base)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "%s: the CPU does not reach memory of a %s "
                       "resource",
                       call, root->resource->kind);
    target->bytes = base + offset;
    target->range = gm_mapped_range(root);
    target->from = target->range ? (size_t)(target->bytes - target->range->base) : 0;
    return GPUMEM_OK;
}

static gpumem_status flush(const struct target *target, size_t bytes) {
    if (target->range)
        return gm_host_range_flush(target->range, target->from, bytes);
    gm_mapped_fence();
    return GPUMEM_OK;
}

static gpumem_status invalidate(const struct target *target, size_t bytes) {
    if (target->range)
        return gm_host_range_invalidate(target->range, target->from, bytes);
    return GPUMEM_OK;
}

gpumem_status gpumem_mapped_write(gpumem_buffer *buffer, size_t offset, const void *data,
                                  size_t bytes) {
    GM_UNCANCELLED;
    struct target target;
    gpumem_status status = find(buffer, offset, bytes, "gpumem_mapped_write", &target);
    if (status != GPUMEM_OK || !bytes)
        return status;
    GM_REQUIRE(data, "gpumem_mapped_write: data is NULL");
    if (buffer->read_only)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED, "gpumem_mapped_write: the memory is read-only");
    memcpy(target.bytes, data, bytes);
    return flush(&target, bytes);
}

gpumem_status gpumem_mapped_read(gpumem_buffer *buffer, size_t offset, void *data, size_t bytes) {
    GM_UNCANCELLED;
    struct target target;
    gpumem_status status = find(buffer, offset, bytes, "gpumem_mapped_read", &target);
    if (status != GPUMEM_OK || !bytes)
        return status;
    GM_REQUIRE(data, "gpumem_mapped_read: data is NULL");
    status = invalidate(&target, bytes);
    if (status == GPUMEM_OK)
        memcpy(data, target.bytes, bytes);
    return status;
}

gpumem_status gpumem_mapped_flush(gpumem_buffer *buffer, size_t offset, size_t bytes) {
    GM_UNCANCELLED;
    struct target target;
    gpumem_status status = find(buffer, offset, bytes, "gpumem_mapped_flush", &target);
    return status == GPUMEM_OK && bytes ? flush(&target, bytes) : status;
}

gpumem_status gpumem_mapped_invalidate(gpumem_buffer *buffer, size_t offset, size_t bytes) {
    GM_UNCANCELLED;
    struct target target;
    gpumem_status status = find(buffer, offset, bytes, "gpumem_mapped_invalidate", &target);
    return status == GPUMEM_OK && bytes ? invalidate(&target, bytes) : status;
}

gpumem_status gpumem_mapped_publish(gpumem_buffer *buffer, size_t offset, const void *data,
                                    size_t bytes, size_t flag_offset, uint32_t value) {
    GM_UNCANCELLED;
    struct target flag;
    gpumem_status status = find(buffer, flag_offset, sizeof value, "gpumem_mapped_publish", &flag);
    if (status != GPUMEM_OK)
        return status;
    GM_REQUIRE((uintptr_t)flag.bytes % sizeof value == 0,
               "gpumem_mapped_publish: flag_offset %zu is not aligned to %zu", flag_offset,
               sizeof value);
    GM_REQUIRE(flag_offset >= offset + bytes || offset >= flag_offset + sizeof value,
               "gpumem_mapped_publish: the flag at %zu lies in the payload", flag_offset);
    status = gpumem_mapped_write(buffer, offset, data, bytes);
    if (status != GPUMEM_OK)
        return status;
    __atomic_store_n((uint32_t *)(void *)flag.bytes, value, __ATOMIC_RELEASE);
    return flush(&flag, sizeof value);
}
