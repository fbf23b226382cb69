/*
 * Finds synchronization that PTX leaves undefined, although it may happen to work: barriers that
 * only a part of a warp or block reaches, mbarriers that are not initialized or twice, data of
 * cp.async before a wait, and .sync functions whose member masks do not fit.
 *
 * A grid's calls come one after the other (engine/watch.h); grids share nothing.
 */
#ifndef SG_CHECK_SYNC_H
#define SG_CHECK_SYNC_H

#include "softgpu/engine/watch.h"
#include "softgpu/program/program.h"

enum sg_sync_kind {
    SG_SYNC_DIVERGENT_WARP, /* lanes of a warp are missing at a barrier that is .aligned */
    SG_SYNC_OTHER_PLACE,    /* or come to it at another instruction */
    SG_SYNC_TWO_BARRIERS,   /* or wait at another barrier at the same time */
    SG_SYNC_EXITED,         /* threads have exited without it */
    SG_SYNC_NUMBER,         /* its number is beyond 15 */
    SG_SYNC_CLUSTER_PLACES, /* lanes of a warp come to the cluster's barrier at two instructions */
    SG_SYNC_COUNT,          /* it counts threads that are no multiple of 32 */
    SG_SYNC_UNREACHED,      /* it is never complete */
    SG_SYNC_NO_MBARRIER,    /* not initialized, or invalidated */
    SG_SYNC_AGAIN,          /* initialized in use */
    SG_SYNC_OVERWRITTEN,    /* an mbarrier's bytes, by a store */
    SG_SYNC_NOT_WAITED,     /* cp.async's bytes are accessed before a wait */
    SG_SYNC_TWO_COPIES,     /* two copies write the same bytes */
    SG_SYNC_NO_MEMBER,      /* the mask does not name the lane that executes it */
    SG_SYNC_UNEQUAL,        /* lanes name each other, with different masks */
    SG_SYNC_KINDS
};

struct sg_sync_found {
    enum sg_sync_kind kind;
    uint32_t instruction;
    unsigned place[3], thread; /* the block, and a thread in it that it is about */
    unsigned missing;          /* of barriers: threads that are not there */
    unsigned number;           /* of the barrier */
    bool has_address, write, has_other;
    uint64_t address; /* offset in shared memory */
    uint32_t size;
    uint32_t other_instruction; /* of the copy, or the barrier that another lane is at */
    unsigned other_thread;
};

struct sg_sync;
struct sg_sync_options {
    const struct sg_program *program; /* lives as long as the checker */
    unsigned threads;                 /* of a block */
    void (*found)(const void *user, const struct sg_sync_found *found);
    const void *user;
};

/* NULL: no memory. */
struct sg_sync *sg_sync_begin(const struct sg_sync_options *options);
extern const struct sg_watch sg_sync_watch;
/* `deadlock`: nothing could run any more; what blocks wait for is reported. */
void sg_sync_end(struct sg_sync *sync, bool deadlock);

#endif
