/* Ends of copies in arrays, and copies of one row of an array. */
#include "softgpu/copy/copy.h"

#include "softgpu/core/calls.h"

/* Is [offset, offset + size) inside [0, whole)? */
static bool inside(size_t offset, size_t size, size_t whole) {
    return offset <= whole && size <= whole - offset;
}

CUresult sg_side_in_array(struct sg_side *side, const struct sg_box *box, const size_t offset[3],
                          CUarray handle) {
    const struct sg_array *array = sg_array_get(handle);
    /* Elements may be split, blocks of texels must not, as on H200. */
    unsigned unit = array ? sg_array_unit(array) : 1;
    /* Frames of several planes are copied plane by plane. */
    if (!array || array->plane_count > 0 || offset[0] % unit || box->width % unit ||
        !inside(offset[0], box->width, array->width_bytes) ||
        !inside(offset[1], box->height, array->rows) ||
        !inside(offset[2], box->depth, array->slices))
        return CUDA_ERROR_INVALID_VALUE;
    const struct sg_place at = {.address = array->address + offset[2] * array->layer +
                                           offset[1] * array->pitch + offset[0],
                                .where = SG_WHERE_DEVICE,
                                .device = array->context->device};
    *side = (struct sg_side){.at = at,
                             .pitch = array->pitch,
                             .layer = array->layer,
                             .role = SG_ROLE_ARRAY,
                             .view = array->view};
    return CUDA_SUCCESS;
}

/* ---- One row --------------------------------------------------------------------------------- */

/* One end of a copy of one row. */
struct end {
    CUmemorytype type;
    const void *host;
    CUdeviceptr device;
    CUarray array;
    size_t offset;
};

static struct end in_array(CUarray array, size_t offset) {
    return (struct end){.type = CU_MEMORYTYPE_ARRAY, .array = array, .offset = offset};
}

static struct end in_host(const void *host) {
    return (struct end){.type = CU_MEMORYTYPE_HOST, .host = host};
}

static struct end in_device(CUdeviceptr device) {
    return (struct end){.type = CU_MEMORYTYPE_DEVICE, .device = device};
}

static CUresult place_of(const struct end *end, const struct sg_box *box, struct sg_side *side) {
    const size_t offset[3] = {end->offset, 0, 0};
    if (end->type == CU_MEMORYTYPE_ARRAY)
        return sg_side_in_array(side, box, offset, end->array);
    bool host = end->type == CU_MEMORYTYPE_HOST;
    side->at.address = host ? (CUdeviceptr)(uintptr_t)end->host : end->device;
    side->role = host ? SG_ROLE_HOST : SG_ROLE_DEVICE;
    return CUDA_SUCCESS;
}

static CUresult copy_row(struct end to, struct end from, size_t size, CUstream stream,
                         enum sg_sync_mode mode) {
    const CUDA_MEMCPY3D copy = {.srcXInBytes = from.offset,
                                .srcMemoryType = from.type,
                                .srcHost = from.host,
                                .srcDevice = from.device,
                                .srcArray = from.array,
                                .dstXInBytes = to.offset,
                                .dstMemoryType = to.type,
                                .dstHost = (void *)(uintptr_t)to.host,
                                .dstDevice = to.device,
                                .dstArray = to.array,
                                .WidthInBytes = size,
                                .Height = 1,
                                .Depth = 1};
    struct sg_box box = {.width = size, .height = 1, .depth = 1, .copy = &copy};
    if (size) {
        CUresult result = place_of(&to, &box, &box.to);
        if (result == CUDA_SUCCESS)
            result = place_of(&from, &box, &box.from);
        if (result != CUDA_SUCCESS)
            return result;
    }
    return sg_copy(box, stream, mode);
}

/* ---- Rows of functions.def ------------------------------------------------------------------- */

CUresult sg_cuMemcpyHtoA_v2(CUarray dstArray, size_t dstOffset, const void *srcHost,
                            size_t ByteCount) {
    return copy_row(in_array(dstArray, dstOffset), in_host(srcHost), ByteCount, NULL, SG_SYNC);
}

CUresult sg_cuMemcpyHtoAAsync_v2(CUarray dstArray, size_t dstOffset, const void *srcHost,
                                 size_t ByteCount, CUstream hStream) {
    return copy_row(in_array(dstArray, dstOffset), in_host(srcHost), ByteCount, hStream, SG_ASYNC);
}

CUresult sg_cuMemcpyAtoH_v2(void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount) {
    return copy_row(in_host(dstHost), in_array(srcArray, srcOffset), ByteCount, NULL, SG_SYNC);
}

CUresult sg_cuMemcpyAtoHAsync_v2(void *dstHost, CUarray srcArray, size_t srcOffset,
                                 size_t ByteCount, CUstream hStream) {
    return copy_row(in_host(dstHost), in_array(srcArray, srcOffset), ByteCount, hStream, SG_ASYNC);
}

CUresult sg_cuMemcpyDtoA_v2(CUarray dstArray, size_t dstOffset, CUdeviceptr srcDevice,
                            size_t ByteCount) {
    return copy_row(in_array(dstArray, dstOffset), in_device(srcDevice), ByteCount, NULL, SG_SYNC);
}

CUresult sg_cuMemcpyAtoD_v2(CUdeviceptr dstDevice, CUarray srcArray, size_t srcOffset,
                            size_t ByteCount) {
    return copy_row(in_device(dstDevice), in_array(srcArray, srcOffset), ByteCount, NULL, SG_SYNC);
}

CUresult sg_cuMemcpyAtoA_v2(CUarray dstArray, size_t dstOffset, CUarray srcArray, size_t srcOffset,
                            size_t ByteCount) {
    return copy_row(in_array(dstArray, dstOffset), in_array(srcArray, srcOffset), ByteCount, NULL,
                    SG_SYNC);
}
