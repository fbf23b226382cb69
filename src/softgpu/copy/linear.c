/* cuMemcpy and its variants: one row of bytes. */
#include "softgpu/copy/copy.h"
#include "softgpu/core/calls.h"

CUresult sg_cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount) {
    return sg_copy(sg_box_linear(dst, SG_ROLE_ANY, src, SG_ROLE_ANY, ByteCount), NULL, SG_SYNC);
}

CUresult sg_cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream) {
    return sg_copy(sg_box_linear(dst, SG_ROLE_ANY, src, SG_ROLE_ANY, ByteCount), hStream, SG_ASYNC);
}

static struct sg_box host_to_device(CUdeviceptr dst, const void *src, size_t size) {
    return sg_box_linear(dst, SG_ROLE_DEVICE, (uintptr_t)src, SG_ROLE_HOST, size);
}

static struct sg_box device_to_host(void *dst, CUdeviceptr src, size_t size) {
    return sg_box_linear((uintptr_t)dst, SG_ROLE_HOST, src, SG_ROLE_DEVICE, size);
}

static struct sg_box device_to_device(CUdeviceptr dst, CUdeviceptr src, size_t size) {
    return sg_box_linear(dst, SG_ROLE_DEVICE, src, SG_ROLE_DEVICE, size);
}

CUresult sg_cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount) {
    return sg_copy(host_to_device(dstDevice, srcHost, ByteCount), NULL, SG_SYNC);
}

CUresult sg_cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount,
                                 CUstream hStream) {
    return sg_copy(host_to_device(dstDevice, srcHost, ByteCount), hStream, SG_ASYNC);
}

CUresult sg_cuMemcpyDtoH_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount) {
    return sg_copy(device_to_host(dstHost, srcDevice, ByteCount), NULL, SG_SYNC);
}

CUresult sg_cuMemcpyDtoHAsync_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount,
                                 CUstream hStream) {
    return sg_copy(device_to_host(dstHost, srcDevice, ByteCount), hStream, SG_ASYNC);
}

CUresult sg_cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount) {
    return sg_copy(device_to_device(dstDevice, srcDevice, ByteCount), NULL, SG_SYNC);
}

CUresult sg_cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount,
                                 CUstream hStream) {
    return sg_copy(device_to_device(dstDevice, srcDevice, ByteCount), hStream, SG_ASYNC);
}

/* The addresses determine where the memory is; the contexts need only be valid, and have access to
 * pool memory. */
static CUresult between_contexts(struct sg_box *box, CUcontext dst, CUcontext src) {
    struct sg_context *to, *from;
    CUresult result = sg_context_from_handle(dst, &to);
    if (result == CUDA_SUCCESS)
        result = sg_context_from_handle(src, &from);
    if (result == CUDA_SUCCESS) {
        box->to.named = to;
        box->from.named = from;
    }
    return result;
}

CUresult sg_cuMemcpyPeer(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                         CUcontext srcContext, size_t ByteCount) {
    struct sg_box box = device_to_device(dstDevice, srcDevice, ByteCount);
    CUresult result = between_contexts(&box, dstContext, srcContext);
    return result == CUDA_SUCCESS ? sg_copy(box, NULL, SG_SYNC) : result;
}

CUresult sg_cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                              CUcontext srcContext, size_t ByteCount, CUstream hStream) {
    struct sg_box box = device_to_device(dstDevice, srcDevice, ByteCount);
    CUresult result = between_contexts(&box, dstContext, srcContext);
    if (result == CUDA_SUCCESS)
        result = sg_copy_refuse_capture(hStream);
    return result == CUDA_SUCCESS ? sg_copy(box, hStream, SG_ASYNC) : result;
}
