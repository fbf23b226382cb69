/* Device, pinned and managed memory. 0 bytes are NULL, and NULL is freed without effect. */
#include "runtime/memory/reach.h"

/* Sets the program's pointer when the driver has succeeded. */
static cudaError_t give(CUresult result, const CUdeviceptr *address, void **pointer) {
    if (result == CUDA_SUCCESS)
        *pointer = (void *)(uintptr_t)*address;
    return rt_error(result);
}

cudaError_t rt_cudaMalloc(void **devPtr, size_t size) {
    CUdeviceptr address = 0;
    if (!devPtr)
        return cudaErrorInvalidValue;
    return give(size ? CU(cuMemAlloc_v2)(&address, size) : CUDA_SUCCESS, &address, devPtr);
}

cudaError_t rt_cudaFree(void *devPtr) {
    return devPtr ? rt_error(CU(cuMemFree_v2)(RT_ADDRESS(devPtr))) : cudaSuccess;
}

/* Of the sizes that the driver takes for elements, the largest has all alignments. */
enum { ELEMENT = 16 };

static cudaError_t allocate_pitched(void **devPtr, size_t *pitch, size_t width, size_t height) {
    CUdeviceptr address = 0;
    size_t found = 0;
    cudaError_t error = cudaSuccess;
    if (width && height)
        error = rt_error(CU(cuMemAllocPitch_v2)(&address, &found, width, height, ELEMENT));
    if (error != cudaSuccess)
        return error;
    *devPtr = (void *)(uintptr_t)address;
    *pitch = found;
    return cudaSuccess;
}

cudaError_t rt_cudaMallocPitch(void **devPtr, size_t *pitch, size_t width, size_t height) {
    return devPtr && pitch ? allocate_pitched(devPtr, pitch, width, height) : cudaErrorInvalidValue;
}

cudaError_t rt_cudaMalloc3D(cudaPitchedPtr *pitchedDevPtr, cudaExtent extent) {
    cudaPitchedPtr made = {.xsize = extent.width, .ysize = extent.height};
    size_t rows;
    if (!pitchedDevPtr || __builtin_mul_overflow(extent.height, extent.depth, &rows))
        return cudaErrorInvalidValue;
    cudaError_t error = allocate_pitched(&made.ptr, &made.pitch, extent.width, rows);
    if (error == cudaSuccess)
        *pitchedDevPtr = made;
    return error;
}

cudaError_t rt_cudaHostAlloc(void **pHost, size_t size, unsigned int flags) {
    void *made = NULL;
    if (!pHost)
        return cudaErrorInvalidValue;
    cudaError_t error = size ? rt_error(CU(cuMemHostAlloc)(&made, size, flags)) : cudaSuccess;
    if (error == cudaSuccess)
        *pHost = made;
    return error;
}

cudaError_t rt_cudaMallocHost(void **ptr, size_t size) {
    return rt_cudaHostAlloc(ptr, size, CU_MEMHOSTALLOC_PORTABLE);
}

cudaError_t rt_cudaFreeHost(void *ptr) {
    return ptr ? rt_error(CU(cuMemFreeHost)(ptr)) : cudaSuccess;
}

cudaError_t rt_cudaMallocManaged(void **devPtr, size_t size, unsigned int flags) {
    CUdeviceptr address = 0;
    if (!devPtr)
        return cudaErrorInvalidValue;
    return give(size ? CU(cuMemAllocManaged)(&address, size, flags) : CUDA_SUCCESS, &address,
                devPtr);
}

cudaError_t rt_cudaMallocAsync(void **devPtr, size_t size, cudaStream_t hStream) {
    CUdeviceptr address = 0;
    if (!devPtr)
        return cudaErrorInvalidValue;
    return give(CU(cuMemAllocAsync)(&address, size, hStream), &address, devPtr);
}

cudaError_t rt_cudaMallocFromPoolAsync(void **ptr, size_t size, cudaMemPool_t memPool,
                                       cudaStream_t stream) {
    CUdeviceptr address = 0;
    if (!ptr)
        return cudaErrorInvalidValue;
    return give(CU(cuMemAllocFromPoolAsync)(&address, size, memPool, stream), &address, ptr);
}

/* Memory that the driver does not know is the program's own, and no error. */
cudaError_t rt_cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *ptr) {
    unsigned type = 0, managed = 0;
    int ordinal = -2;
    CUdeviceptr device = 0;
    void *host = NULL;
    CUpointer_attribute asked[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
        CU_POINTER_ATTRIBUTE_HOST_POINTER};
    void *values[] = {&type, &managed, &ordinal, &device, &host};
    if (!attributes)
        return cudaErrorInvalidValue;
    cudaPointerAttributes found = {.type = cudaMemoryTypeUnregistered, .device = -2};
#if RT_ABI >= 13
    found.localityDomainOrdinal = -1;
#endif
    CUresult result =
        ptr ? CU(cuPointerGetAttributes)(5, asked, values, RT_ADDRESS(ptr)) : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_INVALID_VALUE)
        return rt_error(result);
    if (result == CUDA_SUCCESS && type) {
        found.type = managed                      ? cudaMemoryTypeManaged
                     : type == CU_MEMORYTYPE_HOST ? cudaMemoryTypeHost
                                                  : cudaMemoryTypeDevice;
        found.device = ordinal;
        found.devicePointer = (void *)(uintptr_t)device;
        found.hostPointer = host;
    } else {
        found.hostPointer = (void *)(uintptr_t)ptr;
    }
    *attributes = found;
    return cudaSuccess;
}

/* ---- Values of attributes -------------------------------------------------------------------- */

/* What `value` points to is a number of at most this size. */
enum { VALUE = sizeof(cuuint64_t) };

#define WITH_VALUE(call) (rt_cpu_reads(value, VALUE) ? rt_error(call) : cudaErrorInvalidValue)

/* The device is looked at first. */
static bool is_device(int device) {
    return device >= 0 && device < rt_device_count;
}

cudaError_t rt_cudaDeviceGetGraphMemAttribute(int device, cudaGraphMemAttributeType attr,
                                              void *value) {
    if (!is_device(device))
        return cudaErrorInvalidDevice;
    return WITH_VALUE(CU(cuDeviceGetGraphMemAttribute)(device, attr, value));
}

cudaError_t rt_cudaDeviceSetGraphMemAttribute(int device, cudaGraphMemAttributeType attr,
                                              void *value) {
    if (!is_device(device))
        return cudaErrorInvalidDevice;
    return WITH_VALUE(CU(cuDeviceSetGraphMemAttribute)(device, attr, value));
}

cudaError_t rt_cudaMemPoolGetAttribute(cudaMemPool_t memPool, cudaMemPoolAttr attr, void *value) {
    return WITH_VALUE(CU(cuMemPoolGetAttribute)(memPool, attr, value));
}

cudaError_t rt_cudaMemPoolSetAttribute(cudaMemPool_t memPool, cudaMemPoolAttr attr, void *value) {
    return WITH_VALUE(CU(cuMemPoolSetAttribute)(memPool, attr, value));
}

cudaError_t rt_cudaMemPoolExportToShareableHandle(void *value, cudaMemPool_t memPool,
                                                  cudaMemAllocationHandleType handleType,
                                                  unsigned int flags) {
    return WITH_VALUE(CU(cuMemPoolExportToShareableHandle)(value, memPool, handleType, flags));
}

/* What NVIDIA's copy first: as many as there is no room for are MEMORY_ALLOCATION. */
cudaError_t rt_cudaMemPoolSetAccess(cudaMemPool_t memPool, const cudaMemAccessDesc *descList,
                                    size_t count) {
    size_t bytes;
    if (__builtin_mul_overflow(count, sizeof *descList, &bytes))
        return cudaErrorMemoryAllocation;
    if (!memPool || (count && !rt_cpu_reads(descList, bytes)))
        return cudaErrorInvalidValue;
    return count ? rt_error(CU(cuMemPoolSetAccess)(memPool, descList, count)) : cudaSuccess;
}
