#include "wrap/ledger.h"

#include <stdlib.h>

#define FIRST_BUCKETS 32

/* The low bits of addresses are similar, and so are the high ones; the middle bits of a product are
 * not. */
static uint64_t scatter(CUdeviceptr pointer) {
    return (uint64_t)pointer * UINT64_C(0x9e3779b97f4a7c15);
}

static struct gm_ledger_shard *shard_of(struct gm_ledger *ledger, CUdeviceptr pointer) {
    return &ledger->shards[scatter(pointer) >> 60];
}

static struct gm_ledger_entry **bucket_of(const struct gm_ledger_shard *shard,
                                          CUdeviceptr pointer) {
    return &shard->buckets[scatter(pointer) >> 28 & (shard->bucket_count - 1)];
}

int gm_ledger_init(struct gm_ledger *ledger) {
    _Static_assert(GM_LEDGER_SHARDS == 16, "four bits choose a shard");
    for (unsigned i = 0; i < GM_LEDGER_SHARDS; i++) {
        struct gm_ledger_shard *shard = &ledger->shards[i];
        *shard = (struct gm_ledger_shard){.bucket_count = FIRST_BUCKETS};
        shard->buckets = calloc(FIRST_BUCKETS, sizeof(struct gm_ledger_entry *));
        if (!shard->buckets) {
            while (i--)
                free(ledger->shards[i].buckets);
            return -1;
        }
    }
    for (unsigned i = 0; i < GM_LEDGER_SHARDS; i++)
        pthread_mutex_init(&ledger->shards[i].lock, NULL);
    return 0;
}

void gm_ledger_destroy(struct gm_ledger *ledger) {
    for (unsigned i = 0; i < GM_LEDGER_SHARDS; i++) {
        pthread_mutex_destroy(&ledger->shards[i].lock);
        free(ledger->shards[i].buckets);
    }
}

/* Without memory for more buckets, chains grow longer. */
static void widen(struct gm_ledger_shard *shard) {
    struct gm_ledger_shard wide = {.bucket_count = 2 * shard->bucket_count};
    wide.buckets = calloc(wide.bucket_count, sizeof(struct gm_ledger_entry *));
    if (!wide.buckets)
        return;
    for (size_t i = 0; i < shard->bucket_count; i++) {
        struct gm_ledger_entry *next;
        for (struct gm_ledger_entry *entry = shard->buckets[i]; entry; entry = next) {
            next = entry->next;
            struct gm_ledger_entry **bucket = bucket_of(&wide, entry->pointer);
            entry->next = *bucket;
            *bucket = entry;
        }
    }
    free(shard->buckets);
    shard->buckets = wide.buckets;
    shard->bucket_count = wide.bucket_count;
}

void gm_ledger_add(struct gm_ledger *ledger, struct gm_ledger_entry *entry) {
    struct gm_ledger_shard *shard = shard_of(ledger, entry->pointer);
    pthread_mutex_lock(&shard->lock);
    if (shard->count >= shard->bucket_count)
        widen(shard);
    struct gm_ledger_entry **bucket = bucket_of(shard, entry->pointer);
    entry->next = *bucket;
    *bucket = entry;
    shard->count++;
    pthread_mutex_unlock(&shard->lock);
}

/* The link to the entry, or the end of its chain. The shard is locked. */
static struct gm_ledger_entry **place_of(const struct gm_ledger_shard *shard, CUdeviceptr pointer) {
    struct gm_ledger_entry **at = bucket_of(shard, pointer);
    while (*at && (*at)->pointer != pointer)
        at = &(*at)->next;
    return at;
}

struct gm_ledger_entry *gm_ledger_find(struct gm_ledger *ledger, CUdeviceptr pointer) {
    struct gm_ledger_shard *shard = shard_of(ledger, pointer);
    pthread_mutex_lock(&shard->lock);
    struct gm_ledger_entry *found = *place_of(shard, pointer);
    pthread_mutex_unlock(&shard->lock);
    return found;
}

struct gm_ledger_entry *gm_ledger_remove(struct gm_ledger *ledger, CUdeviceptr pointer) {
    struct gm_ledger_shard *shard = shard_of(ledger, pointer);
    pthread_mutex_lock(&shard->lock);
    struct gm_ledger_entry **at = place_of(shard, pointer), *found = *at;
    if (found) {
        *at = found->next;
        shard->count--;
    }
    pthread_mutex_unlock(&shard->lock);
    return found;
}

struct gm_ledger_entry *gm_ledger_move(struct gm_ledger *ledger, CUdeviceptr from, CUdeviceptr to) {
    struct gm_ledger_entry *entry = gm_ledger_remove(ledger, from);
    if (!entry)
        return NULL;
    entry->pointer = to;
    gm_ledger_add(ledger, entry);
    return entry;
}

static int visit_shard(const struct gm_ledger_shard *shard,
                       int (*fn)(struct gm_ledger_entry *entry, void *user), void *user) {
    int result = 0;
    for (size_t i = 0; result == 0 && i < shard->bucket_count; i++)
        for (struct gm_ledger_entry *entry = shard->buckets[i]; result == 0 && entry;
             entry = entry->next)
            result = fn(entry, user);
    return result;
}

int gm_ledger_visit(struct gm_ledger *ledger, int (*fn)(struct gm_ledger_entry *entry, void *user),
                    void *user) {
    int result = 0;
    for (unsigned i = 0; result == 0 && i < GM_LEDGER_SHARDS; i++) {
        struct gm_ledger_shard *shard = &ledger->shards[i];
        pthread_mutex_lock(&shard->lock);
        result = visit_shard(shard, fn, user);
        pthread_mutex_unlock(&shard->lock);
    }
    return result;
}

size_t gm_ledger_count(struct gm_ledger *ledger) {
    size_t count = 0;
    for (unsigned i = 0; i < GM_LEDGER_SHARDS; i++) {
        pthread_mutex_lock(&ledger->shards[i].lock);
        count += ledger->shards[i].count;
        pthread_mutex_unlock(&ledger->shards[i].lock);
    }
    return count;
}
