/* Memory files: bytes, growth, what is kept and what is given back to the machine. */
#include "softgpu/address/arena.h"
#include "softgpu/core/state.h"

#include "test.h"
#include <sys/mman.h>
#include <sys/stat.h>

static uint64_t resident(const struct sg_arena *arena) {
    struct stat status;
    assert_int_equal(fstat(arena->file.fd, &status), 0);
    return (uint64_t)status.st_blocks * 512;
}

TEST(runs_do_not_overlap_and_begin_zeroed) {
    static struct sg_arena arena = SG_ARENA_INIT("test");
    uint64_t page[8];
    unsigned char *host[8];
    for (unsigned i = 0; i < 8; i++) {
        assert_true(sg_arena_take(&arena, i + 1, &page[i], &host[i]));
        assert_int_equal((uintptr_t)host[i] % SG_PAGE, 0);
        assert_int_equal(host[i][0], 0);
        memset(host[i], (int)i + 1, 4096);
        host[i][(i + 1) * SG_PAGE - 1] = (unsigned char)(i + 1);
    }
    for (unsigned i = 0; i < 8; i++) {
        assert_int_equal(host[i][0], i + 1);
        assert_int_equal(host[i][(i + 1) * SG_PAGE - 1], i + 1);
        sg_arena_give(&arena, page[i], i + 1);
    }
}

TEST(freed_pages_are_reused_from_the_cache) {
    static struct sg_arena arena = SG_ARENA_INIT("test");
    uint64_t page, again;
    unsigned char *host, *same;
    assert_true(sg_arena_take(&arena, 4, &page, &host));
    memset(host, 7, 4 * SG_PAGE);
    sg_arena_give(&arena, page, 4);
    assert_int_equal(arena.dirty_pages, 4);
    assert_true(resident(&arena) >= 4 * SG_PAGE);
    assert_true(sg_arena_take(&arena, 4, &again, &same));
    assert_int_equal(arena.dirty_pages, 0);
    assert_ptr_equal(same, host);
    assert_int_equal(same[5], 7);
    sg_arena_give(&arena, again, 4);
}

TEST(memory_beyond_the_cache_limit_returns_to_the_system) {
    static struct sg_arena arena = SG_ARENA_INIT("test");
    const uint64_t cached = SG_ARENA_CACHE / SG_PAGE;
    uint64_t first, second;
    unsigned char *host;
    assert_true(sg_arena_take(&arena, cached, &first, &host));
    assert_true(sg_arena_take(&arena, 4, &second, &host));
    memset(host, 1, 4 * SG_PAGE);
    uint64_t before = resident(&arena);
    sg_arena_give(&arena, first, cached);
    sg_arena_give(&arena, second, 4);
    assert_int_equal(arena.dirty_pages, cached);
    assert_true(resident(&arena) + 4 * SG_PAGE <= before);
    assert_true(sg_arena_take(&arena, 4, &second, &host));
    sg_arena_give(&arena, second, 4);
}

/* Larger than a region, and after it a small one: each is contiguous. */
TEST(a_run_larger_than_a_region_is_contiguous) {
    static struct sg_arena arena = SG_ARENA_INIT("test");
    const uint64_t pages = ((uint64_t)65 << 30) / SG_PAGE;
    uint64_t large, small;
    unsigned char *host, *other;
    assert_true(sg_arena_take(&arena, 1, &small, &other));
    assert_true(sg_arena_take(&arena, pages, &large, &host));
    host[0] = 1;
    host[pages * SG_PAGE - 1] = 2;
    other[0] = 3;
    assert_true(host[0] == 1 && host[pages * SG_PAGE - 1] == 2 && other[0] == 3);
    sg_arena_give(&arena, large, pages);
    sg_arena_give(&arena, small, 1);
}

/* Whether this process may lock as much as the view has addresses: the kernel counts addresses
 * against the limit (RLIMIT_MEMLOCK), whether or not memory is behind them. */
static bool may_lock_a_view(void) {
    const size_t view = (size_t)64 << 30;
    if (mlockall(MCL_FUTURE) != 0)
        return false;
    void *addresses =
        mmap(NULL, view, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (addresses != MAP_FAILED)
        munmap(addresses, view);
    else
        munlockall();
    return addresses != MAP_FAILED;
}

/* An application that locks its memory locks what is in use, not 64 GiB. */
TEST(mlockall_does_not_populate_the_whole_view) {
    static struct sg_arena arena = SG_ARENA_INIT("test");
    uint64_t page;
    unsigned char *host;
    if (!may_lock_a_view()) {
        printf("skip: this process may not lock 64 GiB (ulimit -l)\n");
        skip();
    }
    bool taken = sg_arena_take(&arena, 1, &page, &host);
    munlockall();
    assert_true(taken);
    assert_true(resident(&arena) <= (uint64_t)256 << 20);
    host[0] = 1;
    sg_arena_give(&arena, page, 1);
}

static unsigned long locked_kib(void) {
    char line[128];
    unsigned long kib = 0;
    FILE *file = fopen("/proc/self/status", "re");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        sscanf(line, "VmLck: %lu", &kib);
    fclose(file);
    return kib;
}

/* Sanitizers make mlock do nothing. */
static void lock_page(const unsigned char *page) {
    unsigned long before = locked_kib();
    if (mlock(page, SG_PAGE) == 0 && locked_kib() > before)
        return;
    printf("skip: %zu bytes cannot be locked here (ulimit -l, or a sanitizer)\n", SG_PAGE);
    skip();
}

/* The kernel does not take locked pages out of a mapping: they go through the descriptor. */
TEST(locked_memory_beyond_the_cache_limit_returns_to_the_system) {
    static struct sg_arena arena = SG_ARENA_INIT("test");
    const uint64_t cached = SG_ARENA_CACHE / SG_PAGE;
    uint64_t first, second;
    unsigned char *host, *locked;
    assert_true(sg_arena_take(&arena, cached, &first, &host));
    assert_true(sg_arena_take(&arena, 1, &second, &locked));
    lock_page(locked);
    memset(locked, 1, SG_PAGE);
    uint64_t before = resident(&arena);
    sg_arena_give(&arena, first, cached);
    sg_arena_give(&arena, second, 1);
    assert_int_equal(arena.dirty_pages, cached);
    assert_true(resident(&arena) + SG_PAGE <= before);
    assert_int_equal(munlock(locked, SG_PAGE), 0);
}

/* Nobody takes them back: they are kept for those who come, and are not lost. */
TEST(locked_pages_of_a_closed_file_stay_cached) {
    static struct sg_arena arena = SG_ARENA_INIT("test");
    const uint64_t cached = SG_ARENA_CACHE / SG_PAGE;
    uint64_t first, second, again;
    unsigned char *host, *locked, *same;
    assert_true(sg_arena_take(&arena, cached, &first, &host));
    assert_true(sg_arena_take(&arena, 1, &second, &locked));
    lock_page(locked);
    assert_int_equal(close(arena.file.fd), 0);
    memset(locked, 1, SG_PAGE);
    sg_arena_give(&arena, first, cached);
    sg_arena_give(&arena, second, 1);
    assert_int_equal(arena.dirty_pages, cached + 1);
    assert_true(sg_arena_take(&arena, cached + 1, &again, &same));
    assert_int_equal(again, 0);
    assert_int_equal(arena.dirty_pages, 0);
    assert_int_equal(munlock(locked, SG_PAGE), 0);
}
