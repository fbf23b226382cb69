/* Where blocks lie: pieces never overlap, the best fit is taken, parts lose their memory and get it
 * again. */
#include "cache/placement/area.h"
#include "library_test.h"

#define AREAS 3
#define BYTES (4 * MIB)
#define UNITS (BYTES / GM_PIECE_UNIT)

static struct gm_index index_a, index_b;

static void begin(struct gm_area *area, uintptr_t base, enum gm_piece_state state) {
    assert_int_equal(gm_area_init(area, base, BYTES, &index_a, state), 0);
}

TEST(freed_neighbours_join) {
    struct gm_area area;
    begin(&area, 2 * MIB, GM_PIECE_FREE);
    struct gm_piece *a = gm_index_take(&index_a, 1, 1);
    struct gm_piece *b = gm_index_take(&index_a, 1000, 1);
    struct gm_piece *c = gm_index_take(&index_a, BYTES / 2, 1);
    assert_int_equal(a->bytes, 256);
    assert_int_equal(b->bytes, 1024);
    static const size_t none[] = {0, BYTES / 2, BYTES + 1, SIZE_MAX};
    for (size_t i = 0; i < COUNT(none); i++)
        assert_null(gm_index_take(&index_a, none[i], 1));
    gm_piece_give(a);
    gm_piece_give(c);
    gm_piece_give(b);
    assert_int_equal(gm_index_largest(&index_a), BYTES);
    gm_area_end(&area);
}

TEST(the_best_fit_of_all_areas_is_taken) {
    struct gm_area areas[2];
    begin(&areas[0], 64 * MIB, GM_PIECE_FREE);
    begin(&areas[1], 8 * MIB, GM_PIECE_FREE);
    struct gm_piece *large = gm_index_take(&index_a, BYTES - 64 * KIB, 1);
    assert_ptr_equal(large->area, &areas[1]); /* the lowest address of those of one size */
    assert_ptr_equal(gm_index_take(&index_a, 64 * KIB, 1)->area, &areas[1]);
    struct gm_piece *other = gm_index_take(&index_a, MIB, 1);
    assert_ptr_equal(other->area, &areas[0]);
    gm_piece_give(large);
    assert_ptr_equal(gm_index_take(&index_a, 3 * MIB, 1)->area, &areas[0]);
    assert_ptr_equal(gm_index_take(&index_a, 3 * MIB, 1)->area, &areas[1]);
    for (size_t i = 0; i < 2; i++)
        gm_area_check(&areas[i]);
    for (size_t i = 0; i < 2; i++) {
        for (struct gm_piece *piece = areas[i].first; piece; piece = piece->after) {
            if (piece->state != GM_PIECE_USED)
                continue;
            gm_piece_give(piece);
            piece = areas[i].first;
        }
        gm_area_end(&areas[i]);
    }
}

TEST(an_area_goes_to_another_index_with_its_free_pieces) {
    struct gm_area area;
    begin(&area, 2 * MIB, GM_PIECE_FREE);
    struct gm_piece *used = gm_index_take(&index_a, MIB, 1);
    gm_area_move(&area, &index_b);
    assert_null(gm_index_take(&index_a, 1, 1));
    assert_int_equal(index_a.bytes, 0);
    assert_int_equal(gm_index_largest(&index_b), 3 * MIB);
    gm_piece_give(used);
    assert_int_equal(gm_index_largest(&index_b), BYTES);
    gm_area_end(&area);
    assert_int_equal(index_b.bytes, 0);
}

/* ---- A model --------------------------------------------------------------------------------- */

/* The state of each unit of each area. */
static unsigned char units[AREAS][UNITS];
static uint32_t seed = 12345;

static uint32_t draw(uint32_t limit) {
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % limit;
}

static void paint(size_t which, size_t offset, size_t bytes, enum gm_piece_state to) {
    memset(units[which] + offset / GM_PIECE_UNIT, (int)to, bytes / GM_PIECE_UNIT);
}

/* All units of a part are of this state. */
static int is_all(size_t which, size_t offset, size_t bytes, enum gm_piece_state state) {
    for (size_t i = offset / GM_PIECE_UNIT; i < (offset + bytes) / GM_PIECE_UNIT; i++)
        if (units[which][i] != (unsigned char)state)
            return 0;
    return 1;
}

static size_t model_lead(uintptr_t base, size_t unit, size_t alignment) {
    return (size_t)(-(base + unit * GM_PIECE_UNIT) & (uintptr_t)(alignment - 1));
}

/* Bytes of the smallest run of free units that holds the request, or SIZE_MAX. */
static size_t model_best(const struct gm_area *areas, size_t bytes, size_t alignment) {
    size_t best = SIZE_MAX;
    for (size_t which = 0; which < AREAS; which++) {
        for (size_t i = 0, end; i < UNITS; i = end + 1) {
            for (end = i; end < UNITS && units[which][end] == GM_PIECE_FREE;)
                end++;
            size_t run = (end - i) * GM_PIECE_UNIT;
            if (run >= bytes && run - bytes >= model_lead(areas[which].base, i, alignment) &&
                run < best)
                best = run;
        }
    }
    return best;
}

static size_t run_around(size_t which, size_t offset) {
    size_t first = offset / GM_PIECE_UNIT, last = first;
    while (first > 0 && units[which][first - 1] == GM_PIECE_FREE)
        first--;
    while (last < UNITS && units[which][last] == GM_PIECE_FREE)
        last++;
    return (last - first) * GM_PIECE_UNIT;
}

static struct gm_piece *take_one(const struct gm_area *areas) {
    size_t bytes = 1 + draw(1u << (8 + draw(13)));
    size_t alignment = (size_t)1 << draw(17);
    size_t rounded = (bytes + GM_PIECE_UNIT - 1) / GM_PIECE_UNIT * GM_PIECE_UNIT;
    size_t best = model_best(areas, rounded, alignment < GM_PIECE_UNIT ? GM_PIECE_UNIT : alignment);
    struct gm_piece *piece = gm_index_take(&index_a, bytes, alignment);
    if (!piece) {
        assert_true(best == SIZE_MAX);
        return NULL;
    }
    size_t which = (size_t)(piece->area - areas);
    assert_int_equal(piece->bytes, rounded);
    assert_int_equal((piece->area->base + piece->offset) % alignment, 0);
    assert_true(is_all(which, piece->offset, piece->bytes, GM_PIECE_FREE));
    if (alignment <= GM_PIECE_UNIT)
        assert_int_equal(run_around(which, piece->offset), best);
    paint(which, piece->offset, piece->bytes, GM_PIECE_USED);
    return piece;
}

/* Takes the memory of a part away, or gives it some. */
static void change_a_part(struct gm_area *areas) {
    size_t which = draw(AREAS), offset = draw(UNITS) * GM_PIECE_UNIT;
    size_t bytes = (1 + draw(64)) * GM_PIECE_UNIT;
    enum gm_piece_state from = draw(2) ? GM_PIECE_FREE : GM_PIECE_BARE;
    enum gm_piece_state to = from == GM_PIECE_FREE ? GM_PIECE_BARE : GM_PIECE_FREE;
    if (offset + bytes > BYTES || !is_all(which, offset, bytes, from))
        return;
    assert_int_equal(gm_area_set(&areas[which], offset, bytes, GM_PIECE_MOVING), 0);
    gm_area_check(&areas[which]);
    assert_int_equal(gm_area_set(&areas[which], offset, bytes, draw(3) ? to : from), 0);
    paint(which, offset, bytes, gm_area_find(&areas[which], NULL, offset)->state);
}

TEST(random_steps_agree_with_a_model) {
    struct gm_area areas[AREAS];
    struct gm_piece *held[200] = {0};
    for (size_t i = 0; i < AREAS; i++) {
        begin(&areas[i], (2 + 8 * i) * MIB, i ? GM_PIECE_BARE : GM_PIECE_FREE);
        paint(i, 0, BYTES, i ? GM_PIECE_BARE : GM_PIECE_FREE);
    }
    assert_int_equal(gm_area_set(&areas[1], MIB, MIB, GM_PIECE_FREE), 0);
    paint(1, MIB, MIB, GM_PIECE_FREE);
    for (int i = 0; i < 20000; i++) {
        struct gm_piece **slot = &held[draw(COUNT(held))];
        if (draw(4) == 0) {
            change_a_part(areas);
        } else if (*slot) {
            paint((size_t)((*slot)->area - areas), (*slot)->offset, (*slot)->bytes, GM_PIECE_FREE);
            gm_piece_give(*slot);
            *slot = NULL;
        } else {
            *slot = take_one(areas);
        }
        if (i % 16 == 0)
            for (size_t j = 0; j < AREAS; j++)
                gm_area_check(&areas[j]);
    }
    for (size_t i = 0; i < COUNT(held); i++)
        if (held[i])
            gm_piece_give(held[i]);
    for (size_t i = 0; i < AREAS; i++) {
        gm_area_check(&areas[i]);
        gm_area_end(&areas[i]);
    }
    assert_null(index_a.root);
    assert_int_equal(index_a.bytes, 0);
}
