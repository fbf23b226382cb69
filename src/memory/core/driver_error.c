#include "memory/core/driver_error.h"

#include <stdio.h>

int gm_code_is_sticky(CUresult code) {
    switch (code) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_EXTERNAL_DEVICE:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_DEINITIALIZED:
        return 1;
    default:
        return 0;
    }
}

gpumem_status gm_status_of(CUresult code) {
    switch (code) {
    case CUDA_SUCCESS:
        return GPUMEM_OK;
    case CUDA_ERROR_OUT_OF_MEMORY:
        return GPUMEM_ERROR_OUT_OF_MEMORY;
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_NOT_FOUND:
    case CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER:
        return GPUMEM_ERROR_NOT_SUPPORTED;
    case CUDA_ERROR_NOT_PERMITTED:
        return GPUMEM_ERROR_NOT_PERMITTED;
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_INVALID_DEVICE:
        return GPUMEM_ERROR_NO_DEVICE;
    default:
        return gm_code_is_sticky(code) ? GPUMEM_ERROR_DEVICE_FAULT : GPUMEM_ERROR_DRIVER;
    }
}

const char *gm_code_name(const gpumem_driver_api *cu, CUresult code) {
    static _Thread_local char number[32];
    const char *name = NULL;
    if (cu->cuGetErrorName(code, &name) == CUDA_SUCCESS && name)
        return name;
    snprintf(number, sizeof number, "CUresult %d", (int)code);
    return number;
}
