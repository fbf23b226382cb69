/* Access to mapped memory: of one mapping, or of a whole range. */
#include "base/cancel.h"
#include "memory/by_hand/by_hand.h"
#include "memory/core/driver_error.h"
#include "memory/core/vmm_calls.h"
#include "memory/object/shortage.h"

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

static CUresult ask(const gpumem_mapping *mapping, const CUmemLocation *location,
                    unsigned long long *flags) {
    const gpumem_driver_api *cu = mapping->reservation->device->cu;
    *flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return cu->cuMemGetAccess(flags, location, mapping->address);
}

static gpumem_status not_told(const gpumem_mapping *mapping, CUresult result) {
    return gm_cu_fail(mapping->reservation->device->cu, result, "cuMemGetAccess",
                      "cannot get the access rights of the mapping at 0x%llx",
                      (unsigned long long)mapping->address);
}

/* Reads the rights, to restore them later. A healthy driver that reports none has granted none. */
static gpumem_status remember(gpumem_mapping *const *mapped, size_t count,
                              const CUmemLocation *location) {
    for (size_t i = 0; i < count; i++) {
        CUresult result = ask(mapped[i], location, &mapped[i]->before);
        if (result == CUDA_ERROR_INVALID_VALUE)
            mapped[i]->before = CU_MEM_ACCESS_FLAGS_PROT_NONE;
        else if (result != CUDA_SUCCESS)
            return not_told(mapped[i], result);
    }
    return GPUMEM_OK;
}

/* For consecutive mappings without a hole, with the reservation's lock held. A refusal may report
 * an earlier failure and have taken effect for some or all of them. */
static gpumem_status set_access(gpumem_device *device, gpumem_mapping *const *mapped, size_t count,
                                CUmemAccessDesc wanted) {
    gpumem_status status = remember(mapped, count, &wanted.location);
    if (status != GPUMEM_OK)
        return status;
    const gpumem_mapping *last = mapped[count - 1];
    CUdeviceptr address = mapped[0]->address;
    size_t bytes = (size_t)(last->address - address) + last->bytes;
    status = gm_vmm_access(device, address, bytes, &wanted, 1);
    for (size_t i = 0; i < count && status != GPUMEM_OK; i++) {
        wanted.flags = (CUmemAccess_flags)mapped[i]->before;
        (void)device->cu->cuMemSetAccess(mapped[i]->address, mapped[i]->bytes, &wanted, 1);
    }
    return gm_tell_shortage(device, NULL, bytes, status);
}

static gpumem_status describe(const gpumem_device *device, int ordinal, gpumem_access access,
                              const char *call, CUmemAccessDesc *wanted) {
    GM_REQUIRE((unsigned)access <= GPUMEM_ACCESS_NONE, "%s: unknown access %d", call, (int)access);
    *wanted = (CUmemAccessDesc){.flags = gm_vmm_access_flags(access)};
    return access_location(device, ordinal, &wanted->location);
}

/* ---- One mapping ----------------------------------------------------------------------------- */

static gpumem_status check_mapped(const gpumem_mapping *mapping, const char *call) {
    GM_REQUIRE(atomic_load(&mapping->state) == GPUMEM_MAPPING_MAPPED,
               "%s: the mapping at 0x%llx was unmapped", call,
               (unsigned long long)mapping->address);
    return GPUMEM_OK;
}

gpumem_status gpumem_mapping_get_access(gpumem_mapping *mapping, int ordinal,
                                        gpumem_access *access) {
    GM_UNCANCELLED;
    static const char call[] = "gpumem_mapping_get_access";
    GM_CHECK(mapping, call);
    GM_REQUIRE(access, "%s: access is NULL", call);
    gpumem_reservation *reservation = mapping->reservation;
    CUmemLocation location;
    gpumem_status status = access_location(reservation->device, ordinal, &location);
    if (status != GPUMEM_OK)
        return status;
    unsigned long long flags = 0;
    pthread_mutex_lock(&reservation->lock);
    status = check_mapped(mapping, call);
    CUresult result = status == GPUMEM_OK ? ask(mapping, &location, &flags) : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS)
        status = not_told(mapping, result);
    pthread_mutex_unlock(&reservation->lock);
    if (status != GPUMEM_OK)
        return status;
    *access = gm_vmm_access_of_flags((CUmemAccess_flags)flags);
    return GPUMEM_OK;
}

/* ---- A range --------------------------------------------------------------------------------- */

/* Memory mapped into a hole later would have no access, whatever was set before. */
static gpumem_status check_no_hole(const gpumem_reservation *reservation, size_t offset,
                                   size_t bytes, struct gm_span span) {
    size_t reached = offset;
    for (size_t i = span.first; i < span.first + span.count; i++) {
        const gpumem_mapping *mapping = reservation->mapped[i];
        if (mapping->offset != reached)
            break;
        reached += mapping->bytes;
    }
    GM_REQUIRE(reached == offset + bytes,
               "gpumem_reservation_set_access: nothing is mapped at offset %zu", reached);
    return GPUMEM_OK;
}

gpumem_status gpumem_reservation_set_access(gpumem_reservation *reservation, size_t offset,
                                            size_t bytes, int ordinal, gpumem_access access) {
    GM_UNCANCELLED;
    static const char call[] = "gpumem_reservation_set_access";
    GM_CHECK(reservation, call);
    CUmemAccessDesc wanted;
    struct gm_span span = {0};
    gpumem_status status = describe(reservation->device, ordinal, access, call, &wanted);
    if (status != GPUMEM_OK)
        return status;
    pthread_mutex_lock(&reservation->lock);
    status = gm_reservation_whole(reservation, offset, bytes, call, &span);
    if (status == GPUMEM_OK)
        status = check_no_hole(reservation, offset, bytes, span);
    if (status == GPUMEM_OK)
        status =
            set_access(reservation->device, reservation->mapped + span.first, span.count, wanted);
    pthread_mutex_unlock(&reservation->lock);
    return status;
}
