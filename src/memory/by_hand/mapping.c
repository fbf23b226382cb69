/* Mappings: physical memory at the addresses of a reservation. */
#include "base/cancel.h"
#include "base/options.h"
#include "memory/by_hand/by_hand.h"
#include "memory/core/driver_error.h"
#include "memory/core/vmm_calls.h"
#include "memory/object/closing.h"
#include "memory/object/device.h"
#include "memory/object/shortage.h"

#include <stdlib.h>

static gpumem_status check_place(const gpumem_reservation *reservation, size_t offset,
                                 const gpumem_physical *physical, size_t *at) {
    GM_REQUIRE(reservation->device->library == physical->device->library,
               "gpumem_mapping_create: the two belong to different opened libraries");
    GM_REQUIRE(offset % physical->granularity == 0,
               "gpumem_mapping_create: offset %zu is not aligned to the granularity %zu", offset,
               physical->granularity);
    GM_REQUIRE(offset <= reservation->bytes && physical->bytes <= reservation->bytes - offset,
               "gpumem_mapping_create: %zu bytes at offset %zu do not fit in the reservation's %zu",
               physical->bytes, offset, reservation->bytes);
    struct gm_span taken = gm_reservation_span(reservation, offset, physical->bytes);
    GM_REQUIRE(!taken.count,
               "gpumem_mapping_create: %zu bytes at offset %zu overlap those mapped at %zu",
               physical->bytes, offset, reservation->mapped[taken.first]->offset);
    *at = taken.first;
    return GPUMEM_OK;
}

/* With the reservation's lock held. */
static gpumem_status map(gpumem_mapping *made) {
    gpumem_reservation *reservation = made->reservation;
    gpumem_device *device = reservation->device;
    gpumem_physical *physical = made->physical;
    size_t at = 0;
    gpumem_status status = check_place(reservation, made->offset, physical, &at);
    if (status == GPUMEM_OK)
        status = gm_reservation_make_room(reservation);
    if (status == GPUMEM_OK)
        status = gm_vmm_map(device, &device->meter, made->address, made->bytes, physical->handle);
    if (status != GPUMEM_OK)
        return status;
    atomic_fetch_add(&physical->mapped, 1);
    gm_reservation_put(reservation, at, made);
    return GPUMEM_OK;
}

gpumem_status gpumem_mapping_create(gpumem_reservation *reservation, size_t offset,
                                    gpumem_physical *physical, gpumem_mapping **mapping) {
    GM_UNCANCELLED;
    GM_CHECK(reservation, "gpumem_mapping_create");
    GM_CHECK(physical, "gpumem_mapping_create");
    GM_REQUIRE(mapping, "gpumem_mapping_create: mapping is NULL");
    gpumem_mapping *made = calloc(1, sizeof *made);
    if (!made)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a mapping");
    made->generation = reservation->generation;
    made->reservation = reservation;
    made->physical = physical;
    made->address = reservation->address + offset;
    made->offset = offset;
    made->bytes = physical->bytes;
    atomic_init(&made->state, GPUMEM_MAPPING_MAPPED);
    pthread_mutex_lock(&reservation->lock);
    gpumem_status status = map(made);
    pthread_mutex_unlock(&reservation->lock);
    if (status != GPUMEM_OK) {
        free(made);
        return gm_tell_shortage(reservation->device, NULL, physical->bytes, status);
    }
    gm_device_object_made(reservation->device);
    *mapping = made;
    return GPUMEM_OK;
}

gpumem_status gpumem_mapping_destroy(gpumem_mapping *mapping) {
    GM_UNCANCELLED;
    if (!mapping)
        return GPUMEM_OK;
    GM_CHECK(mapping, "gpumem_mapping_destroy");
    gpumem_reservation *reservation = mapping->reservation;
    gpumem_device *device = reservation->device;
    gpumem_status status = GPUMEM_OK;
    pthread_mutex_lock(&reservation->lock);
    if (atomic_load(&mapping->state) == GPUMEM_MAPPING_MAPPED) {
        status = gm_vmm_unmap(device, &device->meter, mapping->address, mapping->bytes);
        if (status == GPUMEM_OK)
            gm_reservation_forget(
                reservation, gm_reservation_span(reservation, mapping->offset, mapping->bytes));
    }
    pthread_mutex_unlock(&reservation->lock);
    if (status != GPUMEM_OK)
        return status;
    gm_bury(mapping);
    gm_reservation_release(reservation);
    int entered = gm_closing_enter();
    gm_device_object_gone(device);
    gm_closing_leave(entered);
    return GPUMEM_OK;
}

gpumem_status gpumem_mapping_get_info(const gpumem_mapping *mapping, gpumem_mapping_info *info) {
    GM_UNCANCELLED;
    GM_CHECK(mapping, "gpumem_mapping_get_info");
    const gpumem_mapping_info filled = {
        .size = sizeof filled,
        .address = mapping->address,
        .bytes = mapping->bytes,
        .state = (gpumem_mapping_state)atomic_load(&mapping->state),
        .reservation = mapping->reservation,
        .offset = mapping->offset,
    };
    return GM_RESULT_WRITE(gpumem_mapping_info, info, &filled);
}
