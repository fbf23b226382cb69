/*
 * Where blocks lie: areas of addresses, divided into pieces, and indexes of their free pieces by
 * size, from which the best fit is taken. One index may serve many areas, and an area belongs to
 * one index at a time.
 *
 * Best fit, because what is left over is then least: of five programs' traces the first fit took
 * 1.15 to 1.57 times what was in use at its peak, the best fit 1.08 to 1.13. Among pieces of one
 * size the lowest address is taken, so that what is free gathers at the end.
 *
 * An area may lack memory in parts: those pieces are bare, and are in no index. Pieces whose memory
 * is being moved are neither free nor bare until that is done. Not thread-safe; no memory of the
 * areas themselves is touched.
 */
#ifndef GM_CACHE_PLACEMENT_AREA_H
#define GM_CACHE_PLACEMENT_AREA_H

#include <stddef.h>
#include <stdint.h>

/* Pieces begin and end at multiples of this: as cuMemAlloc aligns. */
#define GM_PIECE_UNIT ((size_t)256)

enum gm_piece_state {
    GM_PIECE_USED,
    GM_PIECE_FREE,
    GM_PIECE_BARE,   /* without memory */
    GM_PIECE_MOVING, /* memory is being put there or taken away */
};

/* Neighbours differ in state, except that used and moving ones stay apart. */
struct gm_piece {
    size_t offset, bytes;
    struct gm_area *area;
    struct gm_piece *before, *after; /* neighbours by offset */
    struct gm_piece *left, *right;   /* in the index, when free; of the bare ones, when bare */
    enum gm_piece_state state;
    int mark; /* for the user: not used here, initially 0 */
};

struct gm_index {
    struct gm_piece *root;
    size_t bytes; /* of all its pieces */
};

struct gm_area {
    uintptr_t base; /* address of offset 0: alignment counts from it */
    size_t bytes, used, bare;
    struct gm_piece *first, *near; /* `near`: any one, where the last change was */
    struct gm_piece *bare_ones;    /* in no order */
    struct gm_index *index;
    void *user;
};

/* One piece of this state, FREE or BARE. `bytes` is a multiple of the unit. 0, or -1 without
 * memory. */
int gm_area_init(struct gm_area *area, uintptr_t base, size_t bytes, struct gm_index *index,
                 enum gm_piece_state state);
/* Nothing is used. */
void gm_area_end(struct gm_area *area);
/* Its free pieces go to another index. */
void gm_area_move(struct gm_area *area, struct gm_index *index);

/* The smallest free piece that holds `bytes` at this alignment, a power of two, cut to size. NULL
 * when there is none, or without memory. */
struct gm_piece *gm_index_take(struct gm_index *index, size_t bytes, size_t alignment);
/* The piece that follows in the order of sizes, or the first one of at least `bytes`. */
struct gm_piece *gm_index_next(const struct gm_index *index, size_t bytes,
                               const struct gm_piece *piece);
/* Bytes of the largest free piece. */
size_t gm_index_largest(const struct gm_index *index);

/* A used piece becomes free, and joins free neighbours. */
void gm_piece_give(struct gm_piece *piece);

/*
 * Changes the state of a part of an area in which nothing is in use: afterwards it is one piece,
 * joined with free or bare neighbours of that state. 0, or -1 without memory, and nothing has
 * changed; where the part begins and ends at pieces' ends, it needs none.
 */
int gm_area_set(struct gm_area *area, size_t offset, size_t bytes, enum gm_piece_state state);
/* The piece in which `offset` lies, searched from `near`, a piece of the area, or from where the
 * last change was. */
struct gm_piece *gm_area_find(const struct gm_area *area, struct gm_piece *near, size_t offset);

/* Bytes of the largest free piece of the area. */
size_t gm_area_largest(const struct gm_area *area);

/* Aborts where the pieces of the area and its index contradict each other. */
void gm_area_check(const struct gm_area *area);

#endif
