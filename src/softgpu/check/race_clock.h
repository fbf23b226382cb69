/*
 * What a thread knows of the others: for each thread of a grid, the moment up to which everything
 * it did has happened before. A clock is a tree with 32 children per node, whose leaves are lanes.
 * If all threads below a node have the same moment there is no node, so the knowledge after a
 * barrier is one number. Trees are immutable and share their common parts, so joining two that
 * share much is quick. Not thread-safe: callers hold the checker's lock.
 */
#ifndef SG_CHECK_RACE_CLOCK_H
#define SG_CHECK_RACE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* 0: nothing is known. Odd: one moment for all threads below, in the upper bits. Otherwise a
 * node. */
typedef uintptr_t sg_clock;

#define SG_CLOCK_WIDTH 32u
/* Levels of a subtree: a lane, the lanes of a warp, the warps of a block. */
#define SG_CLOCK_LANE  0u
#define SG_CLOCK_WARP  1u
#define SG_CLOCK_BLOCK 2u
/* A thread's key: its block, then its warp and its lane in five bits each. */
#define SG_CLOCK_KEY(block, warp, lane)                                                            \
    ((uint64_t)(block) << 10 | (uint64_t)((warp)&31) << 5 | (uint64_t)((lane)&31))

/* The levels that a tree needs for a number of blocks. */
unsigned sg_clock_levels(uint64_t blocks);

/* Adds and drops a reference. */
sg_clock sg_clock_keep(sg_clock clock);
void sg_clock_drop(sg_clock clock);

/* The later moment of both for each thread, as a new reference. When out of memory, sets *failed
 * and returns 0. */
sg_clock sg_clock_join(sg_clock a, sg_clock b, bool *failed);
/* Marks the clock as a step of a sequence (a number, never 0), whose later steps include its
 * earlier ones: joining two of them takes no time. A clock that is in a sequence stays there. */
void sg_clock_mark(sg_clock clock, uint64_t sequence, uint32_t step);
/* Joins `other`, which is not changed, into *clock. */
void sg_clock_add(sg_clock *clock, sg_clock other, bool *failed);
/* The same with one moment for all threads in the subtree of a level that contains the key, in a
 * tree of `levels`. */
void sg_clock_raise(sg_clock *clock, unsigned levels, uint64_t key, unsigned level, uint32_t moment,
                    bool *failed);
/* The moment up to which a thread is known. */
uint32_t sg_clock_of(sg_clock clock, unsigned levels, uint64_t key);

#endif
