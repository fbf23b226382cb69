#include "base/spans.h"

#include <assert.h>
#include <stdlib.h>

/* Pieces in bin b have 2^b units or more, and fewer than 2^(b+1). */
static unsigned bin_of(size_t bytes) {
    return 63u - (unsigned)__builtin_clzll((unsigned long long)(bytes / GM_SPAN_UNIT));
}

static void bin_insert(struct gm_spans *spans, struct gm_span *span) {
    unsigned bin = bin_of(span->bytes);
    span->is_free = 1;
    span->bin_before = NULL;
    span->bin_after = spans->bins[bin];
    if (span->bin_after)
        span->bin_after->bin_before = span;
    spans->bins[bin] = span;
    spans->filled |= UINT64_C(1) << bin;
}

static void bin_remove(struct gm_spans *spans, struct gm_span *span) {
    unsigned bin = bin_of(span->bytes);
    if (span->bin_before)
        span->bin_before->bin_after = span->bin_after;
    else
        spans->bins[bin] = span->bin_after;
    if (span->bin_after)
        span->bin_after->bin_before = span->bin_before;
    if (!spans->bins[bin])
        spans->filled &= ~(UINT64_C(1) << bin);
    span->is_free = 0;
}

int gm_spans_init(struct gm_spans *spans, uintptr_t base, size_t bytes) {
    struct gm_span *whole = malloc(sizeof *whole);
    if (!whole)
        return -1;
    *spans = (struct gm_spans){.base = base, .bytes = bytes, .first = whole};
    *whole = (struct gm_span){.bytes = bytes, .owner = spans};
    bin_insert(spans, whole);
    return 0;
}

void gm_spans_destroy(struct gm_spans *spans) {
    assert(spans->used == 0 && spans->first && !spans->first->after);
    free(spans->first);
    spans->first = NULL;
}

/* Bytes to skip at the start of a free piece to be aligned. */
static size_t lead(const struct gm_spans *spans, const struct gm_span *span, size_t alignment) {
    uintptr_t address = spans->base + span->offset;
    return (size_t)(-address & (uintptr_t)(alignment - 1));
}

static int fits(const struct gm_spans *spans, const struct gm_span *span, size_t bytes,
                size_t alignment) {
    return span->bytes >= bytes && span->bytes - bytes >= lead(spans, span, alignment);
}

static struct gm_span *find(const struct gm_spans *spans, size_t bytes, size_t alignment) {
    uint64_t candidates = spans->filled & (~UINT64_C(0) << bin_of(bytes));
    while (candidates) {
        unsigned bin = (unsigned)__builtin_ctzll(candidates);
        for (struct gm_span *span = spans->bins[bin]; span; span = span->bin_after)
            if (fits(spans, span, bytes, alignment))
                return span;
        candidates &= candidates - 1;
    }
    return NULL;
}

/* Makes `rest` of what follows the first `bytes` of `span`. */
static void split(struct gm_span *span, size_t bytes, struct gm_span *rest) {
    *rest = (struct gm_span){.offset = span->offset + bytes,
                             .bytes = span->bytes - bytes,
                             .owner = span->owner,
                             .before = span,
                             .after = span->after};
    if (rest->after)
        rest->after->before = rest;
    span->after = rest;
    span->bytes = bytes;
}

struct gm_span *gm_spans_take(struct gm_spans *spans, size_t bytes, size_t alignment) {
    if (bytes == 0 || bytes > spans->bytes)
        return NULL;
    bytes = (bytes + GM_SPAN_UNIT - 1) / GM_SPAN_UNIT * GM_SPAN_UNIT;
    if (alignment < GM_SPAN_UNIT)
        alignment = GM_SPAN_UNIT;
    struct gm_span *span = find(spans, bytes, alignment);
    if (!span)
        return NULL;
    size_t skip = lead(spans, span, alignment);
    size_t left = span->bytes - skip - bytes;
    struct gm_span *body = skip ? malloc(sizeof *body) : span;
    struct gm_span *tail = left ? malloc(sizeof *tail) : NULL;
    if (!body || (left && !tail)) {
        if (skip)
            free(body);
        free(tail);
        return NULL;
    }
    bin_remove(spans, span);
    if (skip) {
        split(span, skip, body);
        bin_insert(spans, span);
    }
    if (left) {
        split(body, bytes, tail);
        bin_insert(spans, tail);
    }
    spans->used += bytes;
    return body;
}

/* Joins the free `right` to `left`. */
static void join(struct gm_span *left, struct gm_span *right) {
    left->bytes += right->bytes;
    left->after = right->after;
    if (left->after)
        left->after->before = left;
    free(right);
}

void gm_spans_give(struct gm_span *span) {
    struct gm_spans *spans = span->owner;
    spans->used -= span->bytes;
    if (span->after && span->after->is_free) {
        bin_remove(spans, span->after);
        join(span, span->after);
    }
    if (span->before && span->before->is_free) {
        struct gm_span *before = span->before;
        bin_remove(spans, before);
        join(before, span);
        span = before;
    }
    bin_insert(spans, span);
}

size_t gm_spans_largest(const struct gm_spans *spans) {
    size_t largest = 0;
    if (!spans->filled)
        return 0;
    unsigned bin = 63u - (unsigned)__builtin_clzll((unsigned long long)spans->filled);
    for (const struct gm_span *span = spans->bins[bin]; span; span = span->bin_after)
        if (span->bytes > largest)
            largest = span->bytes;
    return largest;
}
