/*
 * What a grid reports to checkers. Watched code (SG_CODE_WATCHED) has an additional step before
 * each access and at each kind of wait; other code pays nothing. A watched grid has one worker and
 * no gangs, so its calls come one after another; grids of several streams may call at the same
 * time. A watcher must not call back into the engine.
 */
#ifndef SG_ENGINE_WATCH_H
#define SG_ENGINE_WATCH_H

#include <stdbool.h>
#include <stdint.h>

/* A frame in the local memory of threads: that of a running function, with its caller's. */
struct sg_watched_frame {
    const struct sg_watched_frame *caller; /* NULL: the entry's */
    uint64_t start;                        /* offset in local memory */
    uint32_t function;                     /* of the program */
};

struct sg_watched_warp {
    uint64_t block;        /* its number in the grid */
    const unsigned *place; /* its coordinates x, y, z */
    unsigned first;        /* lane 0's thread, in its block */
    /* The block's shared memory, for reading; NULL in code for clusters, and for copies. */
    const unsigned char *shared;
    uint64_t shared_bytes;
    const struct sg_watched_frame *frame; /* of the function that runs; NULL for copies */
    uint64_t local_bytes;                 /* of a thread */
    /* By lane the offset from which on alloca has given out local memory; NULL: it never does. */
    const uint32_t *allocated;
};

enum sg_watched_kind { SG_WATCHED_READ, SG_WATCHED_WRITE, SG_WATCHED_ATOMIC };
enum sg_watched_scope { SG_WATCHED_CTA, SG_WATCHED_CLUSTER, SG_WATCHED_GPU, SG_WATCHED_SYSTEM };
#define SG_WATCHED_STRONG          1u /* volatile, relaxed, atomic, or stronger */
#define SG_WATCHED_ACQUIRE         2u
#define SG_WATCHED_RELEASE         4u
#define SG_WATCHED_ASYNC           8u /* of cp.async and the like: when the copy is performed */
#define SG_WATCHED_CLUSTER_BARRIER 16u
#define SG_WATCHED_CLUSTER_RELAXED 17u /* an arrival there that orders no memory */

struct sg_watched_access {
    const struct sg_watched_warp *warp;
    uint32_t instruction;    /* index in the program */
    uint32_t lanes;          /* mask of those that access */
    uint32_t repeats;        /* of these, plain writes of what the lane before writes there */
    const uint64_t *address; /* by lane: a global address, or an offset in another space; for shared
                                memory in code for clusters, with the block's rank from bit 24 */
    uint32_t size;           /* bytes of each lane's access, all elements of a vector */
    unsigned char kind, space /* enum sg_state_space, never generic */, order, scope;
    /* An access of a texture or surface has the space NONE and the address of a texel: in global
     * memory, or (array) in the bytes of a CUDA array, which are in no allocation. */
    bool array;
};

/* One lane's bulk copy, st.async or red.async, when it is issued. Addresses are as in an access. */
struct sg_watched_copy {
    const struct sg_watched_warp *warp;
    uint32_t instruction, size;
    unsigned lane;
    bool to_global, from_global, from_value;
    bool reduces;      /* it combines its bytes with those at the destination */
    bool tells;        /* an mbarrier counts its bytes; else it belongs to a bulk group */
    unsigned parity;   /* of the phase that the mbarrier is in */
    uint64_t to, from; /* from: unused if `from_value` */
    uint64_t mbarrier;
};

/* Lanes and the phases of mbarriers that they wait for or arrive in. */
struct sg_watched_phase {
    const struct sg_watched_warp *warp;
    uint32_t instruction, lanes;
    uint32_t over;           /* the lanes whose phases are complete */
    uint32_t parity;         /* of the phases, by lane */
    const uint64_t *address; /* of the mbarriers, by lane */
    bool by_state;           /* the phase is named by the state that an arrival returned */
    unsigned char order, scope;
};

struct sg_watch {
    /* Before an access takes place, and before the engine has checked it. */
    void (*access)(void *user, const struct sg_watched_access *access);
    /* May be NULL. Called after `access`: returns the lanes whose access must not take place; they
     * go on, and their registers are unchanged. */
    uint32_t (*refuses)(void *user, const struct sg_watched_access *access);
    /* Lanes arrive at a barrier of their block; `waits`: they go on once it is complete. The
     * cluster's barrier has the number SG_WATCHED_CLUSTER_BARRIER: an arrival that does not wait,
     * and then a wait, at a barrier that may be complete already. */
    void (*arrives)(void *user, const struct sg_watched_warp *warp, uint32_t instruction,
                    uint32_t lanes, unsigned number, bool waits);
    /* The number that lanes name is above 15: its low bits count, and `arrives` follows with them.
     * May be NULL. */
    void (*beyond)(void *user, const struct sg_watched_warp *warp, uint32_t instruction,
                   uint32_t lanes, uint32_t number);
    /* A barrier of a block is complete: what its arrivals follow happens before what its waiters do
     * next. */
    void (*completes)(void *user, uint64_t block, unsigned number);
    /* Lanes of a warp have synchronised (bar.warp.sync, shfl.sync, vote.sync, match.sync and
     * others). */
    void (*meet)(void *user, const struct sg_watched_warp *warp, uint32_t instruction,
                 uint32_t lanes);
    /* Also commits of asynchronous copies, and waits for them, with an order of only ASYNC. An sc
     * fence has STRONG. */
    void (*fence)(void *user, const struct sg_watched_warp *warp, uint32_t instruction,
                  uint32_t lanes, unsigned char order, unsigned char scope);
    /* Lanes issue cp.async: where it will write in shared memory. May be NULL, as those below. */
    void (*issues)(void *user, const struct sg_watched_access *copy);
    void (*issues_bulk)(void *user, const struct sg_watched_copy *copy);
    /* A copy's bytes are counted by its mbarrier, after the copy's accesses. */
    void (*delivers)(void *user, const struct sg_watched_access *mbarrier);
    /* cp.async.mbarrier.arrive: mbarriers count the cp.async that lanes have issued. */
    void (*hands_over)(void *user, const struct sg_watched_phase *phase);
    /* Lanes test or wait for phases. */
    void (*looks)(void *user, const struct sg_watched_phase *phase);
    /* A phase of the mbarrier is complete, by an action of a thread of `block`. */
    void (*turns)(void *user, uint64_t block, uint64_t address);
    /* Lanes continue after griddepcontrol.wait: what the grid depends on has ended. */
    void (*depends)(void *user, const struct sg_watched_warp *warp, uint32_t lanes);
    /* Lanes come to a .sync function of a warp, each with its member mask. */
    void (*gathers)(void *user, const struct sg_watched_warp *warp, uint32_t instruction,
                    uint32_t lanes, const uint32_t *members);
    void (*exits)(void *user, const struct sg_watched_warp *warp, uint32_t lanes);
    /* Lanes have begun a function that was called: warp->frame is its own, without what was there.
     * May be NULL. */
    void (*enters)(void *user, const struct sg_watched_warp *warp, uint32_t lanes);
    void (*block_begins)(void *user, uint64_t block, uint64_t shared_bytes);
    /* Not called for blocks that a fault has ended. */
    void (*block_ends)(void *user, uint64_t block);
};

#endif
