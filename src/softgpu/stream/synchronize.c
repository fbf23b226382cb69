/* Waiting for a whole context. */
#include "softgpu/context/lifetime.h"
#include "softgpu/core/calls.h"
#include "softgpu/core/chapter.h"
#include "softgpu/stream/capture.h"
#include "softgpu/stream/stream.h"

static CUresult synchronize(struct sg_context *context) {
    sg_context_ref(context);
    CUresult result = sg_capture_context(context);
    if (result == CUDA_SUCCESS)
        result = sg_context_wait(context);
    if (result == CUDA_SUCCESS)
        sg_chapters_synchronized(context, NULL);
    sg_context_unref(context);
    return result;
}

CUresult sg_cuCtxSynchronize(void) {
    struct sg_context *context;
    CUresult result = sg_context_current_part(&context);
    return result == CUDA_SUCCESS ? synchronize(context) : result;
}

CUresult sg_cuCtxSynchronize_v2(CUcontext ctx) {
    struct sg_context *context;
    CUresult result = sg_context_from_handle(ctx, &context);
    return result == CUDA_SUCCESS ? synchronize(context) : result;
}

/* Writes of other devices through a DMA buffer go straight to the bytes: they are visible once a
 * fence orders the processor's own reads after them. */
CUresult sg_cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget target,
                                       CUflushGPUDirectRDMAWritesScope scope) {
    struct sg_context *context;
    CUresult result = sg_context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    bool known = target == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX &&
                 (scope == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER ||
                  scope == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES);
    if (!known)
        return CUDA_ERROR_INVALID_VALUE;
    int options = sg_device(context->device)
                      ->attributes[CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS];
    if (!(options & CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST))
        return CUDA_ERROR_NOT_SUPPORTED;
    atomic_thread_fence(memory_order_seq_cst);
    return CUDA_SUCCESS;
}
