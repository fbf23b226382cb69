/*
 * Divides a range of bytes into pieces and joins them again, for resources that hold memory in
 * slabs. Free pieces are kept in bins by the power of two of their size, so that finding one takes
 * a few steps. Not thread-safe; no memory of the range itself is touched.
 */
#ifndef GM_BASE_SPANS_H
#define GM_BASE_SPANS_H

#include <stddef.h>
#include <stdint.h>

/* Pieces begin and end at multiples of this: as cuMemAlloc aligns. */
#define GM_SPAN_UNIT ((size_t)256)

struct gm_span {
    size_t offset, bytes;
    struct gm_spans *owner;
    struct gm_span *before, *after;         /* neighbours by offset */
    struct gm_span *bin_before, *bin_after; /* in its bin, when free */
    int is_free;
    int mark; /* for the owner of the spans: not used here, initially 0 */
};

struct gm_spans {
    uintptr_t base; /* address of offset 0: alignment counts from it */
    size_t bytes, used;
    uint64_t filled; /* bit per bin */
    struct gm_span *bins[64];
    struct gm_span *first;
    void *user;
};

/* `bytes` is a multiple of the unit. 0, or -1 without memory. */
int gm_spans_init(struct gm_spans *spans, uintptr_t base, size_t bytes);
/* All pieces must be free. */
void gm_spans_destroy(struct gm_spans *spans);
/* NULL when no free piece is large enough, or without memory. alignment: a power of two. */
struct gm_span *gm_spans_take(struct gm_spans *spans, size_t bytes, size_t alignment);
void gm_spans_give(struct gm_span *span);
/* Bytes of the largest free piece. */
size_t gm_spans_largest(const struct gm_spans *spans);

#endif
