/*
 * What checkers are told of a grid. Code that is made to be watched (sg_code_make) has a step more
 * before each access and at each way of waiting; code that is not costs nothing. A watched grid has
 * one worker and no gangs, so the calls of one grid come one after the other; grids of several
 * streams may call at the same time. A watcher must not call back into the engine.
 */
#ifndef SG_ENGINE_WATCH_H
#define SG_ENGINE_WATCH_H

#include <stdbool.h>
#include <stdint.h>

struct sg_watched_warp {
    uint64_t block;        /* its index in the grid */
    const unsigned *place; /* the same as x, y, z */
    unsigned first;        /* the thread of lane 0, in its block */
    /* The block's shared memory, to look at; NULL in code for clusters, and for copies. */
    const unsigned char *shared;
    uint64_t shared_bytes;
};

enum sg_watched_kind { SG_WATCHED_READ, SG_WATCHED_WRITE, SG_WATCHED_ATOMIC };
enum sg_watched_scope { SG_WATCHED_CTA, SG_WATCHED_CLUSTER, SG_WATCHED_GPU, SG_WATCHED_SYSTEM };
#define SG_WATCHED_STRONG          1u /* volatile, relaxed, atomic, or stronger */
#define SG_WATCHED_ACQUIRE         2u
#define SG_WATCHED_RELEASE         4u
#define SG_WATCHED_ASYNC           8u /* of cp.async and the like: at the copy's own moment */
#define SG_WATCHED_CLUSTER_BARRIER 16u

struct sg_watched_access {
    const struct sg_watched_warp *warp;
    uint32_t instruction;    /* index in the program */
    uint32_t lanes;          /* that access, a mask */
    const uint64_t *address; /* by lane: of global memory; else an offset in its space; in shared
                                memory of code for clusters with the block's rank from bit 24 on */
    uint32_t size;           /* bytes of each lane's access, all elements of a vector */
    unsigned char kind, space /* enum sg_state_space, never generic */, order, scope;
};

struct sg_watch {
    /* Before it takes place, and before the engine has checked it. */
    void (*access)(void *user, const struct sg_watched_access *access);
    /* May be NULL. Asked after `access`: the lanes that shall not access; they go on without, and
     * their registers keep what they have. */
    uint32_t (*refuses)(void *user, const struct sg_watched_access *access);
    /* Lanes arrive at a barrier of their block; `waits`: they go on when it is complete. Of the
     * cluster's barrier the number is SG_WATCHED_CLUSTER_BARRIER: an arrival that does not wait,
     * and then one that waits, for what may be complete already. */
    void (*arrives)(void *user, const struct sg_watched_warp *warp, uint32_t instruction,
                    uint32_t lanes, unsigned number, bool waits);
    /* The number that lanes name is beyond 15: its low bits count, and are told next. May be NULL. */
    void (*beyond)(void *user, const struct sg_watched_warp *warp, uint32_t instruction,
                   uint32_t lanes, uint32_t number);
    /* A barrier of a block is complete: whoever arrived before it happens before whoever waited. */
    void (*completes)(void *user, uint64_t block, unsigned number);
    /* Lanes of a warp have met (bar.warp.sync, shfl.sync, vote.sync, match.sync and others). */
    void (*meet)(void *user, const struct sg_watched_warp *warp, uint32_t instruction,
                 uint32_t lanes);
    /* Also commits of asynchronous copies and waits for them, with an order of ASYNC alone. An
     * order of sc has STRONG. */
    void (*fence)(void *user, const struct sg_watched_warp *warp, uint32_t instruction,
                  uint32_t lanes, unsigned char order, unsigned char scope);
    /* Lanes issue cp.async: where it will write in shared memory. May be NULL, as the next. */
    void (*issues)(void *user, const struct sg_watched_access *copy);
    /* Lanes come to a .sync function of a warp, each with its member mask. */
    void (*gathers)(void *user, const struct sg_watched_warp *warp, uint32_t instruction,
                    uint32_t lanes, const uint32_t *members);
    void (*exits)(void *user, const struct sg_watched_warp *warp, uint32_t lanes);
    void (*block_begins)(void *user, uint64_t block, uint64_t shared_bytes);
    /* Not of blocks that a fault has ended. */
    void (*block_ends)(void *user, uint64_t block);
};

#endif
