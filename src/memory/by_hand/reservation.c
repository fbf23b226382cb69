/* Reservations: address ranges, and their mappings. */
#include "base/cancel.h"
#include "base/growing_array.h"
#include "base/options.h"
#include "memory/by_hand/by_hand.h"
#include "memory/core/driver_error.h"
#include "memory/core/vmm_calls.h"
#include "memory/object/closing.h"
#include "memory/object/device.h"
#include "memory/object/shortage.h"

#include <stdlib.h>
#include <string.h>

static gpumem_status check_reservation(const gpumem_device *device, size_t bytes,
                                       const gpumem_reservation_options *options) {
    gpumem_status status = gm_vmm_supported(device);
    if (status != GPUMEM_OK)
        return status;
    size_t unit = device->granularity;
    GM_REQUIRE(bytes, "gpumem_reservation_create: bytes is 0");
    GM_REQUIRE(bytes % unit == 0,
               "gpumem_reservation_create: %zu bytes are not a multiple of the granularity %zu",
               bytes, unit);
    GM_REQUIRE((options->alignment & (options->alignment - 1)) == 0,
               "gpumem_reservation_create: alignment %zu is not a power of two",
               options->alignment);
    GM_REQUIRE(options->address_hint % unit == 0,
               "gpumem_reservation_create: address_hint 0x%llx is not aligned to %zu",
               options->address_hint, unit);
    return GPUMEM_OK;
}

gpumem_status gpumem_reservation_create(gpumem_device *device, size_t bytes,
                                        const gpumem_reservation_options *given,
                                        gpumem_reservation **reservation) {
    GM_UNCANCELLED;
    gpumem_reservation_options options;
    GM_CHECK(device, "gpumem_reservation_create");
    GM_REQUIRE(reservation, "gpumem_reservation_create: reservation is NULL");
    gpumem_status status = GM_OPTIONS_READ(gpumem_reservation_options, given, &options);
    if (status == GPUMEM_OK)
        status = check_reservation(device, bytes, &options);
    if (status != GPUMEM_OK)
        return status;
    gpumem_reservation *made = calloc(1, sizeof *made);
    if (!made)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a reservation");
    size_t alignment =
        options.alignment > device->granularity ? options.alignment : device->granularity;
    status = gm_vmm_reserve(device, bytes, alignment, options.address_hint, &made->address);
    if (status != GPUMEM_OK) {
        free(made);
        return gm_tell_shortage(device, NULL, bytes, status);
    }
    made->generation = device->generation;
    made->device = device;
    made->bytes = bytes;
    atomic_init(&made->references, 1);
    pthread_mutex_init(&made->lock, NULL);
    gm_device_object_made(device);
    gm_meter_add(&device->meter, GM_RESERVED, bytes);
    *reservation = made;
    return GPUMEM_OK;
}

void gm_reservation_release(gpumem_reservation *reservation) {
    if (atomic_fetch_sub(&reservation->references, 1) != 1)
        return;
    pthread_mutex_destroy(&reservation->lock);
    free(reservation->mapped);
    gm_bury(reservation);
}

gpumem_status gpumem_reservation_destroy(gpumem_reservation *reservation) {
    GM_UNCANCELLED;
    if (!reservation)
        return GPUMEM_OK;
    GM_CHECK(reservation, "gpumem_reservation_destroy");
    gpumem_device *device = reservation->device;
    pthread_mutex_lock(&reservation->lock);
    size_t mapped = reservation->count;
    size_t at = mapped ? reservation->mapped[0]->offset : 0;
    pthread_mutex_unlock(&reservation->lock);
    if (mapped)
        return gm_fail(GPUMEM_ERROR_BUSY,
                       "gpumem_reservation_destroy: memory is still mapped at offset %zu", at);
    gm_meter_subtract(&device->meter, GM_RESERVED, reservation->bytes);
    gm_vmm_unreserve(device, &device->meter, reservation->address, reservation->bytes);
    reservation->generation = GM_DESTROYED;
    gm_reservation_release(reservation);
    int entered = gm_closing_enter();
    gm_device_object_gone(device);
    gm_closing_leave(entered);
    return GPUMEM_OK;
}

gpumem_status gpumem_reservation_get_info(const gpumem_reservation *reservation,
                                          gpumem_reservation_info *info) {
    GM_UNCANCELLED;
    GM_CHECK(reservation, "gpumem_reservation_get_info");
    const gpumem_reservation_info filled = {
        .size = sizeof filled,
        .address = reservation->address,
        .bytes = reservation->bytes,
    };
    return GM_RESULT_WRITE(gpumem_reservation_info, info, &filled);
}

/* ---- What is mapped in it -------------------------------------------------------------------- */

static size_t end_of(const gpumem_mapping *mapping) {
    return mapping->offset + mapping->bytes;
}

struct gm_span gm_reservation_span(const gpumem_reservation *reservation, size_t offset,
                                   size_t bytes) {
    size_t low = 0, high = reservation->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (end_of(reservation->mapped[middle]) <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    struct gm_span span = {low, 0};
    while (low + span.count < reservation->count &&
           reservation->mapped[low + span.count]->offset < offset + bytes)
        span.count++;
    return span;
}

gpumem_status gm_reservation_whole(const gpumem_reservation *reservation, size_t offset,
                                   size_t bytes, const char *call, struct gm_span *span) {
    GM_REQUIRE(bytes, "%s: bytes is 0", call);
    GM_REQUIRE(offset <= reservation->bytes && bytes <= reservation->bytes - offset,
               "%s: %zu bytes at offset %zu do not fit in the reservation's %zu", call, bytes,
               offset, reservation->bytes);
    struct gm_span found = gm_reservation_span(reservation, offset, bytes);
    for (size_t i = found.first; i < found.first + found.count; i++) {
        const gpumem_mapping *mapping = reservation->mapped[i];
        GM_REQUIRE(offset <= mapping->offset && end_of(mapping) <= offset + bytes,
                   "%s: %zu bytes at offset %zu cut the mapping of %zu bytes at offset %zu", call,
                   bytes, offset, mapping->bytes, mapping->offset);
    }
    *span = found;
    return GPUMEM_OK;
}

gpumem_status gm_reservation_make_room(gpumem_reservation *reservation) {
    size_t wanted = reservation->count + 1;
    if (!GM_RESERVE(reservation->mapped, reservation->room, wanted))
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a list of %zu mappings",
                       wanted);
    return GPUMEM_OK;
}

void gm_reservation_put(gpumem_reservation *reservation, size_t at, gpumem_mapping *mapping) {
    gpumem_mapping **place = reservation->mapped + at;
    memmove(place + 1, place, (reservation->count - at) * sizeof(gpumem_mapping *));
    *place = mapping;
    reservation->count++;
    atomic_fetch_add(&reservation->references, 1);
}

void gm_reservation_forget(gpumem_reservation *reservation, struct gm_span span) {
    gpumem_mapping **place = reservation->mapped + span.first;
    for (size_t i = 0; i < span.count; i++) {
        atomic_fetch_sub(&place[i]->physical->mapped, 1);
        place[i]->physical = NULL; /* which may end now */
        atomic_store(&place[i]->state, GPUMEM_MAPPING_UNMAPPED);
    }
    size_t behind = reservation->count - span.first - span.count;
    memmove(place, place + span.count, behind * sizeof(gpumem_mapping *));
    reservation->count -= span.count;
}

static gpumem_status unmap(gpumem_reservation *reservation, size_t offset, size_t bytes) {
    gpumem_device *device = reservation->device;
    struct gm_span span;
    gpumem_status status =
        gm_reservation_whole(reservation, offset, bytes, "gpumem_reservation_unmap", &span);
    if (status != GPUMEM_OK || span.count == 0)
        return status;
    const gpumem_mapping *first = reservation->mapped[span.first];
    const gpumem_mapping *last = reservation->mapped[span.first + span.count - 1];
    status = gm_vmm_unmap_all(device, &device->meter, first->address, end_of(last) - first->offset,
                              span.count);
    if (status == GPUMEM_OK)
        gm_reservation_forget(reservation, span);
    return status;
}

gpumem_status gpumem_reservation_unmap(gpumem_reservation *reservation, size_t offset,
                                       size_t bytes) {
    GM_UNCANCELLED;
    GM_CHECK(reservation, "gpumem_reservation_unmap");
    pthread_mutex_lock(&reservation->lock);
    gpumem_status status = unmap(reservation, offset, bytes);
    pthread_mutex_unlock(&reservation->lock);
    return status;
}
