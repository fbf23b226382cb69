/* A range of the CPU's addresses that follows the memory of an extent. */
#ifndef GM_MAPPED_HOST_RANGE_H
#define GM_MAPPED_HOST_RANGE_H

#include "mapped/incoherent.h"
#include "mapped/mapper.h"
#include "memory/virtual/extent.h"

struct gm_host_range {
    struct gm_mirror mirror; /* first: a pointer to the mirror is one to the range */
    struct gm_mapper *mapper;
    const struct gm_extent *extent;
    unsigned char *base;
    size_t capacity;
    struct gm_piece *pieces; /* sorted by place; changed with the owner's lock held */
    size_t count, room;
    bool stuck;                      /* a piece that the owner no longer uses is still mapped */
    pthread_rwlock_t lock;           /* guards pieces: flushes come from any thread */
    struct gm_incoherent incoherent; /* where flushes are needed */
};

/* Reserves addresses for the extent's capacity; nothing is attached yet. `mapper` is borrowed. */
gpumem_status gm_host_range_make(struct gm_mapper *mapper, const struct gm_extent *extent,
                                 struct gm_host_range **range);
/* Everything must be detached. */
void gm_host_range_free(struct gm_host_range *range);

#endif
