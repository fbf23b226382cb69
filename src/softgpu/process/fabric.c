#include "softgpu/process/fabric.h"

#include "softgpu/device/device.h"
#include "softgpu/process/process.h"

#include <string.h>

#define MAGIC 0x31666773u /* "sgf1" */

struct name {
    uint32_t magic, kind;
    struct sg_process_fd file;
};
_Static_assert(sizeof(struct name) <= sizeof(CUmemFabricHandle), "fits the driver's handle");

bool sg_fabric_permitted(void) {
    return sg_device(0)->fabric;
}

CUresult sg_fabric_export(const struct gm_kept_file *file, enum sg_fabric_kind kind, void *handle) {
    struct name name = {.magic = MAGIC, .kind = (uint32_t)kind};
    if (!sg_process_fd_name(file, &name.file))
        return CUDA_ERROR_OPERATING_SYSTEM;
    memset(handle, 0, sizeof(CUmemFabricHandle));
    memcpy(handle, &name, sizeof name);
    return CUDA_SUCCESS;
}

CUresult sg_fabric_open(const void *handle, enum sg_fabric_kind kind, int *fd) {
    struct name name;
    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sg_fabric_permitted())
        return CUDA_ERROR_NOT_SUPPORTED;
    memcpy(&name, handle, sizeof name);
    if (name.magic != MAGIC || name.kind != (uint32_t)kind)
        return CUDA_ERROR_INVALID_VALUE;
    *fd = sg_process_fd_open(&name.file);
    return *fd >= 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
