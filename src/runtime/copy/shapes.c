/*
 * Rectangles and boxes. The runtime names the kinds of both ends by the direction, and counts in
 * elements where an array takes part; the driver is given a memory type for each end, and bytes.
 */
#include "runtime/copy/shapes.h"

cudaError_t rt_element_size(CUarray array, size_t *size) {
    CUDA_ARRAY3D_DESCRIPTOR shape = {0};
    cudaError_t error = rt_error(CU(cuArray3DGetDescriptor_v2)(&shape, array));
    if (error != cudaSuccess)
        return error;
    size_t bytes = 4;
    switch (shape.Format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
        bytes = 1;
        break;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        bytes = 2;
        break;
    default:
        break;
    }
    *size = bytes * shape.NumChannels;
    return cudaSuccess;
}

static CUmemorytype source_type(cudaMemcpyKind kind) {
    return kind == cudaMemcpyDefault                                        ? CU_MEMORYTYPE_UNIFIED
           : kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice ? CU_MEMORYTYPE_HOST
                                                                            : CU_MEMORYTYPE_DEVICE;
}

static CUmemorytype target_type(cudaMemcpyKind kind) {
    return kind == cudaMemcpyDefault                                        ? CU_MEMORYTYPE_UNIFIED
           : kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost ? CU_MEMORYTYPE_HOST
                                                                            : CU_MEMORYTYPE_DEVICE;
}

static void put_source(CUDA_MEMCPY3D *copy, CUarray array, cudaPitchedPtr place,
                       CUmemorytype type) {
    copy->srcMemoryType = array ? CU_MEMORYTYPE_ARRAY : type;
    copy->srcArray = array;
    copy->srcHost = copy->srcMemoryType == CU_MEMORYTYPE_HOST ? place.ptr : NULL;
    copy->srcDevice = array || copy->srcHost ? 0 : RT_ADDRESS(place.ptr);
    copy->srcPitch = array ? 0 : place.pitch;
    copy->srcHeight = array ? 0 : place.ysize;
}

static void put_target(CUDA_MEMCPY3D *copy, CUarray array, cudaPitchedPtr place,
                       CUmemorytype type) {
    copy->dstMemoryType = array ? CU_MEMORYTYPE_ARRAY : type;
    copy->dstArray = array;
    copy->dstHost = copy->dstMemoryType == CU_MEMORYTYPE_HOST ? place.ptr : NULL;
    copy->dstDevice = array || copy->dstHost ? 0 : RT_ADDRESS(place.ptr);
    copy->dstPitch = array ? 0 : place.pitch;
    copy->dstHeight = array ? 0 : place.ysize;
}

cudaError_t rt_box_copy(const cudaMemcpy3DParms *p, CUDA_MEMCPY3D *copy) {
    size_t source = 1, target = 1;
    cudaError_t error = cudaSuccess;
    if (!p || !!p->srcArray == !!p->srcPtr.ptr || !!p->dstArray == !!p->dstPtr.ptr)
        return cudaErrorInvalidValue;
    if (!rt_copy_kind(p->kind))
        return cudaErrorInvalidMemcpyDirection;
    if (p->srcArray)
        error = rt_element_size(p->srcArray, &source);
    if (error == cudaSuccess && p->dstArray)
        error = rt_element_size(p->dstArray, &target);
    if (error != cudaSuccess)
        return error;
    *copy = (CUDA_MEMCPY3D){
        .srcXInBytes = p->srcPos.x * source,
        .srcY = p->srcPos.y,
        .srcZ = p->srcPos.z,
        .dstXInBytes = p->dstPos.x * target,
        .dstY = p->dstPos.y,
        .dstZ = p->dstPos.z,
        .WidthInBytes = p->extent.width * (p->srcArray ? source : target),
        .Height = p->extent.height,
        .Depth = p->extent.depth,
    };
    put_source(copy, p->srcArray, p->srcPtr, source_type(p->kind));
    put_target(copy, p->dstArray, p->dstPtr, target_type(p->kind));
    return cudaSuccess;
}

void rt_box_parameters(const CUDA_MEMCPY3D *copy, cudaMemcpy3DParms *p) {
    size_t source = 1, target = 1;
    if (copy->srcArray)
        rt_element_size(copy->srcArray, &source);
    if (copy->dstArray)
        rt_element_size(copy->dstArray, &target);
    bool from_host = copy->srcMemoryType == CU_MEMORYTYPE_HOST;
    bool to_host = copy->dstMemoryType == CU_MEMORYTYPE_HOST;
    void *from = from_host ? (void *)(uintptr_t)copy->srcHost : (void *)(uintptr_t)copy->srcDevice;
    void *to = to_host ? copy->dstHost : (void *)(uintptr_t)copy->dstDevice;
    bool unified = copy->srcMemoryType == CU_MEMORYTYPE_UNIFIED ||
                   copy->dstMemoryType == CU_MEMORYTYPE_UNIFIED;
    *p = (cudaMemcpy3DParms){
        .srcArray = copy->srcArray,
        .srcPos = {copy->srcXInBytes / source, copy->srcY, copy->srcZ},
        .srcPtr = {copy->srcArray ? NULL : from, copy->srcPitch, copy->WidthInBytes,
                   copy->srcHeight},
        .dstArray = copy->dstArray,
        .dstPos = {copy->dstXInBytes / target, copy->dstY, copy->dstZ},
        .dstPtr = {copy->dstArray ? NULL : to, copy->dstPitch, copy->WidthInBytes, copy->dstHeight},
        .extent = {copy->WidthInBytes / (copy->srcArray ? source : target), copy->Height,
                   copy->Depth},
        .kind = unified     ? cudaMemcpyDefault
                : from_host ? (to_host ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice)
                : to_host   ? cudaMemcpyDeviceToHost
                            : cudaMemcpyDeviceToDevice,
    };
}

static cudaError_t run_box(const CUDA_MEMCPY3D *copy, bool queued, cudaStream_t stream) {
    if (!copy->WidthInBytes || !copy->Height || !copy->Depth)
        return cudaSuccess;
    if (queued)
        return rt_error(CU(cuMemcpy3DAsync_v2)(copy, stream));
    return rt_error(rt_self.per_thread ? CU(cuMemcpy3D_v2_ptds)(copy) : CU(cuMemcpy3D_v2)(copy));
}

cudaError_t rt_cudaMemcpy3D(const cudaMemcpy3DParms *p) {
    CUDA_MEMCPY3D copy;
    cudaError_t error = rt_box_copy(p, &copy);
    return error == cudaSuccess ? run_box(&copy, false, NULL) : error;
}

cudaError_t rt_cudaMemcpy3DAsync(const cudaMemcpy3DParms *p, cudaStream_t stream) {
    CUDA_MEMCPY3D copy;
    cudaError_t error = rt_box_copy(p, &copy);
    return error == cudaSuccess ? run_box(&copy, true, stream) : error;
}

/* ---- Between devices ------------------------------------------------------------------------- */

static cudaError_t peer_copy(const cudaMemcpy3DPeerParms *p, CUDA_MEMCPY3D_PEER *copy) {
    CUDA_MEMCPY3D box;
    CUcontext from = NULL, to = NULL;
    if (!p)
        return cudaErrorInvalidValue;
    cudaMemcpy3DParms plain = {p->srcArray, p->srcPos, p->srcPtr, p->dstArray,
                               p->dstPos,   p->dstPtr, p->extent, cudaMemcpyDeviceToDevice};
    cudaError_t error = rt_box_copy(&plain, &box);
    if (error == cudaSuccess)
        error = rt_primary(p->srcDevice, &from);
    if (error == cudaSuccess)
        error = rt_primary(p->dstDevice, &to);
    if (error != cudaSuccess)
        return error;
    *copy = (CUDA_MEMCPY3D_PEER){
        .srcXInBytes = box.srcXInBytes,
        .srcY = box.srcY,
        .srcZ = box.srcZ,
        .srcMemoryType = box.srcMemoryType,
        .srcDevice = box.srcDevice,
        .srcArray = box.srcArray,
        .srcContext = from,
        .srcPitch = box.srcPitch,
        .srcHeight = box.srcHeight,
        .dstXInBytes = box.dstXInBytes,
        .dstY = box.dstY,
        .dstZ = box.dstZ,
        .dstMemoryType = box.dstMemoryType,
        .dstDevice = box.dstDevice,
        .dstArray = box.dstArray,
        .dstContext = to,
        .dstPitch = box.dstPitch,
        .dstHeight = box.dstHeight,
        .WidthInBytes = box.WidthInBytes,
        .Height = box.Height,
        .Depth = box.Depth,
    };
    return cudaSuccess;
}

cudaError_t rt_cudaMemcpy3DPeer(const cudaMemcpy3DPeerParms *p) {
    CUDA_MEMCPY3D_PEER copy;
    cudaError_t error = peer_copy(p, &copy);
    if (error != cudaSuccess)
        return error;
    return rt_error(rt_self.per_thread ? CU(cuMemcpy3DPeer_ptds)(&copy)
                                       : CU(cuMemcpy3DPeer)(&copy));
}

cudaError_t rt_cudaMemcpy3DPeerAsync(const cudaMemcpy3DPeerParms *p, cudaStream_t stream) {
    CUDA_MEMCPY3D_PEER copy;
    cudaError_t error = peer_copy(p, &copy);
    return error == cudaSuccess ? rt_error(CU(cuMemcpy3DPeerAsync)(&copy, stream)) : error;
}

/* ---- Rectangles ------------------------------------------------------------------------------ */

struct end {
    CUarray array;
    const void *memory;
    size_t pitch;
    size_t x, y; /* of an array, x in bytes */
};

static cudaError_t run_rectangle(const CUDA_MEMCPY2D *copy, bool queued, cudaStream_t stream) {
    if (queued)
        return rt_error(CU(cuMemcpy2DAsync_v2)(copy, stream));
    return rt_error(rt_self.per_thread ? CU(cuMemcpy2DUnaligned_v2_ptds)(copy)
                                       : CU(cuMemcpy2DUnaligned_v2)(copy));
}

static cudaError_t rectangle(struct end to, struct end from, size_t width, size_t height,
                             cudaMemcpyKind kind, bool queued, cudaStream_t stream) {
    if (!rt_copy_kind(kind))
        return cudaErrorInvalidMemcpyDirection;
    if (!width || !height)
        return cudaSuccess;
    if ((!to.array && width > to.pitch) || (!from.array && width > from.pitch))
        return cudaErrorInvalidPitchValue;
    CUDA_MEMCPY2D copy = {
        .srcXInBytes = from.x,
        .srcY = from.y,
        .srcMemoryType = from.array ? CU_MEMORYTYPE_ARRAY : source_type(kind),
        .srcArray = from.array,
        .srcPitch = from.array ? 0 : from.pitch,
        .dstXInBytes = to.x,
        .dstY = to.y,
        .dstMemoryType = to.array ? CU_MEMORYTYPE_ARRAY : target_type(kind),
        .dstArray = to.array,
        .dstPitch = to.array ? 0 : to.pitch,
        .WidthInBytes = width,
        .Height = height,
    };
    if (copy.srcMemoryType == CU_MEMORYTYPE_HOST)
        copy.srcHost = from.memory;
    else
        copy.srcDevice = RT_ADDRESS(from.memory);
    if (copy.dstMemoryType == CU_MEMORYTYPE_HOST)
        copy.dstHost = (void *)(uintptr_t)to.memory;
    else
        copy.dstDevice = RT_ADDRESS(to.memory);
    return run_rectangle(&copy, queued, stream);
}

#define MEMORY(address, row)    ((struct end){.memory = (address), .pitch = (row)})
#define ARRAY(handle, left, up) ((struct end){.array = (handle), .x = (left), .y = (up)})

cudaError_t rt_cudaMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                            size_t height, cudaMemcpyKind kind) {
    return rectangle(MEMORY(dst, dpitch), MEMORY(src, spitch), width, height, kind, false, NULL);
}

cudaError_t rt_cudaMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch,
                                 size_t width, size_t height, cudaMemcpyKind kind,
                                 cudaStream_t stream) {
    return rectangle(MEMORY(dst, dpitch), MEMORY(src, spitch), width, height, kind, true, stream);
}

/* A handle that is no array is refused by the driver; none at all would be taken for memory. */
#define NEED_ARRAY(array)                                                                          \
    if (!(array))                                                                                  \
    return cudaErrorInvalidResourceHandle

cudaError_t rt_cudaMemcpy2DToArray(cudaArray_t dst, size_t wOffset, size_t hOffset, const void *src,
                                   size_t spitch, size_t width, size_t height,
                                   cudaMemcpyKind kind) {
    NEED_ARRAY(dst);
    return rectangle(ARRAY(dst, wOffset, hOffset), MEMORY(src, spitch), width, height, kind, false,
                     NULL);
}

cudaError_t rt_cudaMemcpy2DToArrayAsync(cudaArray_t dst, size_t wOffset, size_t hOffset,
                                        const void *src, size_t spitch, size_t width, size_t height,
                                        cudaMemcpyKind kind, cudaStream_t stream) {
    NEED_ARRAY(dst);
    return rectangle(ARRAY(dst, wOffset, hOffset), MEMORY(src, spitch), width, height, kind, true,
                     stream);
}

cudaError_t rt_cudaMemcpy2DFromArray(void *dst, size_t dpitch, cudaArray_const_t src,
                                     size_t wOffset, size_t hOffset, size_t width, size_t height,
                                     cudaMemcpyKind kind) {
    NEED_ARRAY(src);
    return rectangle(MEMORY(dst, dpitch), ARRAY(src, wOffset, hOffset), width, height, kind, false,
                     NULL);
}

cudaError_t rt_cudaMemcpy2DFromArrayAsync(void *dst, size_t dpitch, cudaArray_const_t src,
                                          size_t wOffset, size_t hOffset, size_t width,
                                          size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
    NEED_ARRAY(src);
    return rectangle(MEMORY(dst, dpitch), ARRAY(src, wOffset, hOffset), width, height, kind, true,
                     stream);
}

cudaError_t rt_cudaMemcpy2DArrayToArray(cudaArray_t dst, size_t wOffsetDst, size_t hOffsetDst,
                                        cudaArray_const_t src, size_t wOffsetSrc, size_t hOffsetSrc,
                                        size_t width, size_t height, cudaMemcpyKind kind) {
    NEED_ARRAY(dst);
    NEED_ARRAY(src);
    return rectangle(ARRAY(dst, wOffsetDst, hOffsetDst), ARRAY(src, wOffsetSrc, hOffsetSrc), width,
                     height, kind, false, NULL);
}

/* ---- Bytes of an array, row after row -------------------------------------------------------- */

static cudaError_t row_bytes(CUarray array, size_t *bytes) {
    CUDA_ARRAY3D_DESCRIPTOR shape = {0};
    size_t element = 0;
    cudaError_t error = rt_element_size(array, &element);
    if (error == cudaSuccess)
        error = rt_error(CU(cuArray3DGetDescriptor_v2)(&shape, array));
    *bytes = shape.Width * element;
    return error;
}

/* At most three rectangles: the rest of the first row, whole rows, the start of the last. */
static cudaError_t rows(struct end array, struct end memory, bool to_array, size_t count,
                        cudaMemcpyKind kind, bool queued, cudaStream_t stream) {
    size_t row = 0;
    NEED_ARRAY(array.array);
    cudaError_t error = row_bytes(array.array, &row);
    if (error == cudaSuccess && row == 0)
        error = cudaErrorInvalidValue;
    while (count && error == cudaSuccess) {
        size_t width = row - array.x % row, height = 1;
        if (array.x == 0 && count >= row)
            height = count / row;
        if (width > count)
            width = count;
        memory.pitch = width;
        error = to_array ? rectangle(array, memory, width, height, kind, queued, stream)
                         : rectangle(memory, array, width, height, kind, queued, stream);
        memory.memory = (const char *)memory.memory + width * height;
        array.y += height;
        array.x = 0;
        count -= width * height;
    }
    return error;
}

cudaError_t rt_cudaMemcpyToArray(cudaArray_t dst, size_t wOffset, size_t hOffset, const void *src,
                                 size_t count, cudaMemcpyKind kind) {
    return rows(ARRAY(dst, wOffset, hOffset), MEMORY(src, 0), true, count, kind, false, NULL);
}

cudaError_t rt_cudaMemcpyToArrayAsync(cudaArray_t dst, size_t wOffset, size_t hOffset,
                                      const void *src, size_t count, cudaMemcpyKind kind,
                                      cudaStream_t stream) {
    return rows(ARRAY(dst, wOffset, hOffset), MEMORY(src, 0), true, count, kind, true, stream);
}

cudaError_t rt_cudaMemcpyFromArray(void *dst, cudaArray_const_t src, size_t wOffset, size_t hOffset,
                                   size_t count, cudaMemcpyKind kind) {
    return rows(ARRAY(src, wOffset, hOffset), MEMORY(dst, 0), false, count, kind, false, NULL);
}

cudaError_t rt_cudaMemcpyFromArrayAsync(void *dst, cudaArray_const_t src, size_t wOffset,
                                        size_t hOffset, size_t count, cudaMemcpyKind kind,
                                        cudaStream_t stream) {
    return rows(ARRAY(src, wOffset, hOffset), MEMORY(dst, 0), false, count, kind, true, stream);
}

cudaError_t rt_cudaMemcpyArrayToArray(cudaArray_t dst, size_t wOffsetDst, size_t hOffsetDst,
                                      cudaArray_const_t src, size_t wOffsetSrc, size_t hOffsetSrc,
                                      size_t count, cudaMemcpyKind kind) {
    size_t row = 0;
    NEED_ARRAY(dst);
    NEED_ARRAY(src);
    cudaError_t error = row_bytes(src, &row);
    if (error != cudaSuccess)
        return error;
    bool whole = row && wOffsetSrc == 0 && wOffsetDst == 0 && count % row == 0;
    return rectangle(ARRAY(dst, wOffsetDst, hOffsetDst), ARRAY(src, wOffsetSrc, hOffsetSrc),
                     whole ? row : count, whole ? count / row : 1, kind, false, NULL);
}
