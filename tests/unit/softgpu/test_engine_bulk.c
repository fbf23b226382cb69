/* Copies in bulk and by threads: what they do, and when each schedule does it. */
#include "async_kernel.h"
#include "async_reductions.h"

static void data(uint32_t *in, size_t count) {
    for (uint32_t i = 0; i < count; i++)
        in[i] = i * 2654435761u + 1;
}

/* Without the wait the late schedule shows the old bytes; the random one with some seed, too. */
TEST(a_missing_wait_for_a_copy_shows_the_old_bytes) {
    static const char *const texts[] = {
        ASYNC(OWN "st.shared.u32 [%r4], 7;" ONE_BEGINS(
            TO_SHARED) "bar.sync 0; ld.shared.u32 %r2, [%r4];" ANSWER),
        /* The last of two groups is not waited for. */
        ASYNC(OWN "st.shared.u32 [%r4], 7; mul.wide.u32 %rd4, %r1, 4; add.u64 %rd4, %rd3, %rd4;\n"
                  "cp.async.ca.shared.global [%r4+512], [%rd4], 4; cp.async.commit_group;\n"
                  "cp.async.ca.shared.global [%r4], [%rd4], 4; cp.async.commit_group;\n"
                  "cp.async.wait_group 1; ld.shared.u32 %r2, [%r4];" ANSWER),
        /* The mbarrier's phase is not waited for. */
        ASYNC(OWN "st.shared.u32 [%r4], 7; mul.wide.u32 %rd4, %r1, 4; add.u64 %rd4, %rd3, %rd4;\n"
                  "@%q mbarrier.init.shared.b64 [%r8], 64; bar.sync 0;\n"
                  "cp.async.ca.shared.global [%r4], [%rd4], 4;\n"
                  "cp.async.mbarrier.arrive.noinc.shared.b64 [%r8]; bar.sync 0;\n"
                  "ld.shared.u32 %r2, [%r4];" ANSWER),
    };
    uint32_t in[64] __attribute__((aligned(16))), out[64], old[64];
    data(in, 64);
    for (int i = 0; i < 64; i++)
        old[i] = 7;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct async_run run = {.threads = 64};
        bool random_shows = false;
        FOR_EACH_SCHEDULE(run) {
            async_succeeds(texts[i], &run, out, in);
            if (run.schedule == SG_GRID_EAGER)
                assert_memory_equal(out, in, sizeof in);
            if (run.schedule == SG_GRID_LATE)
                assert_memory_equal(out, old, sizeof in);
            random_shows |= run.schedule == SG_GRID_RANDOM && memcmp(out, in, sizeof in) != 0;
        }
        assert_true(random_shows);
    }
}

#define FILL     OWN "mul.lo.u32 %r5, %r1, 3; st.shared.u32 [%r4], %r5; bar.sync 0;\n"
#define GROUP(n) "cp.async.bulk.commit_group; cp.async.bulk.wait_group " n ";\n"

TEST(bulk_copies_write_shared_memory_to_global_memory) {
    uint32_t out[128] __attribute__((aligned(16)));
    struct async_run run = {.threads = 64};
    FOR_EACH_SCHEDULE(run) {
        memset(out, 0xcc, sizeof out);
        async_succeeds(
            ASYNC(FILL
                  "@!%q bra end;\n"
                  "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r10], 256;\n"
                  "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;\n"
                  /* What is read may be overwritten. */
                  "st.shared.v4.u32 [%r10], {9, 9, 9, 9}; cp.async.bulk.wait_group 0;\n"
                  "cp.async.bulk.global.shared::cta.bulk_group [%rd1+256], [%r10], 256;\n" GROUP(
                      "0") "end:"),
            &run, out, NULL);
        for (unsigned i = 0; i < 64; i++) {
            assert_int_equal(out[i], 3 * i);
            assert_int_equal(out[64 + i], i < 4 ? 9 : 3 * i);
        }
    }
}

/* Overwritten before it was read, and left by the block that has it. */
TEST(a_late_bulk_copy_reads_its_source_when_it_completes) {
    uint32_t out[64] __attribute__((aligned(16))) = {0};
    struct async_run run = {.threads = 64, .schedule = SG_GRID_LATE};
    async_succeeds(ASYNC(FILL "@!%q bra end;\n"
                              "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r10], 256;\n"
                              "cp.async.bulk.commit_group; st.shared.v4.u32 [%r10], {9, 9, 9, 9};\n"
                              "cp.async.bulk.wait_group 0;\nend:"),
                   &run, out, NULL);
    assert_int_equal(out[0], 9);
    assert_int_equal(out[4], 12);
    async_succeeds(ASYNC(FILL "@!%q bra end;\n"
                              "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r10], 256;\n"
                              "cp.async.bulk.commit_group;\nend:"),
                   &run, out, NULL);
    for (unsigned i = 0; i < 64; i++)
        assert_int_equal(out[i], 0xcccccccc);
    run.schedule = SG_GRID_EAGER;
    async_succeeds(ASYNC(FILL "@!%q bra end;\n"
                              "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r10], 256;\n"
                              "cp.async.bulk.commit_group;\nend:"),
                   &run, out, NULL);
    assert_int_equal(out[5], 15);
}

/* ---- reductions ------------------------------------------------------------------------------ */

/* The elements of `in`, 64 bytes, are reduced into `out`'s. */
static void reduces(const char *operation, const void *old, const void *with, const void *wanted) {
    char text[ASYNC_REDUCTION];
    async_reduction(text, operation);
    struct async_run run = {.threads = 32};
    FOR_EACH_SCHEDULE(run) {
        unsigned char out[64] __attribute__((aligned(16)));
        memcpy(out, old, sizeof out);
        async_succeeds(text, &run, out, with);
        if (memcmp(out, wanted, sizeof out) != 0)
            fail_msg("%s: %08x instead of %08x", operation, *(const uint32_t *)(void *)out,
                     *(const uint32_t *)wanted);
    }
}

TEST_IS(bulk_reductions_of_integers_match_the_reference, integers_are_reduced(reduces));
TEST_IS(bulk_reductions_of_floats_match_the_reference, floats_are_reduced(reduces));

/* ---- faults ---------------------------------------------------------------------------------- */

TEST(a_fault_of_a_copy_names_the_issuing_thread) {
    static const struct {
        const char *text;
        enum sg_fault_kind kind;
        bool write;
    } cases[] = {
        {ASYNC("setp.eq.u32 %p, %r1, 5; mov.u64 %rd4, 4096;\n"
               "@%p cp.async.bulk.global.shared::cta.bulk_group [%rd4], [%r10], 64;\n"
               "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"),
         SG_FAULT_ADDRESS, true},
        {ASYNC("setp.eq.u32 %p, %r1, 5; mov.u64 %rd4, 4096;\n"
               "@%p cp.async.ca.shared.global [%r10], [%rd4], 4; cp.async.wait_all;"),
         SG_FAULT_ADDRESS, false},
        {ASYNC("setp.eq.u32 %p, %r1, 5;\n"
               "@%p cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r10+8], 64;"),
         SG_FAULT_MISALIGNED, true},
        {ASYNC("setp.eq.u32 %p, %r1, 5; mov.u32 %r4, 24;\n"
               "@%p cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r10], %r4;"),
         SG_FAULT_MISALIGNED, true},
        {ASYNC("setp.eq.u32 %p, %r1, 5;\n"
               "@%p cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r10+960], 128;\n"
               "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"),
         SG_FAULT_SPACE, true},
    };
    uint32_t out[64] __attribute__((aligned(16))) = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct async_run run = {.threads = 32};
        FOR_EACH_SCHEDULE(run) {
            struct sg_grid_fault fault = async_fault(cases[i].text, &run, out, out);
            if (fault.kind != cases[i].kind)
                fail_msg("%s: %s", cases[i].text, sg_fault_name(fault.kind));
            MEMBERS(fault, (thread[0], 5), (write, cases[i].write));
        }
    }
}
