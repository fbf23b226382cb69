/* Memory and semaphores of other APIs. The runtime's descriptions lack what the driver reserves. */
#include "runtime/texture/texture.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(((cudaExternalMemoryHandleDesc *)0)->handle) ==
                   sizeof(((CUDA_EXTERNAL_MEMORY_HANDLE_DESC *)0)->handle),
               "copied whole");

cudaError_t rt_cudaImportExternalMemory(cudaExternalMemory_t *extMem_out,
                                        const cudaExternalMemoryHandleDesc *desc) {
    if (!extMem_out || !desc)
        return cudaErrorInvalidValue;
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC converted = {
        .type = desc->type, .size = desc->size, .flags = desc->flags};
    memcpy(&converted.handle, &desc->handle, sizeof converted.handle);
    return rt_error(CU(cuImportExternalMemory)(extMem_out, &converted));
}

cudaError_t rt_cudaExternalMemoryGetMappedBuffer(void **devPtr, cudaExternalMemory_t extMem,
                                                 const cudaExternalMemoryBufferDesc *desc) {
    CUdeviceptr address = 0;
    if (!devPtr || !desc)
        return cudaErrorInvalidValue;
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC converted = {
        .offset = desc->offset, .size = desc->size, .flags = desc->flags};
    cudaError_t error = rt_error(CU(cuExternalMemoryGetMappedBuffer)(&address, extMem, &converted));
    if (error == cudaSuccess)
        *devPtr = (void *)(uintptr_t)address;
    return error;
}

cudaError_t
rt_cudaExternalMemoryGetMappedMipmappedArray(cudaMipmappedArray_t *mipmap,
                                             cudaExternalMemory_t extMem,
                                             const cudaExternalMemoryMipmappedArrayDesc *desc) {
    CUmipmappedArray made = NULL;
    if (!mipmap || !desc)
        return cudaErrorInvalidValue;
    CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC converted = {.offset = desc->offset,
                                                           .numLevels = desc->numLevels};
    cudaError_t error =
        rt_array_shape(&desc->formatDesc, desc->extent, desc->flags, &converted.arrayDesc);
    if (error == cudaSuccess)
        error = rt_error(CU(cuExternalMemoryGetMappedMipmappedArray)(&made, extMem, &converted));
    if (error == cudaSuccess)
        *mipmap = made;
    return error;
}

cudaError_t rt_cudaImportExternalSemaphore(cudaExternalSemaphore_t *extSem_out,
                                           const cudaExternalSemaphoreHandleDesc *desc) {
    if (!extSem_out || !desc)
        return cudaErrorInvalidValue;
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC converted = {.type = desc->type, .flags = desc->flags};
    memcpy(&converted.handle, &desc->handle, sizeof converted.handle);
    return rt_error(CU(cuImportExternalSemaphore)(extSem_out, &converted));
}

#if RT_ABI == 12
/*
 * The forms of before 11.2, which programs built then call by the plain names: their params end
 * where the later ones, the driver's, have what is reserved.
 */
#define LONGER_PARAMS(type, from, to)                                                              \
    static void from##_longer(const type##_v1 *old, to *longer) {                                  \
        *longer = (to){.flags = old->flags};                                                       \
        longer->params.fence.value = old->params.fence.value;                                      \
        longer->params.nvSciSync.reserved = old->params.nvSciSync.reserved;                        \
        memcpy(&longer->params.keyedMutex, &old->params.keyedMutex,                                \
               sizeof old->params.keyedMutex);                                                     \
    }
LONGER_PARAMS(cudaExternalSemaphoreSignalParams, signal, CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS)
LONGER_PARAMS(cudaExternalSemaphoreWaitParams, wait, CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS)

#define WITH_LONGER_PARAMS(type, convert, call)                                                    \
    if (numExtSems && (!extSemArray || !paramsArray))                                              \
        return cudaErrorInvalidValue;                                                              \
    for (unsigned i = 0; i < numExtSems; i++)                                                      \
        if (!extSemArray[i]) /* before there is room for all of them */                            \
            return cudaErrorInvalidValue;                                                          \
    type *longer = calloc(numExtSems ? numExtSems : 1, sizeof *longer);                            \
    if (!longer)                                                                                   \
        return cudaErrorMemoryAllocation;                                                          \
    for (unsigned i = 0; i < numExtSems; i++)                                                      \
        convert(&paramsArray[i], &longer[i]);                                                      \
    cudaError_t error = rt_error(CU(call)(extSemArray, longer, numExtSems, stream));               \
    free(longer);                                                                                  \
    return error

cudaError_t
rt_cudaSignalExternalSemaphoresAsync(const cudaExternalSemaphore_t *extSemArray,
                                     const cudaExternalSemaphoreSignalParams_v1 *paramsArray,
                                     unsigned int numExtSems, cudaStream_t stream) {
    WITH_LONGER_PARAMS(CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS, signal_longer,
                       cuSignalExternalSemaphoresAsync);
}

cudaError_t
rt_cudaWaitExternalSemaphoresAsync(const cudaExternalSemaphore_t *extSemArray,
                                   const cudaExternalSemaphoreWaitParams_v1 *paramsArray,
                                   unsigned int numExtSems, cudaStream_t stream) {
    WITH_LONGER_PARAMS(CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS, wait_longer,
                       cuWaitExternalSemaphoresAsync);
}
#endif
