#include "share/kinds.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

#define VERSION 1u
static const char chunks_magic[8] = {'g', 'p', 'u', 'm', 'e', 'm', '-', 'd'};
static const char pool_magic[8] = {'g', 'p', 'u', 'm', 'e', 'm', '-', 'm'};
static const char event_magic[8] = {'g', 'p', 'u', 'm', 'e', 'm', '-', 'e'};

_Static_assert(sizeof(struct gm_pool_description) == 136, "the layout is a protocol");
_Static_assert(sizeof(struct gm_event_description) == 96, "the layout is a protocol");

enum gm_kind gm_kind_of(const void *description, size_t bytes) {
    if (!description || bytes < sizeof chunks_magic)
        return GM_KIND_UNKNOWN;
    if (memcmp(description, chunks_magic, sizeof chunks_magic) == 0)
        return GM_KIND_CHUNKS;
    if (memcmp(description, pool_magic, sizeof pool_magic) == 0)
        return GM_KIND_POOL;
    return memcmp(description, event_magic, sizeof event_magic) == 0 ? GM_KIND_EVENT
                                                                     : GM_KIND_UNKNOWN;
}

const char *gm_kind_name(enum gm_kind kind) {
    switch (kind) {
    case GM_KIND_CHUNKS:
        return "mapped memory";
    case GM_KIND_POOL:
        return "memory of a pool";
    case GM_KIND_EVENT:
        return "an event";
    default:
        return "something unknown";
    }
}

static void *copy_of(const void *data, size_t size, size_t *bytes) {
    void *made = malloc(size);
    if (made)
        memcpy(made, data, size);
    *bytes = size;
    return made;
}

void *gm_pool_description_write(const gpumem_pool_share_handle *pool,
                                const gpumem_pool_share_buffer *buffer,
                                const unsigned char device[16], size_t *bytes) {
    struct gm_pool_description made = {
        .version = VERSION,
        .bytes_of_this = sizeof made,
        .location = (int32_t)pool->location,
        .numa_node = pool->numa_node,
        .bytes = buffer->bytes,
        .offset = buffer->offset,
    };
    memcpy(made.magic, pool_magic, sizeof made.magic);
    memcpy(made.device, device, sizeof made.device);
    memcpy(made.pool, pool->uuid, sizeof made.pool);
    memcpy(made.data, buffer->data, sizeof made.data);
    return copy_of(&made, sizeof made, bytes);
}

void *gm_event_description_write(const unsigned char device[16], const unsigned char handle[64],
                                 size_t *bytes) {
    struct gm_event_description made = {.version = VERSION, .bytes_of_this = sizeof made};
    memcpy(made.magic, event_magic, sizeof made.magic);
    memcpy(made.device, device, sizeof made.device);
    memcpy(made.handle, handle, sizeof made.handle);
    return copy_of(&made, sizeof made, bytes);
}

/* The beginning of both. */
static gpumem_status check(const void *data, size_t bytes, size_t wanted, enum gm_kind kind) {
    if (gm_kind_of(data, bytes) != kind)
        return gm_fail(GPUMEM_ERROR_DATA, "not a description of %s: it does not begin like one",
                       gm_kind_name(kind));
    uint32_t version, size;
    if (bytes != wanted)
        return gm_fail(GPUMEM_ERROR_DATA, "a description of %s has %zu bytes, this one %zu",
                       gm_kind_name(kind), wanted, bytes);
    memcpy(&version, (const char *)data + 8, sizeof version);
    memcpy(&size, (const char *)data + 12, sizeof size);
    if (version != VERSION || size != wanted)
        return gm_fail(GPUMEM_ERROR_PEER,
                       "the description of %s has version %u, this library reads version %u",
                       gm_kind_name(kind), version, VERSION);
    return GPUMEM_OK;
}

gpumem_status gm_pool_description_read(const void *data, size_t bytes, uint64_t maximum,
                                       struct gm_pool_description *description) {
    struct gm_pool_description read;
    gpumem_status status = check(data, bytes, sizeof read, GM_KIND_POOL);
    if (status != GPUMEM_OK)
        return status;
    memcpy(&read, data, sizeof read);
    if (read.location < 0 || read.location > GPUMEM_LOCATION_HOST_NUMA || read.numa_node < -1)
        return gm_fail(GPUMEM_ERROR_DATA, "a pool at location %d, node %d is impossible",
                       (int)read.location, (int)read.numa_node);
    if (!read.bytes || read.bytes > SIZE_MAX / 2 || read.offset > SIZE_MAX / 2)
        return gm_fail(GPUMEM_ERROR_DATA, "a buffer of %llu bytes at %llu is impossible",
                       (unsigned long long)read.bytes, (unsigned long long)read.offset);
    if (read.bytes > maximum || read.offset > maximum - read.bytes)
        return gm_fail(GPUMEM_ERROR_DATA,
                       "the other process offers more than the %llu bytes that are accepted",
                       (unsigned long long)maximum);
    *description = read;
    return GPUMEM_OK;
}

gpumem_status gm_event_description_read(const void *data, size_t bytes,
                                        struct gm_event_description *description) {
    gpumem_status status = check(data, bytes, sizeof *description, GM_KIND_EVENT);
    if (status == GPUMEM_OK)
        memcpy(description, data, sizeof *description);
    return status;
}
