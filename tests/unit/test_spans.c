/* Cutting up slabs: pieces never overlap, are aligned, and all join again. */
#include "base/spans.h"
#include "library_test.h"

#define SLAB (4 * MIB)

TEST(freed_neighbours_merge) {
    struct gm_spans spans;
    assert_int_equal(gm_spans_init(&spans, 2 * MIB, SLAB), 0);
    struct gm_span *a = gm_spans_take(&spans, 1, 1);
    struct gm_span *b = gm_spans_take(&spans, 1000, 1);
    struct gm_span *c = gm_spans_take(&spans, SLAB / 2, 1);
    assert_int_equal(a->bytes, 256);
    assert_int_equal(b->bytes, 1024);
    assert_null(gm_spans_take(&spans, SLAB, 1));
    assert_null(gm_spans_take(&spans, SLAB / 2, 1));
    gm_spans_give(a);
    gm_spans_give(c);
    gm_spans_give(b);
    struct gm_span *whole = gm_spans_take(&spans, SLAB, 1);
    assert_non_null(whole);
    assert_int_equal(spans.used, SLAB);
    gm_spans_give(whole);
    gm_spans_destroy(&spans);
}

TEST(sizes_out_of_range_are_refused) {
    struct gm_spans spans;
    assert_int_equal(gm_spans_init(&spans, 0, SLAB), 0);
    assert_null(gm_spans_take(&spans, 0, 1));
    assert_null(gm_spans_take(&spans, SLAB + 1, 1));
    assert_null(gm_spans_take(&spans, SIZE_MAX, 1));
    gm_spans_destroy(&spans);
}

static uint32_t next_random(uint32_t *seed) {
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* Marks the units of a piece; they must have been unmarked. */
static void mark(unsigned char *units, const struct gm_span *span, int to) {
    for (size_t i = span->offset / GM_SPAN_UNIT; i < (span->offset + span->bytes) / GM_SPAN_UNIT;
         i++) {
        assert_int_equal(units[i], !to);
        units[i] = (unsigned char)to;
    }
}

TEST(random_allocations_never_overlap) {
    static unsigned char units[SLAB / GM_SPAN_UNIT];
    struct gm_span *held[200] = {0};
    const uintptr_t base = 2 * MIB;
    struct gm_spans spans;
    uint32_t seed = 12345;
    size_t used = 0;
    assert_int_equal(gm_spans_init(&spans, base, SLAB), 0);
    for (int i = 0; i < 20000; i++) {
        struct gm_span **slot = &held[next_random(&seed) % COUNT(held)];
        if (*slot) {
            used -= (*slot)->bytes;
            mark(units, *slot, 0);
            gm_spans_give(*slot);
            *slot = NULL;
            continue;
        }
        size_t bytes = 1 + next_random(&seed) % ((size_t)1 << (next_random(&seed) % 19));
        size_t alignment = (size_t)1 << (next_random(&seed) % 17);
        *slot = gm_spans_take(&spans, bytes, alignment);
        if (!*slot)
            continue;
        assert_true((*slot)->bytes >= bytes);
        assert_int_equal((base + (*slot)->offset) % alignment, 0);
        mark(units, *slot, 1);
        used += (*slot)->bytes;
        assert_int_equal(spans.used, used);
    }
    for (size_t i = 0; i < COUNT(held); i++)
        if (held[i])
            gm_spans_give(held[i]);
    gm_spans_destroy(&spans); /* asserts that one free piece is left */
}
