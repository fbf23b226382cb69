/* Clusters of blocks, mbarriers, and copies that complete later: what the engine's files share. */
#ifndef SG_ENGINE_ASYNC_H
#define SG_ENGINE_ASYNC_H

#include "softgpu/engine/inside.h"

#define SG_CLUSTER_MOST 16u /* blocks: what a device allows beyond the portable 8 */

/*
 * An address in shared::cluster, as an H200 gives it: the rank of the block in bits 24 and up, the
 * offset in its shared memory below. Code that knows of clusters has such addresses of its own
 * shared memory, too; all other code has rank 0 and so plain offsets.
 */
#define SG_RANK_SHIFT      24
#define SG_RANK_OFFSET(at) ((at) & ((UINT64_C(1) << SG_RANK_SHIFT) - 1))

/* Blocks that run together, on one thread: one block where the launch has no clusters. Only code
 * with `clustered` has them. */
struct sg_cluster_run {
    struct sg_grid *grid;
    uint64_t first; /* number of its first block in the order in which blocks begin */
    unsigned size, present;
    struct sg_block *blocks[SG_CLUSTER_MOST];    /* NULL: not begun yet, or ended */
    bool arrived;                                /* a thread has, at barrier.cluster */
    uint32_t arrived_lanes[SG_CLUSTER_MOST][32]; /* that have, by rank and warp */
    /* Copies under way, in the order of their issue: those in bulk, and cp.async's by warps. */
    struct sg_pending *bulk;
    struct sg_pending **copies; /* by rank and warp */
    uint32_t deferred;          /* arrivals among them */
    uint64_t issued;
    uint32_t *commits; /* groups of cp.async, by rank and thread; behind them those in bulk */
};

enum sg_pending_kind {
    SG_PENDING_COPY,   /* cp.async */
    SG_PENDING_ARRIVE, /* cp.async.mbarrier.arrive */
    SG_PENDING_BULK    /* the others */
};

/* What is copied, or stored, without the thread's waiting for it. */
struct sg_pending {
    struct sg_pending *next;
    const struct sg_step *step;
    uint64_t to, from; /* of `to_global` and `from_global` global addresses, else in the cluster */
    uint64_t mbarrier; /* told of `size` bytes at the end where `tells`; of an arrival */
    uint32_t size, bytes;                /* written; of them from the source, the others are zero */
    uint32_t thread;                     /* rank times threads of a block plus the thread */
    uint32_t group;                      /* that it is in, or will be */
    uint64_t order;                      /* of issue, from 1 on */
    unsigned char kind, operation, type; /* SG_DO_NONE: a copy */
    bool to_global, from_global, tells, grouped;
    bool from_value;     /* `value` is the source */
    unsigned char *kept; /* the source's bytes, read before; owned */
    unsigned char value[32];
};

/* ---- cluster.c ------------------------------------------------------------------------------- */

/* Where a block is that begins as the given one. */
uint64_t sg_cluster_place(const struct sg_grid *grid, uint64_t order, unsigned place[3]);
/* A cluster for the worker's next blocks, where the code has use for it. False: no memory. */
bool sg_cluster_open(struct sg_worker *worker);
/* It has not been needed. */
void sg_cluster_close(struct sg_worker *worker);
/* Puts a block that begins into it. */
void sg_cluster_join(struct sg_worker *worker, struct sg_block *block, uint64_t order);
/* A block has ended; `whole`: all of its threads did. False: a copy that it left has failed. */
bool sg_cluster_leave(struct sg_block *block, bool whole);
/* Threads have exited: the cluster's barrier looks again. */
void sg_cluster_look(struct sg_cluster_run *cluster);
/* Whether another block of the cluster can run. */
bool sg_cluster_runs(const struct sg_block *block);
/* A lane's address of an operand: four words of the code's list. */
#define SG_WHERE_WORDS 4u
uint64_t sg_where_address(const struct sg_warp *warp, const uint32_t *where, unsigned lane);
/* The same, where it must lie in the cluster's shared memory: without the generic window. */
bool sg_where_shared(struct sg_warp *warp, const struct sg_step *step, const uint32_t *where,
                     unsigned lane, uint64_t alignment, uint64_t *address);

/* ---- mbarrier.c: each false where it has faulted --------------------------------------------- */

/* Arrives `count` times, after expecting bytes; `token` may be NULL. */
bool sg_mbarrier_arrive(struct sg_warp *warp, const struct sg_step *step, unsigned lane,
                        uint64_t address, uint32_t count, bool drop, uint32_t expected,
                        uint64_t *token);
/* Bytes that are expected, or, negative, are there. */
bool sg_mbarrier_bytes(struct sg_warp *warp, const struct sg_step *step, unsigned lane,
                       uint64_t address, int64_t bytes);
/* Of the phase that the barrier is in; 0 where there is none. */
unsigned sg_mbarrier_parity(struct sg_warp *warp, uint64_t address);
/* One arrival more is awaited in this phase. */
bool sg_mbarrier_more(struct sg_warp *warp, const struct sg_step *step, unsigned lane,
                      uint64_t address);

/* ---- pending.c ------------------------------------------------------------------------------- */

/* Does it now, or later as the schedule says. False: it has faulted. */
bool sg_pending_submit(struct sg_warp *warp, const struct sg_pending *what);
/* A lane has found an mbarrier unfinished, with so many arrivals to come: what the barrier waits
 * for may have to be done now. False: it has faulted. */
bool sg_pending_poll(struct sg_warp *warp, uint64_t address, uint32_t arrivals);
/* Who issued what a warp is doing now (warp->doing). */
void sg_pending_thread(const struct sg_warp *warp, unsigned *thread, unsigned block[3]);
/* Frees what has not been done. */
void sg_pending_drop(struct sg_pending **list);
/* Does what a block leaves. */
bool sg_pending_leave(struct sg_block *block);

/* ---- reduce.c -------------------------------------------------------------------------------- */

/* Combines elements of a type into memory; of global memory atomically. */
void sg_reduce(unsigned char *to, const unsigned char *from, uint64_t bytes, unsigned operation,
               unsigned type, bool global);

/* ---- random ---------------------------------------------------------------------------------- */

/* A number below `limit`, of the grid's seed. */
static inline uint32_t sg_grid_draw(struct sg_grid *grid, uint32_t limit) {
    uint64_t z = grid->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)((z ^ z >> 31) >> 32) % limit;
}

#endif
