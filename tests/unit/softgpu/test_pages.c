/* Facts of pages, kept in runs: against an array with a place for each page. */
#include "softgpu/managed/pages.h"

#include "test.h"

#define PAGES ((size_t)64)
#define START ((CUdeviceptr)1 << 32)

struct change {
    unsigned bit;
    bool set;
};

static void change(struct sg_page_facts *facts, const void *user) {
    const struct change *change = user;
    if (change->set)
        facts->accessed_by |= 1u << change->bit;
    else
        facts->accessed_by &= ~(1u << change->bit);
}

static void nothing(struct sg_page_facts *facts, const void *user) {
}

static void common(const struct sg_page_facts *facts, void *user) {
    *(uint32_t *)user &= facts->accessed_by;
}

static uint32_t common_of(const struct sg_pages *pages, size_t page, size_t count) {
    uint32_t all = UINT32_MAX;
    sg_pages_look(pages, START + page * SG_MANAGED_PAGE, count * SG_MANAGED_PAGE, common, &all);
    return all;
}

static void edit(struct sg_pages *pages, CUdeviceptr address, size_t size, struct change what) {
    assert_true(sg_pages_promise(pages));
    sg_pages_edit(pages, address, size, change, &what);
}

TEST(page_runs_agree_with_a_model_of_single_pages) {
    struct sg_pages pages;
    uint32_t model[PAGES] = {0};
    unsigned seed = 7;
    assert_true(sg_pages_begin(&pages, START, PAGES * SG_MANAGED_PAGE));
    for (int round = 0; round < 2000; round++) {
        size_t first = (size_t)rand_r(&seed) % PAGES;
        size_t count = 1 + (size_t)rand_r(&seed) % (PAGES - first);
        struct change what = {(unsigned)rand_r(&seed) % 3, rand_r(&seed) % 2 == 0};
        edit(&pages, START + first * SG_MANAGED_PAGE, count * SG_MANAGED_PAGE, what);
        for (size_t i = first; i < first + count; i++)
            model[i] = what.set ? model[i] | 1u << what.bit : model[i] & ~(1u << what.bit);
        for (size_t i = 0; i < PAGES; i++)
            assert_int_equal(common_of(&pages, i, 1), model[i]);
        uint32_t all = UINT32_MAX;
        for (size_t i = first; i < first + count; i++)
            all &= model[i];
        assert_int_equal(common_of(&pages, first, count), all);
        assert_true(pages.run_count <= PAGES);
    }
    sg_pages_end(&pages);
}

TEST(equal_neighbouring_pages_share_one_run) {
    struct sg_pages pages;
    assert_true(sg_pages_begin(&pages, START, PAGES * SG_MANAGED_PAGE));
    for (size_t i = 0; i < PAGES; i += 2)
        edit(&pages, START + i * SG_MANAGED_PAGE, SG_MANAGED_PAGE, (struct change){0, true});
    assert_int_equal(pages.run_count, PAGES);
    edit(&pages, START, PAGES * SG_MANAGED_PAGE, (struct change){0, true});
    assert_int_equal(pages.run_count, 1);
    sg_pages_end(&pages);
}

/* A byte of a page is the page. */
TEST(a_range_covers_every_page_it_touches) {
    struct sg_pages pages;
    assert_true(sg_pages_begin(&pages, START, PAGES * SG_MANAGED_PAGE - 100));
    edit(&pages, START + 2 * SG_MANAGED_PAGE + 4095, 2, (struct change){1, true});
    assert_int_equal(common_of(&pages, 1, 1), 0);
    assert_int_equal(common_of(&pages, 2, 2), 2);
    assert_int_equal(common_of(&pages, 4, 1), 0);
    edit(&pages, START + (PAGES - 1) * SG_MANAGED_PAGE, 10, (struct change){1, true});
    assert_int_equal(common_of(&pages, PAGES - 1, 1), 2);
    sg_pages_end(&pages);
}

/* What is promised stays possible, whatever is edited in between. */
TEST(a_promised_edit_needs_no_memory) {
    struct sg_pages pages;
    assert_true(sg_pages_begin(&pages, START, PAGES * SG_MANAGED_PAGE));
    for (size_t i = 0; i < PAGES / 2; i++)
        assert_true(sg_pages_promise(&pages));
    struct sg_page_run *runs = pages.runs;
    for (size_t i = 0; i + 1 < PAGES / 2; i++) {
        struct change what = {0, true};
        sg_pages_edit(&pages, START + (2 * i + 1) * SG_MANAGED_PAGE, 1, change, &what);
    }
    sg_pages_edit(&pages, START, 1, nothing, NULL);
    assert_ptr_equal(pages.runs, runs);
    assert_int_equal(pages.promised, 0);
    assert_true(sg_pages_promise(&pages));
    sg_pages_unpromise(&pages);
    assert_int_equal(pages.promised, 0);
    sg_pages_end(&pages);
}
