/*
 * Stream memory operations: waiting for a value in memory and writing one.
 *
 * A waiter or a worker checks the awaited memory, sleeping between checks. Fences need nothing
 * here: every operation ends under the lock, which orders it before all that follows.
 */
#include "softgpu/address/object.h"
#include "softgpu/address/range.h"
#include "softgpu/context/address_32.h"
#include "softgpu/context/where.h"
#include "softgpu/core/calls.h"
#include "softgpu/stream/capture.h"
#include "softgpu/stream/schedule.h"

#include <stdlib.h>

#define BATCH_LIMIT 256 /* "Must be less than 256" */

struct access {
    CUdeviceptr address;
    uint64_t value;
    unsigned width;     /* bytes: 4 or 8 */
    unsigned condition; /* CU_STREAM_WAIT_VALUE_* without FLUSH */
    bool write;
    bool faulted;
};
_Static_assert(sizeof(struct access) <= sizeof(((struct sg_op *)0)->data), "fits an operation");

static struct access *access_of(struct sg_op *op) {
    return (void *)op->data.bytes;
}

static void *host_bytes(struct sg_op *op, unsigned rights) {
    const struct access *access = access_of(op);
    size_t span = 0;
    int device = op->stream->context->device;
    void *bytes = sg_translate(device, access->address, access->width, rights, &span);
    return span >= access->width ? bytes : NULL;
}

static bool holds32(unsigned condition, uint32_t now, uint32_t value) {
    switch (condition) {
    case CU_STREAM_WAIT_VALUE_GEQ:
        return (int32_t)(now - value) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
        return now == value;
    case CU_STREAM_WAIT_VALUE_AND:
        return (now & value) != 0;
    default:
        return ~(now | value) != 0;
    }
}

static bool holds64(unsigned condition, uint64_t now, uint64_t value) {
    switch (condition) {
    case CU_STREAM_WAIT_VALUE_GEQ:
        return (int64_t)(now - value) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
        return now == value;
    case CU_STREAM_WAIT_VALUE_AND:
        return (now & value) != 0;
    default:
        return ~(now | value) != 0;
    }
}

#ifdef __SANITIZE_THREAD__
void __tsan_acquire(void *address); /* in libtsan */

/*
 * Any write of the value ends the wait, and sets and copies are plain writes, so the check itself
 * is not a race. It takes part in the ordering of an atomic store, so that only programs that rely
 * on a plain one are reported.
 */
__attribute__((noinline, no_sanitize("thread"))) static uint64_t look(void *bytes, unsigned width) {
    uint64_t now =
        width == 4 ? *(const volatile uint32_t *)bytes : *(const volatile uint64_t *)bytes;
    __tsan_acquire(bytes);
    return now;
}
#else
static uint64_t look(void *bytes, unsigned width) {
    return width == 4 ? __atomic_load_n((const uint32_t *)bytes, __ATOMIC_ACQUIRE)
                      : __atomic_load_n((const uint64_t *)bytes, __ATOMIC_ACQUIRE);
}
#endif

static bool value_ready(struct sg_op *op) {
    struct access *access = access_of(op);
    void *bytes = host_bytes(op, SG_READ);
    access->faulted = !bytes;
    if (!bytes)
        return true;
    uint64_t now = look(bytes, access->width);
    if (access->width == 4)
        return holds32(access->condition, (uint32_t)now, (uint32_t)access->value);
    return holds64(access->condition, now, access->value);
}

static void finish_wait(struct sg_op *op) {
    if (access_of(op)->faulted)
        sg_context_fault(op->stream->context, CUDA_ERROR_ILLEGAL_ADDRESS);
}

static CUresult run_write(struct sg_op *op) {
    const struct access *access = access_of(op);
    void *bytes = host_bytes(op, SG_WRITE);
    size_t span;
    if (!bytes)
        bytes = sg_object_bytes(op->stream->context->device, access->address, access->width, &span);
    if (!bytes)
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    if (access->width == 4)
        __atomic_store_n((uint32_t *)bytes, (uint32_t)access->value, __ATOMIC_RELEASE);
    else
        __atomic_store_n((uint64_t *)bytes, access->value, __ATOMIC_RELEASE);
    sg_object_spread(access->address, bytes, access->width);
    if (sg_range_watch)
        sg_range_watch->stored(access->address, access->width);
    return CUDA_SUCCESS;
}

/* ---- Arguments ------------------------------------------------------------------------------ */

/* `now`: the operation is queued rather than added to a graph. Without a context, where the work
 * will run is not known yet. */
static CUresult check(const struct sg_context *context, const struct access *access, bool now) {
    if (access->address % access->width != 0)
        return CUDA_ERROR_INVALID_VALUE;
    struct sg_place place = sg_place_at(access->address, access->width);
    if (place.where != SG_WHERE_HOST && place.where != SG_WHERE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    enum sg_memops taken = place.range->ops->memops;
    if (taken == SG_MEMOPS_REFUSED || (now && taken == SG_MEMOPS_IN_GRAPHS))
        return CUDA_ERROR_INVALID_VALUE;
    unsigned rights = access->write ? SG_WRITE : SG_READ;
    bool reachable = !context || sg_place_reachable(&place, context, rights);
    return reachable ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* The FLUSH flag and operation: the device attribute CAN_FLUSH_REMOTE_WRITES is 0. */
static CUresult wait_flags(struct access *access, unsigned flags) {
    if (flags & CU_STREAM_WAIT_VALUE_FLUSH)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (flags > CU_STREAM_WAIT_VALUE_NOR)
        return CUDA_ERROR_INVALID_VALUE;
    access->condition = flags;
    return CUDA_SUCCESS;
}

/* NO_MEMORY_BARRIER "is not supported in the v2 API". */
static CUresult write_flags(struct access *access, unsigned flags) {
    access->write = true;
    return flags == CU_STREAM_WRITE_VALUE_DEFAULT ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* The operation for an access; NULL when out of memory. */
static struct sg_op *make(const struct access *access) {
    struct sg_op *op = sg_op_new(access->write ? run_write : NULL);
    if (!op)
        return NULL;
    *access_of(op) = *access;
    op->little = true;
    if (!access->write) {
        op->ready = value_ready;
        op->finish = finish_wait;
    }
    return op;
}

static CUresult capture_batch(struct sg_stream *stream, CUstreamBatchMemOpParams *ops,
                              unsigned count) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP};
    params.memOp.count = count;
    params.memOp.paramArray = ops;
    return sg_capture_node(stream, &params);
}

static CUresult capture_one(struct sg_stream *stream, const struct access *access) {
    CUstreamBatchMemOpParams op = {0};
    if (access->write) {
        op.writeValue.operation =
            access->width == 4 ? CU_STREAM_MEM_OP_WRITE_VALUE_32 : CU_STREAM_MEM_OP_WRITE_VALUE_64;
        op.writeValue.address = access->address;
        op.writeValue.value64 = access->value;
    } else {
        op.waitValue.operation =
            access->width == 4 ? CU_STREAM_MEM_OP_WAIT_VALUE_32 : CU_STREAM_MEM_OP_WAIT_VALUE_64;
        op.waitValue.address = access->address;
        op.waitValue.value64 = access->value;
        op.waitValue.flags = access->condition;
    }
    return capture_batch(stream, &op, 1);
}

static CUresult submit_one(CUstream handle, struct access access, CUresult flags) {
    struct sg_stream *stream;
    CUresult result = sg_stream_find_valid(handle, &stream);
    CUdeviceptr wide;
    if (result == CUDA_SUCCESS && sg_context_has_32_bit_addresses(stream->context) &&
        access.address <= UINT32_MAX &&
        sg_address_32_find((CUdeviceptr_v1)access.address, &wide) == CUDA_SUCCESS)
        access.address = wide;
    if (result == CUDA_SUCCESS)
        result = flags;
    if (result == CUDA_SUCCESS)
        result = check(stream->context, &access, !stream->capture);
    if (result != CUDA_SUCCESS)
        return result;
    if (stream->capture)
        return capture_one(stream, &access);
    struct sg_op *op = make(&access);
    result = op ? sg_stream_submit(stream, op) : CUDA_ERROR_OUT_OF_MEMORY;
    sg_schedule_chance();
    return result;
}

static CUresult wait_value(CUstream stream, CUdeviceptr addr, uint64_t value, unsigned width,
                           unsigned flags) {
    struct access access = {.address = addr, .value = value, .width = width};
    CUresult valid = wait_flags(&access, flags);
    return submit_one(stream, access, valid);
}

static CUresult write_value(CUstream stream, CUdeviceptr addr, uint64_t value, unsigned width,
                            unsigned flags) {
    struct access access = {.address = addr, .value = value, .width = width};
    CUresult valid = write_flags(&access, flags);
    return submit_one(stream, access, valid);
}

CUresult sg_cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value,
                                   unsigned int flags) {
    return wait_value(stream, addr, value, 4, flags);
}

CUresult sg_cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value,
                                   unsigned int flags) {
    return wait_value(stream, addr, value, 8, flags);
}

CUresult sg_cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value,
                                    unsigned int flags) {
    return write_value(stream, addr, value, 4, flags);
}

CUresult sg_cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value,
                                    unsigned int flags) {
    return write_value(stream, addr, value, 8, flags);
}

/* ---- Batches -------------------------------------------------------------------------------- */

struct batch {
    struct sg_op *ops[BATCH_LIMIT];
    unsigned count;
};

static CUresult read_entry(const CUstreamBatchMemOpParams *params, struct access *access) {
    *access = (struct access){.width = 8};
    switch (params->operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        access->width = 4;
        /* fallthrough */
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        access->address = params->waitValue.address;
        access->value = access->width == 4 ? params->waitValue.value : params->waitValue.value64;
        return wait_flags(access, params->waitValue.flags);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        access->width = 4;
        /* fallthrough */
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        access->address = params->writeValue.address;
        access->value = access->width == 4 ? params->writeValue.value : params->writeValue.value64;
        return write_flags(access, params->writeValue.flags);
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
        return CUDA_ERROR_NOT_SUPPORTED;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult add_entry(const struct sg_context *context, struct batch *batch,
                          const CUstreamBatchMemOpParams *params) {
    if (params->operation == CU_STREAM_MEM_OP_BARRIER) {
        bool known = params->memoryBarrier.flags <= CU_STREAM_MEMORY_BARRIER_TYPE_GPU;
        return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    struct access access;
    CUresult result = read_entry(params, &access);
    if (result == CUDA_SUCCESS)
        result = check(context, &access, true);
    if (result != CUDA_SUCCESS)
        return result;
    struct sg_op *op = make(&access);
    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    batch->ops[batch->count++] = op;
    return CUDA_SUCCESS;
}

/* The first operation takes the default-stream tokens on behalf of all of them. */
static CUresult submit_batch(struct sg_stream *stream, struct batch *batch) {
    if (batch->count == 0)
        return CUDA_SUCCESS;
    CUresult result = sg_stream_submit(stream, batch->ops[0]);
    for (unsigned i = 1; i < batch->count; i++) {
        if (result == CUDA_SUCCESS)
            sg_stream_enqueue(stream, batch->ops[i]);
        else
            sg_op_free(batch->ops[i]);
    }
    if (stream->head)
        sg_workers_later();
    return result;
}

CUresult sg_memops_make(const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 *params, struct sg_op **first) {
    struct batch batch = {.count = 0};
    CUresult result = params->count < BATCH_LIMIT ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < params->count && result == CUDA_SUCCESS; i++)
        result = add_entry(NULL, &batch, &params->paramArray[i]);
    *first = NULL;
    for (unsigned i = batch.count; i-- > 0;) {
        if (result != CUDA_SUCCESS) {
            sg_op_free(batch.ops[i]);
            continue;
        }
        batch.ops[i]->next = *first;
        *first = batch.ops[i];
    }
    return result;
}

CUresult sg_cuStreamBatchMemOp_v2(CUstream stream, unsigned int count,
                                  CUstreamBatchMemOpParams *paramArray, unsigned int flags) {
    struct sg_stream *found;
    CUresult result = sg_stream_from_handle(stream, &found);
    if (result != CUDA_SUCCESS)
        return result;
    if (count >= BATCH_LIMIT || flags != 0 || (count > 0 && !paramArray))
        return CUDA_ERROR_INVALID_VALUE;
    if (found->capture)
        return capture_batch(found, paramArray, count);
    struct batch batch = {.count = 0};
    for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++)
        result = add_entry(found->context, &batch, &paramArray[i]);
    if (result == CUDA_SUCCESS) {
        result = submit_batch(found, &batch);
        sg_schedule_chance();
        return result;
    }
    for (unsigned i = 0; i < batch.count; i++)
        sg_op_free(batch.ops[i]);
    return result;
}

/* ---- The first version ---------------------------------------------------------------------- */

/* CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1 is 0: the kernel module supports them only when it
 * was loaded with them enabled. */
static CUresult first_version(CUstream handle) {
    struct sg_stream *stream;
    CUresult result = sg_stream_from_handle(handle, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    return stream->capture ? sg_capture_refuse(stream) : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult sg_cuStreamWaitValue32(CUstream stream, CUdeviceptr addr, cuuint32_t value,
                                unsigned int flags) {
    (void)addr, (void)value, (void)flags;
    return first_version(stream);
}

CUresult sg_cuStreamWaitValue64(CUstream stream, CUdeviceptr addr, cuuint64_t value,
                                unsigned int flags) {
    (void)addr, (void)value, (void)flags;
    return first_version(stream);
}

CUresult sg_cuStreamWriteValue32(CUstream stream, CUdeviceptr addr, cuuint32_t value,
                                 unsigned int flags) {
    (void)addr, (void)value, (void)flags;
    return first_version(stream);
}

CUresult sg_cuStreamWriteValue64(CUstream stream, CUdeviceptr addr, cuuint64_t value,
                                 unsigned int flags) {
    (void)addr, (void)value, (void)flags;
    return first_version(stream);
}

CUresult sg_cuStreamBatchMemOp(CUstream stream, unsigned int count,
                               CUstreamBatchMemOpParams *paramArray, unsigned int flags) {
    (void)paramArray, (void)flags;
    if (count >= BATCH_LIMIT)
        return CUDA_ERROR_INVALID_VALUE;
    return first_version(stream);
}
