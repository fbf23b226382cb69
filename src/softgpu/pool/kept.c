/*
 * With SOFTGPU_CHECK=memory a freed block is kept for a while before it can be given out again, so
 * that whoever still uses it is found. Its memory counts as reserved by the pool until then.
 */
#include "softgpu/core/config.h"
#include "softgpu/memory/quarantine.h"
#include "softgpu/pool/internal.h"

static struct sg_block *oldest, *newest;
static size_t bytes;

bool sg_block_keeps(const struct sg_block *block) {
    return (sg_config()->checks & SG_CHECK_MEMORY) && !block->segment->pool->imported &&
           block->size <= SG_QUARANTINE_MOST / 2;
}

static void take_out(struct sg_block *block) {
    *(block->queue_previous ? &block->queue_previous->queue_next : &oldest) = block->queue_next;
    *(block->queue_next ? &block->queue_next->queue_previous : &newest) = block->queue_previous;
    block->queue_previous = block->queue_next = NULL;
    bytes -= block->size;
    block->segment->pool->kept--;
}

/* Behind another one, or (NULL) as the oldest. */
static void put_in(struct sg_block *block, struct sg_block *before) {
    block->queue_previous = before;
    block->queue_next = before ? before->queue_next : oldest;
    *(before ? &before->queue_next : &oldest) = block;
    *(block->queue_next ? &block->queue_next->queue_previous : &newest) = block;
    bytes += block->size;
    block->segment->pool->kept++;
}

/* It becomes what a free makes of a block. False: there is no memory to wait for its last user, and
 * it stays. */
static bool let_go(struct sg_block *block) {
    struct sg_token until = block->after;
    struct sg_block *before = block->queue_previous;
    take_out(block);
    bool pends = until.stream && sg_block_pend(block, until.stream, until.number);
    if (!pends && !sg_token_complete(until)) {
        put_in(block, before);
        return false;
    }
    block->after = (struct sg_token){0};
    if (!pends)
        sg_block_idle(block);
    sg_token_release(&until);
    return true;
}

void sg_block_keep(struct sg_block *block, struct sg_stream *stream, uint64_t number) {
    block->state = SG_BLOCK_KEPT;
    block->after = (struct sg_token){0};
    if (stream) {
        sg_stream_ref(stream);
        block->after = (struct sg_token){stream, number};
    }
    put_in(block, newest);
    while (bytes > SG_QUARANTINE_MOST && let_go(oldest))
        ;
}

bool sg_pool_let_go(const struct sg_pool *pool) {
    bool any = false;
    struct sg_block *next;
    for (struct sg_block *block = oldest; block; block = next) {
        next = block->queue_next;
        if (block->segment->pool != pool)
            continue;
        any |= let_go(block);
    }
    return any;
}
