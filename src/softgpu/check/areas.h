/*
 * What checkers know of each allocation: whether anything has used it, which of its bytes have been
 * written, and of those that have been freed where they were. Kept from hooks of the ranges, with
 * a mutex of its own, which is the innermost: nothing is called with it.
 */
#ifndef SG_CHECK_AREAS_H
#define SG_CHECK_AREAS_H

#include "softgpu/address/range.h"

struct sg_area {
    struct sg_tree_node node;
    CUdeviceptr start;
    size_t size;
    uint32_t site;
    bool by_application; /* that has to free it, too */
    bool freed, used;
    bool array;     /* the bytes of an array, and no range's */
    bool kept;      /* once freed, it is kept where it was: nothing else has its pages for it */
    bool tracked;   /* its writes are known: `written` is true of it */
    bool by_cpu;    /* the CPU may use it without a call */
    bool pattern;   /* the CPU writes it, too: then it no longer has the pattern */
    bool all;       /* every byte has been written */
    uint64_t *bits; /* of bytes that have been written; NULL: none, or all */
    struct sg_area *older, *newer; /* freed ones, in the order of their frees */
};

/* Before there is any range. `written`: also which bytes have been written. */
void sg_areas_begin(bool written);

/* Another number, never 0, after each change of which areas there are. */
uint64_t sg_areas_state(void);
void sg_areas_lock(void);
void sg_areas_unlock(void);
/* Between the two; good until then. NULL: none. */
struct sg_area *sg_area_find(CUdeviceptr address);
struct sg_area *sg_area_freed(CUdeviceptr address);
/* The first live one from an address on. */
struct sg_area *sg_area_from(CUdeviceptr address);
/* Would hardware have the page of 2 MiB of an address, if it is mapped? Not where only what is kept
 * for checks holds it. */
bool sg_area_shares_page(CUdeviceptr address);
/* The freed one that ends at an address or closely before it. */
struct sg_area *sg_area_freed_before(CUdeviceptr address);
void sg_area_write(struct sg_area *area, size_t offset, size_t size);
/* Bytes of a piece that nothing has written; *first: the offset of the first of them. */
size_t sg_area_unwritten(struct sg_area *area, size_t offset, size_t size, size_t *first);
/* A kernel runs that nobody watches: of all that there is now nobody knows any more whether it is
 * used, and what of it is written. Without the mutex. */
void sg_areas_lose(void);
/* The piece becomes as written as the other one, of another area or the same. */
void sg_area_copy(struct sg_area *to, size_t to_offset, struct sg_area *from, size_t from_offset,
                  size_t size);

/* Something used it, without the mutex; `wrote`: and wrote it. */
void sg_areas_touch(CUdeviceptr address, size_t size, bool wrote);

/* Told of each range and array that begins; with the lock, without the mutex. */
extern void (*sg_area_begins)(CUdeviceptr start, size_t size);
/* Told of each one that ends, before its area is a freed one; with the lock, without the mutex.
 * Lost: it ends with its context. */
extern void (*sg_area_ends)(const struct sg_area *area, bool lost);
/* Of each freed one that is forgotten: work that was queued before the free may have used it since.
 * With the lock and the mutex. */
extern void (*sg_area_forgotten)(const struct sg_area *area);
/* Forgets all that have been freed. With the lock. */
void sg_areas_forget(void);

#endif
