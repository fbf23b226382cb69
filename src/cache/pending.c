/* Batches of freed blocks whose streams have not passed yet. */
#include "cache/cache.h"

#include "memory/core/stream_waits.h"

/* Limits on the busy streams found, and on the batches examined, per call. Examined batches go to
 * the end, so that a stalled stream does not hide those after it. */
#define MOST_ASKED 4
#define MOST_SEEN  64

/* The streams of the first block are those of the whole batch. */
void gm_pending_add(struct gm_cache *cache, struct gm_block *chain) {
    chain->next_parcel = NULL;
    *cache->pending_end = chain;
    cache->pending_end = &chain->next_parcel;
}

static void end_batch(struct gm_cache *cache, struct gm_block *chain) {
    struct gm_block *next;
    for (struct gm_block *block = chain; block; block = next) {
        next = block->next;
        gm_block_end(cache, block);
    }
}

static struct gm_block *take_first(struct gm_cache *cache) {
    struct gm_block *chain = cache->pending;
    if (chain) {
        cache->pending = chain->next_parcel;
        if (!cache->pending)
            cache->pending_end = &cache->pending;
    }
    return chain;
}

/* The streams that were found busy in one poll. */
struct busy {
    CUstream streams[MOST_ASKED];
    unsigned count;
};

static int is_behind(const struct busy *busy, const gpumem_buffer *buffer) {
    for (size_t i = 0; i < buffer->wait_count; i++)
        for (unsigned j = 0; j < busy->count; j++)
            if (buffer->waits[i].state != GM_WAIT_PASSED &&
                buffer->waits[i].stream == busy->streams[j])
                return 1;
    return 0;
}

static void note_busy(struct busy *busy, const gpumem_buffer *buffer) {
    size_t i = 0;
    while (buffer->waits[i].state == GM_WAIT_PASSED)
        i++;
    busy->streams[busy->count++] = buffer->waits[i].stream;
}

int gm_pending_poll(struct gm_cache *cache, struct gm_late *late) {
    int ended = 0;
    if (!cache->pending || gm_late_enter(late) != GPUMEM_OK)
        return 0;
    struct busy busy = {.count = 0};
    struct gm_block *again = NULL;
    for (unsigned seen = 0; seen < MOST_SEEN && busy.count < MOST_ASKED; seen++) {
        struct gm_block *chain = cache->pending == again ? NULL : take_first(cache);
        if (!chain)
            break;
        int behind = is_behind(&busy, &chain->buffer);
        if (!behind && gm_waits_passed(&chain->buffer, 0)) {
            end_batch(cache, chain);
            ended = 1;
            continue;
        }
        if (!behind)
            note_busy(&busy, &chain->buffer);
        gm_pending_add(cache, chain);
        if (!again)
            again = chain;
    }
    return ended;
}

void gm_pending_end_stream(struct gm_cache *cache, CUstream stream) {
    for (struct gm_block *batch = cache->pending; batch; batch = batch->next_parcel) {
        gpumem_buffer *buffer = &batch->buffer;
        for (size_t i = 0; i < buffer->wait_count; i++) {
            struct gm_wait *wait = &buffer->waits[i];
            if (wait->stream == stream &&
                (wait->state == GM_WAIT_NAMED || wait->state == GM_WAIT_CAPTURING))
                gm_wait_end(cache->device, wait);
        }
    }
}

static struct gm_block *detach_first(struct gm_cache *cache) {
    pthread_mutex_lock(&cache->lock);
    struct gm_block *chain = take_first(cache);
    pthread_mutex_unlock(&cache->lock);
    return chain;
}

void gm_pending_wait(struct gm_cache *cache) {
    struct gm_block *chain, *unknown = NULL;
    while ((chain = detach_first(cache)) != NULL) {
        int passed = gm_waits_passed(&chain->buffer, 1);
        pthread_mutex_lock(&cache->lock);
        if (passed) {
            end_batch(cache, chain);
        } else {
            chain->next_parcel = unknown;
            unknown = chain;
        }
        pthread_mutex_unlock(&cache->lock);
    }
    /* The driver does not report whether these have passed. */
    pthread_mutex_lock(&cache->lock);
    while ((chain = unknown) != NULL) {
        unknown = chain->next_parcel;
        gm_pending_add(cache, chain);
    }
    pthread_mutex_unlock(&cache->lock);
}
