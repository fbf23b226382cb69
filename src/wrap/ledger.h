/*
 * A wrapper's data for each live allocation, found by its address. The allocation itself passes
 * through a wrapper unchanged, so there is no other place for the data.
 *
 * Thread-safe. Entries belong to the caller, who alone removes what it added; a found entry remains
 * until then. If a resource hands out an address twice at the same time, either entry is found.
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
    char apart[64]; /* keeps the next shard's lock in another cache line */
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

/* Moves the entry to another address and returns it; NULL if there is none. */
struct gm_ledger_entry *gm_ledger_move(struct gm_ledger *ledger, CUdeviceptr from, CUdeviceptr to);

/* Calls `fn` for each entry while none can be removed; a result other than 0 ends the loop and is
 * returned. `fn` must be quick and must not call the ledger. */
int gm_ledger_visit(struct gm_ledger *ledger, int (*fn)(struct gm_ledger_entry *entry, void *user),
                    void *user);
size_t gm_ledger_count(struct gm_ledger *ledger);

#endif
