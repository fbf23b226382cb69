/* Launches: those that nvcc makes of <<<>>>, and those that programs write. */
#include "runtime/code/code.h"

#include <limits.h>

/* ---- <<<>>> ---------------------------------------------------------------------------------- */

RT_EXPORT unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream);

/* Then the stub is called, which takes it off again; 0 says that it may be. */
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream) {
    if (rt_self.calls == RT_CALLS)
        return 1;
    rt_self.call[rt_self.calls++] = (struct rt_call){grid, block, shared, stream};
    return 0;
}

cudaError_t rt___cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
    if (!grid || !block || !shared || !stream)
        return cudaErrorInvalidValue;
    if (rt_self.calls == 0)
        return cudaErrorMissingConfiguration;
    struct rt_call call = rt_self.call[--rt_self.calls];
    *grid = call.grid;
    *block = call.block;
    *shared = call.shared;
    *(cudaStream_t *)stream = call.stream;
    return cudaSuccess;
}

/*
 * Code of nvcc 13 asks once for each call site, and keeps what it got for good. The handle is the
 * address itself, so that nothing that fails now, as on a machine without a device, is kept: each
 * launch looks again and reports for itself.
 */
cudaError_t rt___cudaGetKernel(cudaKernel_t *kernel, const void *function) {
    if (!kernel)
        return cudaErrorInvalidValue;
    *kernel = (cudaKernel_t)(uintptr_t)function;
    return cudaSuccess;
}

cudaError_t rt___cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
                                  size_t shared, cudaStream_t stream) {
    cudaError_t error = rt_cudaLaunchKernel(kernel, grid, block, args, shared, stream);
    return error == cudaErrorInvalidConfiguration ? cudaErrorInvalidValue
                                                  : error; /* 13's, in 12 too */
}

/* ---- By name --------------------------------------------------------------------------------- */

/* 12 says of a shape that does not fit that it is the configuration; 13, on an H200, the driver's
 * INVALID_VALUE. */
#if RT_ABI == 12
static bool fits(unsigned x, unsigned y, unsigned z, CUdevice_attribute first, int device) {
    unsigned size[3] = {x, y, z};
    int most = 0;
    for (int i = 0; i < 3; i++)
        if (size[i] == 0 ||
            (CU(cuDeviceGetAttribute)(&most, first + (unsigned)i, device) == CUDA_SUCCESS &&
             size[i] > (unsigned)most))
            return false;
    return true;
}

static bool shape_fits(dim3 grid, dim3 block) {
    int device = 0, threads = INT_MAX;
    rt_current_device(&device);
    CU(cuDeviceGetAttribute)(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, device);
    return fits(grid.x, grid.y, grid.z, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, device) &&
           fits(block.x, block.y, block.z, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, device) &&
           (uint64_t)block.x * block.y * block.z <= (uint64_t)threads;
}

cudaError_t rt_launch_error(CUresult result, dim3 grid, dim3 block) {
    if (result == CUDA_ERROR_INVALID_VALUE && !shape_fits(grid, block))
        return cudaErrorInvalidConfiguration;
    return rt_error(result);
}
#else
cudaError_t rt_launch_error(CUresult result, dim3 grid, dim3 block) {
    (void)grid, (void)block;
    return rt_error(result);
}
#endif

cudaError_t rt_cudaLaunchKernel(const void *func, dim3 grid, dim3 block, void **args, size_t shared,
                                cudaStream_t stream) {
    CUfunction function = NULL;
    cudaError_t error = rt_find_function(func, &function);
    if (error != cudaSuccess)
        return error;
    return rt_launch_error(CU(cuLaunchKernel)(function, grid.x, grid.y, grid.z, block.x, block.y,
                                              block.z, (unsigned)shared, stream, args, NULL),
                           grid, block);
}

cudaError_t rt_cudaLaunchCooperativeKernel(const void *func, dim3 grid, dim3 block, void **args,
                                           size_t shared, cudaStream_t stream) {
    CUfunction function = NULL;
    cudaError_t error = rt_find_function(func, &function);
    if (error != cudaSuccess)
        return error;
    return rt_launch_error(CU(cuLaunchCooperativeKernel)(function, grid.x, grid.y, grid.z, block.x,
                                                         block.y, block.z, (unsigned)shared, stream,
                                                         args),
                           grid, block);
}

static bool convert(const cudaLaunchConfig_t *config, CUlaunchConfig *converted) {
    *converted = (CUlaunchConfig){
        .gridDimX = config->gridDim.x,
        .gridDimY = config->gridDim.y,
        .gridDimZ = config->gridDim.z,
        .blockDimX = config->blockDim.x,
        .blockDimY = config->blockDim.y,
        .blockDimZ = config->blockDim.z,
        .sharedMemBytes = (unsigned)config->dynamicSmemBytes,
        .hStream = rt_stream(config->stream),
        .attrs = config->attrs,
        .numAttrs = config->numAttrs,
    };
    return config->dynamicSmemBytes <= UINT_MAX && (config->attrs || !config->numAttrs);
}

cudaError_t rt_cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *func,
                                   void **args) {
    CUlaunchConfig converted;
    CUfunction function = NULL;
    if (!config || !convert(config, &converted))
        return cudaErrorInvalidValue;
    cudaError_t error = rt_find_function(func, &function);
    if (error != cudaSuccess)
        return error;
    return rt_launch_error(CU(cuLaunchKernelEx)(&converted, function, args, NULL), config->gridDim,
                           config->blockDim);
}

/* ---- How many fit ---------------------------------------------------------------------------- */

typedef CUresult(CUDAAPI *cluster_question)(int *, CUfunction, const CUlaunchConfig *);

static cudaError_t ask_of_clusters(cluster_question ask, int *answer, const void *func,
                                   const cudaLaunchConfig_t *config) {
    CUlaunchConfig converted;
    CUfunction function = NULL;
    if (!answer || !config || !convert(config, &converted))
        return cudaErrorInvalidValue;
    cudaError_t error = rt_find_loaded_function(func, &function);
    return error != cudaSuccess ? error : rt_error(ask(answer, function, &converted));
}

cudaError_t rt_cudaOccupancyMaxActiveClusters(int *numClusters, const void *func,
                                              const cudaLaunchConfig_t *config) {
    return ask_of_clusters(CU(cuOccupancyMaxActiveClusters), numClusters, func, config);
}

cudaError_t rt_cudaOccupancyMaxPotentialClusterSize(int *clusterSize, const void *func,
                                                    const cudaLaunchConfig_t *config) {
    return ask_of_clusters(CU(cuOccupancyMaxPotentialClusterSize), clusterSize, func, config);
}

cudaError_t rt_cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, const void *func,
                                                             int blockSize,
                                                             size_t dynamicSMemSize) {
    return rt_cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, func, blockSize,
                                                                     dynamicSMemSize, 0);
}

cudaError_t rt_cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *numBlocks, const void *func, int blockSize, size_t dynamicSMemSize, unsigned int flags) {
    CUfunction function = NULL;
    if (!numBlocks && func)
        return cudaErrorInvalidValue;
    cudaError_t error = rt_find_loaded_function(func, &function);
    return error != cudaSuccess ? error
                                : rt_error(CU(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)(
                                      numBlocks, function, blockSize, dynamicSMemSize, flags));
}

cudaError_t rt_cudaOccupancyAvailableDynamicSMemPerBlock(size_t *dynamicSmemSize, const void *func,
                                                         int numBlocks, int blockSize) {
    CUfunction function = NULL;
    if (!dynamicSmemSize)
        return cudaErrorInvalidValue;
    cudaError_t error = rt_find_loaded_function(func, &function);
    return error != cudaSuccess ? error
                                : rt_error(CU(cuOccupancyAvailableDynamicSMemPerBlock)(
                                      dynamicSmemSize, function, numBlocks, blockSize));
}
