/*
 * The first ABI of copies and sets, with device addresses and sizes of 32 bits. No memory lies that
 * low, so that only empty ones can succeed; the checks are those of the later functions.
 */
#include "softgpu/core/calls.h"

CUresult sg_cuMemcpyHtoD(CUdeviceptr_v1 dstDevice, const void *srcHost, unsigned int ByteCount) {
    return sg_cuMemcpyHtoD_v2(dstDevice, srcHost, ByteCount);
}

CUresult sg_cuMemcpyHtoDAsync(CUdeviceptr_v1 dstDevice, const void *srcHost, unsigned int ByteCount,
                              CUstream hStream) {
    return sg_cuMemcpyHtoDAsync_v2(dstDevice, srcHost, ByteCount, hStream);
}

CUresult sg_cuMemcpyDtoH(void *dstHost, CUdeviceptr_v1 srcDevice, unsigned int ByteCount) {
    return sg_cuMemcpyDtoH_v2(dstHost, srcDevice, ByteCount);
}

CUresult sg_cuMemcpyDtoHAsync(void *dstHost, CUdeviceptr_v1 srcDevice, unsigned int ByteCount,
                              CUstream hStream) {
    return sg_cuMemcpyDtoHAsync_v2(dstHost, srcDevice, ByteCount, hStream);
}

CUresult sg_cuMemcpyDtoD(CUdeviceptr_v1 dstDevice, CUdeviceptr_v1 srcDevice,
                         unsigned int ByteCount) {
    return sg_cuMemcpyDtoD_v2(dstDevice, srcDevice, ByteCount);
}

CUresult sg_cuMemcpyDtoDAsync(CUdeviceptr_v1 dstDevice, CUdeviceptr_v1 srcDevice,
                              unsigned int ByteCount, CUstream hStream) {
    return sg_cuMemcpyDtoDAsync_v2(dstDevice, srcDevice, ByteCount, hStream);
}

/* ---- Boxes
 * --------------------------------------------------------------------------------------- */

static CUDA_MEMCPY2D widen_2d(const CUDA_MEMCPY2D_v1 *copy) {
    return (CUDA_MEMCPY2D){.srcXInBytes = copy->srcXInBytes,
                           .srcY = copy->srcY,
                           .srcMemoryType = copy->srcMemoryType,
                           .srcHost = copy->srcHost,
                           .srcDevice = copy->srcDevice,
                           .srcArray = copy->srcArray,
                           .srcPitch = copy->srcPitch,
                           .dstXInBytes = copy->dstXInBytes,
                           .dstY = copy->dstY,
                           .dstMemoryType = copy->dstMemoryType,
                           .dstHost = copy->dstHost,
                           .dstDevice = copy->dstDevice,
                           .dstArray = copy->dstArray,
                           .dstPitch = copy->dstPitch,
                           .WidthInBytes = copy->WidthInBytes,
                           .Height = copy->Height};
}

CUresult sg_cuMemcpy2D(const CUDA_MEMCPY2D_v1 *pCopy) {
    if (!pCopy)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMCPY2D copy = widen_2d(pCopy);
    return sg_cuMemcpy2D_v2(&copy);
}

CUresult sg_cuMemcpy2DUnaligned(const CUDA_MEMCPY2D_v1 *pCopy) {
    if (!pCopy)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMCPY2D copy = widen_2d(pCopy);
    return sg_cuMemcpy2DUnaligned_v2(&copy);
}

CUresult sg_cuMemcpy2DAsync(const CUDA_MEMCPY2D_v1 *pCopy, CUstream hStream) {
    if (!pCopy)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMCPY2D copy = widen_2d(pCopy);
    return sg_cuMemcpy2DAsync_v2(&copy, hStream);
}

static CUDA_MEMCPY3D widen_3d(const CUDA_MEMCPY3D_v1 *copy) {
    return (CUDA_MEMCPY3D){.srcXInBytes = copy->srcXInBytes,
                           .srcY = copy->srcY,
                           .srcZ = copy->srcZ,
                           .srcLOD = copy->srcLOD,
                           .srcMemoryType = copy->srcMemoryType,
                           .srcHost = copy->srcHost,
                           .srcDevice = copy->srcDevice,
                           .srcArray = copy->srcArray,
                           .srcPitch = copy->srcPitch,
                           .srcHeight = copy->srcHeight,
                           .dstXInBytes = copy->dstXInBytes,
                           .dstY = copy->dstY,
                           .dstZ = copy->dstZ,
                           .dstLOD = copy->dstLOD,
                           .dstMemoryType = copy->dstMemoryType,
                           .dstHost = copy->dstHost,
                           .dstDevice = copy->dstDevice,
                           .dstArray = copy->dstArray,
                           .dstPitch = copy->dstPitch,
                           .dstHeight = copy->dstHeight,
                           .WidthInBytes = copy->WidthInBytes,
                           .Height = copy->Height,
                           .Depth = copy->Depth};
}

CUresult sg_cuMemcpy3D(const CUDA_MEMCPY3D_v1 *pCopy) {
    if (!pCopy)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMCPY3D copy = widen_3d(pCopy);
    return sg_cuMemcpy3D_v2(&copy);
}

CUresult sg_cuMemcpy3DAsync(const CUDA_MEMCPY3D_v1 *pCopy, CUstream hStream) {
    if (!pCopy)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMCPY3D copy = widen_3d(pCopy);
    return sg_cuMemcpy3DAsync_v2(&copy, hStream);
}

/* ---- Sets
 * ---------------------------------------------------------------------------------------- */

CUresult sg_cuMemsetD8(CUdeviceptr_v1 dstDevice, unsigned char uc, unsigned int N) {
    return sg_cuMemsetD8_v2(dstDevice, uc, N);
}

CUresult sg_cuMemsetD16(CUdeviceptr_v1 dstDevice, unsigned short us, unsigned int N) {
    return sg_cuMemsetD16_v2(dstDevice, us, N);
}

CUresult sg_cuMemsetD32(CUdeviceptr_v1 dstDevice, unsigned int ui, unsigned int N) {
    return sg_cuMemsetD32_v2(dstDevice, ui, N);
}

CUresult sg_cuMemsetD2D8(CUdeviceptr_v1 dstDevice, unsigned int dstPitch, unsigned char uc,
                         unsigned int Width, unsigned int Height) {
    return sg_cuMemsetD2D8_v2(dstDevice, dstPitch, uc, Width, Height);
}

CUresult sg_cuMemsetD2D16(CUdeviceptr_v1 dstDevice, unsigned int dstPitch, unsigned short us,
                          unsigned int Width, unsigned int Height) {
    return sg_cuMemsetD2D16_v2(dstDevice, dstPitch, us, Width, Height);
}

CUresult sg_cuMemsetD2D32(CUdeviceptr_v1 dstDevice, unsigned int dstPitch, unsigned int ui,
                          unsigned int Width, unsigned int Height) {
    return sg_cuMemsetD2D32_v2(dstDevice, dstPitch, ui, Width, Height);
}
