/* Copies and sets of CUDA 2 to 3.1: today's, at the addresses that the old ones stand for. */
#include "softgpu/context/address_32.h"
#include "softgpu/core/calls.h"

/* Nothing is checked if there is nothing to move. */
static CUresult translate(CUdeviceptr_v1 address, uint64_t bytes, CUdeviceptr *wide) {
    struct sg_context *context;
    CUresult result = sg_context_current_32(&context);
    *wide = 0;
    return result == CUDA_SUCCESS && bytes > 0 ? sg_address_32_find(address, wide) : result;
}

static CUresult translate_both(CUdeviceptr_v1 to, CUdeviceptr_v1 from, uint64_t bytes,
                               CUdeviceptr *wide_to, CUdeviceptr *wide_from) {
    CUresult result = translate(to, bytes, wide_to);
    return result == CUDA_SUCCESS ? translate(from, bytes, wide_from) : result;
}

CUresult sg_cuMemcpyHtoD(CUdeviceptr_v1 dstDevice, const void *srcHost, unsigned int ByteCount) {
    CUdeviceptr to;
    CUresult result = translate(dstDevice, ByteCount, &to);
    return result == CUDA_SUCCESS ? sg_cuMemcpyHtoD_v2(to, srcHost, ByteCount) : result;
}

CUresult sg_cuMemcpyDtoH(void *dstHost, CUdeviceptr_v1 srcDevice, unsigned int ByteCount) {
    CUdeviceptr from;
    CUresult result = translate(srcDevice, ByteCount, &from);
    return result == CUDA_SUCCESS ? sg_cuMemcpyDtoH_v2(dstHost, from, ByteCount) : result;
}

CUresult sg_cuMemcpyDtoD(CUdeviceptr_v1 dstDevice, CUdeviceptr_v1 srcDevice,
                         unsigned int ByteCount) {
    CUdeviceptr to, from;
    CUresult result = translate_both(dstDevice, srcDevice, ByteCount, &to, &from);
    return result == CUDA_SUCCESS ? sg_cuMemcpyDtoD_v2(to, from, ByteCount) : result;
}

CUresult sg_cuMemcpyHtoDAsync(CUdeviceptr_v1 dstDevice, const void *srcHost, unsigned int ByteCount,
                              CUstream hStream) {
    CUdeviceptr to;
    CUresult result = translate(dstDevice, ByteCount, &to);
    return result == CUDA_SUCCESS ? sg_cuMemcpyHtoDAsync_v2(to, srcHost, ByteCount, hStream)
                                  : result;
}

CUresult sg_cuMemcpyDtoHAsync(void *dstHost, CUdeviceptr_v1 srcDevice, unsigned int ByteCount,
                              CUstream hStream) {
    CUdeviceptr from;
    CUresult result = translate(srcDevice, ByteCount, &from);
    return result == CUDA_SUCCESS ? sg_cuMemcpyDtoHAsync_v2(dstHost, from, ByteCount, hStream)
                                  : result;
}

CUresult sg_cuMemcpyDtoDAsync(CUdeviceptr_v1 dstDevice, CUdeviceptr_v1 srcDevice,
                              unsigned int ByteCount, CUstream hStream) {
    CUdeviceptr to, from;
    CUresult result = translate_both(dstDevice, srcDevice, ByteCount, &to, &from);
    return result == CUDA_SUCCESS ? sg_cuMemcpyDtoDAsync_v2(to, from, ByteCount, hStream) : result;
}

CUresult sg_cuMemsetD8(CUdeviceptr_v1 dstDevice, unsigned char uc, unsigned int N) {
    CUdeviceptr to;
    CUresult result = translate(dstDevice, N, &to);
    return result == CUDA_SUCCESS ? sg_cuMemsetD8_v2(to, uc, N) : result;
}

CUresult sg_cuMemsetD16(CUdeviceptr_v1 dstDevice, unsigned short us, unsigned int N) {
    CUdeviceptr to;
    CUresult result = translate(dstDevice, N, &to);
    return result == CUDA_SUCCESS ? sg_cuMemsetD16_v2(to, us, N) : result;
}

CUresult sg_cuMemsetD32(CUdeviceptr_v1 dstDevice, unsigned int ui, unsigned int N) {
    CUdeviceptr to;
    CUresult result = translate(dstDevice, N, &to);
    return result == CUDA_SUCCESS ? sg_cuMemsetD32_v2(to, ui, N) : result;
}

CUresult sg_cuMemsetD2D8(CUdeviceptr_v1 dstDevice, unsigned int dstPitch, unsigned char uc,
                         unsigned int Width, unsigned int Height) {
    CUdeviceptr to;
    CUresult result = translate(dstDevice, (uint64_t)Width * Height, &to);
    return result == CUDA_SUCCESS ? sg_cuMemsetD2D8_v2(to, dstPitch, uc, Width, Height) : result;
}

CUresult sg_cuMemsetD2D16(CUdeviceptr_v1 dstDevice, unsigned int dstPitch, unsigned short us,
                          unsigned int Width, unsigned int Height) {
    CUdeviceptr to;
    CUresult result = translate(dstDevice, (uint64_t)Width * Height, &to);
    return result == CUDA_SUCCESS ? sg_cuMemsetD2D16_v2(to, dstPitch, us, Width, Height) : result;
}

CUresult sg_cuMemsetD2D32(CUdeviceptr_v1 dstDevice, unsigned int dstPitch, unsigned int ui,
                          unsigned int Width, unsigned int Height) {
    CUdeviceptr to;
    CUresult result = translate(dstDevice, (uint64_t)Width * Height, &to);
    return result == CUDA_SUCCESS ? sg_cuMemsetD2D32_v2(to, dstPitch, ui, Width, Height) : result;
}
