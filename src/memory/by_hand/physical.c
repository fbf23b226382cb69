/* Creation and destruction of physical memory. */
#include "base/cancel.h"
#include "base/options.h"
#include "memory/by_hand/by_hand.h"
#include "memory/core/driver_error.h"
#include "memory/core/vmm_calls.h"
#include "memory/object/closing.h"
#include "memory/object/device.h"
#include "memory/object/shortage.h"

#include <stdlib.h>

static gpumem_status read_physical_options(const gpumem_device *device,
                                           const gpumem_physical_options *given,
                                           gpumem_physical_options *o) {
    gpumem_status status = GM_OPTIONS_READ(gpumem_physical_options, given, o);
    if (status != GPUMEM_OK)
        return status;
    status = gm_vmm_check_type(o->allocation_type, "physical memory");
    if (status != GPUMEM_OK)
        return status;
    GM_REQUIRE((unsigned)o->location <= GPUMEM_LOCATION_HOST_NUMA_CURRENT,
               "physical memory: unknown location %d", (int)o->location);
    GM_REQUIRE((unsigned)o->handle_type <= GPUMEM_HANDLE_FABRIC,
               "physical memory: unknown handle type %d", (int)o->handle_type);
    status = gm_vmm_check_node(o->location, o->numa_node, "physical memory");
    return status == GPUMEM_OK ? gm_vmm_supported(device) : status;
}

#define REQUIRE_ATTRIBUTE(wanted, what, name)                                                      \
    do {                                                                                           \
        if ((wanted) && !gm_device_attribute(device, CU_DEVICE_ATTRIBUTE_##name, 0))               \
            return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,                                             \
                           "physical memory: device %d has no " what ": attribute " #name " is 0", \
                           device->ordinal);                                                       \
    } while (0)

/* A driver may accept flags that the device ignores, which would go unnoticed. */
static gpumem_status check_flags(const gpumem_device *device, const gpumem_physical_options *o) {
    REQUIRE_ATTRIBUTE(o->gpu_direct_rdma, "GPUDirect RDMA with virtual memory",
                      GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED);
    REQUIRE_ATTRIBUTE(o->compression, "compressible memory", GENERIC_COMPRESSION_SUPPORTED);
    return GPUMEM_OK;
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

gpumem_physical *gm_physical_new(gpumem_device *device, size_t bytes, size_t granularity,
                                 enum gm_origin origin) {
    gpumem_physical *made = calloc(1, sizeof *made);
    if (!made) {
        gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a physical allocation");
        return NULL;
    }
    made->generation = device->generation;
    made->device = device;
    made->bytes = bytes;
    made->granularity = granularity;
    made->origin = origin;
    return made;
}

/* Memory made by others does not count as committed. */
static enum gm_count counted_as(const gpumem_physical *physical) {
    return physical->origin == GM_CREATED ? GM_COMMITTED : GM_IMPORTED;
}

void gm_physical_hand_out(gpumem_physical *made, gpumem_physical **physical) {
    gm_meter_add(&made->device->meter, counted_as(made), made->bytes);
    gm_inventory_size_physical(&made->device->inventory, made->handle, made->bytes);
    gm_device_object_made(made->device);
    *physical = made;
}

gpumem_status gpumem_physical_create(gpumem_device *device, size_t bytes,
                                     const gpumem_physical_options *given,
                                     gpumem_physical **physical) {
    GM_UNCANCELLED;
    gpumem_physical_options options;
    GM_CHECK(device, "gpumem_physical_create");
    GM_REQUIRE(physical, "gpumem_physical_create: physical is NULL");
    gpumem_status status = read_physical_options(device, given, &options);
    if (status == GPUMEM_OK)
        status = check_flags(device, &options);
    if (status != GPUMEM_OK)
        return status;
    CUmemAllocationProp prop = prop_of(device, &options);
    size_t unit = 0;
    status = gm_vmm_granularity(device, &prop, GPUMEM_GRANULARITY_MINIMUM, &unit);
    if (status != GPUMEM_OK)
        return status;
    GM_REQUIRE(bytes, "gpumem_physical_create: bytes is 0");
    GM_REQUIRE(bytes % unit == 0,
               "gpumem_physical_create: %zu bytes are not a multiple of the granularity %zu", bytes,
               unit);
    gpumem_physical *made = gm_physical_new(device, bytes, unit, GM_CREATED);
    if (!made)
        return GPUMEM_ERROR_OUT_OF_HOST_MEMORY;
    status = gm_vmm_create(device, &device->meter, bytes, &prop, &made->handle);
    if (status != GPUMEM_OK) {
        free(made);
        return gm_tell_shortage(device, NULL, bytes, status);
    }
    made->exports_fd = options.handle_type == GPUMEM_HANDLE_POSIX_FD;
    made->exports_fabric = options.handle_type == GPUMEM_HANDLE_FABRIC;
    gm_physical_hand_out(made, physical);
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
    gm_meter_subtract(&device->meter, counted_as(physical), physical->bytes);
    /* If the driver refuses, only memory that we made counts as lost. */
    gm_vmm_release(device, &device->meter, physical->handle,
                   physical->origin == GM_CREATED ? physical->bytes : 0);
    gm_bury(physical);
    int entered = gm_closing_enter();
    gm_device_object_gone(device);
    gm_closing_leave(entered);
    return GPUMEM_OK;
}
