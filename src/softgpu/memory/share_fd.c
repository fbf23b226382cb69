/* Handles of physical memory as file descriptors. */
#include "softgpu/core/calls.h"
#include "softgpu/core/config.h"
#include "softgpu/memory/phys.h"
#include "softgpu/memory/vmm.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* The descriptor is the caller's to close, and a new one per call. What was imported is not
 * exported again: as recorded on H200. */
CUresult sg_cuMemExportToShareableHandle(void *shareableHandle, CUmemGenericAllocationHandle handle,
                                         CUmemAllocationHandleType handleType,
                                         unsigned long long flags) {
    struct sg_memory *memory = sg_memory_from_handle(handle);
    if (!shareableHandle || !memory || flags != 0 ||
        handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || memory->phys->fd < 0 ||
        memory->imported)
        return CUDA_ERROR_INVALID_VALUE;
    int fd = fcntl(memory->phys->fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) {
        sg_log(0, "cuMemExportToShareableHandle: no file descriptor: %s", strerror(errno));
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    *(int *)shareableHandle = fd;
    return CUDA_SUCCESS;
}

CUresult sg_cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *osHandle,
                                           CUmemAllocationHandleType shHandleType) {
    if (!handle || shHandleType == CU_MEM_HANDLE_TYPE_NONE)
        return CUDA_ERROR_INVALID_VALUE;
    if (shHandleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    intptr_t value = (intptr_t)osHandle;
    struct sg_phys *phys;
    CUresult result = sg_phys_import(value >= 0 && value <= INT32_MAX ? (int)value : -1, &phys);
    if (result == CUDA_SUCCESS)
        result = sg_memory_new(phys, handle);
    if (result == CUDA_SUCCESS)
        sg_memory_from_handle(*handle)->imported = true;
    return result;
}
