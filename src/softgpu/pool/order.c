/*
 * Stream order: does one stream run after what another has queued? The answer comes from the
 * queues, in which a waiting operation names what it waits for, and from the events that streams
 * remember having waited for: on H200 a dependency still counts once it is over. The default-stream
 * rules count while they make something wait.
 */
#include "softgpu/pool/internal.h"

/* Bounds of the search, so that long queues do not make an allocation slow. */
#define STREAM_LIMIT    32
#define OPERATION_LIMIT 4096

struct search {
    struct {
        struct sg_stream *stream;
        uint64_t upto; /* operations looked at: those with number <= upto */
    } known[STREAM_LIMIT];
    unsigned count, done;
    unsigned operations;
};

static void add(struct search *search, struct sg_stream *stream, uint64_t upto) {
    if (upto <= stream->completed || sg_stream_joins_context(stream))
        return;
    for (unsigned i = search->done; i < search->count; i++) {
        if (search->known[i].stream == stream) {
            if (search->known[i].upto < upto)
                search->known[i].upto = upto;
            return;
        }
    }
    if (search->count < STREAM_LIMIT) {
        search->known[search->count].stream = stream;
        search->known[search->count++].upto = upto;
    }
}

static void add_blocking(struct search *search, struct sg_stream *list) {
    for (struct sg_stream *s = list; s; s = s->next)
        if (!(s->flags & CU_STREAM_NON_BLOCKING))
            add(search, s, s->submitted);
}

/* What the next operation of `stream` will be made to wait for (stream/queue.c). */
static void add_default_stream_rules(struct search *search, struct sg_stream *stream) {
    struct sg_context *context = stream->context;
    if (stream->flags & CU_STREAM_NON_BLOCKING)
        return;
    if (stream != context->legacy) {
        add(search, context->legacy, context->legacy->submitted);
        return;
    }
    add_blocking(search, context->streams);
    add_blocking(search, context->per_thread);
}

static void look_at(struct search *search, struct sg_stream *stream, uint64_t upto) {
    for (struct sg_op *op = stream->head; op && op->number <= upto; op = op->next) {
        if (++search->operations > OPERATION_LIMIT)
            return;
        for (unsigned i = 0; i < op->wait_count; i++)
            if (op->waits[i].stream)
                add(search, op->waits[i].stream, op->waits[i].number);
    }
}

/* What the search has found about one stream. */
static uint64_t found(const struct search *search, const struct sg_stream *earlier) {
    uint64_t most = 0;
    for (unsigned i = 0; i < search->count; i++) {
        const struct sg_stream *stream = search->known[i].stream;
        uint64_t upto = search->known[i].upto;
        uint64_t known = stream == earlier ? upto : sg_stream_followed(stream, upto, earlier->id);
        if (known > most)
            most = known;
    }
    return most;
}

static void look_from(struct search *search, struct sg_stream *later) {
    add(search, later, later->submitted);
    add_default_stream_rules(search, later);
    while (search->done < search->count) {
        struct sg_stream *stream = search->known[search->done].stream;
        uint64_t upto = search->known[search->done++].upto;
        look_at(search, stream, upto);
    }
}

static bool is_only_its_own(const struct sg_pool *pool, const struct sg_stream *stream) {
    return !pool->caches || (pool->caches->stream == stream && !pool->caches->next);
}

void sg_pool_order(struct sg_pool *pool, struct sg_stream *stream, bool follow) {
    struct search search = {.count = 0};
    follow = follow && !is_only_its_own(pool, stream);
    if (follow)
        look_from(&search, stream);
    for (struct sg_cache *cache = pool->caches; cache; cache = cache->next) {
        cache->usable = cache->stream == stream ? UINT64_MAX : 0;
        if (!follow || cache->usable > 0)
            continue;
        uint64_t searched = found(&search, cache->stream);
        uint64_t remembered = sg_stream_followed(stream, UINT64_MAX, cache->stream->id);
        cache->usable = searched > remembered ? searched : remembered;
    }
}

static bool any_blocking_work(const struct sg_stream *stream) {
    const struct sg_stream *legacy = stream->context->legacy;
    if (stream->flags & CU_STREAM_NON_BLOCKING)
        return false;
    if (stream == legacy)
        return legacy->busy_blocking > 0;
    return legacy->completed != legacy->submitted;
}

CUresult sg_free_point(struct sg_stream *stream, struct sg_token *token) {
    /* The free itself moves nothing, so it is an operation only where the default-stream rules make
     * it wait for more than its own stream. */
    if (any_blocking_work(stream)) {
        struct sg_op *op = sg_op_new(NULL);
        if (!op)
            return CUDA_ERROR_OUT_OF_MEMORY;
        CUresult result = sg_stream_submit(stream, op);
        if (result != CUDA_SUCCESS)
            return result;
    }
    *token = sg_stream_token(stream);
    return CUDA_SUCCESS;
}
