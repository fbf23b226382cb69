/* What a device is. */
#include "runtime/memory/reach.h"

#include <limits.h>
#include <string.h>

struct row {
    size_t offset;
    CUdevice_attribute attribute;
};

static const struct row rows[] = {
#define ROW(member, attribute)         {offsetof(cudaDeviceProp, member), CU_DEVICE_ATTRIBUTE_##attribute},
#define RT_PROPERTY(member, attribute) ROW(member, attribute)
#if RT_ABI == 12
#define RT_PROPERTY12(member, attribute) ROW(member, attribute)
#define RT_PROPERTY13(member, attribute)
#else
#define RT_PROPERTY12(member, attribute)
#define RT_PROPERTY13(member, attribute) ROW(member, attribute)
#endif
#include "runtime/device/properties.def"
};

/* 0 where the driver does not know the attribute. */
static int ask(CUdevice_attribute attribute, int device) {
    int value = 0;
    return CU(cuDeviceGetAttribute)(&value, attribute, device) == CUDA_SUCCESS ? value : 0;
}

static size_t ask_size(CUdevice_attribute attribute, int device) {
    return (size_t)ask(attribute, device);
}

static cudaError_t fill(cudaDeviceProp *prop, int device) {
    CUresult result = CU(cuDeviceGetName)(prop->name, sizeof prop->name, device);
    if (result == CUDA_SUCCESS)
        result = CU(cuDeviceTotalMem_v2)(&prop->totalGlobalMem, device);
    if (result == CUDA_SUCCESS)
        result = CU(cuDeviceGetUuid_v2)(&prop->uuid, device);
    if (result != CUDA_SUCCESS)
        return rt_error(result);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int value = ask(rows[i].attribute, device);
        memcpy((char *)prop + rows[i].offset, &value, sizeof value);
    }
    prop->sharedMemPerBlock = ask_size(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, device);
    prop->memPitch = ask_size(CU_DEVICE_ATTRIBUTE_MAX_PITCH, device);
    prop->totalConstMem = ask_size(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, device);
    prop->textureAlignment = ask_size(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, device);
    prop->texturePitchAlignment = ask_size(CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, device);
    prop->surfaceAlignment = ask_size(CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT, device);
    prop->sharedMemPerMultiprocessor =
        ask_size(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, device);
    prop->sharedMemPerBlockOptin =
        ask_size(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device);
    prop->reservedSharedMemPerBlock =
        ask_size(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, device);
    prop->gpuDirectRDMAFlushWritesOptions =
        (unsigned)ask(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS, device);
    prop->memoryPoolSupportedHandleTypes =
        (unsigned)ask(CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, device);
    return cudaSuccess;
}

static cudaError_t properties(cudaDeviceProp *prop, int device) {
    cudaDeviceProp found;
    if (!prop)
        return cudaErrorInvalidValue;
    if (device < 0 || device >= rt_device_count)
        return cudaErrorInvalidDevice;
    if (!rt_cpu_reads(prop, sizeof *prop))
        return cudaErrorInvalidValue;
    memset(&found, 0, sizeof found);
    cudaError_t error = fill(&found, device);
    if (error == cudaSuccess)
        *prop = found;
    return error;
}

#if RT_ABI == 12
cudaError_t rt_cudaGetDeviceProperties_v2(cudaDeviceProp *prop, int device) {
    return properties(prop, device);
}

/* Programs built with CUDA 11 call this name, and have room for what was known then. */
cudaError_t rt_cudaGetDeviceProperties(void *prop, int device) {
    cudaDeviceProp found = {.name = ""};
    const size_t known = offsetof(cudaDeviceProp, hostRegisterSupported);
    cudaError_t error = prop ? properties(&found, device) : cudaErrorInvalidValue;
    if (error == cudaSuccess && !rt_cpu_reads(prop, known))
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess)
        memcpy(prop, &found, known);
    return error;
}
#else
cudaError_t rt_cudaGetDeviceProperties(void *prop, int device) {
    return properties(prop, device);
}
#endif

/* ---- Limits, caches, peers ------------------------------------------------------------------- */

cudaError_t rt_cudaDeviceSetLimit(cudaLimit limit, size_t value) {
    return rt_error(CU(cuCtxSetLimit)(limit, value));
}

cudaError_t rt_cudaDeviceGetLimit(size_t *value, cudaLimit limit) {
    return rt_error(CU(cuCtxGetLimit)(value, limit));
}

cudaError_t rt_cudaDeviceGetCacheConfig(cudaFuncCache *config) {
    return rt_error(CU(cuCtxGetCacheConfig)(config));
}

cudaError_t rt_cudaDeviceSetCacheConfig(cudaFuncCache config) {
    return rt_error(CU(cuCtxSetCacheConfig)(config));
}

cudaError_t rt_cudaCtxResetPersistingL2Cache(void) {
    return rt_error(CU(cuCtxResetPersistingL2Cache)());
}

cudaError_t rt_cudaDeviceGetStreamPriorityRange(int *leastPriority, int *greatestPriority) {
    return rt_error(CU(cuCtxGetStreamPriorityRange)(leastPriority, greatestPriority));
}

cudaError_t rt_cudaDeviceEnablePeerAccess(int peerDevice, unsigned int flags) {
    CUcontext peer = NULL;
    cudaError_t error = rt_primary(peerDevice, &peer);
    return error == cudaSuccess ? rt_error(CU(cuCtxEnablePeerAccess)(peer, flags)) : error;
}

cudaError_t rt_cudaDeviceDisablePeerAccess(int peerDevice) {
    CUcontext peer = NULL;
    cudaError_t error = rt_primary(peerDevice, &peer);
    return error == cudaSuccess ? rt_error(CU(cuCtxDisablePeerAccess)(peer)) : error;
}

cudaError_t rt_cudaDeviceGetByPCIBusId(int *device, const char *pciBusId) {
    CUdevice found = 0;
    if (!device || !pciBusId)
        return cudaErrorInvalidValue;
    cudaError_t error = rt_error(CU(cuDeviceGetByPCIBusId)(&found, pciBusId));
    if (error == cudaSuccess)
        *device = found;
    return error;
}

/* The device whose compute capability is at least what is asked for, the first of the best. */
cudaError_t rt_cudaChooseDevice(int *device, const cudaDeviceProp *prop) {
    int best = 0, best_memory_fits = -1;
    if (!device || !prop)
        return cudaErrorInvalidValue;
    for (int i = 0; i < rt_device_count; i++) {
        int major = ask(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, i);
        int minor = ask(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, i);
        size_t memory = 0;
        CU(cuDeviceTotalMem_v2)(&memory, i);
        int fits = (major > prop->major || (major == prop->major && minor >= prop->minor)) +
                   (memory >= prop->totalGlobalMem);
        if (fits > best_memory_fits) {
            best = i;
            best_memory_fits = fits;
        }
    }
    *device = best;
    return cudaSuccess;
}
