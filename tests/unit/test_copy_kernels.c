/* The kernels that store to mapped memory and load from it: every one that this CPU has, at every
 * small size and alignment of both sides, at page borders, and that nothing else is touched. */
#include "mapped/copy/copy.h"
#include "test.h"

#include <sys/mman.h>

#define LINE    64
#define SMALL   300
#define ROOM    (SMALL + 4 * LINE)
#define OUTSIDE 0xa5

typedef void (*copy_fn)(enum gm_copy_kernel kernel, void *dst, const void *src, size_t bytes);

static const struct direction {
    const char *name;
    unsigned direction;
    copy_fn copy;
} directions[] = {{"store", GM_COPY_STORE, gm_copy_store}, {"load", GM_COPY_LOAD, gm_copy_load}};

typedef void (*check_fn)(const struct direction *direction, enum gm_copy_kernel kernel);

static void with_every_kernel(check_fn check) {
    for (size_t i = 0; i < sizeof directions / sizeof directions[0]; i++) {
        enum gm_copy_kernel kernels[GM_COPY_KERNEL_COUNT];
        unsigned count = gm_copy_kernels(directions[i].direction, kernels);
        assert_true(count >= 1);
        for (unsigned j = 0; j < count; j++)
            check(&directions[i], kernels[j]);
    }
}

static unsigned char byte_at(size_t i) {
    return (unsigned char)(i * 131 + (i >> 8) * 17 + 1);
}

/* Is all of `room` bytes at `at` as it should be: the source's bytes in [start, start + bytes)? */
static bool is_right(const unsigned char *at, size_t room, size_t start, size_t bytes,
                     const unsigned char *src) {
    for (size_t i = 0; i < room; i++) {
        bool inside = i >= start && i < start + bytes;
        if (at[i] != (inside ? src[i - start] : OUTSIDE))
            return false;
    }
    return true;
}

static void small_ones(const struct direction *direction, enum gm_copy_kernel kernel) {
    static _Alignas(LINE) unsigned char from[ROOM], to[ROOM];
    for (size_t i = 0; i < ROOM; i++)
        from[i] = byte_at(i);
    for (size_t bytes = 0; bytes <= SMALL; bytes++)
        for (size_t a = 0; a < LINE; a++)
            /* Every alignment of one side; of the other all at some sizes, some at all sizes. */
            for (size_t b = 0; b < LINE; b += bytes % 16 == 0 || bytes < 20 ? 1 : 7) {
                size_t start = LINE + (direction->direction == GM_COPY_STORE ? a : b);
                size_t source = direction->direction == GM_COPY_STORE ? b : a;
                /* Only what a copy could reach is filled and looked at. */
                size_t first = start - LINE, room = bytes + 2 * LINE;
                memset(to + first, OUTSIDE, room);
                direction->copy(kernel, to + start, from + source, bytes);
                gm_copy_fence();
                if (!is_right(to + first, room, LINE, bytes, from + source))
                    fail_msg("%s %s: %zu bytes from %zu to %zu", gm_copy_kernel_name(kernel),
                             direction->name, bytes, source, start % LINE);
            }
}

TEST_IS(each_kernel_copies_every_small_size_and_alignment, with_every_kernel(small_ones));

/* Pages without access on both sides of `size` bytes. */
static unsigned char *guarded(size_t size) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *all =
        mmap(NULL, size + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(all, MAP_FAILED);
    assert_int_equal(mprotect(all, page, PROT_NONE), 0);
    assert_int_equal(mprotect(all + page + size, page, PROT_NONE), 0);
    return all + page;
}

static void end_guarded(unsigned char *at, size_t size) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    assert_int_equal(munmap(at - page, size + 2 * page), 0);
}

/* One copy whose sides begin or end exactly where the pages do. */
static void at_the_border(const struct direction *direction, enum gm_copy_kernel kernel,
                          unsigned char *to, unsigned char *from, size_t size, size_t bytes) {
    for (int corner = 0; corner < 4; corner++) {
        size_t start = corner & 1 ? size - bytes : 0, source = corner & 2 ? size - bytes : 0;
        memset(to, OUTSIDE, size);
        direction->copy(kernel, to + start, from + source, bytes);
        gm_copy_fence();
        if (!is_right(to, size, start, bytes, from + source))
            fail_msg("%s %s: %zu bytes, corner %d", gm_copy_kernel_name(kernel), direction->name,
                     bytes, corner);
    }
}

static void borders(const struct direction *direction, enum gm_copy_kernel kernel) {
    static const size_t large[] = {1000, 1023, 1024, 1025, 4032, 4095, 4096, 4097, 8191, 8192};
    size_t size = 2 * (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *to = guarded(size), *from = guarded(size);
    for (size_t i = 0; i < size; i++)
        from[i] = byte_at(i);
    for (size_t bytes = 0; bytes <= SMALL; bytes++)
        at_the_border(direction, kernel, to, from, size, bytes);
    for (size_t i = 0; i < sizeof large / sizeof large[0]; i++)
        if (large[i] <= size)
            at_the_border(direction, kernel, to, from, size, large[i]);
    end_guarded(to, size);
    end_guarded(from, size);
}

TEST_IS(no_kernel_reads_or_writes_past_a_page_border, with_every_kernel(borders));

static void large_ones(const struct direction *direction, enum gm_copy_kernel kernel) {
    const size_t size = (size_t)1 << 20;
    unsigned char *to = guarded(size), *from = guarded(size);
    for (size_t i = 0; i < size; i++)
        from[i] = byte_at(i);
    for (size_t shift = 0; shift < 5; shift++) {
        size_t bytes = size - 64 + shift;
        memset(to, OUTSIDE, size);
        direction->copy(kernel, to + 13 * shift % 60, from + 7 * shift, bytes);
        gm_copy_fence();
        assert_true(is_right(to, size, 13 * shift % 60, bytes, from + 7 * shift));
    }
    end_guarded(to, size);
    end_guarded(from, size);
}

TEST_IS(each_kernel_copies_large_sizes, with_every_kernel(large_ones));

static void nothing_needs_no_memory(const struct direction *direction, enum gm_copy_kernel kernel) {
    direction->copy(kernel, NULL, NULL, 0);
}

TEST_IS(copying_zero_bytes_touches_no_memory, with_every_kernel(nothing_needs_no_memory));

/* What the kernel of the machine says, which asks cpuid too. */
static bool cpu_has(const char *flag) {
    static char line[8192];
    char wanted[32];
    bool found = false;
    FILE *file = fopen("/proc/cpuinfo", "r");
    snprintf(wanted, sizeof wanted, " %s ", flag);
    while (file && !found && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = ' ';
        found = strncmp(line, "flags", 5) == 0 && strstr(line, wanted);
    }
    if (file)
        fclose(file);
    return found;
}

TEST(the_available_kernels_match_the_cpu_flags) {
    assert_true(gm_copy_kernel_can(GM_COPY_PLAIN, GM_COPY_STORE | GM_COPY_LOAD));
#if defined(__x86_64__)
    static const struct {
        const char *flag;
        enum gm_copy_kernel kernel;
        unsigned directions;
    } rows[] = {{"sse2", GM_COPY_SSE2, GM_COPY_STORE},
                {"sse4_1", GM_COPY_SSE41, GM_COPY_LOAD},
                {"avx2", GM_COPY_AVX2, GM_COPY_STORE | GM_COPY_LOAD},
                {"avx512f", GM_COPY_AVX512, GM_COPY_STORE | GM_COPY_LOAD},
                {"movdir64b", GM_COPY_MOVDIR64B, GM_COPY_STORE}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(gm_copy_kernel_can(rows[i].kernel, rows[i].directions),
                         cpu_has(rows[i].flag));
    assert_true(gm_copy_kernel_can(GM_COPY_MEMCPY, GM_COPY_STORE | GM_COPY_LOAD));
    assert_false(gm_copy_kernel_can(GM_COPY_SSE2, GM_COPY_LOAD));
    assert_false(gm_copy_kernel_can(GM_COPY_SSE41, GM_COPY_STORE));
    assert_false(gm_copy_kernel_can(GM_COPY_MOVDIR64B, GM_COPY_LOAD));
#else
    for (int i = 1; i < GM_COPY_KERNEL_COUNT; i++)
        assert_false(gm_copy_kernel_can((enum gm_copy_kernel)i, GM_COPY_STORE) ||
                     gm_copy_kernel_can((enum gm_copy_kernel)i, GM_COPY_LOAD));
#endif
    assert_false(gm_copy_kernel_can(GM_COPY_KERNEL_COUNT, 0));
}

TEST(kernels_are_found_by_their_names) {
    for (int i = 0; i < GM_COPY_KERNEL_COUNT; i++) {
        enum gm_copy_kernel found = GM_COPY_KERNEL_COUNT;
        assert_true(gm_copy_kernel_find(gm_copy_kernel_name((enum gm_copy_kernel)i), &found));
        assert_int_equal(found, i);
    }
    enum gm_copy_kernel kept = GM_COPY_AVX2;
    assert_false(gm_copy_kernel_find("mmx", &kept));
    assert_false(gm_copy_kernel_find("", &kept));
    assert_int_equal(kept, GM_COPY_AVX2);
    assert_string_equal(gm_copy_kernel_name(GM_COPY_KERNEL_COUNT), "unknown");
}

/* A plan of another machine does no harm. */
TEST(an_unavailable_kernel_falls_back_to_plain_copying) {
    unsigned char from[100], to[100] = {0};
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = byte_at(i);
    gm_copy_store(GM_COPY_KERNEL_COUNT, to, from, sizeof to);
    assert_memory_equal(to, from, sizeof to);
    memset(to, 0, sizeof to);
    gm_copy_load(GM_COPY_SSE2, to, from, sizeof to);
    gm_copy_fence_load();
    assert_memory_equal(to, from, sizeof to);
}

BEFORE_TESTS {
    if (!gm_copy_kernel_can(GM_COPY_MOVDIR64B, GM_COPY_STORE))
        printf("# this CPU has no movdir64b: that kernel is not run\n");
    return 0;
}
