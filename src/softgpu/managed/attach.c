/* cuStreamAttachMemAsync: whose work may use managed memory. Every device here may use it at the
 * same time as the CPU, so an attachment is stored and reported but restricts nothing. */
#include "softgpu/core/calls.h"
#include "softgpu/managed/managed.h"
#include "softgpu/stream/capture.h"

struct attach {
    CUdeviceptr address;
    uint64_t buffer_id;
    unsigned flags;
};

/* In stream order, with the lock: another thread may have freed the range meanwhile. */
static void finish(struct sg_op *op) {
    const struct attach *attach = (const void *)op->data.bytes;
    struct sg_range *range = sg_range_find(attach->address);
    if (range && range->buffer_id == attach->buffer_id &&
        op->stream->context->sticky == CUDA_SUCCESS)
        sg_managed_attach(range, attach->flags,
                          attach->flags == CU_MEM_ATTACH_SINGLE ? op->stream : NULL);
}

static CUresult submit(const struct sg_range *range, unsigned flags, struct sg_stream *stream) {
    struct sg_op *op = sg_op_new(NULL);
    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    op->finish = finish;
    *(struct attach *)(void *)op->data.bytes =
        (struct attach){.address = range->start, .buffer_id = range->buffer_id, .flags = flags};
    CUresult result = sg_stream_submit(stream, op);
    sg_schedule_chance();
    return result;
}

/* Whole allocations only. */
static const struct sg_range *find(CUdeviceptr address, size_t length) {
    const struct sg_range *range = sg_range_find(address);
    bool whole = range && range->ops == &sg_managed_ops && range->start == address &&
                 (length == 0 || length == range->size);
    return whole ? range : NULL;
}

CUresult sg_cuStreamAttachMemAsync(CUstream hStream, CUdeviceptr dptr, size_t length,
                                   unsigned int flags) {
    struct sg_stream *stream;
    CUresult result = sg_stream_from_handle(hStream, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (stream->capture)
        return sg_capture_refuse(stream);
    bool known = flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST ||
                 flags == CU_MEM_ATTACH_SINGLE;
    const struct sg_range *range = find(dptr, length);
    /* NULL does not name a stream of its own; on H200 the default stream's other name is accepted.
     */
    bool unnamed = !hStream && !sg_thread()->per_thread_stream;
    if (!known || !range || (flags == CU_MEM_ATTACH_SINGLE && unnamed))
        return CUDA_ERROR_INVALID_VALUE;
    return submit(range, flags, stream);
}
