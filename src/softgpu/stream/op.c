/* Operations and tokens. */
#include "softgpu/stream/schedule.h"

#include <stdlib.h>
#include <string.h>

const struct sg_stream_watch *sg_stream_watch;

struct sg_op *sg_op_new(CUresult (*run)(struct sg_op *)) {
    struct sg_op *op = calloc(1, sizeof *op);
    if (!op)
        return NULL;
    op->run = run;
    op->wait_room = sizeof op->own_waits / sizeof op->own_waits[0];
    return op;
}

static bool grow_waits(struct sg_op *op, unsigned room) {
    struct sg_token *waits = malloc(room * sizeof *waits);
    if (!waits)
        return false;
    if (op->wait_count > 0)
        memcpy(waits, op->waits, op->wait_count * sizeof *waits);
    if (op->waits != op->own_waits)
        free(op->waits);
    op->waits = waits;
    op->wait_room = room;
    return true;
}

bool sg_op_reserve_waits(struct sg_op *op, unsigned count) {
    unsigned room = op->wait_count + count;
    return room <= op->wait_room || grow_waits(op, room);
}

bool sg_op_wait_for(struct sg_op *op, struct sg_token token) {
    if (!token.stream || (sg_token_complete(token) && !sg_stream_watch))
        return true;
    if (!op->waits)
        op->waits = op->own_waits;
    if (op->wait_count == op->wait_room && !grow_waits(op, op->wait_room * 4))
        return false;
    sg_stream_ref(token.stream);
    op->waits[op->wait_count++] = token;
    return true;
}

void sg_op_free(struct sg_op *op) {
    for (unsigned i = 0; i < op->wait_count; i++)
        sg_token_release(&op->waits[i]);
    if (op->waits != op->own_waits)
        free(op->waits);
    free(op);
}

struct sg_token sg_stream_token(struct sg_stream *stream) {
    if (stream->completed == stream->submitted && !sg_stream_watch)
        return (struct sg_token){0};
    sg_stream_ref(stream);
    return (struct sg_token){.stream = stream, .number = stream->submitted};
}

void sg_token_reached(struct sg_token token) {
    if (sg_stream_watch && token.stream)
        sg_stream_watch->reached(token.stream, token.number);
}

bool sg_token_complete(struct sg_token token) {
    return !token.stream || token.stream->completed >= token.number;
}

void sg_token_release(struct sg_token *token) {
    struct sg_stream *stream = token->stream;
    *token = (struct sg_token){0};
    if (stream)
        sg_stream_unref(stream);
}
