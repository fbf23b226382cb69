/* Handles of physical memory for other processes: file descriptors, and fabric handles. */
#include "base/descriptor.h"
#include "softgpu/address/phys.h"
#include "softgpu/core/calls.h"
#include "softgpu/core/config.h"
#include "softgpu/memory/vmm.h"
#include "softgpu/process/fabric.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Imported memory cannot be exported again, nor can a type be exported that was not requested, as
 * on H200. */
static bool may_export(const struct sg_memory *memory, CUmemAllocationHandleType type) {
    bool known =
        type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || type == CU_MEM_HANDLE_TYPE_FABRIC;
    unsigned asked = (unsigned)memory->phys->prop.requestedHandleTypes;
    return known && (asked & (unsigned)type) && sg_phys_has_own_file(memory->phys) &&
           !memory->imported;
}

/* Each call returns a new descriptor, which the caller must close. */
static CUresult export(const struct sg_phys *phys, CUmemAllocationHandleType type, void *handle) {
    if (type == CU_MEM_HANDLE_TYPE_FABRIC)
        return sg_fabric_export(&phys->file, SG_FABRIC_MEMORY, handle);
    int fd = gm_kept_file_duplicate(&phys->file);
    if (fd < 0) {
        sg_log(SG_LOG_ERROR, "cuMemExportToShareableHandle: no file descriptor: %s",
               strerror(errno));
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    *(int *)handle = fd;
    return CUDA_SUCCESS;
}

CUresult sg_cuMemExportToShareableHandle(void *shareableHandle, CUmemGenericAllocationHandle handle,
                                         CUmemAllocationHandleType handleType,
                                         unsigned long long flags) {
    struct sg_memory *memory = sg_memory_from_handle(handle);
    if (!shareableHandle || !memory || flags != 0 || !may_export(memory, handleType))
        return CUDA_ERROR_INVALID_VALUE;
    struct sg_phys *phys = memory->phys; /* the handle may end meanwhile */
    sg_phys_ref(phys);
    CUresult result = sg_phys_give(phys);
    if (result == CUDA_SUCCESS)
        result = export(phys, handleType, shareableHandle);
    sg_phys_unref(phys);
    return result;
}

/* As recorded: 0 is no handle, and so no descriptor. */
static CUresult import_fd(intptr_t value, struct sg_phys **phys) {
    if (value == 0)
        return CUDA_ERROR_INVALID_VALUE;
    return sg_phys_import(value >= 0 && value <= INT32_MAX ? (int)value : -1, phys);
}

static CUresult import_fabric(const void *handle, struct sg_phys **phys) {
    int fd;
    CUresult result = sg_fabric_open(handle, SG_FABRIC_MEMORY, &fd);
    if (result != CUDA_SUCCESS)
        return result;
    result = sg_phys_import(fd, phys);
    close(fd);
    return result;
}

CUresult sg_cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *osHandle,
                                           CUmemAllocationHandleType shHandleType) {
    if (!handle || shHandleType == CU_MEM_HANDLE_TYPE_NONE)
        return CUDA_ERROR_INVALID_VALUE;
    struct sg_phys *phys;
    CUresult result = CUDA_ERROR_NOT_SUPPORTED;
    if (shHandleType == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        result = import_fd((intptr_t)osHandle, &phys);
    else if (shHandleType == CU_MEM_HANDLE_TYPE_FABRIC)
        result = import_fabric(osHandle, &phys);
    if (result == CUDA_SUCCESS)
        result = sg_memory_new(phys, handle);
    if (result == CUDA_SUCCESS)
        sg_memory_from_handle(*handle)->imported = true;
    return result;
}
