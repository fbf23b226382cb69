/*
 * Finds accesses that nothing orders: of threads of a kernel, of kernels, and of copies beside
 * kernels. What happens before what is decided as PTX's memory model says (barriers, meetings of a
 * warp, release and acquire patterns at sufficient scope, strong accesses that do not race with
 * each other) and, between operations of streams, as the API has ordered them, not as they happened
 * to run. So a race is found although the two accesses were far apart in time.
 *
 * What is remembered of a word are its last four accesses that are not known to be superseded: a
 * race with an earlier one may be missed, none is reported that is not there. Lanes of a warp that
 * fence together publish together.
 *
 * Thread-safe: each call takes the checker's own lock. Never blocks on anything else.
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
    const void *name; /* what was given for the kernel or the copy: sg_race_begin */
    bool copy;        /* of the host, or of a stream: no instruction, block, thread */
    uint32_t instruction;
    uint64_t block;
    unsigned thread; /* in its block */
    unsigned char kind;
};

struct sg_race_found {
    struct sg_race_side now, before;
    uint64_t address; /* or the offset in shared memory */
    uint32_t size;    /* bytes that both access */
    bool shared;
    bool same_value; /* both have written the same bytes */
    bool one_access; /* lanes of one instruction */
};

struct sg_race_options {
    /* Called with the checker's lock; it must not call back. */
    void (*found)(void *user, const struct sg_race_found *found);
    /* The bytes of global memory for a look, or NULL where there are none; may be NULL. */
    const unsigned char *(*bytes)(void *user, uint64_t address, uint32_t size);
    void *user;
    uint64_t memory; /* of shadows; 0: SG_RACE_MEMORY */
};

/* NULL: no memory. */
struct sg_race *sg_race_new(const struct sg_race_options *options);
/* No grid of it may be left. NULL is allowed. */
void sg_race_free(struct sg_race *race);

/* An operation of a stream, for what the API orders: which operations of other streams come before
 * it. Copied. */
struct sg_race_after {
    uint64_t stream, number; /* it comes after the operations of `stream` up to `number` */
};
struct sg_race_operation {
    uint64_t stream, number; /* the numbers of a stream grow */
    uint64_t serial;         /* over all streams */
    uint64_t floor;          /* it comes after all operations up to this serial */
    const struct sg_race_after *after;
    size_t after_count;
    bool early;       /* a kernel right before it in its stream has ended only behind its threads'
                         griddepcontrol.wait */
    const void *name; /* for reports; it must live as long as the checker */
};

struct sg_race_shape {
    unsigned grid[3], block[3];
    unsigned cluster[3]; /* 0: as 1 */
};

/* The watcher of a grid that begins: its functions take the result as their user. NULL: no memory,
 * or a grid of more than 2^27 blocks. */
struct sg_race_grid *sg_race_begin(struct sg_race *race, const struct sg_race_operation *operation,
                                   const struct sg_race_shape *shape);
extern const struct sg_watch sg_race_watch;
/* It has ended, finished or not. NULL is allowed. */
void sg_race_end(struct sg_race_grid *grid);

/* A copy or a set of a stream accesses a range of device memory. */
void sg_race_copy(struct sg_race *race, const struct sg_race_operation *operation, uint64_t address,
                  uint64_t size, bool writes);
/* Addresses that begin a new life: what was remembered of them is forgotten. */
void sg_race_forget(struct sg_race *race, uint64_t address, uint64_t size);
/* How often the memory for shadows was full. */
uint64_t sg_race_full(const struct sg_race *race);

#endif
