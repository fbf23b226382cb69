/* Waiting, and helping meanwhile. */
#include "softgpu/stream/schedule.h"

#include "base/growing_array.h"

#include <stdlib.h>
#include <string.h>

static pthread_cond_t progress = PTHREAD_COND_INITIALIZER;
unsigned sg_waiters;

void sg_progress_wait(uint64_t nanoseconds) {
    sg_waiters++;
    sg_wait(&progress, nanoseconds);
    sg_waiters--;
}

void sg_progress_announce(void) {
    if (sg_waiters > 0)
        pthread_cond_broadcast(&progress);
}

uint64_t sg_poll_interval(uint64_t since) {
    uint64_t waited = sg_now() - since;
    if (waited < 2000000)
        return 50000;
    return waited < 100000000 ? 200000 : 1000000;
}

/*
 * A kernel that only looks at what others write may wait for any other: all have their turns then.
 * Under the random schedule half of the steps run any startable operation, wanted or not.
 */
static struct sg_op *next_step(struct sg_stream *stream, struct sg_walk *walk) {
    sg_walk_from(stream, walk);
    if (walk->start && walk->start->spins)
        return sg_schedule_turn();
    if (sg_schedule_kind() != SG_SCHEDULE_RANDOM || sg_schedule_draw(2) == 0)
        return walk->start;
    struct sg_op *any = sg_schedule_any();
    return any ? any : walk->start;
}

void sg_stream_wait_number(struct sg_stream *stream, uint64_t number) {
    uint64_t polled_since = 0;
    while (stream->completed < number && !atomic_load(&sg_exiting)) {
        struct sg_walk walk;
        struct sg_op *op = next_step(stream, &walk);
        if (op) {
            sg_op_execute(op);
            polled_since = 0;
            continue;
        }
        if (walk.host) {
            walk.host->wanted = true;
            sg_workers_now();
        }
        if (walk.polls && polled_since == 0)
            polled_since = sg_now();
        sg_progress_wait(walk.polls ? sg_poll_interval(polled_since) : 0);
    }
}

CUresult sg_token_wait(struct sg_token token) {
    struct sg_stream *stream = token.stream;
    if (!stream)
        return CUDA_SUCCESS;
    sg_stream_ref(stream);
    sg_stream_wait_number(stream, token.number);
    bool done = stream->completed >= token.number;
    if (done)
        sg_token_reached(token);
    CUresult result = done ? stream->context->sticky : CUDA_ERROR_DEINITIALIZED;
    sg_stream_unref(stream);
    return result;
}

CUresult sg_stream_run(struct sg_stream *stream, struct sg_op *op) {
    if (!sg_default_stream_waits(stream, op)) {
        sg_op_free(op);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    sg_stream_enqueue(stream, op);
    sg_stream_ref(stream);
    struct sg_token token = {stream, stream->submitted};
    /* This thread does the work itself; a worker is notified only if it cannot. */
    CUresult result = sg_token_wait(token);
    if (result == CUDA_SUCCESS)
        result = stream->context->sticky;
    sg_token_release(&token);
    return result;
}

/* ---- All streams of a context --------------------------------------------------------------- */

struct tokens {
    struct sg_token *list;
    size_t count, room;
    struct sg_token few[16];
};

static bool make_room(struct tokens *tokens) {
    struct sg_token *list = NULL;
    size_t room = 0;
    if (tokens->list != tokens->few)
        return GM_RESERVE(tokens->list, tokens->room, tokens->count + 1);
    if (!GM_RESERVE(list, room, 2 * tokens->room))
        return false;
    memcpy(list, tokens->few, sizeof tokens->few);
    tokens->list = list;
    tokens->room = room;
    return true;
}

static bool add_tokens(struct tokens *tokens, struct sg_stream *list) {
    for (struct sg_stream *s = list; s; s = s->next) {
        if (s->completed == s->submitted)
            continue;
        if (tokens->count == tokens->room && !make_room(tokens))
            return false;
        tokens->list[tokens->count++] = sg_stream_token(s);
    }
    return true;
}

static bool add_streams(struct tokens *tokens, struct sg_context *context) {
    return add_tokens(tokens, context->streams) && add_tokens(tokens, context->per_thread) &&
           add_tokens(tokens, context->legacy) && add_tokens(tokens, context->legacy->gather);
}

CUresult sg_context_wait_to_free(struct sg_context *context) {
    sg_context_ref(context);
    context->freeing++;
    CUresult result = sg_context_wait(context);
    context->freeing--;
    sg_context_unref(context);
    return result;
}

CUresult sg_context_wait(struct sg_context *context) {
    struct tokens tokens = {.room = sizeof tokens.few / sizeof tokens.few[0]};
    tokens.list = tokens.few;
    CUresult result = CUDA_SUCCESS;
    uint64_t serial = sg_submissions;
    sg_context_ref(context);
    bool all = add_streams(&tokens, context);
    for (struct sg_context *part = context->parts; part && all; part = part->next_part)
        all = add_streams(&tokens, part);
    if (!all)
        result = CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < tokens.count; i++) {
        if (result == CUDA_SUCCESS)
            result = sg_token_wait(tokens.list[i]);
        sg_token_release(&tokens.list[i]);
    }
    if (tokens.list != tokens.few)
        free(tokens.list);
    if (result == CUDA_SUCCESS)
        result = context->sticky;
    if (sg_stream_watch && all)
        sg_stream_watch->reached_all(serial);
    sg_context_unref(context);
    return result;
}
