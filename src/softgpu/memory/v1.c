/*
 * The forms of CUDA 2 to 3.1, with device addresses and sizes of 32 bits. The driver's contexts
 * have 64-bit addresses, for which these functions answer INVALID_CONTEXT and zero their outputs,
 * but for two that have nothing to do: recorded on H200.
 */
#include "softgpu/context/context.h"
#include "softgpu/core/calls.h"

#define REFUSED CUDA_ERROR_INVALID_CONTEXT

#define ZERO(output)                                                                               \
    do {                                                                                           \
        if (output)                                                                                \
            *(output) = 0;                                                                         \
    } while (0)

CUresult sg_cuMemAlloc(CUdeviceptr_v1 *dptr, unsigned int bytesize) {
    (void)bytesize;
    ZERO(dptr);
    return REFUSED;
}

CUresult sg_cuMemAllocPitch(CUdeviceptr_v1 *dptr, unsigned int *pPitch, unsigned int WidthInBytes,
                            unsigned int Height, unsigned int ElementSizeBytes) {
    (void)WidthInBytes;
    (void)Height;
    (void)ElementSizeBytes;
    ZERO(dptr);
    ZERO(pPitch);
    return REFUSED;
}

CUresult sg_cuMemFree(CUdeviceptr_v1 dptr) {
    return dptr == 0 && !sg_context_peek() ? CUDA_SUCCESS : REFUSED;
}

CUresult sg_cuMemGetAddressRange(CUdeviceptr_v1 *pbase, unsigned int *psize, CUdeviceptr_v1 dptr) {
    (void)dptr;
    if (!pbase && !psize)
        return CUDA_SUCCESS;
    ZERO(pbase);
    ZERO(psize);
    return atomic_load(&sg_initialized) ? REFUSED : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult sg_cuMemGetInfo(unsigned int *free, unsigned int *total) {
    ZERO(free);
    ZERO(total);
    return REFUSED;
}

CUresult sg_cuMemAllocHost(void **pp, unsigned int bytesize) {
    (void)bytesize;
    ZERO(pp);
    return REFUSED;
}

CUresult sg_cuMemHostGetDevicePointer(CUdeviceptr_v1 *pdptr, void *p, unsigned int Flags) {
    (void)p;
    (void)Flags;
    ZERO(pdptr);
    return REFUSED;
}
