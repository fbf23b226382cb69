/* Reads and checks what another process offers, and passes it to the code that maps that kind of
 * memory. */
#include "memory/core/driver_error.h"
#include "memory/core/vmm_calls.h"
#include "memory/object/shortage.h"
#include "share/import.h"

#include <string.h>

gpumem_status gm_share_check_device(const gpumem_device *device, const unsigned char uuid[16]) {
    unsigned char own[16];
    gpumem_status status = gm_device_uuid(device, own);
    if (status != GPUMEM_OK)
        return status;
    if (memcmp(own, uuid, sizeof own) == 0)
        return GPUMEM_OK;
    return gm_fail(
        GPUMEM_ERROR_NO_DEVICE,
        "the memory belongs to the device with UUID %02x%02x%02x%02x-..., which is not device %d",
        uuid[0], uuid[1], uuid[2], uuid[3], device->ordinal);
}

static gpumem_status read_chunks(gpumem_device *device, const void *description, size_t bytes,
                                 uint64_t maximum, struct gm_incoming *incoming) {
    gpumem_status status = gm_vmm_supported(device);
    if (status == GPUMEM_OK)
        status = gm_description_read(description, bytes, device->granularity, maximum, NULL,
                                     &incoming->head, &incoming->sizes);
    return status == GPUMEM_OK ? gm_share_check_device(device, incoming->head.device) : status;
}

static gpumem_status read_pool(gpumem_device *device, const void *description, size_t bytes,
                               uint64_t maximum, struct gm_incoming *incoming) {
    incoming->of_pool = 1;
    gpumem_status status = gm_pool_description_read(description, bytes, maximum, &incoming->pool);
    return status == GPUMEM_OK ? gm_share_check_device(device, incoming->pool.device) : status;
}

gpumem_status gm_incoming_read(gpumem_device *device, const void *description, size_t bytes,
                               uint64_t maximum, struct gm_incoming *incoming) {
    *incoming = (struct gm_incoming){.of_pool = 0};
    switch (gm_kind_of(description, bytes)) {
    case GM_KIND_POOL:
        return read_pool(device, description, bytes, maximum, incoming);
    case GM_KIND_EVENT:
        return gm_fail(GPUMEM_ERROR_DATA, "an event was sent where memory was expected; receive "
                                          "it with gpumem_import_receive_event");
    default:
        return read_chunks(device, description, bytes, maximum, incoming);
    }
}

size_t gm_incoming_descriptors(const struct gm_incoming *incoming) {
    return incoming->of_pool ? 1 : incoming->head.chunk_count;
}

gpumem_status gm_incoming_map(gpumem_device *device, const struct gm_incoming *incoming,
                              const int *fds, const struct gm_import_terms *terms,
                              gpumem_buffer **buffer) {
    uint64_t bytes = incoming->of_pool ? incoming->pool.bytes : incoming->head.bytes;
    gpumem_status status =
        incoming->of_pool
            ? gm_import_pool_map(device, &incoming->pool, fds[0], terms, buffer)
            : gm_import_map(device, &incoming->head, incoming->sizes, fds, terms, buffer);
    return gm_tell_shortage(device, NULL, bytes, status);
}
