/*
 * cuMemBatchDecompressAsync. An H200 has no engine for it and refuses; this implementation follows
 * the documentation, for profiles of devices that have one.
 */
#include "softgpu/address/range.h"
#include "softgpu/context/where.h"
#include "softgpu/copy/copy.h"
#include "softgpu/core/calls.h"
#include "softgpu/decompress/decompress.h"
#include "softgpu/device/device.h"
#include "softgpu/stream/capture.h"

#include <stdlib.h>
#include <string.h>

/* One operation, with what the call determined. */
struct piece {
    CUmemDecompressParams params;
    size_t room;
    int from_device, to_device, count_device;
};

struct batch {
    size_t count;
    struct piece pieces[];
};

static CUdeviceptr address_of(const void *pointer) {
    return (CUdeviceptr)(uintptr_t)pointer;
}

/* ---- At the call ----------------------------------------------------------------------------- */

static bool check_memory(const void *pointer, size_t size, unsigned rights, int *device) {
    struct sg_place place = sg_place_at(address_of(pointer), size);
    struct sg_range_facts facts;
    if (place.where != SG_WHERE_DEVICE || !sg_place_allows(&place, rights))
        return false;
    sg_range_describe(place.range, place.device, &facts);
    *device = place.device;
    return facts.decompress;
}

/* Without a size, the output may extend to the end of its allocation. */
static size_t room_of(const CUmemDecompressParams *params) {
    CUdeviceptr to = address_of(params->dst);
    const struct sg_range *range = params->dstNumBytes ? NULL : sg_range_find(to);
    return range ? range->size - (size_t)(to - range->start) : params->dstNumBytes;
}

static bool check_params(const CUmemDecompressParams *params, const struct sg_device *device,
                         struct piece *piece) {
    static const unsigned char zero[sizeof params->padding];
    int mask = device->attributes[CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK];
    int longest = device->attributes[CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_MAXIMUM_LENGTH];
    unsigned algorithm = (unsigned)params->algo;
    bool single = algorithm != 0 && (algorithm & (algorithm - 1)) == 0;
    if (!single || (algorithm & (unsigned)mask) == 0 ||
        memcmp(params->padding, zero, sizeof zero) != 0)
        return false;
    size_t room = room_of(params);
    *piece = (struct piece){.params = *params, .room = room};
    return params->srcNumBytes > 0 && params->srcNumBytes <= (size_t)longest && room > 0 &&
           check_memory(params->src, params->srcNumBytes, SG_READ, &piece->from_device) &&
           check_memory(params->dst, room, SG_WRITE, &piece->to_device) &&
           check_memory(params->dstActBytes, sizeof *params->dstActBytes, SG_WRITE,
                        &piece->count_device);
}

/* ---- In the stream --------------------------------------------------------------------------- */

/* Copies between a buffer of ours and the device's memory, which may be in several pieces. */
static bool transfer(int device, int owner, const void *pointer, unsigned char *buffer, size_t size,
                     unsigned rights) {
    CUdeviceptr address = address_of(pointer);
    while (size > 0) {
        size_t span;
        unsigned char *bytes = sg_copy_bytes(device, owner, address, size, rights, &span);
        if (!bytes)
            return false;
        if (rights == SG_WRITE)
            memcpy(bytes, buffer, span);
        else
            memcpy(buffer, bytes, span);
        if (sg_copy_watch && rights == SG_WRITE)
            sg_copy_watch->stored(address, span);
        else if (sg_copy_watch)
            sg_copy_watch->moved(0, address, span);
        address += span;
        buffer += span;
        size -= span;
    }
    return true;
}

/* No hardware was available to show what happens to bytes that cannot be decompressed: assumed to
 * be like the failure of another engine of the device, the one that copies. */
static CUresult decompress_between(const struct piece *piece, int device, unsigned char *from,
                                   unsigned char *to) {
    const CUmemDecompressParams *params = &piece->params;
    size_t written = 0;
    if (!transfer(device, piece->from_device, params->src, from, params->srcNumBytes, SG_READ))
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    if (!sg_decompress(params->algo, from, params->srcNumBytes, to, piece->room, &written))
        return CUDA_ERROR_LAUNCH_FAILED;
    cuuint32_t count = (cuuint32_t)written;
    unsigned char bytes[sizeof count];
    memcpy(bytes, &count, sizeof count);
    bool stored =
        transfer(device, piece->to_device, params->dst, to, written, SG_WRITE) &&
        transfer(device, piece->count_device, params->dstActBytes, bytes, sizeof bytes, SG_WRITE);
    return stored ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS;
}

static CUresult run_piece(const struct piece *piece, int device) {
    unsigned char *from = malloc(piece->params.srcNumBytes);
    unsigned char *to = malloc(piece->room);
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    if (from && to)
        result = decompress_between(piece, device, from, to);
    free(from);
    free(to);
    return result;
}

static struct batch *batch_of(struct sg_op *op) {
    return (void *)(uintptr_t)op->data.words[0];
}

static CUresult run(struct sg_op *op) {
    const struct batch *batch = batch_of(op);
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < batch->count && result == CUDA_SUCCESS; i++)
        result = run_piece(&batch->pieces[i], op->stream->context->device);
    return result;
}

static void finish(struct sg_op *op) {
    free(batch_of(op));
}

static CUresult submit(struct batch *batch, struct sg_stream *stream) {
    struct sg_op *op = sg_op_new(run);
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    if (op) {
        op->data.words[0] = (uintptr_t)batch;
        op->finish = finish;
        result = sg_stream_submit(stream, op);
    }
    if (result != CUDA_SUCCESS)
        free(batch);
    sg_schedule_chance();
    return result;
}

static struct batch *batch_new(size_t count) {
    size_t size;
    if (__builtin_mul_overflow(count, sizeof(struct piece), &size) ||
        __builtin_add_overflow(size, sizeof(struct batch), &size))
        return NULL;
    struct batch *batch = malloc(size);
    if (batch)
        batch->count = count;
    return batch;
}

CUresult sg_cuMemBatchDecompressAsync(CUmemDecompressParams *paramsArray, size_t count,
                                      unsigned int flags, size_t *errorIndex, CUstream handle) {
    struct sg_stream *stream;
    CUresult result = sg_stream_from_handle(handle, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (stream->capture)
        return sg_capture_refuse(stream);
    const struct sg_device *device = sg_device(stream->context->device);
    if (!device->attributes[CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK])
        return CUDA_ERROR_NOT_SUPPORTED;
    if (errorIndex)
        *errorIndex = SIZE_MAX;
    if (!paramsArray || count == 0 || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    struct batch *batch = batch_new(count);
    if (!batch)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < count; i++) {
        if (check_params(&paramsArray[i], device, &batch->pieces[i]))
            continue;
        if (errorIndex)
            *errorIndex = i;
        free(batch);
        return CUDA_ERROR_INVALID_VALUE;
    }
    return submit(batch, stream);
}
