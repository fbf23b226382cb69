/* cuMemPrefetchAsync, cuMemDiscardBatchAsync and the call that combines them. */
#include "softgpu/core/calls.h"
#include "softgpu/device/numa.h"
#include "softgpu/managed/move.h"
#include "softgpu/stream/capture.h"

static CUresult prefetch(CUdeviceptr address, size_t size, CUmemLocation to,
                         struct sg_stream *stream) {
    struct sg_moves *moves = sg_moves_new(1);
    if (!moves)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result =
        sg_moves_add(moves, (struct sg_move){.address = address, .size = size, .to = to});
    if (result == CUDA_SUCCESS)
        return sg_moves_submit(moves, stream);
    sg_moves_drop(moves);
    return result;
}

/* The stream, which must not be capturing: this is checked before the other arguments. */
static CUresult begin(CUstream handle, struct sg_stream **stream) {
    CUresult result = sg_stream_from_handle(handle, stream);
    if (result == CUDA_SUCCESS && (*stream)->capture)
        result = sg_capture_refuse(*stream);
    return result;
}

CUresult sg_cuMemPrefetchAsync(CUdeviceptr devPtr, size_t count, CUdevice dstDevice,
                               CUstream hStream) {
    struct sg_stream *stream;
    CUmemLocation to;
    CUresult result = begin(hStream, &stream);
    if (result == CUDA_SUCCESS)
        result = sg_location_of_device(dstDevice, &to);
    return result == CUDA_SUCCESS ? prefetch(devPtr, count, to, stream) : result;
}

CUresult sg_cuMemPrefetchAsync_v2(CUdeviceptr devPtr, size_t count, CUmemLocation location,
                                  unsigned int flags, CUstream hStream) {
    struct sg_stream *stream;
    if (!sg_location_type_known(&location) || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!atomic_load(&sg_initialized))
        return CUDA_ERROR_NOT_INITIALIZED;
    CUresult result = begin(hStream, &stream);
    if (result == CUDA_SUCCESS)
        result = sg_location_check(&location);
    if (location.type == CU_MEM_LOCATION_TYPE_HOST)
        location.id = CU_DEVICE_CPU;
    return result == CUDA_SUCCESS ? prefetch(devPtr, count, location, stream) : result;
}

/* ---- Batches --------------------------------------------------------------------------------- */

struct batch {
    const CUdeviceptr *addresses;
    const size_t *sizes;
    size_t count;
    /* Targets: location i is for the ranges from indices[i] on. NULL for a batch that only
     * discards. */
    const CUmemLocation *locations;
    const size_t *indices;
    size_t location_count;
    bool discard;
};

static CUresult check_locations(const struct batch *batch) {
    if (!batch->locations || !batch->indices || batch->location_count == 0 ||
        batch->location_count > batch->count || batch->indices[0] != 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < batch->location_count; i++) {
        bool falls = i > 0 && batch->indices[i] < batch->indices[i - 1];
        if (falls || batch->indices[i] >= batch->count ||
            sg_location_check(&batch->locations[i]) != CUDA_SUCCESS)
            return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

static CUresult add_all(const struct batch *batch, struct sg_moves *moves) {
    CUresult result = CUDA_SUCCESS;
    CUmemLocation to = {0};
    size_t next = 0;
    for (size_t i = 0; i < batch->count && result == CUDA_SUCCESS; i++) {
        /* If several locations have the same index, H200 takes the first. */
        bool first = next < batch->location_count && batch->indices[next] == i;
        if (first)
            to = batch->locations[next];
        while (next < batch->location_count && batch->indices[next] == i)
            next++;
        result = sg_moves_add(moves, (struct sg_move){.address = batch->addresses[i],
                                                      .size = batch->sizes[i],
                                                      .discard = batch->discard,
                                                      .to = to});
    }
    return result;
}

static CUresult run_batch(const struct batch *batch, unsigned long long flags, CUstream handle,
                          bool prefetches) {
    struct sg_stream *stream;
    /* The default stream is refused, before anything else; the per-thread one is not. */
    if ((!handle && !sg_thread()->per_thread_stream) || handle == CU_STREAM_LEGACY)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = begin(handle, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (!batch->addresses || !batch->sizes || batch->count == 0 || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (prefetches)
        result = check_locations(batch);
    if (result != CUDA_SUCCESS)
        return result;
    struct sg_moves *moves = sg_moves_new(batch->count);
    if (!moves)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = add_all(batch, moves);
    if (result == CUDA_SUCCESS)
        return sg_moves_submit(moves, stream);
    sg_moves_drop(moves);
    return result;
}

CUresult sg_cuMemPrefetchBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count,
                                    CUmemLocation *prefetchLocs, size_t *prefetchLocIdxs,
                                    size_t numPrefetchLocs, unsigned long long flags,
                                    CUstream hStream) {
    struct batch batch = {dptrs,           sizes,           count, prefetchLocs,
                          prefetchLocIdxs, numPrefetchLocs, false};
    return run_batch(&batch, flags, hStream, true);
}

CUresult sg_cuMemDiscardBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count,
                                   unsigned long long flags, CUstream hStream) {
    struct batch batch = {dptrs, sizes, count, NULL, NULL, 0, true};
    return run_batch(&batch, flags, hStream, false);
}

CUresult sg_cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count,
                                              CUmemLocation *prefetchLocs, size_t *prefetchLocIdxs,
                                              size_t numPrefetchLocs, unsigned long long flags,
                                              CUstream hStream) {
    struct batch batch = {dptrs,           sizes,           count, prefetchLocs,
                          prefetchLocIdxs, numPrefetchLocs, true};
    return run_batch(&batch, flags, hStream, true);
}
