/* Reading and writing memory that the CPU can access. */
#include "base/cancel.h"
#include "base/fork.h"
#include "mapped/engine.h"
#include "mapped/incoherent.h"
#include "memory/core/driver_error.h"
#include "memory/object/buffer.h"

static gpumem_status find(gpumem_buffer *buffer, size_t offset, size_t bytes, const char *call,
                          struct gm_place *place) {
    GM_CHECK(buffer, call);
    gpumem_status status = gm_buffer_range(buffer, offset, bytes, call);
    if (status != GPUMEM_OK)
        return status;
    unsigned char *base = buffer->allocation.host_pointer;
    if (!base)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "%s: the CPU does not reach memory of a %s resource", call,
                       (buffer->root ? buffer->root : buffer)->resource->kind);
    *place = (struct gm_place){base + offset, buffer->allocation.pointer + offset};
    return GPUMEM_OK;
}

static gpumem_status find_to_write(gpumem_buffer *buffer, size_t offset, const void *data,
                                   size_t bytes, const char *call, struct gm_place *place) {
    gpumem_status status = find(buffer, offset, bytes, call, place);
    if (status != GPUMEM_OK)
        return status;
    GM_REQUIRE(data || !bytes, "%s: data is NULL", call);
    if (buffer->read_only)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED, "%s: the memory is read-only", call);
    return GPUMEM_OK;
}

static gpumem_status write_guarded(gpumem_buffer *buffer, size_t offset, const void *data,
                                   size_t bytes) {
    GM_UNCANCELLED;
    struct gm_place to;
    gpumem_status status = find_to_write(buffer, offset, data, bytes, "gpumem_mapped_write", &to);
    if (status != GPUMEM_OK || !bytes)
        return status;
    return gm_engine_write(gm_engine_of(buffer), to, data, bytes);
}

/* The CPU's stores are no cancellation point, and disabling cancellation would take as long as
 * storing some words. */
static bool write_unguarded(gpumem_buffer *buffer, size_t offset, const void *data, size_t bytes) {
    const gpumem_allocation *memory = &buffer->allocation;
    const gpumem_buffer *root = buffer->root ? buffer->root : buffer;
    const struct gm_mapped *mapped = root->resource->mapped;
    size_t shift = (size_t)(memory->pointer - root->allocation.pointer);
    bool inside = offset <= memory->bytes && bytes <= memory->bytes - offset;
    return inside && memory->host_pointer && !buffer->read_only &&
           (!mapped || mapped->is_whole(&root->allocation, shift + offset, bytes)) &&
           gm_engine_write_at_once(gm_engine_of(buffer),
                                   (unsigned char *)memory->host_pointer + offset, data, bytes);
}

/* Whatever is unusual, and each error, is the guarded form's. */
gpumem_status gpumem_mapped_write(gpumem_buffer *buffer, size_t offset, const void *data,
                                  size_t bytes) {
    if (buffer && data && bytes && buffer->generation == gm_fork_generation() &&
        write_unguarded(buffer, offset, data, bytes))
        return GPUMEM_OK;
    return write_guarded(buffer, offset, data, bytes);
}

gpumem_status gpumem_mapped_read(gpumem_buffer *buffer, size_t offset, void *data, size_t bytes) {
    GM_UNCANCELLED;
    struct gm_place from;
    gpumem_status status = find(buffer, offset, bytes, "gpumem_mapped_read", &from);
    if (status != GPUMEM_OK || !bytes)
        return status;
    GM_REQUIRE(data, "gpumem_mapped_read: data is NULL");
    return gm_engine_read(gm_engine_of(buffer), data, from, bytes);
}

gpumem_status gpumem_mapped_flush(gpumem_buffer *buffer, size_t offset, size_t bytes) {
    GM_UNCANCELLED;
    struct gm_place place;
    gpumem_status status = find(buffer, offset, bytes, "gpumem_mapped_flush", &place);
    return status == GPUMEM_OK && bytes ? gm_engine_flush(place.host, bytes) : status;
}

gpumem_status gpumem_mapped_invalidate(gpumem_buffer *buffer, size_t offset, size_t bytes) {
    GM_UNCANCELLED;
    struct gm_place place;
    gpumem_status status = find(buffer, offset, bytes, "gpumem_mapped_invalidate", &place);
    return status == GPUMEM_OK && bytes ? gm_incoherent_invalidate(place.host, bytes) : status;
}

/* Never by the driver's copy, whatever the size: the kernel that waits for the flag may block the
 * queue that the copy would wait in. */
gpumem_status gpumem_mapped_publish(gpumem_buffer *buffer, size_t offset, const void *data,
                                    size_t bytes, size_t flag_offset, uint32_t value) {
    GM_UNCANCELLED;
    static const char call[] = "gpumem_mapped_publish";
    struct gm_place flag, to;
    gpumem_status status = find(buffer, flag_offset, sizeof value, call, &flag);
    if (status != GPUMEM_OK)
        return status;
    GM_REQUIRE((uintptr_t)flag.host % sizeof value == 0,
               "%s: flag_offset %zu is not aligned to %zu", call, flag_offset, sizeof value);
    GM_REQUIRE(flag_offset >= offset + bytes || offset >= flag_offset + sizeof value,
               "%s: the flag at %zu lies in the payload", call, flag_offset);
    status = find_to_write(buffer, offset, data, bytes, call, &to);
    if (status != GPUMEM_OK)
        return status;
    if (bytes) {
        gm_engine_store(gm_engine_of(buffer), to.host, data, bytes);
        status = gm_engine_flush(to.host, bytes);
        if (status != GPUMEM_OK)
            return status;
    }
    __atomic_store_n((uint32_t *)(void *)flag.host, value, __ATOMIC_RELEASE);
    return gm_engine_flush(flag.host, sizeof value);
}
