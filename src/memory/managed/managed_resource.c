/* The managed resource: each buffer is an allocation of its own, whose pages the driver moves. */
#include "base/cancel.h"
#include "base/options.h"
#include "memory/core/current_context.h"
#include "memory/core/driver_error.h"
#include "memory/host/numa.h"
#include "memory/object/device.h"
#include "memory/object/resource.h"
#include "memory/pool/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The driver's alignment of allocations. */
#define MANAGED_ALIGNMENT ((size_t)256)

struct managed_resource {
    gpumem_device *device;
    gpumem_resource *resource;
    gpumem_managed_options options;
    char note[192];
};

static void give_back(struct managed_resource *m, CUdeviceptr base, size_t bytes) {
    if (base && m->device->cu->cuMemFree_v2(base) != CUDA_SUCCESS)
        gm_meter_quarantine_memory(&m->resource->meter, bytes);
}

static CUresult give_advice(const struct managed_resource *m, CUdeviceptr base, size_t bytes) {
    const gpumem_driver_api *cu = m->device->cu;
    CUresult result = CUDA_SUCCESS;
    if (m->options.read_mostly)
        result = cu->cuMemAdvise(base, bytes, CU_MEM_ADVISE_SET_READ_MOSTLY, m->device->handle);
    if (result == CUDA_SUCCESS && m->options.preferred != GPUMEM_MANAGED_ANYWHERE) {
        CUdevice place =
            m->options.preferred == GPUMEM_MANAGED_ON_HOST ? CU_DEVICE_CPU : m->device->handle;
        const CUmemLocation node = {.type = CU_MEM_LOCATION_TYPE_HOST_NUMA,
                                    .id = m->options.numa_node};
        result = m->options.preferred == GPUMEM_MANAGED_ON_NUMA_NODE
                     ? cu->cuMemAdvise_v2(base, bytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, node)
                     : cu->cuMemAdvise(base, bytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, place);
    }
    return result;
}

static gpumem_status allocate(void *user, const gpumem_request *request,
                              gpumem_allocation *allocation) {
    struct managed_resource *m = user;
    const gpumem_driver_api *cu = m->device->cu;
    size_t slack =
        request->alignment > MANAGED_ALIGNMENT ? request->alignment - MANAGED_ALIGNMENT : 0;
    if (request->bytes > SIZE_MAX - slack)
        return gm_fail(GPUMEM_ERROR_OUT_OF_MEMORY, "%zu bytes is too large", request->bytes);
    size_t bytes = request->bytes + slack;
    CUdeviceptr base = 0;
    const char *what = "cuMemAllocManaged";
    CUresult result = cu->cuMemAllocManaged(&base, bytes, CU_MEM_ATTACH_GLOBAL);
    if (result == CUDA_SUCCESS) {
        what = "cuMemAdvise";
        result = give_advice(m, base, bytes);
    }
    if (result != CUDA_SUCCESS) {
        gpumem_status status =
            gm_cu_fail(cu, result, what, "cannot get %zu bytes of managed memory", bytes);
        /* It may have taken effect: the driver reports earlier failures in this way. */
        give_back(m, base, bytes);
        return status;
    }
    CUdeviceptr pointer = (base + request->alignment - 1) & ~(CUdeviceptr)(request->alignment - 1);
    *allocation = (gpumem_allocation){
        .size = sizeof *allocation,
        .pointer = pointer,
        .host_pointer = (void *)(uintptr_t)pointer,
        .bytes = request->bytes,
        .committed_bytes = bytes,
        .capacity = request->bytes,
        .cookie = (void *)(uintptr_t)base,
    };
    return GPUMEM_OK;
}

static void deallocate(void *user, const gpumem_allocation *allocation, CUstream stream) {
    (void)stream;
    give_back(user, (CUdeviceptr)(uintptr_t)allocation->cookie, allocation->committed_bytes);
}

static void properties(void *user, gpumem_resource_properties *out) {
    const struct managed_resource *m = user;
    out->device_accessible = 1;
    out->host_accessible = 1;
    out->location = gm_managed_location(m->options.preferred);
    memcpy(out->note, m->note, sizeof out->note);
}

static const gpumem_resource_ops ops = {
    .size = sizeof ops,
    .kind = "managed",
    .allocate = allocate,
    .deallocate = deallocate,
    .properties = properties,
    .destroy = free,
};

static gpumem_status check_node(const gpumem_device *device,
                                const gpumem_managed_options *options) {
    if (options->preferred != GPUMEM_MANAGED_ON_NUMA_NODE) {
        GM_REQUIRE(!options->numa_node,
                   "managed: numa_node is %d, but the place is not ON_NUMA_NODE",
                   options->numa_node);
        return GPUMEM_OK;
    }
    if (!gpumem_driver_has(device->library->driver, GPUMEM_FN_cuMemAdvise_v2))
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "managed: the driver is older than 12.2 and knows no host nodes");
    return gm_numa_check(options->numa_node, "managed");
}

static gpumem_status check(const gpumem_device *device, const gpumem_managed_options *options) {
    GM_REQUIRE((unsigned)options->preferred <= GPUMEM_MANAGED_ON_NUMA_NODE,
               "managed: unknown place %d", (int)options->preferred);
    GM_REQUIRE((unsigned)options->method <= GPUMEM_MANAGED_POOL, "managed: unknown method %d",
               (int)options->method);
    GM_REQUIRE((unsigned)options->pool <= GPUMEM_POOL_OWN, "managed: unknown pool choice %d",
               (int)options->pool);
    GM_REQUIRE(!options->pool || options->method == GPUMEM_MANAGED_POOL,
               "managed: `pool` is set, but the method is not GPUMEM_MANAGED_POOL");
    GM_REQUIRE(!options->read_mostly || options->method != GPUMEM_MANAGED_POOL,
               "managed: the driver takes no advice about memory of a pool (read_mostly)");
    gpumem_status status = check_node(device, options);
    if (status != GPUMEM_OK)
        return status;
    if (!gm_device_attribute(device, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 0))
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "device %d has no managed memory (attribute MANAGED_MEMORY is 0)",
                       device->ordinal);
    /* A buffer's host pointer may be used at any time. */
    if (!gm_device_attribute(device, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 0))
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "the CPU cannot use managed memory while device %d works (attribute "
                       "CONCURRENT_MANAGED_ACCESS is 0)",
                       device->ordinal);
    return GPUMEM_OK;
}

/* `note` is the properties'. */
static gpumem_status create_allocated(gpumem_device *device, const gpumem_managed_options *options,
                                      const char *note, gpumem_resource **resource) {
    struct managed_resource *m = calloc(1, sizeof *m);
    if (!m)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a resource");
    m->device = device;
    m->options = *options;
    snprintf(m->note, sizeof m->note, "%s", note);
    gpumem_status status = gm_resource_make(device, &ops, m, NULL, &m->resource);
    if (status != GPUMEM_OK) {
        free(m);
        return status;
    }
    *resource = m->resource;
    return GPUMEM_OK;
}

/* The driver's pool, or, if there is none, allocations with a note. */
static gpumem_status create_pool(gpumem_device *device, const gpumem_managed_options *options,
                                 gpumem_resource **resource) {
    int absent = 0;
    char note[sizeof((struct managed_resource *)NULL)->note];
    struct gm_current current;
    gpumem_status status = gm_current_enter(&current, device);
    if (status != GPUMEM_OK)
        return status;
    status = gm_managed_pool_create(device, options, resource, &absent);
    gm_current_leave(&current);
    if (status == GPUMEM_OK || !absent)
        return status;
    snprintf(note, sizeof note, GM_NO_MANAGED_POOL "%s", gpumem_last_error()->message);
    return create_allocated(device, options, note, resource);
}

gpumem_status gpumem_managed_resource_create(gpumem_device *device,
                                             const gpumem_managed_options *given,
                                             gpumem_resource **resource) {
    GM_UNCANCELLED;
    gpumem_managed_options options;
    GM_CHECK(device, "gpumem_managed_resource_create");
    GM_REQUIRE(resource, "gpumem_managed_resource_create: resource is NULL");
    gpumem_status status = GM_OPTIONS_READ(gpumem_managed_options, given, &options);
    if (status == GPUMEM_OK)
        status = check(device, &options);
    if (status != GPUMEM_OK)
        return status;
    return options.method == GPUMEM_MANAGED_POOL ? create_pool(device, &options, resource)
                                                 : create_allocated(device, &options, "", resource);
}
