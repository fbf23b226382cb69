/*
 * What a wrapper knows of each allocation that is alive, found by its address. The allocation
 * itself passes through a wrapper unchanged, so there is no other place for it.
 *
 * Thread-safe. Entries belong to the caller, who alone removes what it added; one that was found
 * stays until then. Where a resource hands out one address twice at a time, either is found.
 */
#ifndef GM_WRAP_LEDGER_H
#define GM_WRAP_LEDGER_H

#include <gpumem/types.h>
#include <pthread.h>

#define GM_LEDGER_SHARDS 16

struct gm_ledger_entry {
    CUdeviceptr pointer;
    struct gm_ledger_entry *next;
};

struct gm_ledger_shard {
    pthread_mutex_t lock;
    struct gm_ledger_entry **buckets;
    size_t bucket_count; /* a power of two */
    size_t count;
    char apart[64]; /* the next shard's lock is another core's */
};

struct gm_ledger {
    struct gm_ledger_shard shards[GM_LEDGER_SHARDS];
};

/* 0, or -1 without memory. */
int gm_ledger_init(struct gm_ledger *ledger);
void gm_ledger_destroy(struct gm_ledger *ledger); /* when it is empty */

void gm_ledger_add(struct gm_ledger *ledger, struct gm_ledger_entry *entry);
/* NULL if there is none. */
struct gm_ledger_entry *gm_ledger_find(struct gm_ledger *ledger, CUdeviceptr pointer);
struct gm_ledger_entry *gm_ledger_remove(struct gm_ledger *ledger, CUdeviceptr pointer);

/* The same entry under another address, and returns it; NULL if there is none. */
struct gm_ledger_entry *gm_ledger_move(struct gm_ledger *ledger, CUdeviceptr from, CUdeviceptr to);

/* Calls `fn` for each entry while none can be removed; other than 0 ends and is returned. `fn` must
 * be quick and call nothing of the ledger. */
int gm_ledger_visit(struct gm_ledger *ledger, int (*fn)(struct gm_ledger_entry *entry, void *user),
                    void *user);
size_t gm_ledger_count(struct gm_ledger *ledger);

#endif
