/* Copies in bulk and by threads: what they do, and when each schedule does it. */
#include "async_kernel.h"

static void data(uint32_t *in, size_t count) {
    for (uint32_t i = 0; i < count; i++)
        in[i] = i * 2654435761u + 1;
}

#define TO_SHARED                                                                                  \
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r10], [%rd3], 256, "      \
    "[%r8];\n"
#define OWN "shl.b32 %r4, %r1, 2; add.u32 %r4, %r4, %r10;\n"
/* One thread has an mbarrier for itself, and begins. */
#define ONE_BEGINS(what)                                                                           \
    "@%q mbarrier.init.shared.b64 [%r8], 1; bar.sync 0;\n@!%q bra begun;\n"                        \
    "mbarrier.arrive.expect_tx.shared.b64 %rd4, [%r8], 256;\n" what "begun:\n"

static void bytes_come_with_the_phase(void **state) {
    (void)state;
    uint32_t in[64] __attribute__((aligned(16))), out[64];
    struct async_run run = {.threads = 64};
    data(in, 64);
    FOR_EACH_SCHEDULE(run) {
        memset(out, 0, sizeof out);
        async_succeeds(ASYNC(ONE_BEGINS(TO_SHARED) AWAIT("w", "%r8", "0") OWN
                             "ld.shared.u32 %r2, [%r4];" ANSWER),
                       &run, out, in);
        assert_memory_equal(out, in, sizeof in);
    }
}

/* Without the wait the late schedule shows the old bytes; the random one with some seed, too. */
static void a_missing_wait_shows(void **state) {
    (void)state;
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

static void groups_are_waited_for_in_order(void **state) {
    (void)state;
    uint32_t in[256] __attribute__((aligned(16))), out[64];
    struct async_run run = {.threads = 64};
    data(in, 256);
    FOR_EACH_SCHEDULE(run) {
        async_succeeds(
            ASYNC(OWN
                  "mul.wide.u32 %rd4, %r1, 4; add.u64 %rd4, %rd3, %rd4;\n"
                  "cp.async.ca.shared.global [%r4], [%rd4], 4; cp.async.commit_group;\n"
                  "cp.async.ca.shared.global [%r4+256], [%rd4+256], 4; cp.async.commit_group;\n"
                  "cp.async.ca.shared.global [%r4+512], [%rd4+512], 4;\n"
                  "cp.async.wait_group 1; ld.shared.u32 %r5, [%r4];\n"
                  "cp.async.wait_group 0; ld.shared.u32 %r6, [%r4+256]; add.u32 %r2, %r5, %r6;\n"
                  "cp.async.wait_all; ld.shared.u32 %r7, [%r4+512];\n"
                  "add.u32 %r2, %r2, %r7;" ANSWER),
            &run, out, in);
        for (unsigned i = 0; i < 64; i++)
            assert_int_equal(out[i], in[i] + in[i + 64] + in[i + 128]);
    }
}

/* Beyond the bytes of the source there are zeros, and of an ignored source only zeros. */
static void sources_are_cut_and_ignored(void **state) {
    (void)state;
    uint32_t in[256] __attribute__((aligned(16))), out[64];
    struct async_run run = {.threads = 64};
    data(in, 256);
    FOR_EACH_SCHEDULE(run) {
        async_succeeds(
            ASYNC(
                "shl.b32 %r4, %r1, 4; add.u32 %r4, %r4, %r10; cvt.u64.u32 %rd4, %r1;\n"
                "shl.b64 %rd4, %rd4, 4; add.u64 %rd4, %rd3, %rd4; and.b32 %r5, %r1, 3;\n"
                "shl.b32 %r5, %r5, 2; setp.lt.u32 %p, %r1, 32; st.shared.v4.u32 [%r4], {1,1,1,1};\n"
                "@%p cp.async.cg.shared.global [%r4], [%rd4], 16, %r5;\n"
                "setp.lt.u32 %q, %r1, 48; @!%p cp.async.cg.shared.global [%r4], [%rd4], 16, %q;\n"
                "cp.async.wait_all; ld.shared.v4.u32 {%r5, %r6, %r7, %r11}, [%r4];\n"
                "xor.b32 %r2, %r5, %r6; xor.b32 %r2, %r2, %r7; xor.b32 %r2, %r2, %r11;" ANSWER),
            &run, out, in);
        for (unsigned i = 0; i < 64; i++) {
            uint32_t wanted = 0;
            for (unsigned k = 0; k < (i < 32 ? i & 3 : i < 48 ? 0u : 4u); k++)
                wanted ^= in[4 * i + k];
            assert_int_equal(out[i], wanted);
        }
    }
}

/* cp.async.mbarrier.arrive: counted before (.noinc), and in addition. */
static void copies_arrive_at_mbarriers(void **state) {
    (void)state;
    uint32_t in[128] __attribute__((aligned(16))), out[64];
    struct async_run run = {.threads = 64};
    data(in, 128);
    FOR_EACH_SCHEDULE(run) {
        async_succeeds(ASYNC(OWN
                             "mul.wide.u32 %rd4, %r1, 4; add.u64 %rd4, %rd3, %rd4;\n"
                             "@%q mbarrier.init.shared.b64 [%r8], 64;\n"
                             "@%q mbarrier.init.shared.b64 [%r9], 64; bar.sync 0;\n"
                             "cp.async.ca.shared.global [%r4], [%rd4], 4;\n"
                             "cp.async.mbarrier.arrive.noinc.shared.b64 [%r8];\n"
                             "cp.async.ca.shared.global [%r4+256], [%rd4+256], 4;\n"
                             "cp.async.mbarrier.arrive.shared.b64 [%r9];\n"
                             "mbarrier.arrive.shared.b64 %rd5, [%r9];\n" AWAIT(
                                 "w",
                                 "%r8", "0") "xor.b32 %r5, %r4, 4; ld.shared.u32 %r2, "
                                             "[%r5];\n" AWAIT("v", "%r9",
                                                              "0") "ld.shared.u32 %r6, [%r5+256]; "
                                                                   "add.u32 %r2, %r2, %r6;" ANSWER),
                       &run, out, in);
        for (unsigned i = 0; i < 64; i++)
            assert_int_equal(out[i], in[i ^ 1] + in[64 + (i ^ 1)]);
    }
}

#define FILL     OWN "mul.lo.u32 %r5, %r1, 3; st.shared.u32 [%r4], %r5; bar.sync 0;\n"
#define GROUP(n) "cp.async.bulk.commit_group; cp.async.bulk.wait_group " n ";\n"

static void bytes_go_out(void **state) {
    (void)state;
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
static void sources_that_were_not_waited_for(void **state) {
    (void)state;
    uint32_t out[64] __attribute__((aligned(16)));
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
    static const char form[] = ASYNC(
        "@!%%q bra end; mov.u32 %%r4, 0;\n"
        "more: cvt.u64.u32 %%rd4, %%r4; add.u64 %%rd4, %%rd4, %%rd3;\n"
        "ld.global.u32 %%r5, [%%rd4]; add.u32 %%r6, %%r4, %%r10; st.shared.u32 [%%r6], %%r5;\n"
        "add.u32 %%r4, %%r4, 4; setp.lt.u32 %%p, %%r4, 64; @%%p bra more;\n"
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.%s [%%rd1], [%%r10], 64;\n"
        "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\nend:");
    char text[2 * sizeof form];
    /* The head has percent signs of its own. */
    size_t head = sizeof ASYNC_HEAD - 1;
    memcpy(text, form, head);
    snprintf(text + head, sizeof text - head, form + head, operation);
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

static uint64_t reduced(const char *name, uint64_t a, uint64_t b, unsigned bits, bool sign) {
    int64_t x = bits == 64 ? (int64_t)a : (int32_t)a, y = bits == 64 ? (int64_t)b : (int32_t)b;
    if (strcmp(name, "min") == 0)
        return (sign ? x < y : a < b) ? a : b;
    if (strcmp(name, "max") == 0)
        return (sign ? x > y : a > b) ? a : b;
    if (strcmp(name, "inc") == 0)
        return a >= b ? 0 : a + 1;
    if (strcmp(name, "dec") == 0)
        return a == 0 || a > b ? b : a - 1;
    return strcmp(name, "add") == 0   ? a + b
           : strcmp(name, "and") == 0 ? (a & b)
           : strcmp(name, "or") == 0  ? (a | b)
                                      : (a ^ b);
}

static void integers_are_reduced(void **state) {
    (void)state;
    static const char *const names[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor"};
    static const char *const types[] = {"u32", "s32", "u64", "s64", "b32", "b64"};
    static const uint64_t values[8] = {0,
                                       1,
                                       UINT64_C(0x8000000080000000),
                                       5,
                                       UINT64_MAX,
                                       UINT64_C(0x7fffffff7fffffff),
                                       77,
                                       UINT64_C(0xffffffff00000000)};
    for (size_t n = 0; n < 8; n++)
        for (size_t t = 0; t < 6; t++) {
            bool logic = n >= 5, wide = types[t][1] == '6', sign = types[t][0] == 's';
            if (logic != (types[t][0] == 'b') || ((n == 3 || n == 4) && t != 0) ||
                (n == 0 && t == 3))
                continue;
            uint64_t old[8], with[8], wanted[8];
            for (size_t i = 0; i < 8; i++) {
                old[i] = values[i];
                with[i] = values[(i * 3 + 1) % 8];
                wanted[i] =
                    wide ? reduced(names[n], old[i], with[i], 64, sign)
                         : reduced(names[n], (uint32_t)old[i], (uint32_t)with[i], 32, sign) %
                                   (UINT64_C(1) << 32) |
                               reduced(names[n], old[i] >> 32, with[i] >> 32, 32, sign) << 32;
            }
            char operation[16];
            snprintf(operation, sizeof operation, "%s.%s", names[n], types[t]);
            reduces(operation, old, with, wanted);
        }
}

static void floats_are_reduced(void **state) {
    (void)state;
    float old[16], with[16], wanted[16];
    double old64[8], with64[8], wanted64[8];
    for (int i = 0; i < 16; i++) {
        old[i] = (float)i * 0.1f;
        with[i] = 1e6f / (float)(i + 3);
        wanted[i] = old[i] + with[i];
    }
    for (int i = 0; i < 8; i++) {
        old64[i] = i * 0.1;
        with64[i] = 1e6 / (i + 3);
        wanted64[i] = old64[i] + with64[i];
    }
    old[0] = 1e-45f; /* flushed */
    with[0] = -0x1p-130f;
    wanted[0] = 0.0f;
    reduces("add.f32", old, with, wanted);
    reduces("add.f64", old64, with64, wanted64);
    uint16_t half[32], other[32], sum[32], least[32];
    for (int i = 0; i < 32; i++) {
        half[i] = 0x3c00;                               /* 1 */
        other[i] = (uint16_t)(i % 2 ? 0xc000 : 0x3800); /* -2, 0.5 */
        sum[i] = (uint16_t)(i % 2 ? 0xbc00 : 0x3e00);
        least[i] = other[i];
    }
    other[0] = 0x7e00; /* NaN */
    sum[0] = 0x7fff;
    least[0] = 0x3c00;
    half[1] = 0x0001; /* 2^-24 + 2^-24 */
    other[1] = 0x0001;
    sum[1] = 0x0002;
    least[1] = 0x0001;
    reduces("add.noftz.f16", half, other, sum);
    reduces("min.f16", half, other, least);
    for (int i = 0; i < 32; i++) {
        half[i] = 0x3f80; /* 1 in bf16 */
        other[i] = 0x4000;
        sum[i] = 0x4040;
    }
    reduces("add.noftz.bf16", half, other, sum);
    reduces("max.bf16", half, other, other);
}

/* ---- faults ---------------------------------------------------------------------------------- */

static void faults_are_those_of_the_thread(void **state) {
    (void)state;
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
        {ASYNC("setp.eq.u32 %p, %r1, 5;\n"
               "@%p cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r10], 24;"),
         SG_FAULT_MISALIGNED, true},
        {ASYNC("setp.eq.u32 %p, %r1, 5;\n"
               "@%p cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r10+960], 128;\n"
               "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"),
         SG_FAULT_SPACE, true},
    };
    uint32_t out[64] __attribute__((aligned(16)));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct async_run run = {.threads = 32};
        FOR_EACH_SCHEDULE(run) {
            struct sg_grid_fault fault = async_fault(cases[i].text, &run, out, out);
            if (fault.kind != cases[i].kind)
                fail_msg("%s: %s", cases[i].text, sg_fault_name(fault.kind));
            assert_int_equal(fault.thread[0], 5);
            assert_int_equal(fault.write, cases[i].write);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_come_with_the_phase),
        cmocka_unit_test(a_missing_wait_shows),
        cmocka_unit_test(groups_are_waited_for_in_order),
        cmocka_unit_test(sources_are_cut_and_ignored),
        cmocka_unit_test(copies_arrive_at_mbarriers),
        cmocka_unit_test(bytes_go_out),
        cmocka_unit_test(sources_that_were_not_waited_for),
        cmocka_unit_test(integers_are_reduced),
        cmocka_unit_test(floats_are_reduced),
        cmocka_unit_test(faults_are_those_of_the_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
