/* Chooses the driver's pool of managed memory for a managed resource. */
#include "memory/core/driver_error.h"
#include "memory/pool/pool.h"

gpumem_location gm_managed_location(gpumem_managed_place preferred) {
    switch (preferred) {
    case GPUMEM_MANAGED_ON_HOST:
        return GPUMEM_LOCATION_HOST;
    case GPUMEM_MANAGED_ON_NUMA_NODE:
        return GPUMEM_LOCATION_HOST_NUMA;
    default:
        return GPUMEM_LOCATION_DEVICE;
    }
}

/* The preferred place of the pool's memory: the driver takes this instead of advice. */
static CUmemLocation place_of(const gpumem_device *device, const gpumem_managed_options *options) {
    switch (options->preferred) {
    case GPUMEM_MANAGED_ON_DEVICE:
        return (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device->handle};
    case GPUMEM_MANAGED_ON_HOST:
        return (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST};
    case GPUMEM_MANAGED_ON_NUMA_NODE:
        return (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = options->numa_node};
    default:
        return (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_NONE};
    }
}

static gpumem_status create_own(gpumem_device *device, CUmemLocation place,
                                struct gm_pool_settings *settings) {
    const CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED, .location = place};
    settings->own = 1;
    return gm_pool_create(device, &props, UINT64_MAX, &settings->pool);
}

static gpumem_status find(gpumem_device *device, gpumem_pool_choice choice, CUmemLocation place,
                          struct gm_pool_settings *settings) {
    const gpumem_driver_api *cu = device->cu;
    int current = choice == GPUMEM_POOL_CURRENT;
    CUresult result =
        current
            ? cu->cuMemGetMemPool(&settings->pool, &place, CU_MEM_ALLOCATION_TYPE_MANAGED)
            : cu->cuMemGetDefaultMemPool(&settings->pool, &place, CU_MEM_ALLOCATION_TYPE_MANAGED);
    if (result == CUDA_SUCCESS)
        return GPUMEM_OK;
    return gm_cu_fail(cu, result, current ? "cuMemGetMemPool" : "cuMemGetDefaultMemPool",
                      "the driver has no pool of managed memory");
}

gpumem_status gm_managed_pool_create(gpumem_device *device, const gpumem_managed_options *options,
                                     gpumem_resource **resource, int *absent) {
    const CUmemLocation place = place_of(device, options);
    struct gm_pool_settings settings = {
        .kind = "managed_pool",
        .managed = 1,
        .nowhere = options->preferred == GPUMEM_MANAGED_ANYWHERE,
        .location = gm_managed_location(options->preferred),
        .numa_node = options->preferred == GPUMEM_MANAGED_ON_NUMA_NODE ? options->numa_node : -1,
        .handle_type = GPUMEM_HANDLE_NONE,
    };
    /* Both came with 13.0; an older driver would consider the properties invalid. */
    if (!gpumem_driver_has(device->library->driver, GPUMEM_FN_cuMemGetMemPool)) {
        *absent = 1;
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED, "the driver is older than 13.0 (no %s)",
                       "cuMemGetMemPool");
    }
    gpumem_status status = options->pool == GPUMEM_POOL_OWN
                               ? create_own(device, place, &settings)
                               : find(device, options->pool, place, &settings);
    if (status != GPUMEM_OK) {
        *absent = status == GPUMEM_ERROR_NOT_SUPPORTED;
        return status;
    }
    return gm_pool_resource(device, &settings, resource);
}
