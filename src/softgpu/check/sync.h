/*
 * Finds synchronization that PTX leaves undefined, although it may happen to work: barriers that
 * only a part of a warp or block reaches, misuse of mbarriers, data of asynchronous copies before a
 * wait for them, and .sync functions whose member masks do not fit.
 *
 * A grid's calls come one after another (engine/watch.h); grids share nothing.
 */
#ifndef SG_CHECK_SYNC_H
#define SG_CHECK_SYNC_H

#include "softgpu/engine/watch.h"
#include "softgpu/program/program.h"

enum sg_sync_kind {
    SG_SYNC_DIVERGENT_WARP, /* lanes of a warp are missing at an .aligned barrier */
    SG_SYNC_OTHER_PLACE,    /* or reach it at another instruction */
    SG_SYNC_TWO_BARRIERS,   /* or wait at another barrier at the same time */
    SG_SYNC_EXITED,         /* threads have exited without reaching it */
    SG_SYNC_NUMBER,         /* its number is above 15 */
    SG_SYNC_CLUSTER_PLACES, /* lanes of a warp reach the cluster's barrier at two instructions */
    SG_SYNC_COUNT,          /* its count is not a multiple of 32 */
    SG_SYNC_UNREACHED,      /* it never completes */
    SG_SYNC_NO_MBARRIER,    /* not initialized, or invalidated */
    SG_SYNC_AGAIN,          /* initialized in use */
    SG_SYNC_INVALIDATED,    /* while threads wait for it */
    SG_SYNC_OLD_STATE,      /* a wait with the state of a phase that is long over */
    SG_SYNC_OVERWRITTEN,    /* an mbarrier's bytes, by a store or a copy */
    SG_SYNC_NOT_WAITED,     /* what a copy writes is accessed before a wait */
    SG_SYNC_TWO_COPIES,     /* two copies write the same bytes */
    SG_SYNC_SOURCE,         /* what a copy reads is overwritten before a wait */
    SG_SYNC_LEFT,           /* a block ends before a wait for a copy in bulk that needs it */
    SG_SYNC_UNUSED,         /* the same of cp.async: nothing has come of it */
    SG_SYNC_NO_MEMBER,      /* the mask does not name the lane that executes it */
    SG_SYNC_UNEQUAL,        /* lanes name each other, with different masks */
    SG_SYNC_NOT_COME,       /* lanes that a mask names do not come */
    SG_SYNC_ARRIVED_TWICE,  /* at the cluster's barrier, without a wait */
    SG_SYNC_NOT_ARRIVED,    /* a wait for it without an arrival */
    SG_SYNC_KINDS
};

struct sg_sync_found {
    enum sg_sync_kind kind;
    uint32_t instruction;
    unsigned place[3], thread; /* the block, and a thread in it */
    unsigned missing;          /* barriers: threads that have not arrived */
    unsigned number;           /* of the barrier */
    unsigned waits;            /* of INVALIDATED: a thread that does */
    bool has_address, global, write, has_other;
    uint64_t address; /* offset in shared memory, or of global memory */
    uint32_t size;
    uint32_t other_instruction; /* of the copy, or the barrier that another lane is at */
    unsigned other_place[3], other_thread;
};

struct sg_sync;
struct sg_sync_options {
    const struct sg_program *program; /* must outlive the checker */
    unsigned threads;                 /* of a block */
    unsigned grid[3], cluster[3];     /* cluster: zeros are as 1 */
    void (*found)(const void *user, const struct sg_sync_found *found);
    const void *user;
};

/* NULL: out of memory. */
struct sg_sync *sg_sync_begin(const struct sg_sync_options *options);
extern const struct sg_watch sg_sync_watch;
/* `deadlock`: nothing could run any more; reports what blocks wait for. */
void sg_sync_end(struct sg_sync *sync, bool deadlock);

#endif
