/*
 * WHILE nodes whose condition is true. Nothing here can change a condition, so such a node runs
 * until its context ends: its body again and again, with a pause after each iteration during which
 * other work has the threads.
 */
#include "softgpu/graph/exec.h"

#include "base/growing_array.h"
#include "softgpu/graph/node_type.h"

#include <stdlib.h>

#define PAUSE 1000000u /* ns between two runs of a body */

/* The body's operations in order, made once and run each time; they are never queued. */
struct loop {
    struct item {
        struct sg_op *op;
        const struct sg_node_type *type;
    } * items;
    size_t count, room;
    size_t again; /* where the second and later runs begin; the inner loop there never ends */
    bool endless; /* there is such an inner loop: nothing after it is reached */
    size_t at;    /* the item that runs next, and of a batch the operation in it */
    struct sg_op *work;
    uint64_t due;
};

static struct loop *loop_of(struct sg_op *op) {
    return (struct loop *)(uintptr_t)op->data.words[0];
}

static void free_loop(struct loop *loop) {
    for (size_t i = 0; i < loop->count; i++)
        sg_work_discard(loop->items[i].type, loop->items[i].op);
    free(loop->items);
    free(loop);
}

/* ---- Making --------------------------------------------------------------------------------- */

static CUresult add_part(struct loop *loop, struct sg_context *context,
                         const struct sg_exec_part *part);

static CUresult add_work(struct loop *loop, struct sg_context *context,
                         const struct sg_exec_node *node) {
    if (!GM_RESERVE(loop->items, loop->room, loop->count + 1))
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct sg_op *op;
    CUresult result = sg_work_make(context, node, &op);
    if (result == CUDA_SUCCESS)
        loop->items[loop->count++] = (struct item){op, sg_type_of(&node->params)};
    return result;
}

static CUresult add_inner_loop(struct loop *loop, struct sg_context *context,
                               const struct sg_exec_node *node) {
    loop->again = loop->count;
    CUresult result = add_part(loop, context, node->parts[0]);
    loop->endless = true;
    return result;
}

static CUresult add_node(struct loop *loop, struct sg_context *context,
                         const struct sg_exec_node *node) {
    const struct sg_node_type *type = sg_type_of(&node->params);
    struct sg_exec_part *inner = NULL;
    if (!node->enabled)
        return CUDA_SUCCESS;
    if (type->joins && type->joins(node, &inner))
        return inner ? add_part(loop, context, inner) : CUDA_SUCCESS;
    if (node->part_count > 0) /* it does not join: its condition is true */
        return add_inner_loop(loop, context, node);
    return add_work(loop, context, node);
}

/* Adds nodes whose dependencies have all been added, until all are in. */
static CUresult add_in_order(struct loop *loop, struct sg_context *context,
                             const struct sg_exec_part *part, bool *in) {
    CUresult result = CUDA_SUCCESS;
    for (bool moved = true; moved && result == CUDA_SUCCESS;) {
        moved = false;
        for (size_t i = 0; i < part->count && result == CUDA_SUCCESS && !loop->endless; i++) {
            const struct sg_exec_node *node = &part->nodes[i];
            bool ready = !in[i];
            for (size_t k = 0; k < node->from_count; k++)
                ready = ready && in[node->from[k]];
            if (!ready)
                continue;
            in[i] = moved = true;
            result = add_node(loop, context, node);
        }
    }
    return result;
}

static CUresult add_part(struct loop *loop, struct sg_context *context,
                         const struct sg_exec_part *part) {
    bool *in = calloc(part->count + 1, sizeof *in);
    if (!in)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = add_in_order(loop, context, part, in);
    free(in);
    return result;
}

/* ---- Running -------------------------------------------------------------------------------- */

/* An operation that runs in slices, a kernel, has had one, and may want more. */
static bool wants_more(struct sg_op *work, const struct sg_node_type *type) {
    if (!work->again)
        return false;
    sg_lock();
    bool more = work->again(work);
    if (!more && type->rewind)
        type->rewind(work);
    sg_unlock();
    return more;
}

/* Until the end of the body, or of a kernel's slice: then others have a turn. */
static CUresult run_body(struct sg_op *op) {
    struct loop *loop = loop_of(op);
    for (; loop->at < loop->count; loop->at++, loop->work = NULL) {
        const struct item *item = &loop->items[loop->at];
        loop->work = loop->work ? loop->work : item->op; /* a batch has several */
        for (; loop->work; loop->work = loop->work->next) {
            loop->work->stream = op->stream;
            CUresult result = loop->work->run ? loop->work->run(loop->work) : CUDA_SUCCESS;
            if (result != CUDA_SUCCESS)
                return result;
            bool more = wants_more(loop->work, item->type);
            op->spins = more && loop->work->spins;
            if (more)
                return CUDA_SUCCESS;
        }
    }
    return CUDA_SUCCESS;
}

static bool is_due(struct sg_op *op) {
    return !op->stream->context->alive || sg_now() >= loop_of(op)->due;
}

static bool goes_on(struct sg_op *op) {
    struct loop *loop = loop_of(op);
    if (loop->at == loop->count) {
        loop->at = loop->again;
        loop->due = sg_now() + PAUSE;
    }
    return op->stream->context->alive && !atomic_load(&sg_exiting);
}

static void finish_loop(struct sg_op *op) {
    free_loop(loop_of(op));
}

CUresult sg_loop_make(struct sg_context *context, const struct sg_exec_node *node,
                      struct sg_op **out) {
    struct loop *loop = calloc(1, sizeof *loop);
    struct sg_op *op = sg_op_new(run_body);
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    if (loop && op)
        result = add_part(loop, context, node->parts[0]);
    if (result != CUDA_SUCCESS) {
        if (loop)
            free_loop(loop);
        if (op)
            sg_op_free(op);
        return result;
    }
    op->ready = is_due;
    op->again = goes_on;
    op->finish = finish_loop;
    op->data.words[0] = (uintptr_t)loop;
    *out = op;
    return CUDA_SUCCESS;
}

void sg_loop_discard(struct sg_op *op) {
    free_loop(loop_of(op));
    sg_op_free(op);
}
