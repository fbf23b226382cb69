/* Older layouts of parameters in terms of the newest. */
#include "softgpu/graph/nodes.h"

#include <string.h>

void sg_memset_widen(CUDA_MEMSET_NODE_PARAMS_v2 *to, const CUDA_MEMSET_NODE_PARAMS *from,
                     CUcontext context) {
    *to = (CUDA_MEMSET_NODE_PARAMS_v2){.dst = from->dst,
                                       .pitch = from->pitch,
                                       .value = from->value,
                                       .elementSize = from->elementSize,
                                       .width = from->width,
                                       .height = from->height,
                                       .ctx = context};
}

void sg_kernel_widen_v1(CUDA_KERNEL_NODE_PARAMS_v3 *to, const CUDA_KERNEL_NODE_PARAMS_v1 *from) {
    *to = (CUDA_KERNEL_NODE_PARAMS_v3){.func = from->func,
                                       .gridDimX = from->gridDimX,
                                       .gridDimY = from->gridDimY,
                                       .gridDimZ = from->gridDimZ,
                                       .blockDimX = from->blockDimX,
                                       .blockDimY = from->blockDimY,
                                       .blockDimZ = from->blockDimZ,
                                       .sharedMemBytes = from->sharedMemBytes,
                                       .kernelParams = from->kernelParams,
                                       .extra = from->extra};
}

void sg_kernel_narrow_v1(CUDA_KERNEL_NODE_PARAMS_v1 *to, const CUDA_KERNEL_NODE_PARAMS_v3 *from) {
    *to = (CUDA_KERNEL_NODE_PARAMS_v1){.func = from->func,
                                       .gridDimX = from->gridDimX,
                                       .gridDimY = from->gridDimY,
                                       .gridDimZ = from->gridDimZ,
                                       .blockDimX = from->blockDimX,
                                       .blockDimY = from->blockDimY,
                                       .blockDimZ = from->blockDimZ,
                                       .sharedMemBytes = from->sharedMemBytes,
                                       .kernelParams = from->kernelParams,
                                       .extra = from->extra};
}

/* Two names for one layout. */
_Static_assert(sizeof(CUDA_KERNEL_NODE_PARAMS_v3) == sizeof(CUDA_KERNEL_NODE_PARAMS), "one layout");

void sg_kernel_widen(CUDA_KERNEL_NODE_PARAMS_v3 *to, const CUDA_KERNEL_NODE_PARAMS *from) {
    memcpy(to, from, sizeof *to);
}

void sg_kernel_narrow(CUDA_KERNEL_NODE_PARAMS *to, const CUDA_KERNEL_NODE_PARAMS_v3 *from) {
    memcpy(to, from, sizeof *to);
}
