/* What the methods that use Vulkan share. */
#include "mapped/mapper.h"
#include "memory/core/driver_error.h"
#include "vulkan/device.h"

unsigned gm_mapper_vulkan_flags(const struct gm_mapper *mapper) {
    return (mapper->wishes.require_coherent ? GM_VULKAN_REQUIRE_COHERENT : 0u) |
           (mapper->wishes.force_non_coherent ? GM_VULKAN_FORCE_NON_COHERENT : 0u);
}

void gm_mapper_close_vulkan(struct gm_mapper *mapper) {
    gm_vulkan_close(mapper->vulkan);
    mapper->vulkan = NULL;
}

gpumem_status gm_mapper_open_vulkan(struct gm_mapper *mapper) {
    CUuuid uuid;
    struct gm_vulkan_type type;
    const gpumem_driver_api *cu = mapper->device->cu;
    CUresult result = cu->cuDeviceGetUuid_v2(&uuid, mapper->device->handle);
    if (result != CUDA_SUCCESS)
        return gm_cu_fail(cu, result, "cuDeviceGetUuid", "device %d", mapper->device->ordinal);
    gpumem_status status =
        gm_vulkan_open((const unsigned char *)uuid.bytes, &mapper->vulkan, NULL, 0);
    if (status != GPUMEM_OK)
        return status;
    status = gm_vulkan_choose(mapper->vulkan, gm_mapper_vulkan_flags(mapper), &type);
    if (status != GPUMEM_OK) {
        gm_mapper_close_vulkan(mapper);
        return status;
    }
    mapper->coherent = type.coherent;
    mapper->atom = type.coherent ? 1 : (size_t)type.atom;
    return GPUMEM_OK;
}
