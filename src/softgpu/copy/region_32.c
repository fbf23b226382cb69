/*
 * Copies of CUDA 2 to 3.1 that involve arrays: today's, at the addresses that the old ones stand
 * for. As on H200 they work only in contexts of that time.
 */
#include "softgpu/context/address_32.h"
#include "softgpu/core/calls.h"

/* ---- Rows and boxes -------------------------------------------------------------------------- */

/* Only an end that is device memory has an address to translate. */
static CUresult widen(CUmemorytype type, CUdeviceptr_v1 address, CUdeviceptr *wide) {
    bool named = type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_UNIFIED;
    *wide = 0;
    return named ? sg_address_32_find(address, wide) : CUDA_SUCCESS;
}

/* *empty is set if there is nothing to move; then nothing is checked. */
static CUresult widen_2d(const CUDA_MEMCPY2D_v1 *old, CUDA_MEMCPY2D *copy, bool *empty) {
    struct sg_context *context;
    CUresult result = sg_context_current_32(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!old)
        return CUDA_ERROR_INVALID_VALUE;
    *copy = (CUDA_MEMCPY2D){.srcXInBytes = old->srcXInBytes,
                            .srcY = old->srcY,
                            .srcMemoryType = old->srcMemoryType,
                            .srcHost = old->srcHost,
                            .srcArray = old->srcArray,
                            .srcPitch = old->srcPitch,
                            .dstXInBytes = old->dstXInBytes,
                            .dstY = old->dstY,
                            .dstMemoryType = old->dstMemoryType,
                            .dstHost = old->dstHost,
                            .dstArray = old->dstArray,
                            .dstPitch = old->dstPitch,
                            .WidthInBytes = old->WidthInBytes,
                            .Height = old->Height};
    *empty = old->WidthInBytes == 0 || old->Height == 0;
    if (*empty)
        return CUDA_SUCCESS;
    result = widen(old->srcMemoryType, old->srcDevice, &copy->srcDevice);
    return result == CUDA_SUCCESS ? widen(old->dstMemoryType, old->dstDevice, &copy->dstDevice)
                                  : result;
}

static CUresult widen_3d(const CUDA_MEMCPY3D_v1 *old, CUDA_MEMCPY3D *copy, bool *empty) {
    struct sg_context *context;
    CUresult result = sg_context_current_32(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!old)
        return CUDA_ERROR_INVALID_VALUE;
    *copy = (CUDA_MEMCPY3D){.srcXInBytes = old->srcXInBytes,
                            .srcY = old->srcY,
                            .srcZ = old->srcZ,
                            .srcLOD = old->srcLOD,
                            .srcMemoryType = old->srcMemoryType,
                            .srcHost = old->srcHost,
                            .srcArray = old->srcArray,
                            .srcPitch = old->srcPitch,
                            .srcHeight = old->srcHeight,
                            .dstXInBytes = old->dstXInBytes,
                            .dstY = old->dstY,
                            .dstZ = old->dstZ,
                            .dstLOD = old->dstLOD,
                            .dstMemoryType = old->dstMemoryType,
                            .dstHost = old->dstHost,
                            .dstArray = old->dstArray,
                            .dstPitch = old->dstPitch,
                            .dstHeight = old->dstHeight,
                            .WidthInBytes = old->WidthInBytes,
                            .Height = old->Height,
                            .Depth = old->Depth};
    *empty = old->WidthInBytes == 0 || old->Height == 0 || old->Depth == 0;
    if (*empty)
        return CUDA_SUCCESS;
    result = widen(old->srcMemoryType, old->srcDevice, &copy->srcDevice);
    return result == CUDA_SUCCESS ? widen(old->dstMemoryType, old->dstDevice, &copy->dstDevice)
                                  : result;
}

CUresult sg_cuMemcpy2D(const CUDA_MEMCPY2D_v1 *pCopy) {
    CUDA_MEMCPY2D copy;
    bool empty = false;
    CUresult result = widen_2d(pCopy, &copy, &empty);
    return result == CUDA_SUCCESS && !empty ? sg_cuMemcpy2D_v2(&copy) : result;
}

CUresult sg_cuMemcpy2DUnaligned(const CUDA_MEMCPY2D_v1 *pCopy) {
    CUDA_MEMCPY2D copy;
    bool empty = false;
    CUresult result = widen_2d(pCopy, &copy, &empty);
    return result == CUDA_SUCCESS && !empty ? sg_cuMemcpy2DUnaligned_v2(&copy) : result;
}

CUresult sg_cuMemcpy2DAsync(const CUDA_MEMCPY2D_v1 *pCopy, CUstream hStream) {
    CUDA_MEMCPY2D copy;
    bool empty;
    CUresult result = widen_2d(pCopy, &copy, &empty);
    return result == CUDA_SUCCESS ? sg_cuMemcpy2DAsync_v2(&copy, hStream) : result;
}

CUresult sg_cuMemcpy3D(const CUDA_MEMCPY3D_v1 *pCopy) {
    CUDA_MEMCPY3D copy;
    bool empty = false;
    CUresult result = widen_3d(pCopy, &copy, &empty);
    return result == CUDA_SUCCESS && !empty ? sg_cuMemcpy3D_v2(&copy) : result;
}

CUresult sg_cuMemcpy3DAsync(const CUDA_MEMCPY3D_v1 *pCopy, CUstream hStream) {
    CUDA_MEMCPY3D copy;
    bool empty;
    CUresult result = widen_3d(pCopy, &copy, &empty);
    return result == CUDA_SUCCESS ? sg_cuMemcpy3DAsync_v2(&copy, hStream) : result;
}

/* ---- One row --------------------------------------------------------------------------------- */

static CUresult check_context(void) {
    struct sg_context *context;
    return sg_context_current_32(&context);
}

static CUresult widen_row(CUdeviceptr_v1 address, unsigned bytes, CUdeviceptr *wide) {
    CUresult result = check_context();
    *wide = 0;
    return result == CUDA_SUCCESS && bytes ? sg_address_32_find(address, wide) : result;
}

CUresult sg_cuMemcpyHtoA(CUarray dstArray, unsigned int dstOffset, const void *srcHost,
                         unsigned int ByteCount) {
    CUresult result = check_context();
    return result == CUDA_SUCCESS ? sg_cuMemcpyHtoA_v2(dstArray, dstOffset, srcHost, ByteCount)
                                  : result;
}

CUresult sg_cuMemcpyHtoAAsync(CUarray dstArray, unsigned int dstOffset, const void *srcHost,
                              unsigned int ByteCount, CUstream hStream) {
    CUresult result = check_context();
    return result == CUDA_SUCCESS
               ? sg_cuMemcpyHtoAAsync_v2(dstArray, dstOffset, srcHost, ByteCount, hStream)
               : result;
}

CUresult sg_cuMemcpyAtoH(void *dstHost, CUarray srcArray, unsigned int srcOffset,
                         unsigned int ByteCount) {
    CUresult result = check_context();
    return result == CUDA_SUCCESS ? sg_cuMemcpyAtoH_v2(dstHost, srcArray, srcOffset, ByteCount)
                                  : result;
}

CUresult sg_cuMemcpyAtoHAsync(void *dstHost, CUarray srcArray, unsigned int srcOffset,
                              unsigned int ByteCount, CUstream hStream) {
    CUresult result = check_context();
    return result == CUDA_SUCCESS
               ? sg_cuMemcpyAtoHAsync_v2(dstHost, srcArray, srcOffset, ByteCount, hStream)
               : result;
}

CUresult sg_cuMemcpyAtoA(CUarray dstArray, unsigned int dstOffset, CUarray srcArray,
                         unsigned int srcOffset, unsigned int ByteCount) {
    CUresult result = check_context();
    return result == CUDA_SUCCESS
               ? sg_cuMemcpyAtoA_v2(dstArray, dstOffset, srcArray, srcOffset, ByteCount)
               : result;
}

CUresult sg_cuMemcpyAtoD(CUdeviceptr_v1 dstDevice, CUarray srcArray, unsigned int srcOffset,
                         unsigned int ByteCount) {
    CUdeviceptr to;
    CUresult result = widen_row(dstDevice, ByteCount, &to);
    return result == CUDA_SUCCESS ? sg_cuMemcpyAtoD_v2(to, srcArray, srcOffset, ByteCount) : result;
}

CUresult sg_cuMemcpyDtoA(CUarray dstArray, unsigned int dstOffset, CUdeviceptr_v1 srcDevice,
                         unsigned int ByteCount) {
    CUdeviceptr from;
    CUresult result = widen_row(srcDevice, ByteCount, &from);
    return result == CUDA_SUCCESS ? sg_cuMemcpyDtoA_v2(dstArray, dstOffset, from, ByteCount)
                                  : result;
}
