/* Attributes of functions. */
#include "runtime/code/code.h"

cudaError_t rt_cudaFuncGetAttributes(cudaFuncAttributes *attr, const void *func) {
    CUfunction function = NULL;
    int shared = 0, constant = 0, local = 0;
    if (!attr)
        return cudaErrorInvalidValue;
    cudaFuncAttributes found = {0};
    const struct {
        CUfunction_attribute attribute;
        int *value;
        bool optional; /* of a newer driver */
    } rows[] = {
        {CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &shared, false},
        {CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, &constant, false},
        {CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, &local, false},
        {CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &found.maxThreadsPerBlock, false},
        {CU_FUNC_ATTRIBUTE_NUM_REGS, &found.numRegs, false},
        {CU_FUNC_ATTRIBUTE_PTX_VERSION, &found.ptxVersion, false},
        {CU_FUNC_ATTRIBUTE_BINARY_VERSION, &found.binaryVersion, false},
        {CU_FUNC_ATTRIBUTE_CACHE_MODE_CA, &found.cacheModeCA, false},
        {CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, &found.maxDynamicSharedSizeBytes, false},
        {CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, &found.preferredShmemCarveout, false},
        {CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, &found.clusterDimMustBeSet, true},
        {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, &found.requiredClusterWidth, true},
        {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, &found.requiredClusterHeight, true},
        {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, &found.requiredClusterDepth, true},
        {CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
         &found.clusterSchedulingPolicyPreference, true},
        {CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, &found.nonPortableClusterSizeAllowed,
         true},
    };
    cudaError_t error = rt_find_loaded_function(func, &function);
    for (size_t i = 0; i < sizeof rows / sizeof *rows && error == cudaSuccess; i++) {
        error = rt_error(CU(cuFuncGetAttribute)(rows[i].value, rows[i].attribute, function));
        if (error != cudaSuccess && rows[i].optional)
            error = cudaSuccess;
    }
    if (error != cudaSuccess)
        return error;
    found.sharedSizeBytes = (size_t)shared;
    found.constSizeBytes = (size_t)constant;
    found.localSizeBytes = (size_t)local;
    *attr = found;
    return cudaSuccess;
}

/* What can only be read is refused before it is looked at whose it is. */
static bool can_be_set(cudaFuncAttribute attr) {
    return attr >= CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
}

cudaError_t rt_cudaFuncSetAttribute(const void *func, cudaFuncAttribute attr, int value) {
    CUfunction function = NULL;
    if (!can_be_set(attr))
        return cudaErrorInvalidValue;
    cudaError_t error = rt_find_loaded_function(func, &function);
    return error == cudaSuccess ? rt_error(CU(cuFuncSetAttribute)(function, attr, value)) : error;
}

cudaError_t rt_cudaFuncSetCacheConfig(const void *func, cudaFuncCache cacheConfig) {
    CUfunction function = NULL;
    cudaError_t error = rt_find_loaded_function(func, &function);
    return error == cudaSuccess ? rt_error(CU(cuFuncSetCacheConfig)(function, cacheConfig)) : error;
}

cudaError_t rt_cudaFuncGetName(const char **name, const void *func) {
    CUfunction function = NULL;
    if (!name)
        return cudaErrorInvalidValue;
    cudaError_t error = rt_find_loaded_function(func, &function);
    return error == cudaSuccess ? rt_error(CU(cuFuncGetName)(name, function)) : error;
}

cudaError_t rt_cudaFuncGetParamInfo(const void *func, size_t paramIndex, size_t *paramOffset,
                                    size_t *paramSize) {
    CUfunction function = NULL;
    cudaError_t error = rt_find_loaded_function(func, &function);
    return error == cudaSuccess
               ? rt_error(CU(cuFuncGetParamInfo)(function, paramIndex, paramOffset, paramSize))
               : error;
}

cudaError_t rt_cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute attr,
                                               int value, int device) {
    return kernel && can_be_set(attr)
               ? rt_error(CU(cuKernelSetAttribute)(attr, value, kernel, device))
               : cudaErrorInvalidValue;
}
