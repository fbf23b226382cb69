/* Chooses the driver's pool of host memory for a pinned resource. */
#include "memory/core/driver_error.h"
#include "memory/core/vmm_calls.h"
#include "memory/host/numa.h"
#include "memory/object/device.h"
#include "memory/object/resource.h"
#include "memory/pool/pool.h"

#include <stdio.h>

/* On an H200 a device has no access to a host pool by default, neither to a new one nor to the
 * default pool.
 */
gpumem_status gm_pool_open_to_device(gpumem_device *device, CUmemoryPool pool) {
    CUmemAccessDesc access = {
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device->handle},
        .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    };
    CUmemAccess_flags now = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    CUresult result = device->cu->cuMemPoolGetAccess(&now, pool, &access.location);
    if (result == CUDA_SUCCESS && now == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
        return GPUMEM_OK;
    result = device->cu->cuMemPoolSetAccess(pool, &access, 1);
    if (result == CUDA_SUCCESS)
        return GPUMEM_OK;
    return gm_cu_fail(device->cu, result, "cuMemPoolSetAccess",
                      "cannot give device %d access to the host pool", device->ordinal);
}

/* ---- Whether there are any ------------------------------------------------------------------- */

/* 1 or 0, or -1 if the driver does not know the attribute or fails. */
static int attribute_says(const gpumem_device *device, const gpumem_pinned_options *options) {
    return gm_device_attribute(device,
                               options->numa_bind
                                   ? CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED
                                   : CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED,
                               -1);
}

/* A driver older than host pools reports an invalid value, a newer one the attribute as 0. Other
 * errors say nothing about pools as such. */
static int is_absent(const gpumem_device *device, const gpumem_pinned_options *options) {
    int code = gpumem_last_error()->driver_code;
    if (code == CUDA_ERROR_NOT_SUPPORTED || code == CUDA_ERROR_NOT_FOUND)
        return 1;
    return code == CUDA_ERROR_INVALID_VALUE && attribute_says(device, options) < 0;
}

/* ---- The pool -------------------------------------------------------------------------------- */

static gpumem_status create_own(gpumem_device *device, const gpumem_pinned_options *options,
                                struct gm_pool_settings *settings) {
    CUmemAllocationProp like =
        gm_vmm_prop(device, settings->location, settings->numa_node, settings->handle_type, 0, 0);
    CUmemPoolProps props = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .handleTypes = like.requestedHandleTypes,
        .location = like.location,
        .maxSize = options->maximum_bytes,
    };
    uint64_t threshold = options->keep_nothing ? 0
                         : options->keep_bytes ? options->keep_bytes
                                               : UINT64_MAX;
    settings->own = 1;
    settings->maximum = options->maximum_bytes;
    return gm_pool_create(device, &props, threshold, &settings->pool);
}

static gpumem_status find(gpumem_device *device, gpumem_pool_choice choice,
                          struct gm_pool_settings *settings) {
    const gpumem_driver_api *cu = device->cu;
    CUmemLocation host = {.type = CU_MEM_LOCATION_TYPE_HOST};
    int current = choice == GPUMEM_POOL_CURRENT;
    CUresult result =
        current ? cu->cuMemGetMemPool(&settings->pool, &host, CU_MEM_ALLOCATION_TYPE_PINNED)
                : cu->cuMemGetDefaultMemPool(&settings->pool, &host, CU_MEM_ALLOCATION_TYPE_PINNED);
    if (result == CUDA_SUCCESS)
        return GPUMEM_OK;
    return gm_cu_fail(cu, result, current ? "cuMemGetMemPool" : "cuMemGetDefaultMemPool",
                      "the driver has no current pool of host memory");
}

/* Drivers before 13.0 have host pools, but no current one. */
static gpumem_status find_or_create(gpumem_device *device, const gpumem_pinned_options *options,
                                    struct gm_pool_settings *settings) {
    gpumem_status status = find(device, options->pool, settings);
    int code = gpumem_last_error()->driver_code;
    if (status == GPUMEM_OK || (code != CUDA_ERROR_NOT_FOUND && code != CUDA_ERROR_NOT_SUPPORTED))
        return status;
    snprintf(settings->note, sizeof settings->note, "a pool of its own: %s",
             gpumem_last_error()->message);
    return create_own(device, options, settings);
}

/* Options that only a new pool can have. */
static int is_special(const gpumem_pinned_options *options) {
    return options->numa_bind || options->ipc || options->maximum_bytes || options->keep_bytes ||
           options->keep_nothing;
}

/* A shared pool needs a node: an H200 refuses location HOST with descriptors. */
static gpumem_status settle_node(const gpumem_device *device, gpumem_pinned_options *options) {
    if (!options->ipc || options->numa_bind)
        return GPUMEM_OK;
    int node = gm_device_attribute(device, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, -1);
    if (node < 0)
        node = gm_numa_only();
    if (node < 0)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "device %d does not report the nearest NUMA node (attribute HOST_NUMA_ID), "
                       "which a shared pool needs: set numa_bind and numa_node",
                       device->ordinal);
    options->numa_bind = 1;
    options->numa_node = node;
    return GPUMEM_OK;
}

static gpumem_status get_pool(gpumem_device *device, const gpumem_pinned_options *options,
                              struct gm_pool_settings *settings, int *absent) {
    if (attribute_says(device, options) == 0) {
        *absent = 1;
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED, "attribute %sMEMORY_POOLS_SUPPORTED is 0",
                       options->numa_bind ? "HOST_NUMA_" : "HOST_");
    }
    gpumem_status status = is_special(options) || options->pool == GPUMEM_POOL_OWN
                               ? create_own(device, options, settings)
                               : find_or_create(device, options, settings);
    if (status != GPUMEM_OK)
        *absent = is_absent(device, options);
    return status;
}

static gpumem_status check(const gpumem_pinned_options *options) {
    GM_REQUIRE(!options->flags, "pinned resource: a pool takes no flags");
    GM_REQUIRE(!options->slab_bytes && !options->touch_threads,
               "pinned resource: a pool has no slabs to size or touch");
    GM_REQUIRE(!is_special(options) || options->pool != GPUMEM_POOL_DEFAULT,
               "pinned resource: the driver's default pool must not be changed; choose "
               "GPUMEM_POOL_OWN to set a node, a maximum, the bytes kept or ipc");
    return GPUMEM_OK;
}

gpumem_status gm_host_pool_create(gpumem_device *device, const gpumem_pinned_options *given,
                                  gpumem_resource **resource, int *absent) {
    gpumem_pinned_options options = *given;
    gpumem_status status = check(&options);
    if (status == GPUMEM_OK)
        status = settle_node(device, &options);
    if (status != GPUMEM_OK)
        return status;
    struct gm_pool_settings settings = {
        .kind = "pinned_pool",
        .host = 1,
        .location = options.numa_bind ? GPUMEM_LOCATION_HOST_NUMA : GPUMEM_LOCATION_HOST,
        .numa_node = options.numa_bind ? options.numa_node : -1,
        .handle_type = options.ipc ? GPUMEM_HANDLE_POSIX_FD : GPUMEM_HANDLE_NONE,
    };
    status = get_pool(device, &options, &settings, absent);
    if (status != GPUMEM_OK)
        return status;
    status = gm_pool_open_to_device(device, settings.pool);
    if (status != GPUMEM_OK) {
        if (settings.own)
            gm_pool_discard(device, settings.pool);
        return status;
    }
    return gm_pool_resource(device, &settings, resource);
}
