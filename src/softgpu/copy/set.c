/* cuMemset: a value of 1, 2 or 4 bytes over rows of memory. */
#include "softgpu/address/object.h"
#include "softgpu/copy/copy.h"
#include "softgpu/copy/word.h"
#include "softgpu/core/calls.h"
#include "softgpu/stream/capture.h"

#include <string.h>

/* Bytes that are filled once and then copied repeatedly: they remain in cache. */
#define BLOCK ((size_t)32 << 10)

/* Up to this size a set is faster done here than handed to another thread. */
#define SHORT_SET ((size_t)64 << 10)

/* Up to this size it is not much slower. */
#define LITTLE_SET ((size_t)512 << 10)

struct set {
    CUdeviceptr to;
    size_t pitch, width, height; /* bytes, bytes, rows */
    uint32_t value;
    unsigned element; /* bytes */
    int device;       /* of the memory */
};
_Static_assert(sizeof(struct set) <= sizeof(((struct sg_op *)0)->data), "fits an operation");

static bool one_byte_repeated(uint32_t pattern) {
    return pattern == (pattern & 0xff) * 0x01010101u;
}

/* `pattern` is four bytes in memory order. */
static void fill(unsigned char *bytes, size_t size, uint32_t pattern) {
    if (sg_is_word(bytes, size)) {
        sg_word_store(bytes, size, pattern | (uint64_t)pattern << 32);
        return;
    }
    if (one_byte_repeated(pattern)) {
        memset(bytes, (int)(pattern & 0xff), size);
        return;
    }
    size_t done = size < sizeof pattern ? size : sizeof pattern;
    memcpy(bytes, &pattern, done);
    while (done < size) {
        size_t next = done < BLOCK ? done : BLOCK;
        if (next > size - done)
            next = size - done;
        memcpy(bytes + done, bytes, next);
        done += next;
    }
}

static uint32_t pattern_of(const struct set *set) {
    if (set->element == 1)
        return (set->value & 0xff) * 0x01010101u;
    return set->element == 2 ? (set->value & 0xffff) * 0x00010001u : set->value;
}

/* Spans end at the ends of pages or allocations, which are multiples of 4 bytes from an aligned
 * start, so each begins with a whole pattern. */
static CUresult set_row(int device, const struct set *set, CUdeviceptr to, uint32_t pattern) {
    size_t left = set->width;
    while (left > 0) {
        size_t span;
        unsigned char *bytes = sg_store_bytes(device, set->device, to, left, &span);
        if (!bytes)
            return CUDA_ERROR_ILLEGAL_ADDRESS;
        fill(bytes, span, pattern);
        sg_object_spread(to, bytes, span);
        to += span;
        left -= span;
    }
    return CUDA_SUCCESS;
}

static CUresult run_set(struct sg_op *op) {
    const struct set *set = (const void *)op->data.bytes;
    uint32_t pattern = pattern_of(set);
    CUresult result = CUDA_SUCCESS;
    for (size_t y = 0; y < set->height && result == CUDA_SUCCESS; y++)
        result = set_row(op->stream->context->device, set, set->to + y * set->pitch, pattern);
    return result;
}

/* ---- Arguments ------------------------------------------------------------------------------ */

static bool fits_a_number(const struct set *set) {
    size_t rows, bytes;
    return !__builtin_mul_overflow(set->height - 1, set->pitch, &rows) &&
           !__builtin_add_overflow(rows, set->width, &bytes);
}

static bool is_aligned(const struct set *set) {
    return set->to % set->element == 0 &&
           (set->height <= 1 || (set->pitch % set->element == 0 && set->pitch >= set->width));
}

static CUresult check_shape(const struct set *set) {
    return fits_a_number(set) && is_aligned(set) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static bool may_be_set(const struct sg_place *place) {
    bool known = place->where == SG_WHERE_DEVICE || place->where == SG_WHERE_HOST;
    return known && sg_place_allows(place, SG_WRITE);
}

static CUresult check(struct set *set, struct sg_place *place) {
    CUresult result = check_shape(set);
    if (result != CUDA_SUCCESS)
        return result;
    *place = sg_place_at(set->to, (set->height - 1) * set->pitch + set->width);
    set->device = place->device;
    return may_be_set(place) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* "The synchronous memset functions are asynchronous with respect to the host except when the
 * target is pinned host memory". */
static bool must_wait(const struct sg_place *place, enum sg_sync_mode mode) {
    return mode == SG_SYNC && (place->where == SG_WHERE_HOST || place->range->sync_memops);
}

/* Takes the widths of the set in bytes. Rows that are adjacent without a gap become one row. */
static struct sg_op *make(struct set set) {
    struct sg_op *op = sg_op_new(run_set);
    if (!op)
        return NULL;
    if (set.pitch == set.width) {
        set.width *= set.height;
        set.height = 1;
    }
    *(struct set *)(void *)op->data.bytes = set;
    op->little = set.width * set.height <= LITTLE_SET;
    return op;
}

static CUresult capture(struct sg_stream *stream, const struct set *set) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMSET};
    params.memset.dst = set->to;
    params.memset.pitch = set->pitch;
    params.memset.value = set->value;
    params.memset.elementSize = set->element;
    params.memset.width = set->width / set->element;
    params.memset.height = set->height;
    params.memset.ctx = SG_HANDLE_POINTER(CUcontext, stream->context->handle);
    return sg_capture_node(stream, &params);
}

/* H200 refuses a set of mapped host memory that continues into another mapping. */
static bool crosses_host_mappings(const struct sg_place *place) {
    const struct sg_range *range = place->range;
    return range->ops->joins && range->device < 0 &&
           place->address + place->size > range->start + range->size;
}

static CUresult run_beyond(struct sg_op *op) {
    (void)op;
    return CUDA_ERROR_ILLEGAL_ADDRESS;
}

/*
 * An H200 counts in 64 bits: a set whose bytes or whose end wrap round is taken when what is left
 * lies in the allocation. Nothing left is nothing to do; else it faults when it runs. Refused here
 * are so many rows that it would never end, and queued ones, whose fault any later call would meet.
 */
static CUresult submit_wrapped(struct sg_stream *stream, const struct set *set,
                               enum sg_sync_mode mode) {
    size_t bytes = (set->height - 1) * set->pitch + set->width;
    bool wraps = set->to + bytes < set->to;
    struct sg_place place = sg_place_at(set->to, wraps || !bytes ? 1 : bytes);
    bool endless = set->height > set->to && set->pitch != set->width;
    if (!is_aligned(set) || endless || !may_be_set(&place))
        return CUDA_ERROR_INVALID_VALUE;
    if (!bytes)
        return CUDA_SUCCESS;
    if (mode == SG_ASYNC)
        return CUDA_ERROR_INVALID_VALUE;
    struct sg_op *op = sg_op_new(run_beyond);
    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    return must_wait(&place, mode) ? sg_stream_run(stream, op) : sg_stream_submit(stream, op);
}

static bool wraps_round(const struct set *set) {
    return !fits_a_number(set) || set->to + (set->height - 1) * set->pitch + set->width < set->to;
}

static CUresult submit(struct set set, CUstream handle, enum sg_sync_mode mode) {
    struct sg_stream *stream;
    CUresult result = sg_stream_from_handle(handle, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    /* Elements to bytes. The product may wrap: H200 accepts 2^62 words for an empty set. */
    set.width *= set.element;
    if (set.width == 0 || set.height == 0)
        return stream->capture ? sg_capture_valid(stream) : CUDA_SUCCESS;
    if (stream->capture)
        return mode == SG_ASYNC ? capture(stream, &set) : sg_capture_refuse(stream);
    if (wraps_round(&set))
        return submit_wrapped(stream, &set, mode);
    struct sg_place place;
    result = check(&set, &place);
    if (result != CUDA_SUCCESS)
        return result;
    if (!sg_place_reachable(&place, stream->context, SG_WRITE) || crosses_host_mappings(&place))
        return CUDA_ERROR_INVALID_VALUE;
    struct sg_op *op = make(set);
    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    bool little = mode == SG_SYNC || set.width * set.height <= SHORT_SET;
    if (must_wait(&place, mode) || (little && sg_stream_may_run_now(stream)))
        return sg_stream_run(stream, op);
    result = sg_stream_submit(stream, op);
    sg_schedule_chance();
    return result;
}

/* ---- Nodes of graphs ------------------------------------------------------------------------ */

static CUresult from_node(const CUDA_MEMSET_NODE_PARAMS_v2 *node, struct set *set) {
    if (!node || (node->elementSize != 1 && node->elementSize != 2 && node->elementSize != 4))
        return CUDA_ERROR_INVALID_VALUE;
    *set = (struct set){.to = node->dst,
                        .pitch = node->pitch,
                        .width = node->width * node->elementSize,
                        .height = node->height,
                        .value = node->value,
                        .element = node->elementSize,
                        .device = -1};
    return CUDA_SUCCESS;
}

static bool is_empty(const struct set *set) {
    return set->width == 0 || set->height == 0;
}

CUresult sg_set_check(const CUDA_MEMSET_NODE_PARAMS_v2 *node, sg_promised *promised) {
    struct set set;
    struct sg_place place;
    CUresult result = from_node(node, &set);
    if (result != CUDA_SUCCESS || promised(set.to))
        return result;
    result = is_empty(&set) ? CUDA_ERROR_INVALID_VALUE : check(&set, &place);
    const struct sg_context *context = sg_copy_node_context(node->ctx);
    bool closed = result == CUDA_SUCCESS && context && !sg_place_pool_open(&place, context->device);
    return closed ? CUDA_ERROR_INVALID_VALUE : result;
}

CUresult sg_set_check_shape(const CUDA_MEMSET_NODE_PARAMS_v2 *node) {
    struct set set;
    CUresult result = from_node(node, &set);
    return result == CUDA_SUCCESS ? check_shape(&set) : result;
}

CUresult sg_set_make(struct sg_context *context, const CUDA_MEMSET_NODE_PARAMS_v2 *node,
                     struct sg_op **op) {
    struct set set;
    (void)context;
    CUresult result = from_node(node, &set);
    if (result != CUDA_SUCCESS)
        return result;
    const struct sg_range *range = sg_range_find(set.to);
    set.device = range ? range->device : -1;
    *op = is_empty(&set) ? sg_op_new(NULL) : make(set);
    return *op ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* ---- Rows of functions.def ------------------------------------------------------------------ */

static struct set row(CUdeviceptr to, uint32_t value, unsigned element, size_t count) {
    return (struct set){.to = to, .value = value, .element = element, .width = count, .height = 1};
}

static struct set rows(CUdeviceptr to, size_t pitch, uint32_t value, unsigned element, size_t width,
                       size_t height) {
    return (struct set){.to = to,
                        .pitch = pitch,
                        .value = value,
                        .element = element,
                        .width = width,
                        .height = height};
}

CUresult sg_cuMemsetD8_v2(CUdeviceptr dstDevice, unsigned char uc, size_t N) {
    return submit(row(dstDevice, uc, 1, N), NULL, SG_SYNC);
}

CUresult sg_cuMemsetD16_v2(CUdeviceptr dstDevice, unsigned short us, size_t N) {
    return submit(row(dstDevice, us, 2, N), NULL, SG_SYNC);
}

CUresult sg_cuMemsetD32_v2(CUdeviceptr dstDevice, unsigned int ui, size_t N) {
    return submit(row(dstDevice, ui, 4, N), NULL, SG_SYNC);
}

CUresult sg_cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream) {
    return submit(row(dstDevice, uc, 1, N), hStream, SG_ASYNC);
}

CUresult sg_cuMemsetD16Async(CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream) {
    return submit(row(dstDevice, us, 2, N), hStream, SG_ASYNC);
}

CUresult sg_cuMemsetD32Async(CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream) {
    return submit(row(dstDevice, ui, 4, N), hStream, SG_ASYNC);
}

CUresult sg_cuMemsetD2D8_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width,
                            size_t Height) {
    return submit(rows(dstDevice, dstPitch, uc, 1, Width, Height), NULL, SG_SYNC);
}

CUresult sg_cuMemsetD2D16_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us,
                             size_t Width, size_t Height) {
    return submit(rows(dstDevice, dstPitch, us, 2, Width, Height), NULL, SG_SYNC);
}

CUresult sg_cuMemsetD2D32_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width,
                             size_t Height) {
    return submit(rows(dstDevice, dstPitch, ui, 4, Width, Height), NULL, SG_SYNC);
}

CUresult sg_cuMemsetD2D8Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc,
                              size_t Width, size_t Height, CUstream hStream) {
    return submit(rows(dstDevice, dstPitch, uc, 1, Width, Height), hStream, SG_ASYNC);
}

CUresult sg_cuMemsetD2D16Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us,
                               size_t Width, size_t Height, CUstream hStream) {
    return submit(rows(dstDevice, dstPitch, us, 2, Width, Height), hStream, SG_ASYNC);
}

CUresult sg_cuMemsetD2D32Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui,
                               size_t Width, size_t Height, CUstream hStream) {
    return submit(rows(dstDevice, dstPitch, ui, 4, Width, Height), hStream, SG_ASYNC);
}
