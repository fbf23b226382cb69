/* The synchronization checker's own structures. */
#ifndef SG_CHECK_SYNC_INSIDE_H
#define SG_CHECK_SYNC_INSIDE_H

#include "softgpu/check/sync.h"

#include <stddef.h>

#define SG_SYNC_BARRIERS 16u

struct sg_sync_barrier {
    uint32_t arrived[32], waits[32], instruction[32]; /* by warp */
    uint32_t there[32]; /* lanes that had not exited when the warp's first ones arrived */
    uint32_t last;      /* the instruction that arrived last */
    bool used;
};

struct sg_sync_mbarrier {
    uint64_t address;
    uint32_t lanes; /* of the last instruction that arrived */
    bool arrived;   /* perhaps somebody has in its phase */
};

/* An asynchronous copy that no wait has covered. */
struct sg_sync_copy {
    uint64_t to, from;
    uint64_t mbarrier; /* of `told` */
    uint32_t size, instruction;
    uint32_t thread;              /* of the cluster: rank times threads of a block plus thread */
    uint32_t group;               /* of its thread's, from 1 on; 0: not committed */
    uint32_t next;                /* of the thread's, or of the free ones: index + 1 */
    unsigned place[3];            /* of the block that has issued it */
    bool open;                    /* else it is free */
    bool bulk, reduces, told;     /* told: an mbarrier counts it, and a wait for that covers it */
    bool to_global, reads_shared; /* reads_shared: its source may not be overwritten yet */
    unsigned char parity;         /* of the mbarrier's phase that counts it */
};

#define SG_SYNC_RANKS 16u
/* Which copy has each word of a block's shared memory: index + 1, with SG_SYNC_READS where the copy
 * reads it. */
#define SG_SYNC_READS (UINT32_C(1) << 31)
struct sg_sync_words {
    uint32_t *copy;
    size_t count;
};

/* Blocks that reach each other's shared memory: where there are no clusters, one. */
struct sg_sync_cluster {
    struct sg_sync_cluster *next;
    uint64_t index;
    unsigned present; /* blocks */
    struct sg_sync_mbarrier *mbarriers;
    size_t mbarrier_count, mbarrier_room;
    bool lost; /* there was no memory for one */
    struct sg_sync_copy *copies;
    size_t copy_count, copy_room, open, open_global;
    uint32_t spare;    /* copies that are free */
    uint32_t *first;   /* copy of each thread: index + 1; NULL: none yet, as of the next two */
    uint32_t *commits; /* by thread: groups of cp.async, and after all of these, of bulk copies */
    uint32_t *waits;   /* by thread: the mbarrier whose phase it has found not to be over, + 1 */
    struct sg_sync_words words[SG_SYNC_RANKS];
};

struct sg_sync_block {
    struct sg_sync_block *next;
    struct sg_sync_cluster *cluster;
    uint64_t index;
    unsigned rank, place[3];
    uint32_t live[32], exited[32];
    uint32_t gathered[32], members[32], gathered_at[32]; /* by warp: lanes in a .sync function */
    uint32_t cluster_arrived[32];                        /* lanes that have not waited since */
    uint32_t cluster_instruction[32];                    /* where the last of them arrived */
    struct sg_sync_barrier barriers[SG_SYNC_BARRIERS];
};

#define SG_SYNC_BUCKETS 64u
struct sg_sync {
    struct sg_sync_options options;
    unsigned warps, cluster_size;
    struct sg_sync_block *buckets[SG_SYNC_BUCKETS], *last;
    struct sg_sync_cluster *clusters[SG_SYNC_BUCKETS];
};

struct sg_sync_block *sg_sync_block_of(struct sg_sync *sync, uint64_t index);
/* A finding about a thread of a block; the caller fills in the rest. */
struct sg_sync_found sg_sync_finding(const struct sg_sync_block *block, enum sg_sync_kind kind,
                                     uint32_t instruction, unsigned thread);
void sg_sync_report(const struct sg_sync *sync, const struct sg_sync_found *found);
/* A thread of a block, in its cluster. */
static inline uint32_t sg_sync_thread(const struct sg_sync *sync, const struct sg_sync_block *block,
                                      unsigned thread) {
    return block->rank * sync->options.threads + thread;
}

/* sync_barrier.c */
void sg_sync_arrives(void *user, const struct sg_watched_warp *warp, uint32_t instruction,
                     uint32_t lanes, unsigned number, bool waits);
void sg_sync_beyond(void *user, const struct sg_watched_warp *warp, uint32_t instruction,
                    uint32_t lanes, uint32_t number);
void sg_sync_completes(void *user, uint64_t block, unsigned number);
void sg_sync_gathers(void *user, const struct sg_watched_warp *warp, uint32_t instruction,
                     uint32_t lanes, const uint32_t *members);
void sg_sync_meet(void *user, const struct sg_watched_warp *warp, uint32_t instruction,
                  uint32_t lanes);
/* What a block leaves that has ended, or (`deadlock`) cannot go on. */
void sg_sync_unreached(struct sg_sync *sync, struct sg_sync_block *block, bool deadlock);

/* sync_mbarrier.c */
bool sg_sync_is_mbarrier(const struct sg_sync_cluster *cluster, uint64_t address, uint64_t size);
void sg_sync_use_mbarrier(const struct sg_sync *sync, struct sg_sync_block *block,
                          const struct sg_watched_access *access, unsigned lane);
void sg_sync_looks(void *user, const struct sg_watched_phase *phase);
void sg_sync_turns(void *user, uint64_t block, uint64_t address);
/* Lanes no longer wait for an mbarrier. */
void sg_sync_waits_no_more(const struct sg_sync *sync, const struct sg_sync_block *block,
                           unsigned first, uint32_t lanes);

/* sync_copies.c */
void sg_sync_access(void *user, const struct sg_watched_access *access);
void sg_sync_issues(void *user, const struct sg_watched_access *copy);
void sg_sync_issues_bulk(void *user, const struct sg_watched_copy *copy);
void sg_sync_hands_over(void *user, const struct sg_watched_phase *phase);
void sg_sync_fence(void *user, const struct sg_watched_warp *warp, uint32_t instruction,
                   uint32_t lanes, unsigned char order, unsigned char scope);
/* A thread has seen that a phase of an mbarrier is complete. */
void sg_sync_copies_told(struct sg_sync_cluster *cluster, uint64_t mbarrier, unsigned parity);
/* The shared memory of a block ends. */
void sg_sync_copies_left(const struct sg_sync *sync, struct sg_sync_block *block);
void sg_sync_copies_free(struct sg_sync_cluster *cluster);

#endif
