/*
 * Nodes of graphs. A node of the driver's names the context that it runs in: the current one. The
 * runtime's own nodes give it in their params, converted.
 */
#include "runtime/code/code.h"
#include "runtime/copy/shapes.h"

#include <string.h>

/* The export has looked at it just before. */
static CUcontext current(void) {
    return rt_self.context;
}

/* ---- Kernels --------------------------------------------------------------------------------- */

static cudaError_t kernel_of(const cudaKernelNodeParams *params, CUDA_KERNEL_NODE_PARAMS *kernel) {
    CUfunction function = NULL;
    if (!params)
        return cudaErrorInvalidValue;
    cudaError_t error = rt_find_loaded_function(params->func, &function);
    *kernel = (CUDA_KERNEL_NODE_PARAMS){
        .func = function,
        .gridDimX = params->gridDim.x,
        .gridDimY = params->gridDim.y,
        .gridDimZ = params->gridDim.z,
        .blockDimX = params->blockDim.x,
        .blockDimY = params->blockDim.y,
        .blockDimZ = params->blockDim.z,
        .sharedMemBytes = params->sharedMemBytes,
        .kernelParams = params->kernelParams,
        .extra = params->extra,
    };
    return error;
}

cudaError_t rt_cudaGraphAddKernelNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                      const cudaGraphNode_t *pDependencies, size_t numDependencies,
                                      const cudaKernelNodeParams *pNodeParams) {
    CUDA_KERNEL_NODE_PARAMS kernel;
    cudaError_t error = kernel_of(pNodeParams, &kernel);
    if (error != cudaSuccess)
        return error;
    return rt_launch_error(
        CU(cuGraphAddKernelNode_v2)(pGraphNode, graph, pDependencies, numDependencies, &kernel),
        pNodeParams->gridDim, pNodeParams->blockDim);
}

cudaError_t rt_cudaGraphKernelNodeSetParams(cudaGraphNode_t node,
                                            const cudaKernelNodeParams *pNodeParams) {
    CUDA_KERNEL_NODE_PARAMS kernel;
    cudaError_t error = kernel_of(pNodeParams, &kernel);
    return error == cudaSuccess ? rt_error(CU(cuGraphKernelNodeSetParams_v2)(node, &kernel))
                                : error;
}

cudaError_t rt_cudaGraphExecKernelNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                                const cudaKernelNodeParams *pNodeParams) {
    CUDA_KERNEL_NODE_PARAMS kernel;
    cudaError_t error = kernel_of(pNodeParams, &kernel);
    return error == cudaSuccess
               ? rt_error(CU(cuGraphExecKernelNodeSetParams_v2)(hGraphExec, node, &kernel))
               : error;
}

cudaError_t rt_cudaGraphKernelNodeGetParams(cudaGraphNode_t node,
                                            cudaKernelNodeParams *pNodeParams) {
    CUDA_KERNEL_NODE_PARAMS kernel;
    if (!pNodeParams)
        return cudaErrorInvalidValue;
    cudaError_t error = rt_error(CU(cuGraphKernelNodeGetParams_v2)(node, &kernel));
    if (error != cudaSuccess)
        return error;
    /* What the program passed, so that it can be compared with that. */
    *pNodeParams = (cudaKernelNodeParams){
        .func = rt_stub_of(kernel.func, kernel.kern),
        .gridDim = {kernel.gridDimX, kernel.gridDimY, kernel.gridDimZ},
        .blockDim = {kernel.blockDimX, kernel.blockDimY, kernel.blockDimZ},
        .sharedMemBytes = kernel.sharedMemBytes,
        .kernelParams = kernel.kernelParams,
        .extra = kernel.extra,
    };
    return cudaSuccess;
}

/* ---- Copies ---------------------------------------------------------------------------------- */

static cudaError_t line_of(void *dst, const void *src, size_t count, cudaMemcpyKind kind,
                           CUDA_MEMCPY3D *copy) {
    cudaMemcpy3DParms params = {
        .srcPtr = {(void *)(uintptr_t)src, count, count, 1},
        .dstPtr = {dst, count, count, 1},
        .extent = {count, 1, 1},
        .kind = kind,
    };
    return rt_box_copy(&params, copy);
}

cudaError_t rt_cudaGraphAddMemcpyNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                      const cudaGraphNode_t *pDependencies, size_t numDependencies,
                                      const cudaMemcpy3DParms *pCopyParams) {
    CUDA_MEMCPY3D copy;
    cudaError_t error = rt_box_copy(pCopyParams, &copy);
    return error == cudaSuccess
               ? rt_error(CU(cuGraphAddMemcpyNode)(pGraphNode, graph, pDependencies,
                                                   numDependencies, &copy, current()))
               : error;
}

cudaError_t rt_cudaGraphAddMemcpyNode1D(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                        const cudaGraphNode_t *pDependencies,
                                        size_t numDependencies, void *dst, const void *src,
                                        size_t count, cudaMemcpyKind kind) {
    CUDA_MEMCPY3D copy;
    cudaError_t error = line_of(dst, src, count, kind, &copy);
    return error == cudaSuccess
               ? rt_error(CU(cuGraphAddMemcpyNode)(pGraphNode, graph, pDependencies,
                                                   numDependencies, &copy, current()))
               : error;
}

cudaError_t rt_cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node,
                                            const cudaMemcpy3DParms *pNodeParams) {
    CUDA_MEMCPY3D copy;
    cudaError_t error = rt_box_copy(pNodeParams, &copy);
    return error == cudaSuccess ? rt_error(CU(cuGraphMemcpyNodeSetParams)(node, &copy)) : error;
}

cudaError_t rt_cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void *dst, const void *src,
                                              size_t count, cudaMemcpyKind kind) {
    CUDA_MEMCPY3D copy;
    cudaError_t error = line_of(dst, src, count, kind, &copy);
    return error == cudaSuccess ? rt_error(CU(cuGraphMemcpyNodeSetParams)(node, &copy)) : error;
}

cudaError_t rt_cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                                const cudaMemcpy3DParms *pNodeParams) {
    CUDA_MEMCPY3D copy;
    cudaError_t error = rt_box_copy(pNodeParams, &copy);
    return error == cudaSuccess
               ? rt_error(CU(cuGraphExecMemcpyNodeSetParams)(hGraphExec, node, &copy, current()))
               : error;
}

cudaError_t rt_cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                                  void *dst, const void *src, size_t count,
                                                  cudaMemcpyKind kind) {
    CUDA_MEMCPY3D copy;
    cudaError_t error = line_of(dst, src, count, kind, &copy);
    return error == cudaSuccess
               ? rt_error(CU(cuGraphExecMemcpyNodeSetParams)(hGraphExec, node, &copy, current()))
               : error;
}

cudaError_t rt_cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms *pNodeParams) {
    CUDA_MEMCPY3D copy;
    if (!pNodeParams)
        return cudaErrorInvalidValue;
    cudaError_t error = rt_error(CU(cuGraphMemcpyNodeGetParams)(node, &copy));
    if (error == cudaSuccess)
        rt_box_parameters(&copy, pNodeParams);
    return error;
}

/* ---- Sets ------------------------------------------------------------------------------------ */

static CUDA_MEMSET_NODE_PARAMS set_of(const cudaMemsetParams *params) {
    return (CUDA_MEMSET_NODE_PARAMS){
        .dst = RT_ADDRESS(params->dst),
        .pitch = params->pitch,
        .value = params->value,
        .elementSize = params->elementSize,
        .width = params->width,
        .height = params->height,
    };
}

cudaError_t rt_cudaGraphAddMemsetNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                      const cudaGraphNode_t *pDependencies, size_t numDependencies,
                                      const cudaMemsetParams *pMemsetParams) {
    if (!pMemsetParams)
        return cudaErrorInvalidValue;
    CUDA_MEMSET_NODE_PARAMS set = set_of(pMemsetParams);
    return rt_error(CU(cuGraphAddMemsetNode)(pGraphNode, graph, pDependencies, numDependencies,
                                             &set, current()));
}

cudaError_t rt_cudaGraphMemsetNodeSetParams(cudaGraphNode_t node,
                                            const cudaMemsetParams *pNodeParams) {
    if (!pNodeParams)
        return cudaErrorInvalidValue;
    CUDA_MEMSET_NODE_PARAMS set = set_of(pNodeParams);
    return rt_error(CU(cuGraphMemsetNodeSetParams)(node, &set));
}

cudaError_t rt_cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                                const cudaMemsetParams *pNodeParams) {
    if (!pNodeParams)
        return cudaErrorInvalidValue;
    CUDA_MEMSET_NODE_PARAMS set = set_of(pNodeParams);
    return rt_error(CU(cuGraphExecMemsetNodeSetParams)(hGraphExec, node, &set, current()));
}

cudaError_t rt_cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, cudaMemsetParams *pNodeParams) {
    CUDA_MEMSET_NODE_PARAMS set;
    if (!pNodeParams)
        return cudaErrorInvalidValue;
    cudaError_t error = rt_error(CU(cuGraphMemsetNodeGetParams)(node, &set));
    if (error == cudaSuccess)
        *pNodeParams = (cudaMemsetParams){
            .dst = (void *)(uintptr_t)set.dst,
            .pitch = set.pitch,
            .value = set.value,
            .elementSize = set.elementSize,
            .width = set.width,
            .height = set.height,
        };
    return error;
}

/* ---- Of any type ----------------------------------------------------------------------------- */

static cudaError_t convert(const cudaGraphNodeParams *from, CUgraphNodeParams *to) {
    CUDA_KERNEL_NODE_PARAMS kernel;
    cudaError_t error = cudaSuccess;
    /* Where the runtime's is laid out as the driver's, this is all. */
    _Static_assert(sizeof *from == sizeof *to, "one for the other");
    memcpy(to, from, sizeof *to);
    switch (from->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        error = kernel_of(&from->kernel, &kernel);
        to->kernel.func = kernel.func;
        to->kernel.kern = NULL;
        to->kernel.ctx = current();
        break;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        to->memcpy.copyCtx = current();
        to->memcpy.reserved = 0;
        error = rt_box_copy(&from->memcpy.copyParams, &to->memcpy.copyParams);
        break;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        to->memset.ctx = current();
        break;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        to->conditional.ctx = current();
        break;
    default:
        break;
    }
    return error;
}

static cudaError_t add_node(cudaGraphNode_t *node, cudaGraph_t graph,
                            const cudaGraphNode_t *dependencies, const cudaGraphEdgeData *edges,
                            size_t count, cudaGraphNodeParams *params) {
    CUgraphNodeParams converted;
    if (!params)
        return cudaErrorInvalidValue;
    cudaError_t error = convert(params, &converted);
    if (error == cudaSuccess)
        error =
            rt_error(CU(cuGraphAddNode_v2)(node, graph, dependencies, edges, count, &converted));
    if (error != cudaSuccess)
        return error;
    /* What the driver returns in the params. */
    if (params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        params->alloc.dptr = converted.alloc.dptr;
    if (params->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
        params->conditional.phGraph_out = converted.conditional.phGraph_out;
    return cudaSuccess;
}

#if RT_ABI == 12
cudaError_t rt_cudaGraphAddNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                const cudaGraphNode_t *pDependencies, size_t numDependencies,
                                cudaGraphNodeParams *nodeParams) {
    return add_node(pGraphNode, graph, pDependencies, NULL, numDependencies, nodeParams);
}

cudaError_t rt_cudaGraphAddNode_v2(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                   const cudaGraphNode_t *pDependencies,
                                   const cudaGraphEdgeData *dependencyData, size_t numDependencies,
                                   cudaGraphNodeParams *nodeParams) {
    return add_node(pGraphNode, graph, pDependencies, dependencyData, numDependencies, nodeParams);
}
#else
cudaError_t rt_cudaGraphAddNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                const cudaGraphNode_t *pDependencies,
                                const cudaGraphEdgeData *dependencyData, size_t numDependencies,
                                cudaGraphNodeParams *nodeParams) {
    return add_node(pGraphNode, graph, pDependencies, dependencyData, numDependencies, nodeParams);
}

/* An execution context is not made here, so that only the current context can be meant. */
cudaError_t rt_cudaGraphConditionalHandleCreate_v2(cudaGraphConditionalHandle *pHandle_out,
                                                   cudaGraph_t graph, cudaExecutionContext_t ctx,
                                                   unsigned int defaultLaunchValue,
                                                   unsigned int flags) {
    return ctx ? cudaErrorNotSupported
               : rt_cudaGraphConditionalHandleCreate(pHandle_out, graph, defaultLaunchValue, flags);
}
#endif

cudaError_t rt_cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *pHandle_out,
                                                cudaGraph_t graph, unsigned int defaultLaunchValue,
                                                unsigned int flags) {
    return rt_error(CU(cuGraphConditionalHandleCreate)(pHandle_out, graph, current(),
                                                       defaultLaunchValue, flags));
}

cudaError_t rt_cudaGraphInstantiateWithFlags(cudaGraphExec_t *pGraphExec, cudaGraph_t graph,
                                             unsigned long long flags) {
    return rt_error(CU(cuGraphInstantiateWithFlags)(pGraphExec, graph, flags));
}

cudaError_t rt_cudaGraphInstantiate(cudaGraphExec_t *pGraphExec, cudaGraph_t graph,
                                    unsigned long long flags) {
    return rt_cudaGraphInstantiateWithFlags(pGraphExec, graph, flags);
}

cudaError_t rt_cudaLibraryEnumerateKernels(cudaKernel_t *kernels, unsigned int numKernels,
                                           cudaLibrary_t lib) {
    return rt_error(CU(cuLibraryEnumerateKernels)(kernels, numKernels, lib));
}
