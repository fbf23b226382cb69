/*
 * What checkers know of each allocation: whether anything has used it, which of its bytes have been
 * written, and where freed ones were. Hooks of the ranges keep it up to date. It has a mutex of its
 * own, which is the innermost: nothing is called while it is held.
 */
#ifndef SG_CHECK_AREAS_H
#define SG_CHECK_AREAS_H

#include "softgpu/address/range.h"

struct sg_area {
    struct sg_tree_node node;
    CUdeviceptr start;
    size_t size;
    uint32_t site;
    bool by_application; /* which also has to free it */
    bool freed, used;
    bool array;                    /* the bytes of an array, and no range's */
    bool block;                    /* of the kernels' heap, and no range either */
    bool kept;                     /* freed memory that stays mapped only for the checkers */
    bool tracked;                  /* its writes are known: `written` is true of it */
    bool by_cpu;                   /* the CPU may use it without a call */
    bool pattern;                  /* the CPU writes it, too: then it no longer has the pattern */
    bool all;                      /* every byte has been written */
    uint64_t *bits;                /* of one for each written byte; NULL: none or all are */
    struct sg_area *older, *newer; /* freed areas, in the order of their frees */
};

/* Call before there is any range. `written`: also track which bytes have been written. */
void sg_areas_begin(bool written);

/* A number, never 0, that changes whenever an area begins or ends. */
uint64_t sg_areas_state(void);
void sg_areas_lock(void);
void sg_areas_unlock(void);
/* The area at an address, valid until sg_areas_unlock; NULL: none. Only while locked. */
struct sg_area *sg_area_find(CUdeviceptr address);
struct sg_area *sg_area_freed(CUdeviceptr address);
/* The live area that begins before an address, or at it. */
struct sg_area *sg_area_before(CUdeviceptr address);
/* Whether each block of the kernels' heap has its area: not if memory ran out for one. */
bool sg_areas_know_heap(void);
/* The first live area at or after an address. */
struct sg_area *sg_area_from(CUdeviceptr address);
/* Whether hardware would have the mapped 2 MiB page of an address; not if only memory that is kept
 * for checks holds the page. */
bool sg_area_shares_page(CUdeviceptr address);
/* The freed area that ends at an address or shortly before it. */
struct sg_area *sg_area_freed_before(CUdeviceptr address);
void sg_area_write(struct sg_area *area, size_t offset, size_t size);
/* The number of unwritten bytes in a piece; *first: the offset of the first one. */
size_t sg_area_unwritten(struct sg_area *area, size_t offset, size_t size, size_t *first);
/* An unwatched kernel runs, which may use and write any memory there is: from now on all of it
 * counts as used and written. Without the mutex. */
void sg_areas_lose(void);
/* The piece becomes as written as the other one, of another area or the same. */
void sg_area_copy(struct sg_area *to, size_t to_offset, struct sg_area *from, size_t from_offset,
                  size_t size);

/* Marks a piece as used, without the mutex; `wrote`: also as written. */
void sg_areas_touch(CUdeviceptr address, size_t size, bool wrote);

/* Called for each range, array and block that begins; with the lock, without the mutex. */
extern void (*sg_area_begins)(CUdeviceptr start, size_t size);
/* Called for each one that ends, before its area becomes a freed one; with the lock, without the
 * mutex. lost: it ends with its context. */
extern void (*sg_area_ends)(const struct sg_area *area, bool lost);
/* Called for each freed area that is forgotten, with the lock and the mutex. Only now is it known
 * whether work that was queued before the free has used it. */
extern void (*sg_area_forgotten)(const struct sg_area *area);
/* Forgets all freed areas. With the lock. */
void sg_areas_forget(void);

#endif
