#include "softgpu/device/numa.h"

#include "softgpu/device/device.h"

#include <stdio.h>
#include <unistd.h>

bool sg_numa_node_exists(int node) {
    char path[64];
    if (node <= 0)
        return node == 0; /* even on a kernel without NUMA, which has no such folder */
    snprintf(path, sizeof path, "/sys/devices/system/node/node%d", node);
    return access(path, F_OK) == 0;
}

static CUmemLocation location(CUmemLocationType type, int id) {
    CUmemLocation made = {.type = type};
    made.id = id;
    return made;
}

CUresult sg_location_of_device(CUdevice device, CUmemLocation *out) {
    if (device == CU_DEVICE_CPU) {
        *out = location(CU_MEM_LOCATION_TYPE_HOST, CU_DEVICE_CPU);
        return CUDA_SUCCESS;
    }
    *out = location(CU_MEM_LOCATION_TYPE_DEVICE, device);
    return sg_device(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

bool sg_location_type_known(const CUmemLocation *at) {
    return at->type >= CU_MEM_LOCATION_TYPE_DEVICE &&
           at->type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

CUresult sg_location_check(const CUmemLocation *at) {
    switch (at->type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        return sg_device(at->id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        return sg_numa_node_exists(at->id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

const char *sg_location_text(const CUmemLocation *at, char text[32]) {
    switch (at->type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        snprintf(text, 32, "device %d", at->id);
        return text;
    case CU_MEM_LOCATION_TYPE_HOST:
        return "host";
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        snprintf(text, 32, "node %d", at->id);
        return text;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
        return "node of the thread";
    default:
        return "";
    }
}
