#include "memory/object/device.h"

#include "base/cancel.h"
#include "base/options.h"
#include "memory/core/current_context.h"
#include "memory/core/driver_error.h"
#include "memory/core/siblings.h"
#include "memory/object/closing.h"
#include "memory/object/deferred_frees.h"
#include "memory/object/resource.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int gm_device_attribute(const gpumem_device *device, CUdevice_attribute attribute, int missing) {
    int value = 0;
    CUresult result = device->cu->cuDeviceGetAttribute(&value, attribute, device->handle);
    return result == CUDA_SUCCESS ? value : missing;
}

void gm_device_object_made(gpumem_device *device) {
    pthread_mutex_lock(&device->lock);
    device->low_level++;
    pthread_mutex_unlock(&device->lock);
}

void gm_device_object_gone(gpumem_device *device) {
    pthread_mutex_lock(&device->lock);
    device->low_level--;
    pthread_mutex_unlock(&device->lock);
}

static gpumem_status find_handle(gpumem_library *library, int ordinal, CUdevice *handle) {
    if (ordinal < 0 || ordinal >= library->device_count)
        return gm_fail(GPUMEM_ERROR_NO_DEVICE, "there is no device %d: the driver has %d", ordinal,
                       library->device_count);
    CUresult result = library->cu->cuDeviceGet(handle, ordinal);
    if (result != CUDA_SUCCESS)
        return gm_cu_fail(library->cu, result, "cuDeviceGet", "device %d", ordinal);
    return GPUMEM_OK;
}

static size_t granularity(const gpumem_driver_api *cu, CUdevice device,
                          CUmemAllocationGranularity_flags kind) {
    CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
    };
    size_t bytes = 0;
    return cu->cuMemGetAllocationGranularity(&bytes, &prop, kind) == CUDA_SUCCESS ? bytes : 0;
}

static gpumem_status retain_context(gpumem_device *device) {
    const gpumem_driver_api *cu = device->cu;
    CUresult result = cu->cuDevicePrimaryCtxRetain(&device->context, device->handle);
    if (result == CUDA_SUCCESS)
        return GPUMEM_OK;
    /* It may have taken effect: the driver reports earlier failures in this way. */
    if (device->context && cu->cuDevicePrimaryCtxRelease_v2(device->handle) != CUDA_SUCCESS)
        gm_meter_quarantine(&device->library->meter, 0);
    return gm_cu_fail(cu, result, "cuDevicePrimaryCtxRetain", "device %d: no context",
                      device->ordinal);
}

struct gm_shared_lists *gm_device_shared_lock(gpumem_device *device) {
    pthread_mutex_lock(&device->lock);
    return &device->shared;
}

void gm_device_shared_unlock(gpumem_device *device) {
    pthread_mutex_unlock(&device->lock);
}

static void discard(gpumem_device *device) {
    for (int i = 0; i < GM_HIDDEN_COUNT; i++)
        if (device->hidden[i])
            gm_resource_discard(device->hidden[i]);
    if (device->ended_pools)
        gm_resource_discard(device->ended_pools);
    free(device->streams);
    for (int i = 0; i < GPUMEM_CAPABILITY_COUNT; i++)
        free(device->reports[i]);
    gm_inventory_destroy(&device->inventory);
    pthread_cond_destroy(&device->left);
    pthread_mutex_destroy(&device->lock);
    pthread_cond_destroy(&device->worked);
    free(device->events);
    gm_bury(device);
}

static gpumem_device *make(gpumem_library *library, int ordinal, CUdevice handle) {
    gpumem_device *device = calloc(1, sizeof *device);
    if (!device)
        return NULL;
    device->generation = library->generation;
    device->library = library;
    device->cu = library->cu;
    device->ordinal = ordinal;
    device->handle = handle;
    device->meter.parent = &library->meter;
    gm_inventory_init(&device->inventory);
    pthread_mutex_init(&device->lock, NULL);
    pthread_cond_init(&device->left, NULL);
    pthread_cond_init(&device->worked, NULL);
    atomic_flag_clear(&device->polled);
    return device;
}

static gpumem_status open_new(gpumem_library *library, int ordinal, gpumem_device **device) {
    CUdevice handle = 0;
    gpumem_status status = find_handle(library, ordinal, &handle);
    if (status != GPUMEM_OK)
        return status;
    gpumem_device *made = make(library, ordinal, handle);
    if (!made)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to open device %d", ordinal);
    status = retain_context(made);
    if (status != GPUMEM_OK) {
        discard(made);
        return status;
    }
    made->has_virtual =
        gm_device_attribute(made, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0);
    if (made->has_virtual)
        made->granularity = granularity(made->cu, handle, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    gm_siblings_join(made);
    *device = made;
    return GPUMEM_OK;
}

gpumem_status gpumem_device_open(gpumem_library *library, int ordinal, gpumem_device **device) {
    GM_UNCANCELLED;
    GM_CHECK(library, "gpumem_device_open");
    GM_REQUIRE(device, "gpumem_device_open: device is NULL");
    gpumem_status status = GPUMEM_OK;
    pthread_mutex_lock(&library->lock);
    gpumem_device *found =
        ordinal >= 0 && ordinal < library->device_count ? library->devices[ordinal] : NULL;
    if (!found)
        status = open_new(library, ordinal, &found);
    if (status == GPUMEM_OK) {
        library->devices[ordinal] = found;
        found->opened++;
        *device = found;
    }
    pthread_mutex_unlock(&library->lock);
    return status;
}

gpumem_status gpumem_device_open_uuid(gpumem_library *library, const unsigned char uuid[16],
                                      gpumem_device **device) {
    GM_UNCANCELLED;
    GM_CHECK(library, "gpumem_device_open_uuid");
    GM_REQUIRE(uuid && device, "gpumem_device_open_uuid: uuid or device is NULL");
    int named = 0;
    for (int i = 0; i < library->device_count; i++) {
        CUdevice handle = 0;
        CUuuid found = {{0}};
        if (library->cu->cuDeviceGet(&handle, i) != CUDA_SUCCESS ||
            library->cu->cuDeviceGetUuid_v2(&found, handle) != CUDA_SUCCESS)
            continue;
        named++;
        if (memcmp(found.bytes, uuid, 16) == 0)
            return gpumem_device_open(library, i, device);
    }
    if (!named)
        return gm_fail(GPUMEM_ERROR_NO_DEVICE,
                       "the driver reports no UUIDs of its %d devices; open them by ordinal",
                       library->device_count);
    return gm_fail(GPUMEM_ERROR_NO_DEVICE, "none of the %d devices has the UUID %02x%02x%02x%02x-…",
                   library->device_count, uuid[0], uuid[1], uuid[2], uuid[3]);
}

static size_t owned_of(const gpumem_resource *resource) {
    return resource ? atomic_load(&resource->owned) : 0;
}

/* What keeps a device open, named for the message. */
static int holders(gpumem_device *device, char *text, size_t size) {
    size_t used = 0;
    int count = 0;
    pthread_mutex_lock(&device->lock);
    for (gpumem_resource *r = device->resources; r; r = r->next) {
        if (r->inside)
            continue;
        count++;
        if (used < size)
            used += (size_t)snprintf(text + used, size - used, "%s%s resource (%zu buffers)",
                                     used ? ", " : "", r->kind, gm_resource_owned(r));
    }
    size_t imported = owned_of(device->hidden[GM_HIDDEN_IMPORTED]) +
                      owned_of(device->hidden[GM_HIDDEN_IMPORTED_POOL]);
    if (imported && used < size)
        used += (size_t)snprintf(text + used, size - used, "%s%zu imported buffers",
                                 used ? ", " : "", imported);
    size_t foreign = owned_of(device->hidden[GM_HIDDEN_FOREIGN]) +
                     owned_of(device->hidden[GM_HIDDEN_FOREIGN_ORDERED]) +
                     owned_of(device->hidden[GM_HIDDEN_FOREIGN_HOST]);
    if (foreign && used < size)
        used += (size_t)snprintf(text + used, size - used, "%s%zu buffers over foreign memory",
                                 used ? ", " : "", foreign);
    if (device->low_level && used < size)
        snprintf(text + used, size - used, "%s%zu low-level objects", used ? ", " : "",
                 device->low_level);
    count += imported || foreign || device->low_level;
    pthread_mutex_unlock(&device->lock);
    return count;
}

static gpumem_status not_busy(gpumem_device *device) {
    char text[256];
    if (!holders(device, text, sizeof text))
        return GPUMEM_OK;
    return gm_fail(GPUMEM_ERROR_BUSY, "gpumem_device_close: device %d still has: %s",
                   device->ordinal, text);
}

/* Other resources waited for their frees when destroyed. */
static gpumem_status has_ended(gpumem_device *device, const gpumem_resource *hidden) {
    size_t held_back = hidden ? atomic_load(&hidden->live) : 0;
    if (!held_back)
        return GPUMEM_OK;
    char reason[160];
    gm_deferred_reason(device, hidden, reason, sizeof reason);
    return gm_fail(GPUMEM_ERROR_BUSY, "gpumem_device_close: %zu freed %s buffer%s: %s", held_back,
                   hidden->kind, held_back == 1 ? "" : "s", reason);
}

static gpumem_status hidden_ended(gpumem_device *device) {
    gpumem_status status = GPUMEM_OK;
    for (int i = 0; i < GM_HIDDEN_COUNT && status == GPUMEM_OK; i++)
        status = has_ended(device, device->hidden[i]);
    return status;
}

static gpumem_status can_end(gpumem_device *device) {
    gpumem_status status = not_busy(device);
    return status == GPUMEM_OK ? hidden_ended(device) : status;
}

int gm_device_is_unused(gpumem_device *device) {
    return can_end(device) == GPUMEM_OK;
}

void gm_device_end(gpumem_device *device) {
    gm_siblings_leave(device);
    struct gm_current current;
    if (gm_current_enter(&current, device) == GPUMEM_OK) {
        gm_drop_queued(device);
        gm_drop_events(device);
        gm_current_leave(&current);
    }
    if (device->cu->cuDevicePrimaryCtxRelease_v2(device->handle) != CUDA_SUCCESS)
        gm_meter_quarantine(&device->library->meter, 0);
    device->library->devices[device->ordinal] = NULL;
    discard(device);
}

/* Without the library's lock, so that other devices can be opened and closed meanwhile. */
static void wait_for_hidden(gpumem_device *device) {
    const gpumem_resource *hidden[GM_HIDDEN_COUNT];
    pthread_mutex_lock(&device->lock);
    for (int i = 0; i < GM_HIDDEN_COUNT; i++)
        hidden[i] = device->hidden[i];
    pthread_mutex_unlock(&device->lock);
    for (int i = 0; i < GM_HIDDEN_COUNT; i++)
        if (hidden[i])
            gm_wait_for_frees(device, hidden[i]);
}

static gpumem_status close_device(gpumem_device *device) {
    gpumem_library *library = device->library;
    pthread_mutex_lock(&library->lock);
    gpumem_status status = device->opened > 1 ? GPUMEM_OK : not_busy(device);
    int last = device->opened == 1;
    pthread_mutex_unlock(&library->lock);
    if (status == GPUMEM_OK && last)
        wait_for_hidden(device);
    if (status != GPUMEM_OK)
        return status;
    pthread_mutex_lock(&library->lock);
    if (device->opened > 1 || device->closing.listed) /* the latter: opened again since */
        device->opened--;
    else if ((status = can_end(device)) == GPUMEM_OK)
        gm_device_end(device);
    pthread_mutex_unlock(&library->lock);
    return status;
}

gpumem_status gpumem_device_close(gpumem_device *device) {
    GM_UNCANCELLED;
    if (!device)
        return GPUMEM_OK;
    GM_CHECK(device, "gpumem_device_close");
    GM_REQUIRE(device->opened,
               "gpumem_device_close: device %d was closed as often as it was opened",
               device->ordinal);
    int entered = gm_closing_enter(); /* the library may have been closed */
    gpumem_status status = close_device(device);
    gm_closing_leave(entered);
    return status;
}

/* The parts that a driver may lack are left empty. */
static gpumem_status query(gpumem_library *library, int ordinal, gpumem_device_info *info) {
    const gpumem_driver_api *cu = library->cu;
    CUdevice device = 0;
    gpumem_status status = find_handle(library, ordinal, &device);
    if (status != GPUMEM_OK)
        return status;
    CUresult result = cu->cuDeviceGetName(info->name, (int)sizeof info->name, device);
    if (result != CUDA_SUCCESS)
        return gm_cu_fail(cu, result, "cuDeviceGetName", "device %d has no name", ordinal);
    size_t total = 0;
    result = cu->cuDeviceTotalMem_v2(&total, device);
    if (result != CUDA_SUCCESS)
        return gm_cu_fail(cu, result, "cuDeviceTotalMem", "device %d", ordinal);
    CUuuid uuid = {{0}};
    if (cu->cuDeviceGetUuid_v2(&uuid, device) == CUDA_SUCCESS)
        memcpy(info->uuid, uuid.bytes, sizeof info->uuid);
    if (cu->cuDeviceGetPCIBusId(info->pci_bus_id, (int)sizeof info->pci_bus_id, device) !=
        CUDA_SUCCESS)
        info->pci_bus_id[0] = 0;
    const gpumem_device asked = {.cu = cu, .handle = device};
    info->ordinal = ordinal;
    info->memory_bytes = total;
    info->compute_major =
        gm_device_attribute(&asked, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0);
    info->compute_minor =
        gm_device_attribute(&asked, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0);
    info->host_numa_node = gm_device_attribute(&asked, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, -1);
    if (gm_device_attribute(&asked, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0)) {
        info->granularity_minimum = granularity(cu, device, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
        info->granularity_recommended =
            granularity(cu, device, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
    }
    return GPUMEM_OK;
}

gpumem_status gpumem_device_get_info(gpumem_library *library, int ordinal,
                                     gpumem_device_info *info) {
    GM_UNCANCELLED;
    GM_CHECK(library, "gpumem_device_get_info");
    gpumem_device_info filled = {.size = sizeof filled};
    gpumem_status status = query(library, ordinal, &filled);
    if (status != GPUMEM_OK)
        return status;
    return GM_RESULT_WRITE(gpumem_device_info, info, &filled);
}

gpumem_status gpumem_device_get_memory(gpumem_device *device, uint64_t *free_bytes,
                                       uint64_t *total_bytes) {
    GM_UNCANCELLED;
    GM_CHECK(device, "gpumem_device_get_memory");
    GM_REQUIRE(free_bytes && total_bytes, "gpumem_device_get_memory: an output is NULL");
    struct gm_current current;
    gpumem_status status = gm_current_enter(&current, device);
    if (status != GPUMEM_OK)
        return status;
    size_t free_now = 0, total = 0;
    CUresult result = device->cu->cuMemGetInfo_v2(&free_now, &total);
    if (result != CUDA_SUCCESS) {
        status = gm_cu_fail(device->cu, result, "cuMemGetInfo", "device %d", device->ordinal);
    } else {
        *free_bytes = free_now;
        *total_bytes = total;
    }
    gm_current_leave(&current);
    return status;
}

gpumem_status gpumem_device_can_access_peer(gpumem_device *device, int peer, bool *can_access) {
    GM_UNCANCELLED;
    GM_CHECK(device, "gpumem_device_can_access_peer");
    GM_REQUIRE(can_access, "gpumem_device_can_access_peer: can_access is NULL");
    CUdevice other = 0;
    gpumem_status status = find_handle(device->library, peer, &other);
    if (status != GPUMEM_OK)
        return status;
    int answer = 0;
    CUresult result = device->cu->cuDeviceCanAccessPeer(&answer, device->handle, other);
    if (result != CUDA_SUCCESS)
        return gm_cu_fail(device->cu, result, "cuDeviceCanAccessPeer", "devices %d and %d",
                          device->ordinal, peer);
    *can_access = answer;
    return GPUMEM_OK;
}

int gpumem_device_ordinal(const gpumem_device *device) {
    return device->ordinal;
}

CUdevice gpumem_device_handle(const gpumem_device *device) {
    return device->handle;
}

CUcontext gpumem_device_context(const gpumem_device *device) {
    return device->context;
}

gpumem_library *gpumem_device_library(const gpumem_device *device) {
    return device->library;
}
