#include "softgpu/managed/move.h"

#include "softgpu/address/phys.h"
#include "softgpu/core/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Freed by whichever finishes last: the operation or the call that queued it. */
struct sg_moves {
    bool done, told;
    size_t count;
    struct sg_move list[];
};

struct sg_moves *sg_moves_new(size_t count) {
    size_t size;
    if (__builtin_mul_overflow(count, sizeof(struct sg_move), &size) ||
        __builtin_add_overflow(size, sizeof(struct sg_moves), &size))
        return NULL;
    return calloc(1, size);
}

CUresult sg_moves_add(struct sg_moves *moves, struct sg_move move) {
    move.pages = sg_managed_pages(move.address, move.size);
    if (!move.pages)
        return CUDA_ERROR_INVALID_VALUE;
    move.buffer_id = sg_range_find(move.address)->buffer_id;
    if (!sg_pages_promise(move.pages))
        return CUDA_ERROR_OUT_OF_MEMORY;
    moves->list[moves->count++] = move;
    return CUDA_SUCCESS;
}

void sg_moves_drop(struct sg_moves *moves) {
    for (size_t i = 0; i < moves->count; i++)
        sg_pages_unpromise(moves->list[i].pages);
    free(moves);
}

/* Whole pages only: a page shared with other bytes keeps its contents. */
static void discard(const struct sg_move *move) {
    CUdeviceptr start = (move->address + SG_MANAGED_PAGE - 1) & ~(CUdeviceptr)(SG_MANAGED_PAGE - 1);
    CUdeviceptr end = (move->address + move->size) & ~(CUdeviceptr)(SG_MANAGED_PAGE - 1);
    if (end <= start)
        return;
    unsigned char *bytes = (unsigned char *)(uintptr_t)start;
    size_t size = (size_t)(end - start);
    if (sg_config()->poison)
        memset(bytes, SG_POISON_FREED, size);
    else if (madvise(bytes, size, MADV_REMOVE) != 0)
        sg_log(SG_LOG_WARNING, "discarding %zu bytes: %s", size, strerror(errno));
}

/* In stream order, with the lock: another thread may have freed the range meanwhile. A poisoned
 * context does no more work. */
static void finish(struct sg_op *op) {
    struct sg_moves *moves = (void *)(uintptr_t)op->data.words[0];
    bool works = op->stream->context->sticky == CUDA_SUCCESS;
    for (size_t i = 0; works && i < moves->count; i++) {
        const struct sg_move *move = &moves->list[i];
        const struct sg_range *range = sg_range_find(move->address);
        if (move->discard && range && range->buffer_id == move->buffer_id)
            discard(move);
    }
    moves->done = true;
    if (moves->told)
        free(moves);
}

static void prefetched(struct sg_page_facts *facts, const void *user) {
    facts->prefetched = *(const CUmemLocation *)user;
}

/* The last requested location is reported at once, while the operation is still queued. */
static void tell(const struct sg_moves *moves) {
    for (size_t i = 0; i < moves->count; i++) {
        const struct sg_move *move = &moves->list[i];
        if (move->to.type == CU_MEM_LOCATION_TYPE_INVALID)
            sg_pages_unpromise(move->pages);
        else
            sg_pages_edit(move->pages, move->address, move->size, prefetched, &move->to);
    }
}

CUresult sg_moves_submit(struct sg_moves *moves, struct sg_stream *stream) {
    struct sg_op *op = sg_op_new(NULL);
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    if (op) {
        op->data.words[0] = (uintptr_t)moves;
        op->finish = finish;
        result = sg_stream_submit(stream, op);
    }
    if (result != CUDA_SUCCESS) {
        sg_moves_drop(moves);
        return result;
    }
    tell(moves);
    moves->told = true;
    if (moves->done)
        free(moves);
    sg_schedule_chance();
    return CUDA_SUCCESS;
}
