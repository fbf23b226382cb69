/* Counters with high-water marks, each adding to its parent: resource, wrapped resource, device,
 * library. */
#ifndef GM_MEMORY_METER_H
#define GM_MEMORY_METER_H

#include "memory/core/bound.h"

#include <gpumem/stats.h>
#include <stdatomic.h>
#include <stdint.h>

enum gm_count {
    GM_RESERVED,
    GM_COMMITTED,
    GM_IN_USE,
    GM_CACHED,
    GM_PINNED,
    GM_IMPORTED,
    GM_ALLOCATIONS,
    GM_ALLOCATIONS_TOTAL,
    GM_ALLOCATIONS_FAILED,
    GM_CHUNKS,
    GM_MAPPINGS,
    GM_DEFERRED,
    GM_DEFERRED_BYTES,
    GM_EXPORTS,
    GM_QUARANTINED,
    GM_QUARANTINED_BYTES,
    GM_COUNTS
};

struct gm_meter {
    _Atomic uint64_t now[GM_COUNTS];
    _Atomic uint64_t high[GM_COUNTS];
    _Atomic uint64_t
        given_back; /* bytes, ever: who waits for memory sees that some came back, though
                                  * others have taken it again */
    struct gm_meter *parent;
    /* Of a cache, which hands out pieces of what its parent handed out: counts of buffers go past
     * the parent and what is below it, to `users`, which may be NULL. */
    int pieces;
    struct gm_meter *users;
    _Atomic(struct gm_bound *) bound; /* of what is counted here, or NULL; not its children's */
};

void gm_meter_add(struct gm_meter *meter, enum gm_count count, uint64_t value);
/* Records that the count was temporarily higher by this much. */
void gm_meter_raise(struct gm_meter *meter, enum gm_count count, uint64_t by);
/* A value that is known from elsewhere raises the highest one, which is returned in its place. */
void gm_meter_keep_high(struct gm_meter *meter, enum gm_count count, uint64_t *value);
void gm_meter_subtract(struct gm_meter *meter, enum gm_count count, uint64_t value);
/* Makes it the meter of a cache; `outermost` counts what the program has, as its parents do not. */
void gm_meter_hand_out_pieces(struct gm_meter *meter, struct gm_meter *outermost);
/* What such a cache took from its parent (`sign` 1), or gave back (-1): a buffer there. */
void gm_meter_count_whole(struct gm_meter *meter, uint64_t bytes, int sign);
/* To be called when another thread can have them. */
void gm_meter_gave_back(struct gm_meter *meter, uint64_t bytes);
/* Counts an object that the driver refused to take back. */
void gm_meter_quarantine(struct gm_meter *meter, uint64_t bytes);
/* The same for memory, which remains committed. */
void gm_meter_quarantine_memory(struct gm_meter *meter, uint64_t bytes);
void gm_meter_read(const struct gm_meter *meter, gpumem_stats *stats);

#endif
