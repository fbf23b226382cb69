/* Reservations: addresses without memory. */
#include "base/options.h"
#include "memory/device.h"
#include "memory/driver_error.h"
#include "memory/virtual.h"
#include "memory/vmm.h"

#include <stdlib.h>

static gpumem_status check_reservation(const gpumem_device *device, size_t bytes,
                                       const gpumem_reservation_options *options) {
    gpumem_status status = gm_vmm_supported(device);
    if (status != GPUMEM_OK)
        return status;
    size_t unit = device->granularity;
    GM_REQUIRE(bytes, "gpumem_reservation_create: bytes is 0");
    GM_REQUIRE(bytes % unit == 0,
               "gpumem_reservation_create: %zu bytes are no multiple of the granularity %zu", bytes,
               unit);
    GM_REQUIRE((options->alignment & (options->alignment - 1)) == 0,
               "gpumem_reservation_create: alignment %zu is no power of two", options->alignment);
    GM_REQUIRE(options->address % unit == 0,
               "gpumem_reservation_create: address 0x%llx is not aligned to %zu", options->address,
               unit);
    return GPUMEM_OK;
}

gpumem_status gpumem_reservation_create(gpumem_device *device, size_t bytes,
                                        const gpumem_reservation_options *given,
                                        gpumem_reservation **reservation) {
    gpumem_reservation_options options;
    GM_CHECK(device, "gpumem_reservation_create");
    GM_REQUIRE(reservation, "gpumem_reservation_create: reservation is NULL");
    gpumem_status status =
        gm_options_read("gpumem_reservation_options", given, &options, sizeof options);
    if (status == GPUMEM_OK)
        status = check_reservation(device, bytes, &options);
    if (status != GPUMEM_OK)
        return status;
    gpumem_reservation *made = calloc(1, sizeof *made);
    if (!made)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a reservation");
    size_t alignment =
        options.alignment > device->granularity ? options.alignment : device->granularity;
    status = gm_vmm_reserve(device, bytes, alignment, options.address, &made->address);
    if (status != GPUMEM_OK) {
        free(made);
        return status;
    }
    made->generation = device->generation;
    made->device = device;
    made->bytes = bytes;
    pthread_mutex_init(&made->lock, NULL);
    gm_device_object_made(device);
    gm_meter_add(&device->meter, GM_RESERVED, bytes);
    *reservation = made;
    return GPUMEM_OK;
}

gpumem_status gpumem_reservation_destroy(gpumem_reservation *reservation) {
    if (!reservation)
        return GPUMEM_OK;
    GM_CHECK(reservation, "gpumem_reservation_destroy");
    gpumem_device *device = reservation->device;
    pthread_mutex_lock(&reservation->lock);
    const gpumem_mapping *mapped = reservation->mappings;
    size_t at = mapped ? mapped->offset : 0;
    pthread_mutex_unlock(&reservation->lock);
    if (mapped)
        return gm_fail(GPUMEM_ERROR_BUSY,
                       "gpumem_reservation_destroy: memory is still mapped at offset %zu", at);
    gm_meter_subtract(&device->meter, GM_RESERVED, reservation->bytes);
    gm_vmm_unreserve(device, &device->meter, reservation->address, reservation->bytes);
    gm_device_object_gone(device);
    pthread_mutex_destroy(&reservation->lock);
    gm_bury(reservation);
    return GPUMEM_OK;
}

CUdeviceptr gpumem_reservation_address(const gpumem_reservation *reservation) {
    return reservation->address;
}

size_t gpumem_reservation_size(const gpumem_reservation *reservation) {
    return reservation->bytes;
}
