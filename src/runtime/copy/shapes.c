/*
 * Rectangles and boxes. The runtime names the kinds of both ends by the direction, and counts in
 * elements where an array takes part; the driver is given a memory type for each end, and bytes.
 */
#include "runtime/copy/shapes.h"

#include "runtime/memory/reach.h"

#include <stddef.h>
#include <string.h>

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

/* One end of a copy, as the runtime gives it, and as the driver's parameters have it. */
struct place {
    CUarray array;
    cudaPitchedPtr memory;
    CUmemorytype type; /* of the memory */
};

static CUmemorytype place_type(const struct place *place) {
    return place->array ? CU_MEMORYTYPE_ARRAY : place->type;
}

static void *host_address(const struct place *place) {
    return place_type(place) == CU_MEMORYTYPE_HOST ? place->memory.ptr : NULL;
}

static CUdeviceptr device_address(const struct place *place) {
    return place->array || host_address(place) ? 0 : RT_ADDRESS(place->memory.ptr);
}

static CUDA_MEMCPY3D copy_between(struct place to, struct place from) {
    return (CUDA_MEMCPY3D){
        .srcMemoryType = place_type(&from),
        .srcArray = from.array,
        .srcHost = host_address(&from),
        .srcDevice = device_address(&from),
        .srcPitch = from.array ? 0 : from.memory.pitch,
        .srcHeight = from.array ? 0 : from.memory.ysize,
        .dstMemoryType = place_type(&to),
        .dstArray = to.array,
        .dstHost = host_address(&to),
        .dstDevice = device_address(&to),
        .dstPitch = to.array ? 0 : to.memory.pitch,
        .dstHeight = to.array ? 0 : to.memory.ysize,
    };
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
    *copy = copy_between((struct place){p->dstArray, p->dstPtr, target_type(p->kind)},
                         (struct place){p->srcArray, p->srcPtr, source_type(p->kind)});
    copy->srcXInBytes = p->srcPos.x * source;
    copy->srcY = p->srcPos.y;
    copy->srcZ = p->srcPos.z;
    copy->dstXInBytes = p->dstPos.x * target;
    copy->dstY = p->dstPos.y;
    copy->dstZ = p->dstPos.z;
    copy->WidthInBytes = p->extent.width * (p->srcArray ? source : target);
    copy->Height = p->extent.height;
    copy->Depth = p->extent.depth;
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

/* Nothing to copy is asked of nothing but the stream, which may not be used at that time. */
static bool is_empty(cudaExtent extent) {
    return !extent.width || !extent.height || !extent.depth;
}

static cudaError_t box_to_run(const cudaMemcpy3DParms *p, CUDA_MEMCPY3D *copy) {
    if (!p || !is_empty(p->extent))
        return rt_box_copy(p, copy);
    const struct place nowhere = {.type = CU_MEMORYTYPE_HOST};
    *copy = copy_between(nowhere, nowhere);
    return cudaSuccess;
}

cudaError_t rt_cudaMemcpy3D(const cudaMemcpy3DParms *p) {
    CUDA_MEMCPY3D copy;
    cudaError_t error = box_to_run(p, &copy);
    if (error != cudaSuccess)
        return error;
    return rt_error(rt_self.per_thread ? CU(cuMemcpy3D_v2_ptds)(&copy) : CU(cuMemcpy3D_v2)(&copy));
}

cudaError_t rt_cudaMemcpy3DAsync(const cudaMemcpy3DParms *p, cudaStream_t stream) {
    CUDA_MEMCPY3D copy;
    cudaError_t error = box_to_run(p, &copy);
    return error == cudaSuccess ? rt_error(CU(cuMemcpy3DAsync_v2)(&copy, stream)) : error;
}

/* ---- Between devices ------------------------------------------------------------------------- */

/* The driver's form is that of a copy within a context, with the contexts in reserved places. */
_Static_assert(sizeof(CUDA_MEMCPY3D) == sizeof(CUDA_MEMCPY3D_PEER) &&
                   offsetof(CUDA_MEMCPY3D, reserved0) == offsetof(CUDA_MEMCPY3D_PEER, srcContext) &&
                   offsetof(CUDA_MEMCPY3D, reserved1) == offsetof(CUDA_MEMCPY3D_PEER, dstContext),
               "one for the other");

static cudaError_t peer_copy(const cudaMemcpy3DPeerParms *p, CUDA_MEMCPY3D_PEER *copy) {
    CUDA_MEMCPY3D box;
    CUcontext from = NULL, to = NULL;
    if (!p)
        return cudaErrorInvalidValue;
    cudaMemcpy3DParms plain = {p->srcArray, p->srcPos, p->srcPtr, p->dstArray,
                               p->dstPos,   p->dstPtr, p->extent, cudaMemcpyDeviceToDevice};
    cudaError_t error = box_to_run(&plain, &box);
    if (error == cudaSuccess)
        error = rt_primary(p->srcDevice, &from);
    if (error == cudaSuccess)
        error = rt_primary(p->dstDevice, &to);
    if (error != cudaSuccess)
        return error;
    memcpy(copy, &box, sizeof *copy);
    copy->srcContext = from;
    copy->dstContext = to;
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
    bool is_array;
    CUarray array;
    void *memory;
    size_t pitch;
    size_t x, y; /* of an array, x in bytes */
};

static cudaError_t run_rectangle(const CUDA_MEMCPY2D *copy, bool queued, cudaStream_t stream) {
    if (queued)
        return rt_error(CU(cuMemcpy2DAsync_v2)(copy, stream));
    return rt_error(rt_self.per_thread ? CU(cuMemcpy2DUnaligned_v2_ptds)(copy)
                                       : CU(cuMemcpy2DUnaligned_v2)(copy));
}

/*
 * An H200 looks at the pitch first, then at the direction, then whether the source's array is there
 * or, where the source is memory, the target's.
 */
static cudaError_t check_rectangle(const struct end *to, const struct end *from, size_t width,
                                   cudaMemcpyKind kind) {
    if ((!to->is_array && width > to->pitch) || (!from->is_array && width > from->pitch))
        return cudaErrorInvalidPitchValue;
    if (!rt_copy_kind(kind) || (from->is_array && source_type(kind) == CU_MEMORYTYPE_HOST) ||
        (to->is_array && target_type(kind) == CU_MEMORYTYPE_HOST))
        return cudaErrorInvalidMemcpyDirection;
    if (from->is_array ? !from->array : to->is_array && !to->array)
        return cudaErrorInvalidResourceHandle;
    return cudaSuccess;
}

/* From the first byte to the last, where these can be counted at all. */
static cudaError_t check_memory(const struct end *end, size_t width, size_t height,
                                cudaStream_t stream) {
    size_t bytes;
    if (end->is_array || __builtin_mul_overflow(end->pitch, height - 1, &bytes) ||
        __builtin_add_overflow(bytes, width, &bytes))
        return cudaSuccess;
    return rt_check_end(end->memory, bytes, stream);
}

static cudaError_t rectangle(struct end to, struct end from, size_t width, size_t height,
                             cudaMemcpyKind kind, bool queued, cudaStream_t stream) {
    if (!width || !height)
        return cudaSuccess;
    cudaError_t error = check_rectangle(&to, &from, width, kind);
    if (error == cudaSuccess)
        error = check_memory(&to, width, height, queued ? stream : rt_default_stream());
    if (error == cudaSuccess)
        error = check_memory(&from, width, height, queued ? stream : rt_default_stream());
    if (error != cudaSuccess)
        return error;
    CUDA_MEMCPY3D box = copy_between(
        (struct place){to.array, {.ptr = to.memory, .pitch = to.pitch}, target_type(kind)},
        (struct place){from.array, {.ptr = from.memory, .pitch = from.pitch}, source_type(kind)});
    CUDA_MEMCPY2D copy = {
        .srcXInBytes = from.x,
        .srcY = from.y,
        .srcMemoryType = box.srcMemoryType,
        .srcHost = box.srcHost,
        .srcDevice = box.srcDevice,
        .srcArray = box.srcArray,
        .srcPitch = box.srcPitch,
        .dstXInBytes = to.x,
        .dstY = to.y,
        .dstMemoryType = box.dstMemoryType,
        .dstHost = box.dstHost,
        .dstDevice = box.dstDevice,
        .dstArray = box.dstArray,
        .dstPitch = box.dstPitch,
        .WidthInBytes = width,
        .Height = height,
    };
    return run_rectangle(&copy, queued, stream);
}

#define MEMORY(address, row) ((struct end){.memory = (void *)(uintptr_t)(address), .pitch = (row)})
#define ARRAY(handle, left, up)                                                                    \
    ((struct end){.is_array = true, .array = (handle), .x = (left), .y = (up)})

cudaError_t rt_cudaMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                            size_t height, cudaMemcpyKind kind) {
    return rectangle(MEMORY(dst, dpitch), MEMORY(src, spitch), width, height, kind, false, NULL);
}

cudaError_t rt_cudaMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch,
                                 size_t width, size_t height, cudaMemcpyKind kind,
                                 cudaStream_t stream) {
    return rectangle(MEMORY(dst, dpitch), MEMORY(src, spitch), width, height, kind, true, stream);
}

cudaError_t rt_cudaMemcpy2DToArray(cudaArray_t dst, size_t wOffset, size_t hOffset, const void *src,
                                   size_t spitch, size_t width, size_t height,
                                   cudaMemcpyKind kind) {
    return rectangle(ARRAY(dst, wOffset, hOffset), MEMORY(src, spitch), width, height, kind, false,
                     NULL);
}

cudaError_t rt_cudaMemcpy2DToArrayAsync(cudaArray_t dst, size_t wOffset, size_t hOffset,
                                        const void *src, size_t spitch, size_t width, size_t height,
                                        cudaMemcpyKind kind, cudaStream_t stream) {
    return rectangle(ARRAY(dst, wOffset, hOffset), MEMORY(src, spitch), width, height, kind, true,
                     stream);
}

cudaError_t rt_cudaMemcpy2DFromArray(void *dst, size_t dpitch, cudaArray_const_t src,
                                     size_t wOffset, size_t hOffset, size_t width, size_t height,
                                     cudaMemcpyKind kind) {
    return rectangle(MEMORY(dst, dpitch), ARRAY(src, wOffset, hOffset), width, height, kind, false,
                     NULL);
}

cudaError_t rt_cudaMemcpy2DFromArrayAsync(void *dst, size_t dpitch, cudaArray_const_t src,
                                          size_t wOffset, size_t hOffset, size_t width,
                                          size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
    return rectangle(MEMORY(dst, dpitch), ARRAY(src, wOffset, hOffset), width, height, kind, true,
                     stream);
}

cudaError_t rt_cudaMemcpy2DArrayToArray(cudaArray_t dst, size_t wOffsetDst, size_t hOffsetDst,
                                        cudaArray_const_t src, size_t wOffsetSrc, size_t hOffsetSrc,
                                        size_t width, size_t height, cudaMemcpyKind kind) {
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
static cudaError_t rows(struct end to, struct end from, size_t count, cudaMemcpyKind kind,
                        bool queued, cudaStream_t stream) {
    struct end *array = to.is_array ? &to : &from, *memory = to.is_array ? &from : &to;
    size_t row = 0;
    /* NVIDIA's do nothing when the direction is none, whatever the other arguments are. */
    if (!count || !rt_copy_kind(kind))
        return cudaSuccess;
    memory->pitch = count;
    cudaError_t error = check_rectangle(&to, &from, count, kind);
    if (error == cudaSuccess)
        error = row_bytes(array->array, &row);
    if (error == cudaSuccess && row == 0)
        error = cudaErrorInvalidValue;
    while (count && error == cudaSuccess) {
        size_t width = row - array->x % row, height = 1;
        if (array->x == 0 && count >= row)
            height = count / row;
        if (width > count)
            width = count;
        memory->pitch = width;
        error = rectangle(to, from, width, height, kind, queued, stream);
        memory->memory = (char *)memory->memory + width * height;
        array->y += height;
        array->x = 0;
        count -= width * height;
    }
    return error;
}

cudaError_t rt_cudaMemcpyToArray(cudaArray_t dst, size_t wOffset, size_t hOffset, const void *src,
                                 size_t count, cudaMemcpyKind kind) {
    return rows(ARRAY(dst, wOffset, hOffset), MEMORY(src, 0), count, kind, false, NULL);
}

cudaError_t rt_cudaMemcpyToArrayAsync(cudaArray_t dst, size_t wOffset, size_t hOffset,
                                      const void *src, size_t count, cudaMemcpyKind kind,
                                      cudaStream_t stream) {
    return rows(ARRAY(dst, wOffset, hOffset), MEMORY(src, 0), count, kind, true, stream);
}

cudaError_t rt_cudaMemcpyFromArray(void *dst, cudaArray_const_t src, size_t wOffset, size_t hOffset,
                                   size_t count, cudaMemcpyKind kind) {
    return rows(MEMORY(dst, 0), ARRAY(src, wOffset, hOffset), count, kind, false, NULL);
}

cudaError_t rt_cudaMemcpyFromArrayAsync(void *dst, cudaArray_const_t src, size_t wOffset,
                                        size_t hOffset, size_t count, cudaMemcpyKind kind,
                                        cudaStream_t stream) {
    return rows(MEMORY(dst, 0), ARRAY(src, wOffset, hOffset), count, kind, true, stream);
}

cudaError_t rt_cudaMemcpyArrayToArray(cudaArray_t dst, size_t wOffsetDst, size_t hOffsetDst,
                                      cudaArray_const_t src, size_t wOffsetSrc, size_t hOffsetSrc,
                                      size_t count, cudaMemcpyKind kind) {
    enum { ADDRESS_BITS = 57 };
    struct end to = ARRAY(dst, wOffsetDst, hOffsetDst), from = ARRAY(src, wOffsetSrc, hOffsetSrc);
    size_t row = 0;
    if (!count)
        return cudaSuccess;
    cudaError_t error = check_rectangle(&to, &from, count, kind);
    if (error == cudaSuccess && count >> ADDRESS_BITS)
        error = cudaErrorMemoryAllocation; /* as on an H200 */
    if (error == cudaSuccess)
        error = row_bytes(src, &row);
    if (error != cudaSuccess)
        return error;
    bool whole = row && wOffsetSrc == 0 && wOffsetDst == 0 && count % row == 0;
    return rectangle(to, from, whole ? row : count, whole ? count / row : 1, kind, false, NULL);
}
