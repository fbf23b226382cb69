/* What a launch does to graph memory: checked when it is made, executed in its order. */
#include "softgpu/graph/graph_memory.h"
#include "softgpu/graph/node_type.h"

#include <stdlib.h>

static uint64_t launches, generations;

static struct sg_graph_block *block_of(const struct sg_step *step) {
    CUdeviceptr address = step->node ? sg_params_memory(&step->node->params) : 0;
    return address ? sg_graph_block_at(address) : NULL;
}

static bool allocates(const struct sg_step *step) {
    return sg_type_of(&step->node->params)->allocates;
}

/* The blocks that a launch uses, one for each step: the exec's nodes may have been updated before
 * the launch is over. */
struct sg_graph_memory_uses {
    size_t count;
    struct sg_graph_block *blocks[]; /* referenced */
};

/*
 * A later step of a lane may reuse what an earlier step of the same lane frees: the lane's order
 * keeps them apart. `freed` is the lane's list.
 */
static bool take_freed(struct sg_graph_block *block, struct sg_graph_run **freed) {
    for (struct sg_graph_run **link = freed; *link; link = &(*link)->next) {
        struct sg_graph_run *run = *link;
        if (run->pages * SG_PAGE != block->size || run->chunk->phys->device != block->device)
            continue;
        *link = run->next;
        run->refs++;
        block->run = run;
        return true;
    }
    return false;
}

/* One use for each step, so that memory taken for the launch lasts as long as it does. */
static CUresult begin_step(const struct sg_step *step, struct sg_graph_block *block,
                           struct sg_graph_run **freed, bool automatic) {
    if (block->launch != launches) {
        block->launch = launches;
        block->will_be_left = block->left;
    }
    bool possible = allocates(step) ? automatic || !block->will_be_left : block->will_be_left;
    if (!possible)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = CUDA_SUCCESS;
    if (!block->run && !take_freed(block, freed))
        result = sg_graph_block_fill(block);
    if (result != CUDA_SUCCESS)
        return result;
    block->will_be_left = allocates(step);
    block->uses++;
    if (!allocates(step)) {
        block->run->next = *freed;
        *freed = block->run;
    }
    return CUDA_SUCCESS;
}

static CUresult begin_steps(struct sg_exec *exec, struct sg_graph_run **freed, bool automatic,
                            struct sg_graph_memory_uses *uses) {
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < exec->plan.count && result == CUDA_SUCCESS; i++) {
        const struct sg_step *step = &exec->plan.steps[i];
        struct sg_graph_block *block = block_of(step);
        if (!block)
            continue;
        result = begin_step(step, block, &freed[step->lane], automatic);
        if (result == CUDA_SUCCESS) {
            block->refs++;
            uses->blocks[uses->count++] = block;
        }
    }
    return result;
}

CUresult sg_graph_memory_begin(struct sg_exec *exec, bool automatic,
                               struct sg_graph_memory_uses **out) {
    launches++;
    *out = NULL;
    if (exec->memory_nodes == 0)
        return CUDA_SUCCESS;
    struct sg_graph_run **freed = calloc(exec->plan.lane_count + 1, sizeof *freed);
    struct sg_graph_memory_uses *uses =
        calloc(1, sizeof *uses + exec->memory_nodes * sizeof *uses->blocks);
    CUresult result =
        freed && uses ? begin_steps(exec, freed, automatic, uses) : CUDA_ERROR_OUT_OF_MEMORY;
    free(freed);
    if (result == CUDA_SUCCESS)
        *out = uses;
    else
        sg_graph_memory_end(uses);
    return result;
}

void sg_graph_memory_end(struct sg_graph_memory_uses *uses) {
    for (size_t i = 0; uses && i < uses->count; i++) {
        sg_graph_block_unuse(uses->blocks[i]);
        sg_graph_block_unref(uses->blocks[i]);
    }
    free(uses);
}

/* Once for each block: later steps find it done. */
static void commit_block(struct sg_graph_block *block) {
    if (block->left && !block->will_be_left) {
        sg_graph_block_hide(block);
        block->uses--; /* the launch has its own */
        sg_graph_block_unref(block);
    } else if (!block->left && block->will_be_left) {
        block->uses++;
        sg_graph_block_show(block);
    }
}

void sg_graph_memory_commit(const struct sg_graph_memory_uses *uses) {
    for (size_t i = 0; uses && i < uses->count; i++)
        commit_block(uses->blocks[i]);
}

/*
 * The operation's words are the block, which it references, and the allocation. In a poisoned
 * context nothing is waited for, so the launch may already be over and its memory returned.
 */
static void finish_allocate(struct sg_op *op) {
    struct sg_graph_block *block = (struct sg_graph_block *)(uintptr_t)op->data.words[0];
    if (block->run)
        sg_graph_block_map(block, op->data.words[1]);
    sg_graph_block_unref(block);
}

static void finish_free(struct sg_op *op) {
    struct sg_graph_block *block = (struct sg_graph_block *)(uintptr_t)op->data.words[0];
    sg_graph_block_unmap(block, op->data.words[1]);
    sg_graph_block_unref(block);
}

static void take_effect(struct sg_op *op, struct sg_graph_block *block,
                        void (*finish)(struct sg_op *)) {
    block->refs++;
    op->finish = finish;
    op->data.words[0] = (uintptr_t)block;
    op->data.words[1] = block->generation;
}

void sg_graph_memory_step_allocate(CUdeviceptr address, struct sg_op *op) {
    struct sg_graph_block *block = sg_graph_block_at(address);
    block->generation = ++generations;
    take_effect(op, block, finish_allocate);
}

void sg_graph_memory_step_free(CUdeviceptr address, struct sg_op *op) {
    take_effect(op, sg_graph_block_at(address), finish_free);
}

/* Takes what a launch would take, and returns it to the pool. */
CUresult sg_graph_memory_upload(struct sg_exec *exec) {
    CUresult result = CUDA_SUCCESS;
    size_t filled = 0;
    while (filled < exec->plan.count && exec->memory_nodes > 0 && result == CUDA_SUCCESS) {
        struct sg_graph_block *block = block_of(&exec->plan.steps[filled]);
        if (block && !block->run)
            result = sg_graph_block_fill(block);
        if (result != CUDA_SUCCESS)
            break;
        if (block)
            block->uses++;
        filled++;
    }
    while (filled-- > 0) {
        struct sg_graph_block *block = block_of(&exec->plan.steps[filled]);
        if (block)
            sg_graph_block_unuse(block);
    }
    return result;
}
