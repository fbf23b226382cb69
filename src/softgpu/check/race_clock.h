/*
 * What a thread knows of the others: for each thread of a grid the moment up to which everything
 * it did has happened before. A tree of 32 children a node; its leaves are lanes. Where all threads
 * below a node have the same moment there is no node, so that the knowledge after a barrier is one
 * number. Trees never change, so they share what they have in common, and joining two that share
 * much is quick. Not thread-safe: whoever uses them holds the checker's lock.
 */
#ifndef SG_CHECK_RACE_CLOCK_H
#define SG_CHECK_RACE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* 0: nothing is known. Odd: the moment in the upper bits, for all threads below. Else a node. */
typedef uintptr_t sg_clock;

#define SG_CLOCK_WIDTH 32u
/* Levels below which lie: a lane, the lanes of a warp, the warps of a block. */
#define SG_CLOCK_LANE  0u
#define SG_CLOCK_WARP  1u
#define SG_CLOCK_BLOCK 2u
/* A thread's key: its block, in five bits each its warp and its lane. */
#define SG_CLOCK_KEY(block, warp, lane)                                                            \
    ((uint64_t)(block) << 10 | (uint64_t)((warp)&31) << 5 | (uint64_t)((lane)&31))

/* Levels that a tree needs for so many blocks. */
unsigned sg_clock_levels(uint64_t blocks);

/* References: a clock that is kept is held once, and given back once. */
sg_clock sg_clock_keep(sg_clock clock);
void sg_clock_drop(sg_clock clock);

/* The later of both for each thread: a reference of its own. *failed is set when there is no
 * memory; then the result is 0. */
sg_clock sg_clock_join(sg_clock a, sg_clock b, bool *failed);
/* *clock becomes what it was, joined with `other`, which stays. */
void sg_clock_add(sg_clock *clock, sg_clock other, bool *failed);
/* The same with one moment for all threads below the node of a level that has the key in it, of a
 * tree of `levels`. */
void sg_clock_raise(sg_clock *clock, unsigned levels, uint64_t key, unsigned level, uint32_t moment,
                    bool *failed);
/* What is known of a thread. */
uint32_t sg_clock_of(sg_clock clock, unsigned levels, uint64_t key);

#endif
