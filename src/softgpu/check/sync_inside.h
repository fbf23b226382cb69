/* The synchronization checker's own structures. */
#ifndef SG_CHECK_SYNC_INSIDE_H
#define SG_CHECK_SYNC_INSIDE_H

#include "softgpu/check/sync.h"

#include <stddef.h>

#define SG_SYNC_BARRIERS 16u

struct sg_sync_barrier {
    uint32_t arrived[32], waits[32], instruction[32]; /* by warp */
    uint32_t there[32]; /* lanes that had not exited when the first of their warp arrived */
    uint32_t last;      /* the instruction that arrived last */
    bool used;
};

/* A cp.async that no wait has covered. */
struct sg_sync_copy {
    uint64_t at;
    uint32_t size, thread, instruction;
    uint32_t group; /* of its thread's, from 1 on; 0: not committed */
};

struct sg_sync_block {
    struct sg_sync_block *next;
    uint64_t index;
    unsigned place[3];
    uint32_t live[32], exited[32];
    struct sg_sync_barrier barriers[SG_SYNC_BARRIERS];
    /* By warp: lanes that have come to the cluster's barrier and have not waited, and where. */
    uint32_t cluster[32], cluster_instruction[32];
    uint64_t *mbarriers; /* addresses */
    size_t mbarrier_count, mbarrier_room;
    struct sg_sync_copy *copies;
    size_t copy_count, copy_room;
    uint32_t *commits; /* by thread; NULL: none */
};

#define SG_SYNC_BUCKETS 64u
struct sg_sync {
    struct sg_sync_options options;
    unsigned warps;
    struct sg_sync_block *buckets[SG_SYNC_BUCKETS], *last;
};

struct sg_sync_block *sg_sync_block_of(struct sg_sync *sync, uint64_t index);
/* A finding of a thread of a block; the rest is the caller's. */
struct sg_sync_found sg_sync_finding(const struct sg_sync_block *block, enum sg_sync_kind kind,
                                     uint32_t instruction, unsigned thread);
void sg_sync_report(const struct sg_sync *sync, const struct sg_sync_found *found);

/* sync_barrier.c */
void sg_sync_arrives(void *user, const struct sg_watched_warp *warp, uint32_t instruction,
                     uint32_t lanes, unsigned number, bool waits);
void sg_sync_beyond(void *user, const struct sg_watched_warp *warp, uint32_t instruction,
                    uint32_t lanes, uint32_t number);
void sg_sync_completes(void *user, uint64_t block, unsigned number);
void sg_sync_gathers(void *user, const struct sg_watched_warp *warp, uint32_t instruction,
                     uint32_t lanes, const uint32_t *members);
/* What a block leaves that has ended, or cannot go on. */
void sg_sync_unreached(struct sg_sync *sync, struct sg_sync_block *block);

/* sync_memory.c */
void sg_sync_access(void *user, const struct sg_watched_access *access);
void sg_sync_issues(void *user, const struct sg_watched_access *copy);
void sg_sync_fence(void *user, const struct sg_watched_warp *warp, uint32_t instruction,
                   uint32_t lanes, unsigned char order, unsigned char scope);

#endif
