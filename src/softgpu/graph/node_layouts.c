/* Older layouts of parameters in terms of the newest, and which bytes of that are unused. */
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

/* Two names of one layout. */
_Static_assert(sizeof(CUDA_KERNEL_NODE_PARAMS_v3) == sizeof(CUDA_KERNEL_NODE_PARAMS), "one layout");

void sg_kernel_widen(CUDA_KERNEL_NODE_PARAMS_v3 *to, const CUDA_KERNEL_NODE_PARAMS *from) {
    memcpy(to, from, sizeof *to);
}

void sg_kernel_narrow(CUDA_KERNEL_NODE_PARAMS *to, const CUDA_KERNEL_NODE_PARAMS_v3 *from) {
    memcpy(to, from, sizeof *to);
}

static size_t used_bytes(CUgraphNodeType type) {
    static const size_t sizes[] = {
        [CU_GRAPH_NODE_TYPE_KERNEL] = sizeof(CUDA_KERNEL_NODE_PARAMS_v3),
        [CU_GRAPH_NODE_TYPE_MEMCPY] = sizeof(CUDA_MEMCPY_NODE_PARAMS),
        [CU_GRAPH_NODE_TYPE_MEMSET] = sizeof(CUDA_MEMSET_NODE_PARAMS_v2),
        [CU_GRAPH_NODE_TYPE_HOST] = sizeof(CUDA_HOST_NODE_PARAMS_v2),
        [CU_GRAPH_NODE_TYPE_GRAPH] = sizeof(CUDA_CHILD_GRAPH_NODE_PARAMS),
        [CU_GRAPH_NODE_TYPE_EMPTY] = 0,
        [CU_GRAPH_NODE_TYPE_WAIT_EVENT] = sizeof(CUDA_EVENT_WAIT_NODE_PARAMS),
        [CU_GRAPH_NODE_TYPE_EVENT_RECORD] = sizeof(CUDA_EVENT_RECORD_NODE_PARAMS),
        [CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL] = sizeof(CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2),
        [CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT] = sizeof(CUDA_EXT_SEM_WAIT_NODE_PARAMS_v2),
        [CU_GRAPH_NODE_TYPE_MEM_ALLOC] = sizeof(CUDA_MEM_ALLOC_NODE_PARAMS_v2),
        [CU_GRAPH_NODE_TYPE_MEM_FREE] = sizeof(CUDA_MEM_FREE_NODE_PARAMS),
        [CU_GRAPH_NODE_TYPE_BATCH_MEM_OP] = sizeof(CUDA_BATCH_MEM_OP_NODE_PARAMS_v2),
        [CU_GRAPH_NODE_TYPE_CONDITIONAL] = sizeof(CUDA_CONDITIONAL_NODE_PARAMS),
    };
    return type <= CU_GRAPH_NODE_TYPE_CONDITIONAL ? sizes[type] : 0;
}

bool sg_params_unused_zero(const CUgraphNodeParams *params) {
    const unsigned char *bytes = (const void *)params->reserved1;
    for (size_t i = used_bytes(params->type); i < sizeof params->reserved1; i++)
        if (bytes[i])
            return false;
    return !params->reserved0[0] && !params->reserved0[1] && !params->reserved0[2] &&
           !params->reserved2;
}
