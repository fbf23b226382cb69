/* What the driver keeps for the graphs of a device. */
#include "base/cancel.h"
#include "memory/core/current_context.h"
#include "memory/core/driver_error.h"

#include <gpumem/graph_memory.h>

_Static_assert((int)GPUMEM_GRAPH_MEMORY_USED_CURRENT == (int)CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT &&
                   (int)GPUMEM_GRAPH_MEMORY_RESERVED_HIGH ==
                       (int)CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH,
               "the numbers are the driver's");

static int is_high(gpumem_graph_memory_attribute attribute) {
    return attribute == GPUMEM_GRAPH_MEMORY_USED_HIGH ||
           attribute == GPUMEM_GRAPH_MEMORY_RESERVED_HIGH;
}

static gpumem_status check(gpumem_device *device, gpumem_graph_memory_attribute attribute,
                           const char *call) {
    GM_CHECK(device, call);
    GM_REQUIRE((unsigned)attribute <= GPUMEM_GRAPH_MEMORY_RESERVED_HIGH,
               "%s: there is no attribute %d", call, (int)attribute);
    return GPUMEM_OK;
}

typedef CUresult (*access_fn)(CUdevice device, CUgraphMem_attribute attribute, void *value);

static gpumem_status run(gpumem_device *device, access_fn fn, const char *call,
                         gpumem_graph_memory_attribute attribute, cuuint64_t *value) {
    struct gm_current current;
    gpumem_status status = gm_current_enter(&current, device);
    if (status != GPUMEM_OK)
        return status;
    CUresult result = fn(device->handle, (CUgraphMem_attribute)attribute, value);
    if (result != CUDA_SUCCESS)
        status = gm_cu_fail(device->cu, result, call, "attribute %d of device %d's graph memory",
                            (int)attribute, device->ordinal);
    gm_current_leave(&current);
    return status;
}

gpumem_status gpumem_graph_memory_get_attribute(gpumem_device *device,
                                                gpumem_graph_memory_attribute attribute,
                                                uint64_t *value) {
    GM_UNCANCELLED;
    gpumem_status status = check(device, attribute, "gpumem_graph_memory_get_attribute");
    if (status != GPUMEM_OK)
        return status;
    GM_REQUIRE(value, "gpumem_graph_memory_get_attribute: value is NULL");
    cuuint64_t got = 0;
    status = run(device, device->cu->cuDeviceGetGraphMemAttribute, "cuDeviceGetGraphMemAttribute",
                 attribute, &got);
    if (status == GPUMEM_OK)
        *value = got;
    return status;
}

gpumem_status gpumem_graph_memory_set_attribute(gpumem_device *device,
                                                gpumem_graph_memory_attribute attribute,
                                                uint64_t value) {
    GM_UNCANCELLED;
    gpumem_status status = check(device, attribute, "gpumem_graph_memory_set_attribute");
    if (status != GPUMEM_OK)
        return status;
    GM_REQUIRE(is_high(attribute), "gpumem_graph_memory_set_attribute: attribute %d is read-only",
               (int)attribute);
    GM_REQUIRE(
        value == 0,
        "gpumem_graph_memory_set_attribute: a high-water mark can only be set to 0, not to %llu",
        (unsigned long long)value);
    cuuint64_t given = 0;
    return run(device, device->cu->cuDeviceSetGraphMemAttribute, "cuDeviceSetGraphMemAttribute",
               attribute, &given);
}

gpumem_status gpumem_graph_memory_trim(gpumem_device *device) {
    GM_UNCANCELLED;
    GM_CHECK(device, "gpumem_graph_memory_trim");
    struct gm_current current;
    gpumem_status status = gm_current_enter(&current, device);
    if (status != GPUMEM_OK)
        return status;
    CUresult result = device->cu->cuDeviceGraphMemTrim(device->handle);
    if (result != CUDA_SUCCESS)
        status = gm_cu_fail(device->cu, result, "cuDeviceGraphMemTrim",
                            "device %d's graph memory is not given back", device->ordinal);
    gm_current_leave(&current);
    return status;
}
