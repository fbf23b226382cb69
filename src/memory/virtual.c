/* Reservations, physical memory and mappings as public objects. */
#include "base/cancel.h"
#include "base/options.h"
#include "memory/current.h"
#include "memory/device.h"
#include "memory/driver_error.h"
#include "memory/vmm.h"

#include <stdlib.h>

struct gpumem_reservation {
    unsigned generation;
    gpumem_device *device;
    CUdeviceptr address;
    size_t bytes;
    pthread_mutex_t lock;
    gpumem_mapping *mappings;
};

struct gpumem_physical {
    unsigned generation;
    gpumem_device *device;
    CUmemGenericAllocationHandle handle;
    size_t bytes;
    size_t granularity;
    int exportable, imported;
    atomic_size_t mapped;
};

struct gpumem_mapping {
    unsigned generation;
    gpumem_reservation *reservation;
    gpumem_physical *physical;
    size_t offset;
    gpumem_mapping *next; /* in the reservation */
};

/* ---- Reservations ---------------------------------------------------------------------------- */

static gpumem_status check_reservation(const gpumem_device *device, size_t bytes,
                                       const gpumem_reservation_options *options) {
    gpumem_status status = gm_vmm_supported(device);
    if (status != GPUMEM_OK)
        return status;
    size_t unit = device->granularity;
    GM_REQUIRE(bytes && bytes % unit == 0,
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
    GM_UNCANCELLED;
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
    GM_UNCANCELLED;
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

/* ---- Physical memory ------------------------------------------------------------------------- */

static gpumem_status read_physical_options(const gpumem_device *device,
                                           const gpumem_physical_options *given,
                                           gpumem_physical_options *o) {
    gpumem_status status = gm_options_read("gpumem_physical_options", given, o, sizeof *o);
    if (status != GPUMEM_OK)
        return status;
    GM_REQUIRE(o->allocation_type == GPUMEM_ALLOCATION_PINNED,
               "physical memory: unknown allocation type %d", (int)o->allocation_type);
    GM_REQUIRE((unsigned)o->location <= GPUMEM_LOCATION_HOST_NUMA_CURRENT,
               "physical memory: unknown location %d", (int)o->location);
    GM_REQUIRE((unsigned)o->handle_type <= GPUMEM_HANDLE_FABRIC,
               "physical memory: unknown handle type %d", (int)o->handle_type);
    status = gm_vmm_check_node(o->location, o->numa_node, "physical memory");
    return status == GPUMEM_OK ? gm_vmm_supported(device) : status;
}

static CUmemAllocationProp prop_of(const gpumem_device *device, const gpumem_physical_options *o) {
    return gm_vmm_prop(device, o->location, o->numa_node, o->handle_type, o->gpu_direct_rdma,
                       o->compression);
}

gpumem_status gpumem_physical_granularity(gpumem_device *device,
                                          const gpumem_physical_options *given,
                                          gpumem_granularity_kind kind, size_t *bytes) {
    GM_UNCANCELLED;
    gpumem_physical_options options;
    GM_CHECK(device, "gpumem_physical_granularity");
    GM_REQUIRE(bytes, "gpumem_physical_granularity: bytes is NULL");
    gpumem_status status = read_physical_options(device, given, &options);
    if (status != GPUMEM_OK)
        return status;
    CUmemAllocationProp prop = prop_of(device, &options);
    return gm_vmm_granularity(device, &prop, kind, bytes);
}

static gpumem_physical *new_physical(gpumem_device *device, size_t bytes, size_t granularity) {
    gpumem_physical *made = calloc(1, sizeof *made);
    if (!made) {
        gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a physical allocation");
        return NULL;
    }
    made->generation = device->generation;
    made->device = device;
    made->bytes = bytes;
    made->granularity = granularity;
    return made;
}

gpumem_status gpumem_physical_create(gpumem_device *device, size_t bytes,
                                     const gpumem_physical_options *given,
                                     gpumem_physical **physical) {
    GM_UNCANCELLED;
    gpumem_physical_options options;
    GM_CHECK(device, "gpumem_physical_create");
    GM_REQUIRE(physical, "gpumem_physical_create: physical is NULL");
    gpumem_status status = read_physical_options(device, given, &options);
    if (status != GPUMEM_OK)
        return status;
    CUmemAllocationProp prop = prop_of(device, &options);
    size_t unit = 0;
    status = gm_vmm_granularity(device, &prop, GPUMEM_GRANULARITY_MINIMUM, &unit);
    if (status != GPUMEM_OK)
        return status;
    GM_REQUIRE(bytes && bytes % unit == 0,
               "gpumem_physical_create: %zu bytes are no multiple of the granularity %zu", bytes,
               unit);
    gpumem_physical *made = new_physical(device, bytes, unit);
    if (!made)
        return GPUMEM_ERROR_OUT_OF_HOST_MEMORY;
    status = gm_vmm_create(device, &device->meter, bytes, &prop, &made->handle);
    if (status != GPUMEM_OK) {
        free(made);
        return status;
    }
    made->exportable = options.handle_type == GPUMEM_HANDLE_POSIX_FD;
    gm_meter_add(&device->meter, GM_COMMITTED, bytes);
    gm_device_object_made(device);
    *physical = made;
    return GPUMEM_OK;
}

gpumem_status gpumem_physical_destroy(gpumem_physical *physical) {
    GM_UNCANCELLED;
    if (!physical)
        return GPUMEM_OK;
    GM_CHECK(physical, "gpumem_physical_destroy");
    size_t mapped = atomic_load(&physical->mapped);
    if (mapped)
        return gm_fail(GPUMEM_ERROR_BUSY, "gpumem_physical_destroy: still mapped at %zu place%s",
                       mapped, mapped == 1 ? "" : "s");
    gpumem_device *device = physical->device;
    gm_meter_subtract(&device->meter, physical->imported ? GM_IMPORTED : GM_COMMITTED,
                      physical->bytes);
    gm_vmm_release(device, &device->meter, physical->handle, physical->bytes);
    gm_device_object_gone(device);
    gm_bury(physical);
    return GPUMEM_OK;
}

size_t gpumem_physical_size(const gpumem_physical *physical) {
    return physical->bytes;
}

gpumem_status gpumem_physical_export_fd(gpumem_physical *physical, int *fd) {
    GM_UNCANCELLED;
    GM_CHECK(physical, "gpumem_physical_export_fd");
    GM_REQUIRE(fd, "gpumem_physical_export_fd: fd is NULL");
    if (!physical->exportable)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "gpumem_physical_export_fd: the memory was not created with "
                       "GPUMEM_HANDLE_POSIX_FD");
    return gm_vmm_export_fd(physical->device, physical->handle, fd);
}

gpumem_status gpumem_physical_import_fd(gpumem_device *device, int fd, size_t bytes,
                                        gpumem_physical **physical) {
    GM_UNCANCELLED;
    GM_CHECK(device, "gpumem_physical_import_fd");
    GM_REQUIRE(physical, "gpumem_physical_import_fd: physical is NULL");
    gpumem_status status = gm_vmm_supported(device);
    if (status != GPUMEM_OK)
        return status;
    GM_REQUIRE(bytes && bytes % device->granularity == 0,
               "gpumem_physical_import_fd: %zu bytes are no multiple of the granularity %zu", bytes,
               device->granularity);
    gpumem_physical *made = new_physical(device, bytes, device->granularity);
    if (!made)
        return GPUMEM_ERROR_OUT_OF_HOST_MEMORY;
    status = gm_vmm_import_fd(device, &device->meter, fd, &made->handle);
    if (status != GPUMEM_OK) {
        free(made);
        return status;
    }
    made->imported = 1;
    made->exportable = 1;
    gm_meter_add(&device->meter, GM_IMPORTED, bytes);
    gm_device_object_made(device);
    *physical = made;
    return GPUMEM_OK;
}

/* ---- Mappings -------------------------------------------------------------------------------- */

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
    GM_UNCANCELLED;
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
    GM_UNCANCELLED;
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
    GM_UNCANCELLED;
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
    GM_UNCANCELLED;
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
