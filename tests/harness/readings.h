/* What the library says of its objects, as values; and what the process has (descriptors.h). */
#ifndef TESTS_READINGS_H
#define TESTS_READINGS_H

#include "checks.h"
#include "descriptors.h"

#define READING(name, type, get, from)                                                             \
    static inline type name(from of) {                                                             \
        type is = {.size = sizeof is};                                                             \
        OK(get(of, &is));                                                                          \
        return is;                                                                                 \
    }
READING(stats_of, gpumem_stats, gpumem_resource_get_stats, gpumem_resource *)
READING(properties_of, gpumem_resource_properties, gpumem_resource_get_properties,
        gpumem_resource *)
READING(attributes_of, gpumem_buffer_attributes, gpumem_buffer_get_attributes, gpumem_buffer *)
READING(pool_info_of, gpumem_pool_info, gpumem_pool_get_info, gpumem_resource *)
READING(pinned_info_of, gpumem_pinned_info, gpumem_pinned_get_info, gpumem_resource *)
READING(caching_info_of, gpumem_caching_info, gpumem_caching_get_info, gpumem_resource *)

static inline gpumem_stats device_stats(void) {
    gpumem_stats stats = {.size = sizeof stats};
    OK(gpumem_device_get_stats(device, &stats));
    return stats;
}

static inline gpumem_capability_report capability_of(gpumem_capability capability) {
    gpumem_capability_report report = {.size = sizeof report};
    OK(gpumem_device_get_capability(device, capability, &report));
    return report;
}

static inline unsigned char byte_of(gpumem_buffer *buffer, size_t offset) {
    unsigned char byte = 0;
    OK(read_now(buffer, offset, &byte, 1, NULL));
    return byte;
}

/* Whether the device has memory there. */
static inline bool is_mapped(CUdeviceptr address) {
    unsigned long long flags = 0;
    const CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE,
                                    .id = gpumem_device_handle(device)};
    return cu->cuMemGetAccess(&flags, &location, address) == CUDA_SUCCESS && flags != 0;
}

#endif
