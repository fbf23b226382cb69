/* Copies and sets of a range of bytes, symbols and peers among them. */
#include "runtime/code/code.h"
#include "runtime/copy/shapes.h"
#include "runtime/memory/reach.h"

#include <stddef.h>

bool rt_copy_kind(cudaMemcpyKind kind) {
    return (unsigned)kind <= cudaMemcpyDefault;
}

/* In a twin, the driver's own: its default stream is the thread's. */
#define CHOOSE(plain, twin, ...)                                                                   \
    (rt_self.per_thread ? CU(twin)(__VA_ARGS__) : CU(plain)(__VA_ARGS__))

cudaError_t rt_cudaMemcpy(void *dst, const void *src, size_t count, cudaMemcpyKind kind) {
    CUdeviceptr to = RT_ADDRESS(dst), from = RT_ADDRESS(src);
    if (!count)
        return cudaSuccess;
    cudaError_t error = rt_check_low(dst, src, rt_default_stream());
    if (error != cudaSuccess)
        return error;
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return rt_error(CHOOSE(cuMemcpyHtoD_v2, cuMemcpyHtoD_v2_ptds, to, src, count));
    case cudaMemcpyDeviceToHost:
        return rt_error(CHOOSE(cuMemcpyDtoH_v2, cuMemcpyDtoH_v2_ptds, dst, from, count));
    case cudaMemcpyDeviceToDevice:
        return rt_error(CHOOSE(cuMemcpyDtoD_v2, cuMemcpyDtoD_v2_ptds, to, from, count));
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
        return rt_error(CHOOSE(cuMemcpy, cuMemcpy_ptds, to, from, count));
    }
    return cudaErrorInvalidMemcpyDirection;
}

cudaError_t rt_cudaMemcpyAsync(void *dst, const void *src, size_t count, cudaMemcpyKind kind,
                               cudaStream_t stream) {
    CUdeviceptr to = RT_ADDRESS(dst), from = RT_ADDRESS(src);
    if (!count)
        return cudaSuccess;
    cudaError_t error = rt_check_low(dst, src, stream);
    if (error != cudaSuccess)
        return error;
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return rt_error(CU(cuMemcpyHtoDAsync_v2)(to, src, count, stream));
    case cudaMemcpyDeviceToHost:
        return rt_error(CU(cuMemcpyDtoHAsync_v2)(dst, from, count, stream));
    case cudaMemcpyDeviceToDevice:
        return rt_error(CU(cuMemcpyDtoDAsync_v2)(to, from, count, stream));
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
        return rt_error(CU(cuMemcpyAsync)(to, from, count, stream));
    }
    return cudaErrorInvalidMemcpyDirection;
}

/* ---- Symbols --------------------------------------------------------------------------------- */

/* An H200 looks at the symbol first, then at the range, then at the direction. */
static cudaError_t place_in(const void *symbol, size_t offset, size_t count, bool right_kind,
                            char **place) {
    CUdeviceptr address = 0;
    size_t size = 0;
    cudaError_t error = rt_find_variable(symbol, &address, &size);
    if (error != cudaSuccess)
        return error;
    if (count && (offset > size || count > size - offset))
        return cudaErrorInvalidValue;
    if (count && !right_kind)
        return cudaErrorInvalidMemcpyDirection;
    *place = (char *)(uintptr_t)address + offset;
    return cudaSuccess;
}

static bool to_device(cudaMemcpyKind kind) {
    return kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice ||
           kind == cudaMemcpyDefault;
}

static bool from_device(cudaMemcpyKind kind) {
    return kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice ||
           kind == cudaMemcpyDefault;
}

cudaError_t rt_cudaMemcpyToSymbol(const void *symbol, const void *src, size_t count, size_t offset,
                                  cudaMemcpyKind kind) {
    char *place = NULL;
    cudaError_t error = place_in(symbol, offset, count, to_device(kind), &place);
    return error == cudaSuccess ? rt_cudaMemcpy(place, src, count, kind) : error;
}

cudaError_t rt_cudaMemcpyToSymbolAsync(const void *symbol, const void *src, size_t count,
                                       size_t offset, cudaMemcpyKind kind, cudaStream_t stream) {
    char *place = NULL;
    cudaError_t error = place_in(symbol, offset, count, to_device(kind), &place);
    return error == cudaSuccess ? rt_cudaMemcpyAsync(place, src, count, kind, stream) : error;
}

cudaError_t rt_cudaMemcpyFromSymbol(void *dst, const void *symbol, size_t count, size_t offset,
                                    cudaMemcpyKind kind) {
    char *place = NULL;
    cudaError_t error = place_in(symbol, offset, count, from_device(kind), &place);
    return error == cudaSuccess ? rt_cudaMemcpy(dst, place, count, kind) : error;
}

cudaError_t rt_cudaMemcpyFromSymbolAsync(void *dst, const void *symbol, size_t count, size_t offset,
                                         cudaMemcpyKind kind, cudaStream_t stream) {
    char *place = NULL;
    cudaError_t error = place_in(symbol, offset, count, from_device(kind), &place);
    return error == cudaSuccess ? rt_cudaMemcpyAsync(dst, place, count, kind, stream) : error;
}

/* ---- Peers ----------------------------------------------------------------------------------- */

static cudaError_t contexts(int dstDevice, int srcDevice, CUcontext *to, CUcontext *from) {
    cudaError_t error = rt_primary(dstDevice, to);
    return error == cudaSuccess ? rt_primary(srcDevice, from) : error;
}

cudaError_t rt_cudaMemcpyPeer(void *dst, int dstDevice, const void *src, int srcDevice,
                              size_t count) {
    CUcontext to = NULL, from = NULL;
    if (!count)
        return cudaSuccess;
    cudaError_t error = contexts(dstDevice, srcDevice, &to, &from);
    if (error != cudaSuccess)
        return error;
    return rt_error(CU(cuMemcpyPeer)(RT_ADDRESS(dst), to, RT_ADDRESS(src), from, count));
}

cudaError_t rt_cudaMemcpyPeerAsync(void *dst, int dstDevice, const void *src, int srcDevice,
                                   size_t count, cudaStream_t stream) {
    CUcontext to = NULL, from = NULL;
    if (!count)
        return cudaSuccess;
    cudaError_t error = contexts(dstDevice, srcDevice, &to, &from);
    if (error != cudaSuccess)
        return error;
    return rt_error(
        CU(cuMemcpyPeerAsync)(RT_ADDRESS(dst), to, RT_ADDRESS(src), from, count, stream));
}

/* ---- Sets ------------------------------------------------------------------------------------ */

cudaError_t rt_cudaMemset(void *devPtr, int value, size_t count) {
    if (!count)
        return cudaSuccess;
    return rt_error(
        CHOOSE(cuMemsetD8_v2, cuMemsetD8_v2_ptds, RT_ADDRESS(devPtr), (unsigned char)value, count));
}

cudaError_t rt_cudaMemsetAsync(void *devPtr, int value, size_t count, cudaStream_t stream) {
    if (!count)
        return cudaSuccess;
    return rt_error(CU(cuMemsetD8Async)(RT_ADDRESS(devPtr), (unsigned char)value, count, stream));
}

cudaError_t rt_cudaMemset2D(void *devPtr, size_t pitch, int value, size_t width, size_t height) {
    if (!width || !height)
        return cudaSuccess;
    return rt_error(CHOOSE(cuMemsetD2D8_v2, cuMemsetD2D8_v2_ptds, RT_ADDRESS(devPtr), pitch,
                           (unsigned char)value, width, height));
}

cudaError_t rt_cudaMemset2DAsync(void *devPtr, size_t pitch, int value, size_t width, size_t height,
                                 cudaStream_t stream) {
    if (!width || !height)
        return cudaSuccess;
    return rt_error(CU(cuMemsetD2D8Async)(RT_ADDRESS(devPtr), pitch, (unsigned char)value, width,
                                          height, stream));
}

/* A box is one rectangle when its slices follow each other without rows between. */
static cudaError_t set_box(cudaPitchedPtr place, int value, cudaExtent extent, bool queued,
                           cudaStream_t stream) {
    size_t slices = extent.depth, rows = extent.height;
    cudaError_t error = cudaSuccess;
    if (extent.height && slices && extent.width > place.pitch)
        return cudaErrorInvalidValue;
    if (rows == place.ysize) {
        rows *= slices;
        slices = slices ? 1 : 0;
    }
    for (size_t i = 0; i < slices && error == cudaSuccess; i++) {
        char *slice = (char *)place.ptr + i * place.pitch * place.ysize;
        error = queued ? rt_cudaMemset2DAsync(slice, place.pitch, value, extent.width, rows, stream)
                       : rt_cudaMemset2D(slice, place.pitch, value, extent.width, rows);
    }
    return error;
}

cudaError_t rt_cudaMemset3D(cudaPitchedPtr pitchedDevPtr, int value, cudaExtent extent) {
    return set_box(pitchedDevPtr, value, extent, false, NULL);
}

cudaError_t rt_cudaMemset3DAsync(cudaPitchedPtr pitchedDevPtr, int value, cudaExtent extent,
                                 cudaStream_t stream) {
    return set_box(pitchedDevPtr, value, extent, true, stream);
}
