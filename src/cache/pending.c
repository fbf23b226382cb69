/* Batches of freed blocks whose streams have not passed yet. */
#include "cache/cache.h"

#include "memory/waits.h"

/* After so many batches that have not passed, the younger ones are not asked. */
#define MOST_ASKED 4

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

int gm_pending_poll(struct gm_cache *cache) {
    int ended = 0;
    unsigned refused = 0;
    struct gm_block **at = &cache->pending;
    while (*at && refused < MOST_ASKED) {
        struct gm_block *chain = *at;
        if (!gm_waits_passed(&chain->buffer, 0)) {
            at = &chain->next_parcel;
            refused++;
            continue;
        }
        *at = chain->next_parcel;
        end_batch(cache, chain);
        ended = 1;
    }
    while (*at)
        at = &(*at)->next_parcel;
    cache->pending_end = at;
    return ended;
}

static struct gm_block *detach_first(struct gm_cache *cache) {
    pthread_mutex_lock(&cache->lock);
    struct gm_block *chain = cache->pending;
    if (chain) {
        cache->pending = chain->next_parcel;
        if (!cache->pending)
            cache->pending_end = &cache->pending;
    }
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
    /* Of these the driver does not say whether they have passed. */
    pthread_mutex_lock(&cache->lock);
    while ((chain = unknown) != NULL) {
        unknown = chain->next_parcel;
        gm_pending_add(cache, chain);
    }
    pthread_mutex_unlock(&cache->lock);
}
