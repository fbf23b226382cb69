/* Races in shared memory, each beside the same kernel mended. */
#include "race_kernel.h"

/* The thread in %r1, its word of shared memory at [%r2], the next thread's (or the first) at
 * [%r3], its word of global memory at [%rd2]. */
#define TEXT(threads, body)                                                                        \
    KERNEL_HEAD ".visible .entry k(.param .u64 to) {\n"                                            \
                ".reg .pred %p, %q; .reg .b32 %r<16>; .reg .b64 %rd<8>; .reg .b16 %h<4>;\n"        \
                ".shared .align 16 .b32 s[1024]; .shared .align 8 .b64 bar; .shared .b32 lock;\n"  \
                "ld.param.u64 %rd1, [to]; mov.u32 %r1, %tid.x;\n"                                  \
                "shl.b32 %r4, %r1, 2; mov.u32 %r5, s; add.u32 %r2, %r5, %r4;\n"                    \
                "add.u32 %r6, %r1, 1; rem.u32 %r6, %r6, " #threads ";\n"                           \
                "shl.b32 %r6, %r6, 2; add.u32 %r3, %r5, %r6;\n"                                    \
                "mad.wide.u32 %rd2, %r1, 4, %rd1;\n" body "\nret;\n}\n"

static struct race_kernel block_of(unsigned threads, const char *text) {
    return (struct race_kernel){.text = text, .grid = {2}, .block = {threads}, .words = 1024};
}

static void races(unsigned threads, const char *text, const char *one, const char *other) {
    struct race_kernel kernel = block_of(threads, text);
    race_between(&kernel, one, other);
}

static void silent(unsigned threads, const char *text) {
    struct race_kernel kernel = block_of(threads, text);
    race_silent(&kernel, NULL, 0);
}

TEST(reading_another_threads_value_needs_a_barrier) {
    races(64, TEXT(64, "st.shared.u32 [%r2], %r1;\nld.shared.u32 %r7, [%r3];"), "st.shared",
          "ld.shared");
    silent(64, TEXT(64, "st.shared.u32 [%r2], %r1;\nbar.sync 0;\nld.shared.u32 %r7, [%r3];"));
    /* The second barrier is missing: the next round writes what others still read. */
    races(64,
          TEXT(64, "st.shared.u32 [%r2], %r1;\nbar.sync 0;\nld.shared.u32 %r7, [%r3];\n"
                   "st.shared.u32 [%r2], 5;"),
          "ld.shared", "st.shared.u32 [%r2], 5");
    silent(64, TEXT(64, "st.shared.u32 [%r2], %r1;\nbar.sync 0;\nld.shared.u32 %r7, [%r3];\n"
                        "bar.sync 0;\nst.shared.u32 [%r2], 5;"));
}

TEST(reading_another_lanes_value_needs_a_warp_barrier) {
    races(32, TEXT(32, "st.shared.u32 [%r2], %r1;\nld.shared.u32 %r7, [%r3];"), "st.shared",
          "ld.shared");
    silent(32, TEXT(32, "st.shared.u32 [%r2], %r1;\nbar.warp.sync -1;\nld.shared.u32 %r7, [%r3];"));
    /* Half a warp meets, and reads what the other half wrote. */
    races(32,
          TEXT(32, "st.shared.u32 [%r2], %r1;\nsetp.lt.u32 %p, %r1, 16;\n@!%p bra end;\n"
                   "bar.warp.sync 0xffff;\nld.shared.u32 %r7, [%r3];\nend:"),
          "st.shared", "ld.shared");
    silent(32, TEXT(32, "st.shared.u32 [%r2], %r1;\nsetp.lt.u32 %p, %r1, 15;\n@!%p bra end;\n"
                        "bar.warp.sync 0x7fff; \nld.shared.u32 %r7, [%r2];\nend:"));
    races(96, TEXT(96, "st.shared.u32 [%r2], %r1;\nbar.warp.sync -1;\nld.shared.u32 %r7, [%r3];"),
          "st.shared", "ld.shared");
}

/* Tiles of eight lanes meet by themselves, each with its own mask. */
#define TILES(neighbour)                                                                           \
    TEXT(64, "and.b32 %r7, %r1, 24; mov.u32 %r8, 255; shl.b32 %r8, %r8, %r7;\n"                    \
             "st.shared.u32 [%r2], %r1;\nbar.warp.sync %r8;\nxor.b32 %r9, %r4, " neighbour         \
             "; add.u32 %r9, %r9, %r5;\nld.shared.u32 %r10, [%r9];\nbar.warp.sync %r8;\n"          \
             "st.shared.u32 [%r2], %r10;")

TEST(a_tile_barrier_orders_only_its_own_lanes) {
    silent(64, TILES("28"));
    /* The lane of another tile. */
    races(64, TILES("32"), "[%r2]", "ld.shared");
}

TEST(overwriting_a_value_others_read_needs_a_barrier) {
    races(64, TEXT(64, "ld.shared.u32 %r7, [%r3];\nst.shared.u32 [%r2], %r1;"), "ld.shared",
          "st.shared");
    silent(64, TEXT(64, "ld.shared.u32 %r7, [%r3];\nbar.sync 0;\nst.shared.u32 [%r2], %r1;"));
    races(64, TEXT(64, "bar.sync 0;\nld.shared.u32 %r7, [s];\natom.shared.add.u32 %r7, [s], 1;"),
          "ld.shared", "atom");
    /* More reads than are put off. */
#define OFTEN(then)                                                                                \
    TEXT(64, "mov.u32 %r8, 0;\nmore: ld.shared.u32 %r7, [%r3];\nadd.u32 %r8, %r8, 1;\n"            \
             "setp.lt.u32 %p, %r8, 400;\n@%p bra more;\n" then "st.shared.u32 [%r2], %r1;")
    races(64, OFTEN(""), "ld.shared", "st.shared");
    silent(64, OFTEN("bar.sync 0;\n"));
}

TEST(writes_to_different_bytes_of_a_word_do_not_race) {
    silent(64, TEXT(64, "add.u32 %r8, %r5, %r1;\nst.shared.u8 [%r8], %r1;\n"
                        "ld.shared.u8 %r9, [%r8];"));
    races(64, TEXT(64, "shr.u32 %r8, %r1, 1; add.u32 %r8, %r5, %r8;\nst.shared.u8 [%r8], %r1;"),
          "st.shared.u8", "st.shared.u8");
    races(64,
          TEXT(64, "add.u32 %r8, %r5, %r1;\nst.shared.u8 [%r8], %r1;\nand.b32 %r9, %r1, 60;\n"
                   "add.u32 %r9, %r5, %r9;\nld.shared.u32 %r10, [%r9];"),
          "st.shared.u8", "ld.shared.u32");
}

TEST(atomics_do_not_race_with_atomics) {
    silent(128, TEXT(128, "and.b32 %r8, %r4, 60; add.u32 %r8, %r8, %r5;\n"
                          "atom.shared.add.u32 %r7, [%r8], 1;\nred.shared.add.u32 [s], 1;"));
    races(128, TEXT(128, "atom.shared.add.u32 %r7, [s], 1;\nld.shared.u32 %r7, [s];"),
          "atom.shared", "ld.shared");
    silent(128, TEXT(128, "atom.shared.add.u32 %r7, [s], 1;\nld.relaxed.cta.shared.u32 %r7, [s];\n"
                          "ld.volatile.shared.u32 %r7, [s];"));
    silent(128,
           TEXT(128, "atom.shared.add.u32 %r7, [s], 1;\nbar.sync 0;\nld.shared.u32 %r7, [s];"));
}

/* Two halves of a block: one writes, arrives, and goes on; the other waits, reads. */
#define PRODUCER(write, wait)                                                                      \
    TEXT(64, "setp.lt.u32 %p, %r1, 32;\n@!%p bra consumer;\n" write                                \
             "\nbar.arrive 1, 64;\nbra end;\nconsumer: " wait "\nld.shared.u32 %r7, [%r2+-128];\n" \
             "end:")
TEST(a_named_barrier_orders_only_its_participants) {
    silent(64, PRODUCER("st.shared.u32 [%r2], %r1;", "bar.sync 1, 64;"));
    races(64,
          TEXT(64, "setp.lt.u32 %p, %r1, 32;\n@!%p bra consumer;\nbar.arrive 1, 64;\n"
                   "st.shared.u32 [%r2], %r1;\nbra end;\nconsumer: bar.sync 1, 64;\n"
                   "ld.shared.u32 %r7, [%r2+-128];\nend:"),
          "st.shared", "ld.shared");
    /* Other warps than those that wait for the barrier know nothing. */
    races(96,
          TEXT(96, "setp.lt.u32 %p, %r1, 64;\nst.shared.u32 [%r2], %r1;\n@!%p bra third;\n"
                   "bar.sync 1, 64;\nbra end;\nthird: ld.shared.u32 %r7, [%r2+-128];\nend:"),
          "st.shared", "ld.shared");
}

TEST(a_flag_orders_memory_only_with_release_and_acquire) {
    /* Thread 0 publishes; thread 32 waits for the flag. */
    static const char flag[] =
        "setp.eq.u32 %%p, %%r1, 0; setp.eq.u32 %%q, %%r1, 32;\n@%%p bra give;\n@%%q bra take;\n"
        "bra end;\ngive: st.shared.u32 [s+64], 7;\n%s\nbra end;\n"
        "take: %s\nsetp.eq.u32 %%p, %%r7, 0;\n@%%p bra take;\n%s\nld.shared.u32 %%r8, [s+64];\n"
        "end:";
    static const struct {
        const char *give, *take, *then;
        bool races;
    } cases[] = {
        {"st.release.cta.shared.u32 [lock], 1;", "ld.acquire.cta.shared.u32 %r7, [lock];", "",
         false},
        {"st.relaxed.cta.shared.u32 [lock], 1;", "ld.acquire.cta.shared.u32 %r7, [lock];", "",
         true},
        {"st.release.cta.shared.u32 [lock], 1;", "ld.relaxed.cta.shared.u32 %r7, [lock];", "",
         true},
        {"membar.cta; st.volatile.shared.u32 [lock], 1;", "ld.volatile.shared.u32 %r7, [lock];",
         "membar.cta;", false},
        {"fence.acq_rel.cta; st.relaxed.cta.shared.u32 [lock], 1;",
         "ld.relaxed.cta.shared.u32 %r7, [lock];", "fence.acq_rel.cta;", false},
        {"st.volatile.shared.u32 [lock], 1;", "ld.volatile.shared.u32 %r7, [lock];", "membar.cta;",
         true},
        {"atom.release.cta.shared.exch.b32 %r9, [lock], 1;",
         "atom.acquire.cta.shared.or.b32 %r7, [lock], 0;", "", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static const char frame[] = TEXT(64, "BODY");
        char text[4096];
        const char *at = strstr(frame, "BODY");
        int used = snprintf(text, sizeof text,
                            "%.*ssetp.eq.u32 %%p, %%r1, 0;\n@%%p st.shared.u32 [lock], 0;\n"
                            "bar.sync 0;\n",
                            (int)(at - frame), frame);
        used += snprintf(text + used, sizeof text - (size_t)used, flag, cases[i].give,
                         cases[i].take, cases[i].then);
        snprintf(text + used, sizeof text - (size_t)used, "%s", at + 4);
        if (cases[i].races)
            races(64, text, "st.shared.u32 [s+64]", "ld.shared.u32 %r8");
        else
            silent(64, text);
    }
}

TEST(a_race_of_equal_values_is_marked) {
    static const struct {
        const char *text;
        bool same;
    } cases[] = {
        {TEXT(64, "@%q bra end;\nst.shared.u32 [s], 5;\nend:"), true},
        {TEXT(64, "shr.u32 %r7, %r1, 5;\nst.shared.u32 [s], %r7;"), false},
    };
    for (size_t i = 0; i < 2; i++) {
        struct race_kernel kernel = block_of(64, cases[i].text);
        struct race_findings findings;
        bool seen = false;
        race_run(&kernel, SG_GRID_EAGER, 0, &findings, NULL);
        for (unsigned f = 0; f < findings.count && f < RACE_FOUND; f++) {
            if (findings.found[f].one_access)
                continue;
            seen = true;
            assert_int_equal(findings.found[f].same_value, cases[i].same);
        }
        assert_true(seen);
    }
}

/* All lanes write one value, as library code does; or each its own, which is marked. */
TEST(lanes_writing_one_value_in_one_access_do_not_race) {
    static const char *const good[] = {
        TEXT(32, "st.shared.u32 [s], 5;"),
        TEXT(32, "mov.u32 %r7, 5; mov.b16 %h1, 3;\nst.shared.u8 [s], %h1;\n"
                 "st.shared.u16 [s+2], %h1;\nst.shared.v2.u32 [s+8], {%r7, %r7};"),
        TEXT(32, "and.b32 %r7, %r1, 28; add.u32 %r8, %r5, %r7;\nst.shared.u32 [%r8], %r7;"),
        TEXT(32, "mov.u64 %rd3, s; cvta.shared.u64 %rd3, %rd3; mov.u64 %rd4, 77;\n"
                 "st.u64 [%rd3], %rd4;\nst.global.u64 [%rd1], %rd4;"),
        TEXT(32, "setp.gt.u32 %p, %r1, 9;\n@%p st.shared.u32 [s], 5;"),
    };
    static const char *const bad[] = {
        TEXT(32, "st.shared.u32 [s], %r1;"),
        TEXT(32, "mov.u32 %r7, 5;\nst.shared.v2.u32 [s], {%r7, %r1};"),
        TEXT(32, "shr.u32 %r7, %r1, 4;\nst.shared.u32 [s], %r7;"),
        TEXT(32, "cvt.u16.u32 %h1, %r1;\nst.shared.u8 [s], %h1;"),
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct race_kernel kernel = block_of(32, good[i]);
        kernel.grid[0] = 1;
        race_silent(&kernel, NULL, 0);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct race_kernel kernel = block_of(32, bad[i]);
        struct race_findings findings;
        race_run(&kernel, SG_GRID_EAGER, 0, &findings, NULL);
        assert_true(findings.count > 0 && findings.found[0].one_access);
    }
}

TEST(a_race_report_names_both_threads) {
    struct race_kernel kernel =
        block_of(64, TEXT(64, "setp.eq.u32 %p, %r1, 40;\n@%p ld.shared.u32 %r7, [s+12];\n"
                              "setp.eq.u32 %p, %r1, 3;\n@%p st.shared.u32 [s+12], 1;"));
    struct race_findings findings;
    race_run(&kernel, SG_GRID_EAGER, 0, &findings, NULL);
    assert_int_equal(findings.count, 2); /* one in each block */
    struct sg_race_found *found = &findings.found[0];
    bool first = found->now.kind == SG_WATCHED_READ;
    assert_int_equal((first ? found->now : found->before).thread, 40);
    assert_int_equal((first ? found->before : found->now).thread, 3);
    assert_int_equal(found->address, 12);
    assert_int_equal(found->size, 4);
    assert_true(found->shared);
}
