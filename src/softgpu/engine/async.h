/* Clusters of blocks, mbarriers, and copies that complete later: what the engine's files share. */
#ifndef SG_ENGINE_ASYNC_H
#define SG_ENGINE_ASYNC_H

#include "softgpu/engine/inside.h"

#define SG_CLUSTER_MOST 16u /* blocks: a device's limit, above the portable 8 */

/*
 * An address in shared::cluster, as on an H200: the block's rank from bit 24, and the offset in its
 * shared memory below. In code that uses clusters the block's own shared memory has such addresses
 * too; all other code has rank 0, that is, plain offsets.
 */
#define SG_RANK_SHIFT      24
#define SG_RANK_OFFSET(at) ((at) & ((UINT64_C(1) << SG_RANK_SHIFT) - 1))

/* Blocks of a cluster, which run together on one thread; a single block if the launch has no
 * clusters. Only code with `clustered` has these. */
struct sg_cluster_run {
    struct sg_grid *grid;
    uint64_t first; /* number of its first block, in the order of beginning */
    unsigned size, present;
    struct sg_block *blocks[SG_CLUSTER_MOST];    /* NULL: not begun, or ended */
    bool arrived;                                /* some thread has, at barrier.cluster */
    uint32_t arrived_lanes[SG_CLUSTER_MOST][32]; /* lanes that have, by rank and warp */
    /* Pending copies in the order of issue: bulk ones, and cp.async's by warp. */
    struct sg_pending *bulk;
    struct sg_pending **copies; /* by rank and warp */
    uint32_t deferred;          /* arrivals among them */
    uint64_t issued;
    uint32_t *commits; /* groups of cp.async, by rank and thread, and then groups of bulk copies */
};

enum sg_pending_kind {
    SG_PENDING_COPY,   /* cp.async */
    SG_PENDING_ARRIVE, /* cp.async.mbarrier.arrive */
    SG_PENDING_BULK    /* the others */
};

/* A copy or store that its thread does not wait for. */
struct sg_pending {
    struct sg_pending *next;
    const struct sg_step *step;
    uint64_t to, from;    /* global addresses with `to_global` and `from_global`, else in the
                          cluster */
    uint64_t mbarrier;    /* with `tells`, completes `size` bytes there at the end; ARRIVE: where */
    uint32_t size, bytes; /* bytes written, and those of them that come from the
                                            source; the rest are zeros */
    uint32_t thread;      /* rank times threads in a block, plus the thread */
    uint32_t group;       /* that it belongs to, or will */
    uint64_t order;       /* of issue, counted from 1 */
    unsigned char kind, operation, type; /* SG_DO_NONE: a copy */
    bool to_global, from_global, tells, grouped;
    bool from_value;     /* `value` is the source */
    unsigned char *kept; /* the source's bytes, if read before; owned */
    unsigned char value[32];
};

/* ---- cluster.c ------------------------------------------------------------------------------- */

/* The coordinates of the block with the given number in the order of beginning. */
uint64_t sg_cluster_place(const struct sg_grid *grid, uint64_t order, unsigned place[3]);
/* Makes a cluster for the worker's next blocks, if the code needs one. False: out of memory. */
bool sg_cluster_open(struct sg_worker *worker);
/* Frees a cluster that was not needed. */
void sg_cluster_close(struct sg_worker *worker);
/* Adds a block that begins. */
void sg_cluster_join(struct sg_worker *worker, struct sg_block *block, uint64_t order);
/* A block has ended; `whole`: because all its threads did. False: a copy that it left pending has
 * failed. */
bool sg_cluster_leave(struct sg_block *block, bool whole);
/* Threads have exited: checks the cluster's barrier again. */
void sg_cluster_look(struct sg_cluster_run *cluster);
/* Whether another block of the cluster can run; `apart`: or could, if lanes at joins went on. */
bool sg_cluster_runs(const struct sg_block *block, bool apart);
/* A lane's address in an operand that is four words of the code's list. */
#define SG_WHERE_WORDS 4u
uint64_t sg_where_address(const struct sg_warp *warp, const uint32_t *where, unsigned lane);
/* The same for an address that must be in the cluster's shared memory; without the generic
 * window. */
bool sg_where_shared(struct sg_warp *warp, const struct sg_step *step, const uint32_t *where,
                     unsigned lane, uint64_t alignment, uint64_t *address);

/* ---- mbarrier.c: each returns false after a fault -------------------------------------------- */

/* Arrives `count` times, after expecting bytes; `token` may be NULL. */
bool sg_mbarrier_arrive(struct sg_warp *warp, const struct sg_step *step, unsigned lane,
                        uint64_t address, uint32_t count, bool drop, uint32_t expected,
                        uint64_t *token);
/* Adds to the expected bytes, or, if negative, completes them. */
bool sg_mbarrier_bytes(struct sg_warp *warp, const struct sg_step *step, unsigned lane,
                       uint64_t address, int64_t bytes);
/* Of the phase that the barrier is in; 0 where there is none. */
unsigned sg_mbarrier_parity(struct sg_warp *warp, uint64_t address);
/* One arrival more is awaited in this phase. */
bool sg_mbarrier_more(struct sg_warp *warp, const struct sg_step *step, unsigned lane,
                      uint64_t address);

/* ---- pending.c ------------------------------------------------------------------------------- */

/* Performs the copy, now or later as the schedule decides. False: it has faulted. */
bool sg_pending_submit(struct sg_warp *warp, const struct sg_pending *what);
/* A lane has found an mbarrier's phase incomplete, with `arrivals` pending: performs what the
 * barrier waits for, if it is due. False: it has faulted. */
bool sg_pending_poll(struct sg_warp *warp, uint64_t address, uint32_t arrivals);
/* The thread and block that issued what a warp is doing now (warp->doing). */
void sg_pending_thread(const struct sg_warp *warp, unsigned *thread, unsigned block[3]);
/* Frees the copies of a list without performing them. */
void sg_pending_drop(struct sg_pending **list);
/* Performs the copies that a block has left pending. */
bool sg_pending_leave(struct sg_block *block);

/* ---- reduce.c -------------------------------------------------------------------------------- */

/* Combines elements of a type into memory, atomically in global memory. */
void sg_reduce(unsigned char *to, const unsigned char *from, uint64_t bytes, unsigned operation,
               unsigned type, bool global);

/* ---- random ---------------------------------------------------------------------------------- */

/* A number below `limit`, from the grid's generator. */
static inline uint32_t sg_grid_draw(struct sg_grid *grid, uint32_t limit) {
    uint64_t z = grid->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)((z ^ z >> 31) >> 32) % limit;
}

#endif
