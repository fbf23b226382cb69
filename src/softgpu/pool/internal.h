/*
 * The parts of a pool. A pool owns segments, ranges of addresses; a segment is cut into blocks,
 * which tile it. A block is live (the application has it), pending (freed, but as far as the pool
 * knows its stream has not yet reached the free), idle, or has no memory; under a checker it is
 * kept before it is pending or idle.
 *
 * Memory comes in steps of 32 MiB, as on an H200. A pool of plain device memory grows behind its
 * last block, so that free blocks of several growths are one; steps that are idle are given back
 * one by one, and move to where a larger block is needed: their addresses remain, without memory.
 */
#ifndef SG_POOL_INTERNAL_H
#define SG_POOL_INTERNAL_H

#include "softgpu/address/range.h"
#include "softgpu/core/calls.h"
#include "softgpu/device/device.h"
#include "softgpu/managed/pages.h"
#include "softgpu/pool/pool.h"

#define SG_BLOCK_UNIT ((size_t)512)      /* alignment and rounding of allocations */
#define SG_POOL_STEP  ((size_t)32 << 20) /* pools grow by multiples of this while memory allows */

enum sg_block_state {
    SG_BLOCK_LIVE,
    SG_BLOCK_PENDING,
    SG_BLOCK_IDLE,
    SG_BLOCK_KEPT,
    SG_BLOCK_GONE
};

/* A free block in the index by address (places.c). */
struct sg_block_place {
    struct sg_block *child[2], *up;
    size_t largest; /* the largest size among this block and those below it */
    uint32_t priority;
};

struct sg_places {
    struct sg_block *root;
};

struct sg_block {
    struct sg_range range; /* in the address map while live */
    struct sg_pool_segment *segment;
    size_t offset, size; /* its part of the segment, multiples of SG_BLOCK_UNIT */
    enum sg_block_state state;
    struct sg_block *previous, *next; /* neighbours in the segment */

    /* Live: earlier work on these bytes, which the block's user follows in stream order. Kept: the
     * free. */
    struct sg_token after;
    /* Pending: reusable by anyone when cache->stream has completed `number`. */
    struct sg_cache *cache;
    uint64_t number;
    /* Pending blocks of a cache, by time of free; kept blocks likewise. */
    struct sg_block *queue_previous, *queue_next;
    struct sg_block_place place; /* pending or idle */
};

/* The frees of one stream to one pool that have not been seen to complete. */
struct sg_cache {
    struct sg_cache *next;
    struct sg_stream *stream; /* referenced */
    struct sg_places places;
    struct sg_block *first, *last;
    /* Valid during one allocation: its stream follows what this one has done up to here. */
    uint64_t usable;
};

/* Physical memory at a place of a segment; without one where the block is gone. */
struct sg_pool_step {
    size_t offset, size;
    struct sg_phys *phys; /* referenced */
};

struct sg_pool_segment {
    struct sg_pool *pool;
    CUdeviceptr address;
    size_t size;    /* cut into blocks and steps */
    size_t room;    /* of the addresses: more than the size for growth */
    size_t present; /* bytes that have memory */
    struct sg_block *blocks, *last;
    struct sg_pool_step *steps; /* by offset */
    size_t step_count, step_room;
    struct sg_segment map;                   /* host memory, which is mapped as a whole */
    struct sg_pool_segment *previous, *next; /* in order of creation */
    uint64_t file_offset;                    /* in the file of an exportable or imported pool */
    struct sg_pages pages;                   /* of managed memory */
};

struct sg_pool {
    struct sg_pool *next; /* all pools, in order of creation */
    uint64_t handle;
    uint64_t id; /* never reused; dumps are ordered by it */
    CUmemPoolProps props;
    int device;   /* ordinal; -1 for host memory */
    bool managed; /* the bytes are in host memory, whatever the device */
    bool is_default;
    bool imported;
    bool destroyed;   /* the handle is invalid; the pool ends with its last allocation */
    bool exported;    /* its pointers may be exported */
    unsigned devices; /* one bit for each device that may read and write */
    uint32_t told;    /* managed memory: who was given access, as in sg_page_facts */

    bool reuse_follow, reuse_opportunistic, reuse_internal;
    uint64_t threshold;
    uint64_t limit; /* of reserved bytes */
    uint64_t reserved, reserved_high;
    uint64_t used, used_high; /* bytes requested */

    size_t live, kept; /* blocks */
    size_t idle_steps; /* whole steps in idle blocks */
    size_t least_step; /* the size of the smallest that there was; 0: there was none */
    size_t gone;       /* bytes of addresses without memory */
    struct sg_pool_segment *first, *last;
    struct sg_places idle;
    struct sg_cache *caches; /* none is empty */
    struct sg_cache *spare;  /* an empty one for the next free */

    struct gm_kept_file file; /* of an exportable or imported pool only */
    uint64_t file_used;
    unsigned char uuid[16]; /* of an exportable or imported pool */
};

extern struct sg_pool *sg_pools;

/* ---- places.c -------------------------------------------------------------------------------- */

CUdeviceptr sg_block_address(const struct sg_block *block);
/* The size of a block does not change while it is in an index. */
void sg_places_add(struct sg_places *places, struct sg_block *block);
void sg_places_remove(struct sg_places *places, struct sg_block *block);
/* The lowest block of at least `size` bytes with number <= `most`; NULL when there is none, or when
 * many lower ones have higher numbers. */
struct sg_block *sg_places_find(const struct sg_places *places, size_t size, uint64_t most);

/* ---- block.c --------------------------------------------------------------------------------- */

/* Takes `size` bytes (a multiple of SG_BLOCK_UNIT) from the start of a free block and, if it is too
 * small, from the free blocks that follow it in the segment. The block becomes live with these
 * bytes, with `after` set if it was pending. The rest of the last block keeps its state. Returns
 * false when out of memory; nothing has changed then. */
bool sg_block_take(struct sg_block *block, size_t size);
/* Makes a block that is no longer live, or has memory again, idle, and joins it with idle
 * neighbours. */
void sg_block_idle(struct sg_block *block);
/* Cuts `size` bytes from `offset` of its segment on out of an idle block, in no index; the rest
 * stays idle. NULL when out of memory. */
struct sg_block *sg_block_carve(struct sg_block *idle, size_t offset, size_t size);
/* Its memory has gone: joins it with such neighbours. */
void sg_block_gone(struct sg_block *block);
/* Makes one block, in no index, of idle and gone ones that follow each other up to the first that
 * reaches `end`, in a step that ends at `step_end`; of the last one, if it is gone, only what is
 * before that. `spare` is used for the rest, and NULL then. */
void sg_blocks_join(struct sg_block *first, size_t end, size_t step_end, struct sg_block **spare);
/* Makes a block that is no longer live wait for `number` of `stream`. False when out of memory. */
bool sg_block_pend(struct sg_block *block, struct sg_stream *stream, uint64_t number);
/* Makes pending blocks idle once their streams have completed them: those of one stream (see
 * sg_pools_synchronized), or all. */
void sg_pool_promote_seen(struct sg_pool *pool, const struct sg_context *context,
                          const struct sg_stream *stream);
void sg_pool_promote(struct sg_pool *pool);
/* The lowest run of free blocks that is `size` bytes long and begins below `below`; all must be
 * usable (sg_pool_order) and at least one pending. NULL if there is none. The search is short
 * unless `thorough`. */
struct sg_block *sg_pool_run(struct sg_pool *pool, size_t size, CUdeviceptr below, bool thorough);
struct sg_cache *sg_pool_cache(struct sg_pool *pool, const struct sg_stream *stream);

/* ---- kept.c ---------------------------------------------------------------------------------- */

/* Whether the block is to be kept when it is freed, which the next does: until the stream (or NULL)
 * has completed `number` at least. */
bool sg_block_keeps(const struct sg_block *block);
void sg_block_keep(struct sg_block *block, struct sg_stream *stream, uint64_t number);
/* Makes what is kept of a pool pending or idle. False: nothing was. */
bool sg_pool_let_go(const struct sg_pool *pool);

/* ---- alloc.c --------------------------------------------------------------------------------- */

/* Makes a block that is in no index live: the application gets `bytes` at `offset` of its segment.
 * UNKNOWN when the address map rejects it; the block is idle then. */
CUresult sg_block_live(struct sg_block *block, size_t offset, size_t bytes);

/* Whether a stream may allocate and free now. During a capture the call is unsafe except in the
 * streams that capture. */
CUresult sg_pool_capture_allows(const struct sg_stream *stream);

/* ---- free.c ---------------------------------------------------------------------------------- */

/* Operations of the ranges that live blocks are. */
extern const struct sg_range_ops sg_pool_range_ops;

/* ---- order.c --------------------------------------------------------------------------------- */

/* Sets `usable` of all caches for an allocation in `stream`: its own is entirely usable; with
 * `follow`, others up to the point it follows, as far as a bounded look at the queues shows. */
void sg_pool_order(struct sg_pool *pool, struct sg_stream *stream, bool follow);
/* The point of `stream` at which a free made now takes place, under the default-stream rules. */
CUresult sg_free_point(struct sg_stream *stream, struct sg_token *token);

/* ---- segment.c ------------------------------------------------------------------------------- */

/* Is its memory in steps that are given back one by one? Else a segment is one step. */
static inline bool sg_pool_has_steps(const struct sg_pool *pool) {
    return pool->device >= 0 && !pool->managed && !pool->imported;
}
/* Do its steps move, and its segments grow? In a pool's file, an allocation is named by its place.
 */
static inline bool sg_pool_moves(const struct sg_pool *pool) {
    return sg_pool_has_steps(pool) && pool->file.fd < 0;
}
/* Makes a segment of these steps, which lie behind one another (the caller keeps its references),
 * with one block that is in no index. */
CUresult sg_pool_add_segment(struct sg_pool *pool, struct sg_phys *const *steps, size_t count,
                             uint64_t file_offset, struct sg_pool_segment **segment);
/* An empty one with room for `size` bytes, or more if there are. */
CUresult sg_pool_new_segment(struct sg_pool *pool, size_t size, struct sg_pool_segment **segment);
/* Whether there are addresses for `size` bytes behind its end, and host memory for so many more
 * steps. */
bool sg_segment_has_room(struct sg_pool_segment *segment, size_t size, size_t steps);
/* Unmaps a segment that has no live or pending block. */
void sg_segment_release(struct sg_pool_segment *segment);
/* Maps memory at a step that has none, and takes over the reference. */
void sg_step_map(struct sg_pool_segment *segment, struct sg_pool_step *step, struct sg_phys *phys);
/* Takes the memory, with its reference, from a step in an idle block. NULL when out of memory. */
struct sg_phys *sg_step_take(struct sg_block *idle, struct sg_pool_step *step);
/* The steps that lie wholly between two offsets: how many, and the first. */
size_t sg_steps_between(const struct sg_pool_segment *segment, size_t offset, size_t end,
                        size_t *first);
/* The step that holds a byte. */
struct sg_pool_step *sg_step_at(const struct sg_pool_segment *segment, size_t offset);

/* ---- grow.c ---------------------------------------------------------------------------------- */

/* Memory for `size` bytes in one block, idle: of a pool that moves, first from idle steps that are
 * elsewhere. `unit` is what new memory is rounded up to. */
CUresult sg_pool_extend(struct sg_pool *pool, size_t size, size_t unit);

/* ---- reserve.c ------------------------------------------------------------------------------- */

/* Whether its limit allows that many bytes more. */
bool sg_pool_may_have(const struct sg_pool *pool, size_t bytes);
/* Fresh memory, in steps of at most `step` bytes, with a reference to each: all or nothing. */
CUresult sg_pool_make_memory(struct sg_pool *pool, size_t size, size_t step, struct sg_phys **parts,
                             uint64_t *offset);

/* At least `size` more bytes in one block, idle. */
CUresult sg_pool_grow(struct sg_pool *pool, size_t size);
/* Gives back idle steps, from the last on, keeping at least `keep` bytes reserved. Returns the
 * bytes given back. */
uint64_t sg_pool_shrink(struct sg_pool *pool, uint64_t keep);

/* ---- pool.c ---------------------------------------------------------------------------------- */

struct sg_pool *sg_pool_get(CUmemoryPool handle);
/* A pool with default attributes in the list of all pools, without a handle; NULL when out of
 * memory. `props` have been checked. */
struct sg_pool *sg_pool_new(const CUmemPoolProps *props);
/* Gives it a handle; on failure ends it and returns OUT_OF_MEMORY. */
CUresult sg_pool_publish(struct sg_pool *pool, CUmemoryPool *handle);
/* Ends a destroyed pool that has nothing live and nothing pending. */
void sg_pool_collect(struct sg_pool *pool);
/* The pool that cuMemAllocAsync takes from. */
CUresult sg_pool_current(int device, struct sg_pool **pool);

/* ---- share.c --------------------------------------------------------------------------------- */

/* The file of an exportable pool; at its start is what an importer must know. */
CUresult sg_pool_file_create(struct sg_pool *pool);
/* The next `size` bytes of the file as physical memory, in parts of `step` bytes and a rest. */
CUresult sg_pool_file_extend(struct sg_pool *pool, size_t size, size_t step, struct sg_phys **parts,
                             uint64_t *offset);

/* ---- What the chapter gives to those below: core/chapter.h ----------------------------------- */

/*
 * Physical memory of `device` (-1: host memory) is short of `bytes`: pools give back unused
 * segments until that much is free or none are left. Returns the bytes given back. Does not wait
 * for incomplete frees.
 */
uint64_t sg_pools_reclaim(int device, uint64_t bytes);

/*
 * A stream, event or context synchronize has succeeded: frees that are complete in `stream` (NULL:
 * in any stream of the context) count as seen by the host, and pools give back what they hold above
 * their release threshold. On H200, synchronizing one stream does not give back what another one
 * freed. Cheap when no pool has anything to give back.
 */
void sg_pools_synchronized(struct sg_context *context, struct sg_stream *stream);

/* Reports which pools are current where that is not the default. */
struct sg_text;
void sg_pools_dump_current(struct sg_text *text);

#endif
