/* Mappings: physical memory at the addresses of a reservation. */
#include "memory/device.h"
#include "memory/driver_error.h"
#include "memory/virtual.h"
#include "memory/vmm.h"

#include <stdlib.h>

static gpumem_status check_place(const gpumem_reservation *reservation, size_t offset,
                                 const gpumem_physical *physical) {
    GM_REQUIRE(reservation->device->library == physical->device->library,
               "gpumem_mapping_create: the two belong to different opened libraries");
    GM_REQUIRE(offset % physical->granularity == 0,
               "gpumem_mapping_create: offset %zu is not aligned to the granularity %zu", offset,
               physical->granularity);
    GM_REQUIRE(offset <= reservation->bytes && physical->bytes <= reservation->bytes - offset,
               "gpumem_mapping_create: %zu bytes at offset %zu do not fit in the reservation's %zu",
               physical->bytes, offset, reservation->bytes);
    for (const gpumem_mapping *m = reservation->mappings; m; m = m->next)
        GM_REQUIRE(offset + physical->bytes <= m->offset ||
                       m->offset + m->physical->bytes <= offset,
                   "gpumem_mapping_create: %zu bytes at offset %zu overlap those mapped at %zu",
                   physical->bytes, offset, m->offset);
    return GPUMEM_OK;
}

gpumem_status gpumem_mapping_create(gpumem_reservation *reservation, size_t offset,
                                    gpumem_physical *physical, gpumem_mapping **mapping) {
    GM_CHECK(reservation, "gpumem_mapping_create");
    GM_CHECK(physical, "gpumem_mapping_create");
    GM_REQUIRE(mapping, "gpumem_mapping_create: mapping is NULL");
    gpumem_mapping *made = calloc(1, sizeof *made);
    if (!made)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a mapping");
    *made = (gpumem_mapping){reservation->generation, reservation, physical, offset, NULL};
    gpumem_device *device = reservation->device;
    pthread_mutex_lock(&reservation->lock);
    gpumem_status status = check_place(reservation, offset, physical);
    if (status == GPUMEM_OK)
        status = gm_vmm_map(device, &device->meter, reservation->address + offset, physical->bytes,
                            physical->handle);
    if (status == GPUMEM_OK) {
        made->next = reservation->mappings;
        reservation->mappings = made;
        atomic_fetch_add(&physical->mapped, 1);
    }
    pthread_mutex_unlock(&reservation->lock);
    if (status != GPUMEM_OK) {
        free(made);
        return status;
    }
    gm_device_object_made(device);
    *mapping = made;
    return GPUMEM_OK;
}

gpumem_status gpumem_mapping_destroy(gpumem_mapping *mapping) {
    if (!mapping)
        return GPUMEM_OK;
    GM_CHECK(mapping, "gpumem_mapping_destroy");
    gpumem_reservation *reservation = mapping->reservation;
    gpumem_device *device = reservation->device;
    pthread_mutex_lock(&reservation->lock);
    gpumem_status status = gm_vmm_unmap(device, &device->meter, gpumem_mapping_address(mapping),
                                        mapping->physical->bytes);
    if (status == GPUMEM_OK) {
        gpumem_mapping **at = &reservation->mappings;
        while (*at != mapping)
            at = &(*at)->next;
        *at = mapping->next;
        atomic_fetch_sub(&mapping->physical->mapped, 1);
    }
    pthread_mutex_unlock(&reservation->lock);
    if (status != GPUMEM_OK)
        return status;
    gm_device_object_gone(device);
    gm_bury(mapping);
    return GPUMEM_OK;
}

CUdeviceptr gpumem_mapping_address(const gpumem_mapping *mapping) {
    return mapping->reservation->address + mapping->offset;
}

size_t gpumem_mapping_size(const gpumem_mapping *mapping) {
    return mapping->physical->bytes;
}

static gpumem_status access_location(const gpumem_device *device, int ordinal,
                                     CUmemLocation *location) {
    if (ordinal == -1) {
        *location = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST};
        return GPUMEM_OK;
    }
    CUdevice handle = 0;
    GM_REQUIRE(ordinal >= 0 && ordinal < device->library->device_count, "there is no device %d",
               ordinal);
    CUresult result = device->cu->cuDeviceGet(&handle, ordinal);
    if (result != CUDA_SUCCESS)
        return gm_cu_fail(device->cu, result, "cuDeviceGet", "device %d", ordinal);
    *location = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = handle};
    return GPUMEM_OK;
}

static gpumem_status get_flags(gpumem_mapping *mapping, const CUmemLocation *location,
                               unsigned long long *flags) {
    const gpumem_driver_api *cu = mapping->reservation->device->cu;
    CUresult result = cu->cuMemGetAccess(flags, location, gpumem_mapping_address(mapping));
    if (result != CUDA_SUCCESS)
        return gm_cu_fail(cu, result, "cuMemGetAccess", "no access rights of the mapping at 0x%llx",
                          gpumem_mapping_address(mapping));
    return GPUMEM_OK;
}

gpumem_status gpumem_mapping_set_access(gpumem_mapping *mapping, int ordinal,
                                        gpumem_access access) {
    GM_CHECK(mapping, "gpumem_mapping_set_access");
    GM_REQUIRE((unsigned)access <= GPUMEM_ACCESS_NONE,
               "gpumem_mapping_set_access: unknown access %d", (int)access);
    gpumem_device *device = mapping->reservation->device;
    CUmemAccessDesc wanted = {.flags = gm_vmm_access_flags(access)};
    gpumem_status status = access_location(device, ordinal, &wanted.location);
    if (status != GPUMEM_OK)
        return status;
    /* To put back; a driver that does not tell has given none yet. */
    unsigned long long before = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    CUdeviceptr address = gpumem_mapping_address(mapping);
    (void)device->cu->cuMemGetAccess(&before, &wanted.location, address);
    status = gm_vmm_access(device, address, mapping->physical->bytes, &wanted, 1);
    if (status != GPUMEM_OK) {
        /* It may have been done, and an earlier failure been reported. */
        wanted.flags = (CUmemAccess_flags)before;
        (void)device->cu->cuMemSetAccess(address, mapping->physical->bytes, &wanted, 1);
    }
    return status;
}

gpumem_status gpumem_mapping_get_access(gpumem_mapping *mapping, int ordinal,
                                        gpumem_access *access) {
    GM_CHECK(mapping, "gpumem_mapping_get_access");
    GM_REQUIRE(access, "gpumem_mapping_get_access: access is NULL");
    CUmemLocation location;
    gpumem_status status = access_location(mapping->reservation->device, ordinal, &location);
    unsigned long long flags = 0;
    if (status == GPUMEM_OK)
        status = get_flags(mapping, &location, &flags);
    if (status != GPUMEM_OK)
        return status;
    *access = flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? GPUMEM_ACCESS_READ_WRITE
              : flags == CU_MEM_ACCESS_FLAGS_PROT_READ    ? GPUMEM_ACCESS_READ
                                                          : GPUMEM_ACCESS_NONE;
    return GPUMEM_OK;
}
