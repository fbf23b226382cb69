/*
 * Finds unordered accesses: of threads of a kernel, of several kernels, and of copies and kernels.
 * PTX's memory model decides what happens before what (barriers, warp synchronisation, release and
 * acquire patterns at sufficient scope, strong accesses that do not race with each other). Between
 * operations of streams it is the order that the API has made, not the order in which they happened
 * to run. So a race is found even if the two accesses were far apart in time.
 *
 * Of each word the last four accesses that are not known to be superseded are remembered: a race
 * with an earlier one may be missed, but no false one is reported. Lanes of a warp that execute a
 * fence together release together.
 *
 * Thread-safe: each call takes the checker's own lock, and never blocks on anything else.
 */
#ifndef SG_CHECK_RACE_H
#define SG_CHECK_RACE_H

#include "softgpu/engine/watch.h"

#include <stddef.h>

/* Memory for shadows of global memory, in bytes: when it is full, all that was remembered is
 * forgotten. A page of 4 KiB that is accessed takes 2.6 KiB, 16 more where words are accessed
 * singly, and 64 more where several accesses of one of its words have to be remembered. */
#define SG_RACE_MEMORY ((uint64_t)1 << 30)

struct sg_race;
struct sg_race_grid;

/* One of the two accesses of a race. */
struct sg_race_side {
    const void *name; /* the name given to sg_race_begin or sg_race_copy */
    bool copy;        /* a copy has no instruction, block and thread */
    uint32_t instruction;
    uint64_t block;
    unsigned thread; /* in its block */
    unsigned char kind;
};

struct sg_race_found {
    struct sg_race_side now, before;
    uint64_t address; /* or the offset in shared memory */
    uint32_t size;    /* bytes that both sides access */
    bool shared;
    bool cluster;    /* shared memory of a cluster: the block's rank is from bit 24 on */
    bool same_value; /* both have written the same bytes */
    bool one_access; /* both sides are lanes of one instruction */
};

struct sg_race_options {
    /* Called with the checker's lock; it must not call back. */
    void (*found)(void *user, const struct sg_race_found *found);
    /* The host bytes of global memory, for reading, or NULL if there are none; the function may be
     * NULL. */
    const unsigned char *(*bytes)(void *user, uint64_t address, uint32_t size);
    void *user;
    uint64_t memory; /* of shadows; 0: SG_RACE_MEMORY */
    bool lanes;      /* volatile accesses do not order lanes of a warp: they race too */
};

/* NULL: out of memory. */
struct sg_race *sg_race_new(const struct sg_race_options *options);
/* All its grids must have ended. NULL is allowed. */
void sg_race_free(struct sg_race *race);

/* An operation of a stream, with the operations of other streams that the API orders before it.
 * Copied. */
struct sg_race_after {
    uint64_t stream, number; /* it comes after the operations of `stream` up to `number` */
};
struct sg_race_operation {
    uint64_t stream, number; /* numbers grow within a stream */
    uint64_t serial;         /* numbers grow over all streams */
    uint64_t floor;          /* it comes after all operations up to this serial */
    const struct sg_race_after *after;
    size_t after_count;
    bool early;       /* it may run beside the kernel before it in its stream, until its threads'
                         griddepcontrol.wait */
    const void *name; /* for reports; it must live as long as the checker */
};

struct sg_race_shape {
    unsigned grid[3], block[3];
    unsigned cluster[3]; /* in blocks; 0 counts as 1 */
};

/* A grid begins. The functions of sg_race_watch take the result as their user. NULL: out of memory,
 * or the grid has 2^27 blocks or more. */
struct sg_race_grid *sg_race_begin(struct sg_race *race, const struct sg_race_operation *operation,
                                   const struct sg_race_shape *shape);
extern const struct sg_watch sg_race_watch;
/* The grid has ended, finished or not. NULL is allowed. */
void sg_race_end(struct sg_race_grid *grid);

/* A copy or memset in a stream accesses a range of device memory. */
void sg_race_copy(struct sg_race *race, const struct sg_race_operation *operation, uint64_t address,
                  uint64_t size, bool writes);
/* Forgets the accesses to addresses that are allocated again. */
void sg_race_forget(struct sg_race *race, uint64_t address, uint64_t size);
/* How often the shadows were full. */
uint64_t sg_race_full(const struct sg_race *race);

#endif
