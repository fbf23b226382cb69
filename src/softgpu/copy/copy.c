/* Moving bytes between two boxes, and when the calls return. */
#include "softgpu/copy/copy.h"

#include "softgpu/address/object.h"
#include "softgpu/array/tiles.h"
#include "softgpu/copy/word.h"
#include "softgpu/device/device.h"
#include "softgpu/stream/capture.h"
#include "softgpu/stream/schedule.h"

#include <stdlib.h>
#include <string.h>

/* Up to this size an asynchronous copy from pageable memory reads its source at the call and
 * returns, as an H200 does with 4 KiB after held work; above it, it waits for its turn. */
#define SNAPSHOT_LIMIT ((size_t)64 << 10)
/* Up to this size a copy costs a few microseconds: less than handing it to another thread. */
#define SHORT_COPY ((size_t)32 << 10)

/* Up to this size it does not cost much more. */
#define LITTLE_COPY ((size_t)256 << 10)

const struct sg_copy_watch *sg_copy_watch;

/* The data of an operation: a box without what only the call needs. */
struct move {
    CUdeviceptr to, from;
    size_t to_pitch, to_layer, from_pitch, from_layer;
    size_t width, height, depth;
    int to_device, from_device;
    bool through_host; /* one end is in host memory */
    void *snapshot;    /* owned; NULL, or what `from` points to */
    /* For arrays in pieces, whose `tiles` are referenced; else NULL. */
    const struct sg_tile_view *to_view, *from_view;
};
_Static_assert(sizeof(struct move) <= sizeof(((struct sg_op *)0)->data), "fits an operation");

static struct move *move_of(struct sg_op *op) {
    return (void *)op->data.bytes;
}

/* Releases what it owns. */
static void release(const struct move *move) {
    free(move->snapshot);
    if (move->to_view)
        sg_tiles_unref(move->to_view->tiles);
    if (move->from_view)
        sg_tiles_unref(move->from_view->tiles);
}

static size_t bytes_of(const struct sg_box *box) {
    return box->width * box->height * box->depth;
}

struct sg_box sg_box_linear(CUdeviceptr to, enum sg_role to_role, CUdeviceptr from,
                            enum sg_role from_role, size_t size) {
    return (struct sg_box){.to = {.at.address = to, .role = to_role},
                           .from = {.at.address = from, .role = from_role},
                           .width = size,
                           .height = 1,
                           .depth = 1};
}

/* ---- Checks at the call --------------------------------------------------------------------- */

/* Bytes from the first to the end of the last; false on overflow. */
static bool extent(const struct sg_side *side, const struct sg_box *box, size_t *bytes) {
    size_t rows, layers;
    return !__builtin_mul_overflow(box->height - 1, side->pitch, &rows) &&
           !__builtin_mul_overflow(box->depth - 1, side->layer, &layers) &&
           !__builtin_add_overflow(rows, layers, &rows) &&
           !__builtin_add_overflow(rows, box->width, bytes) &&
           !__builtin_add_overflow(side->at.address, *bytes, &rows);
}

static CUresult check_side(struct sg_side *side, const struct sg_box *box, unsigned rights) {
    struct sg_place *at = &side->at;
    size_t bytes;
    if (side->role == SG_ROLE_ARRAY)
        return CUDA_SUCCESS;
    if (!at->address || !extent(side, box, &bytes))
        return CUDA_ERROR_INVALID_VALUE;
    *at = sg_place_at(at->address, bytes);
    if (sg_place_in_host_pool(at)) {
        /* As recorded: typed copies refuse it, whatever access was granted; the other copies accept
         * it without any, as the CPU sees it. */
        if (side->role == SG_ROLE_DEVICE)
            return CUDA_ERROR_INVALID_VALUE;
        if (at->where == SG_WHERE_INVALID && side->role == SG_ROLE_ANY) {
            at->where = SG_WHERE_HOST;
            at->device = SG_COPY_BY_CPU;
        }
    }
    if (at->where == SG_WHERE_INVALID || !sg_place_allows(at, rights))
        return CUDA_ERROR_INVALID_VALUE;
    bool unknown = at->where == SG_WHERE_PAGEABLE && side->role == SG_ROLE_DEVICE;
    return unknown ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult sg_box_check(struct sg_box *box) {
    CUresult result = check_side(&box->to, box, SG_WRITE);
    return result == CUDA_SUCCESS ? check_side(&box->from, box, SG_READ) : result;
}

/* An unknown address is taken for device memory: the copy faults when it runs. */
static void look_at(struct sg_side *side, const struct sg_box *box) {
    struct sg_place *at = &side->at;
    size_t bytes;
    if (side->role == SG_ROLE_ARRAY)
        return;
    if (extent(side, box, &bytes))
        *at = sg_place_at(at->address, bytes);
    else
        *at = (struct sg_place){.address = at->address, .where = SG_WHERE_INVALID, .device = -1};
    if (at->where == SG_WHERE_INVALID)
        at->where = SG_WHERE_DEVICE;
}

void sg_box_look(struct sg_box *box) {
    look_at(&box->to, box);
    look_at(&box->from, box);
}

static bool on_host(const struct sg_side *side) {
    return side->at.where != SG_WHERE_DEVICE;
}

/* ---- Moving --------------------------------------------------------------------------------- */

/* A copy also reaches memory of another device without peer access: then as its owner sees it. */
unsigned char *sg_copy_bytes(int device, int owner, CUdeviceptr address, size_t want,
                             unsigned rights, size_t *span) {
    unsigned char *bytes = sg_translate(device, address, want, rights, span);
    if (!bytes && owner >= 0 && owner != device)
        bytes = sg_translate(owner, address, want, rights, span);
    /* The CPU's view needs no device's rights; memory freed meanwhile is absent from it. */
    if (!bytes && owner == SG_COPY_BY_CPU)
        bytes = sg_translate(device, address, want, 0, span);
    return bytes;
}

unsigned char *sg_store_bytes(int device, int owner, CUdeviceptr address, size_t want,
                              size_t *span) {
    unsigned char *bytes = sg_copy_bytes(device, owner, address, want, SG_WRITE, span);
    if (!bytes)
        bytes = sg_object_bytes(device, address, want, span);
    if (bytes && sg_copy_watch)
        sg_copy_watch->stored(address, *span);
    return bytes;
}

static bool may_lack(const struct sg_tile_view *view) {
    return view && !view->tiles->faults;
}

static void move_bytes(void *into, const void *out, size_t size) {
    if (sg_is_word(into, size) && sg_is_word(out, size))
        sg_word_store(into, size, sg_word_load(out, size));
    else
        memmove(into, out, size);
}

/* False when the device may not access an end. In a sparse array, stores to unmapped parts are
 * ignored, and loads read 0. */
static bool move_part(int device, const struct move *move, CUdeviceptr to, CUdeviceptr from,
                      size_t *size) {
    size_t span = *size, from_span = *size;
    void *into = move->to_view ? sg_tile_bytes(move->to_view, to, *size, &span)
                               : sg_store_bytes(device, move->to_device, to, *size, &span);
    const void *out = move->from_view ? sg_tile_bytes(move->from_view, from, *size, &from_span)
                                      : sg_copy_bytes(device, move->from_device, from, *size,
                                                      SG_READ, &from_span);
    if ((!into && !may_lack(move->to_view)) || (!out && !may_lack(move->from_view)))
        return false;
    *size = from_span < span ? from_span : span;
    if (into && out)
        move_bytes(into, out, *size);
    else if (into)
        memset(into, 0, *size);
    if (into && !move->to_view)
        sg_object_spread(to, into, *size);
    return true;
}

static bool move_row(int device, const struct move *move, CUdeviceptr to, CUdeviceptr from) {
    size_t left = move->width;
    while (left > 0) {
        size_t size = left;
        if (!move_part(device, move, to, from, &size))
            return false;
        to += size;
        from += size;
        left -= size;
    }
    if (sg_copy_watch)
        sg_copy_watch->moved(move->to_view ? 0 : to - move->width,
                             move->from_view ? 0 : from - move->width, move->width);
    return true;
}

/* On H200 a copy from device to host whose memory had disappeared left CUDA_ERROR_LAUNCH_FAILED, a
 * set CUDA_ERROR_ILLEGAL_ADDRESS. Copies to the device are assumed to behave like those from it. */
static CUresult fault_of(const struct move *move) {
    return move->through_host ? CUDA_ERROR_LAUNCH_FAILED : CUDA_ERROR_ILLEGAL_ADDRESS;
}

static CUresult run_move(struct sg_op *op) {
    const struct move *move = move_of(op);
    int device = op->stream->context->device;
    for (size_t z = 0; z < move->depth; z++)
        for (size_t y = 0; y < move->height; y++)
            if (!move_row(device, move, move->to + z * move->to_layer + y * move->to_pitch,
                          move->from + z * move->from_layer + y * move->from_pitch))
                return fault_of(move);
    return CUDA_SUCCESS;
}

static void finish_move(struct sg_op *op) {
    release(move_of(op));
}

/* Treats rows that follow each other without a gap as one row. */
static void join_rows(struct move *move) {
    if (move->to_pitch == move->width && move->from_pitch == move->width) {
        move->width *= move->height;
        move->height = 1;
    }
    if (move->height == 1 && move->to_layer == move->width && move->from_layer == move->width) {
        move->width *= move->depth;
        move->depth = 1;
    }
}

struct sg_op *sg_copy_op(const struct sg_box *box) {
    struct sg_op *op = sg_op_new(run_move);
    if (!op)
        return NULL;
    struct move *move = move_of(op);
    *move = (struct move){.to = box->to.at.address,
                          .from = box->from.at.address,
                          .to_pitch = box->to.pitch,
                          .to_layer = box->to.layer,
                          .from_pitch = box->from.pitch,
                          .from_layer = box->from.layer,
                          .width = box->width,
                          .height = box->height,
                          .depth = box->depth,
                          .to_device = box->to.at.device,
                          .from_device = box->from.at.device,
                          .through_host = on_host(&box->to) || on_host(&box->from),
                          .to_view = box->to.view,
                          .from_view = box->from.view};
    if (move->to_view)
        sg_tiles_ref(move->to_view->tiles);
    if (move->from_view)
        sg_tiles_ref(move->from_view->tiles);
    if (move->to_view || move->from_view)
        op->finish = finish_move;
    join_rows(move);
    op->little = bytes_of(box) <= LITTLE_COPY;
    return op;
}

/* Packs the source's rows into a buffer of ours. */
static bool take_snapshot(struct sg_op *op) {
    struct move *move = move_of(op);
    unsigned char *copy = malloc(move->width * move->height * move->depth);
    if (!copy)
        return false;
    unsigned char *row = copy;
    for (size_t z = 0; z < move->depth; z++)
        for (size_t y = 0; y < move->height; y++, row += move->width)
            memcpy(
                row,
                (const void *)(uintptr_t)(move->from + z * move->from_layer + y * move->from_pitch),
                move->width);
    move->snapshot = copy;
    move->from = (uintptr_t)copy;
    move->from_pitch = move->width;
    move->from_layer = move->width * move->height;
    op->finish = finish_move;
    return true;
}

/* ---- Capture --------------------------------------------------------------------------------- */

static void describe(const struct sg_side *side, CUmemorytype *type, const void **host,
                     CUdeviceptr *device) {
    if (side->role == SG_ROLE_HOST) {
        *type = CU_MEMORYTYPE_HOST;
        *host = (const void *)(uintptr_t)side->at.address;
    } else {
        *type = side->role == SG_ROLE_DEVICE ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_UNIFIED;
        *device = side->at.address;
    }
}

/* A copy of one row, as the node that it becomes. */
static CUDA_MEMCPY3D row_as_3d(const struct sg_box *box) {
    CUDA_MEMCPY3D copy = {.WidthInBytes = box->width, .Height = 1, .Depth = 1};
    const void *host = NULL;
    describe(&box->to, &copy.dstMemoryType, &host, &copy.dstDevice);
    copy.dstHost = (void *)(uintptr_t)host;
    describe(&box->from, &copy.srcMemoryType, &copy.srcHost, &copy.srcDevice);
    return copy;
}

static CUresult capture(struct sg_stream *stream, const struct sg_box *box) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};
    params.memcpy.copyCtx = SG_HANDLE_POINTER(CUcontext, stream->context->handle);
    params.memcpy.copyParams = box->copy ? *box->copy : row_as_3d(box);
    return sg_capture_node(stream, &params);
}

CUresult sg_copy_refuse_capture(CUstream handle) {
    struct sg_stream *stream;
    CUresult result = sg_stream_from_handle(handle, &stream);
    return result == CUDA_SUCCESS && stream->capture ? sg_capture_refuse(stream) : result;
}

/* ---- When a call returns -------------------------------------------------------------------- */

/* CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: synchronous calls on this memory wait for completion. */
static bool always_waits(const struct sg_side *side) {
    return side->at.range && side->at.range->sync_memops;
}

/* "API synchronization behavior": which copies are asynchronous to the host. */
static bool must_wait(const struct sg_box *box, enum sg_sync_mode mode) {
    const struct sg_side *to = &box->to, *from = &box->from;
    if (mode == SG_SYNC)
        return on_host(to) || on_host(from) || always_waits(to) || always_waits(from);
    bool host_to_host = on_host(to) && on_host(from);
    bool large = from->at.where == SG_WHERE_PAGEABLE && bytes_of(box) > SNAPSHOT_LIMIT;
    return host_to_host || to->at.where == SG_WHERE_PAGEABLE || large;
}

CUresult sg_copy_submit(struct sg_stream *stream, struct sg_op *op) {
    const struct move move = *move_of(op);
    CUresult result = sg_stream_submit(stream, op);
    if (result != CUDA_SUCCESS)
        release(&move);
    return result;
}

/* Queues it and waits: sg_stream_run for an operation that owns something. */
static CUresult run_to_end(struct sg_stream *stream, struct sg_op *op) {
    if (!op->finish)
        return sg_stream_run(stream, op);
    CUresult result = sg_copy_submit(stream, op);
    if (result != CUDA_SUCCESS)
        return result;
    sg_stream_ref(stream);
    struct sg_token token = sg_stream_token(stream);
    result = sg_token_wait(token);
    if (result == CUDA_SUCCESS)
        result = stream->context->sticky;
    sg_token_release(&token);
    sg_stream_unref(stream);
    return result;
}

/* Pool memory is copied by devices that have access to the pool; between named contexts, each end
 * by the device of its own context. */
static bool pool_open(const struct sg_context *context, const struct sg_side *side) {
    int device = side->named ? side->named->device : context->device;
    return sg_place_pool_open(&side->at, device);
}

bool sg_box_pools_open(const struct sg_context *context, const struct sg_box *box) {
    return pool_open(context, &box->to) && pool_open(context, &box->from);
}

struct sg_context *sg_copy_node_context(CUcontext handle) {
    struct sg_context *context;
    return sg_context_from_handle(handle, &context) == CUDA_SUCCESS ? context : NULL;
}

/* Between host memory and a VMM mapping, only devices with access to the mapping copy. */
static bool mapping_open(int device, const struct sg_box *box) {
    const struct sg_side *to = &box->to, *from = &box->from;
    if (to->role == SG_ROLE_ARRAY || from->role == SG_ROLE_ARRAY || on_host(to) == on_host(from))
        return true;
    return on_host(to) ? sg_place_mapped(&from->at, device, SG_READ)
                       : sg_place_mapped(&to->at, device, SG_WRITE);
}

/* The checks of a copy before it is queued in a stream of `context`. Access to pools is checked for
 * the current context, as recorded on H200, whichever device the stream is on. */
static CUresult check_for(const struct sg_context *context, struct sg_box *box) {
    const struct sg_context *current = sg_context_peek();
    CUresult result = sg_box_check(box);
    bool open = result == CUDA_SUCCESS && sg_box_pools_open(current ? current : context, box) &&
                mapping_open(context->device, box);
    return result == CUDA_SUCCESS && !open ? CUDA_ERROR_INVALID_VALUE : result;
}

/* "serialized with respect all pending and future asynchronous work in to the current device,
 * srcDevice, and dstDevice" (cudaMemcpyPeer, which is cuMemcpyPeer). */
static bool comes_after_both(struct sg_op *op, const struct sg_box *box) {
    return sg_op_wait_for_all(op, box->to.named) && sg_op_wait_for_all(op, box->from.named);
}

static bool still_waits(const struct sg_op *op) {
    for (unsigned i = 0; i < op->wait_count; i++)
        if (!sg_token_complete(op->waits[i]))
            return true;
    return false;
}

/* The host waits where the streams cannot be told to. */
static CUresult comes_before_both(struct sg_stream *stream, const struct sg_box *box) {
    struct sg_token token = sg_stream_token(stream);
    CUresult result = sg_context_wait_for(box->to.named, token);
    if (result == CUDA_SUCCESS && box->from.named != box->to.named)
        result = sg_context_wait_for(box->from.named, token);
    if (result != CUDA_SUCCESS)
        result = sg_token_wait(token);
    sg_token_release(&token);
    return result;
}

CUresult sg_copy(struct sg_box box, CUstream handle, enum sg_sync_mode mode) {
    struct sg_stream *stream;
    CUresult result = sg_stream_from_handle(handle, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (box.width == 0 || box.height == 0 || box.depth == 0)
        return stream->capture ? sg_capture_valid(stream) : CUDA_SUCCESS;
    /* The node checks the addresses: the graph's memory does not exist yet. */
    if (stream->capture)
        return mode == SG_ASYNC ? capture(stream, &box) : sg_capture_refuse(stream);
    result = check_for(stream->context, &box);
    if (result != CUDA_SUCCESS)
        return result;
    struct sg_op *op = sg_copy_op(&box);
    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    bool between = mode == SG_SYNC && box.to.named;
    if (between && !comes_after_both(op, &box)) {
        sg_copy_discard(op);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    bool little = mode == SG_SYNC || bytes_of(&box) <= SHORT_COPY;
    bool now = little && sg_stream_may_run_now(stream) && !still_waits(op);
    if (must_wait(&box, mode) || now)
        return run_to_end(stream, op);
    if (box.from.at.where == SG_WHERE_PAGEABLE && !take_snapshot(op)) {
        sg_copy_discard(op);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    result = sg_copy_submit(stream, op);
    if (result == CUDA_SUCCESS && between)
        result = comes_before_both(stream, &box);
    sg_schedule_chance();
    return result;
}

/* Mappings and pools of host memory may be accessible to devices only. */
static bool cpu_may_read(const struct sg_side *side) {
    const struct sg_place *at = &side->at;
    return at->where == SG_WHERE_PAGEABLE || (at->where == SG_WHERE_HOST && at->range->ops->pinned);
}

CUresult sg_copy_prepare(const struct sg_context *context, struct sg_box *box, bool now, bool *wait,
                         struct sg_op **op) {
    CUresult result = check_for(context, box);
    if (result != CUDA_SUCCESS)
        return result;
    *op = sg_copy_op(box);
    if (!*op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    bool snapshot = now && cpu_may_read(&box->from);
    if (snapshot && !take_snapshot(*op)) {
        sg_copy_discard(*op);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *wait |= now && !snapshot;
    return CUDA_SUCCESS;
}

void sg_copy_discard(struct sg_op *op) {
    release(move_of(op));
    sg_op_free(op);
}
