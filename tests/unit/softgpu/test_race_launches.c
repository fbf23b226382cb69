/* Races between launches, and between launches and copies, where the API orders them and where it
 * does not: also kernels that begin before the one before them has ended, and several threads that
 * run kernels at once. */
#include "race_kernel.h"

#include <pthread.h>

static const char writes_[] =
    KERNEL_HEAD ".visible .entry k(.param .u64 to) {\n.reg .b32 %r<4>; .reg .b64 %rd<4>;\n"
                "ld.param.u64 %rd1, [to]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd2, %r1, 4, %rd1;\n"
                "griddepcontrol.launch_dependents;\nst.global.u32 [%rd2], %r1;\nret;\n}\n";

#define READS(before)                                                                              \
    KERNEL_HEAD ".visible .entry k(.param .u64 to) {\n"                                            \
                ".reg .pred %p; .reg .b32 %r<4>; .reg .b64 %rd<4>;\n"                              \
                "ld.param.u64 %rd1, [to]; mov.u32 %r1, %tid.x; setp.eq.u32 %p, %r1, 0;\n"          \
                "mad.wide.u32 %rd2, %r1, 4, %rd1;\n" before                                        \
                "ld.global.u32 %r2, [%rd2];\nst.global.u32 [%rd2+4096], %r2;\nret;\n}\n"

static uint32_t memory[4096] __attribute__((aligned(4096)));

struct findings {
    struct sg_race_found found[RACE_FOUND];
    unsigned count; /* also of those that are not kept */
};

static void keep(void *user, const struct sg_race_found *found) {
    struct findings *findings = user;
    if (findings->count < RACE_FOUND)
        findings->found[findings->count] = *found;
    findings->count++;
}

static struct sg_race *race_of(struct findings *findings) {
    const struct sg_race_options options = {.found = keep, .bytes = race_bytes, .user = findings};
    memset(findings, 0, sizeof *findings);
    struct sg_race *race = sg_race_new(&options);
    assert_non_null(race);
    return race;
}

static void run(struct sg_race *race, const char *text, const struct sg_race_operation *operation,
                void *at) {
    struct kernel kernel;
    const struct sg_race_shape shape = {{1, 1, 1}, {64, 1, 1}, {0}};
    struct sg_race_grid *grid = sg_race_begin(race, operation, &shape);
    assert_non_null(grid);
    kernel_make(&kernel, text, sg_level_best());
    kernel_pointer(&kernel, at);
    kernel_watched(&kernel, sg_level_best(), &sg_race_watch, grid);
    kernel_shape(&kernel, 1, 64);
    kernel_succeeds(&kernel);
    sg_race_end(grid);
    kernel_free(&kernel);
}

/* The blocks of a launch here write the same, which is a finding of its own: only those of two
 * launches count. */
static unsigned between(const struct findings *findings) {
    unsigned count = 0;
    for (unsigned i = 0; i < findings->count && i < RACE_FOUND; i++)
        count += findings->found[i].now.name != findings->found[i].before.name;
    return count;
}

static void look(bool wanted, const char *first, const char *second,
                 const struct sg_race_operation *a, const struct sg_race_operation *b) {
    struct findings findings;
    struct sg_race *race = race_of(&findings);
    run(race, first, a, memory);
    run(race, second, b, memory);
    assert_int_equal(between(&findings) > 0, wanted);
    sg_race_free(race);
}

TEST(streams_and_event_waits_order_launches) {
    const struct sg_race_operation first = {.stream = 1, .number = 1, .serial = 1, .name = "first"};
    struct sg_race_operation second = {.stream = 1, .number = 2, .serial = 2, .name = "second"};
    look(false, writes_, READS(""), &first, &second);
    second.stream = 2;
    look(true, writes_, READS(""), &first, &second);
    const struct sg_race_after after = {.stream = 1, .number = 1};
    second.after = &after;
    second.after_count = 1;
    look(false, writes_, READS(""), &first, &second);
    second.after_count = 0;
    second.floor = 1; /* the host has waited for all */
    look(false, writes_, READS(""), &first, &second);
}

TEST(an_early_kernel_races_until_it_waits_for_its_predecessor) {
    const struct sg_race_operation first = {.stream = 1, .number = 1, .name = "first"},
                                   second = {
                                       .stream = 1, .number = 2, .name = "second", .early = true};
    look(true, writes_, READS(""), &first, &second);
    look(false, writes_, READS("griddepcontrol.wait;\n"), &first, &second);
    /* One thread waits, and the others meet it. */
    look(false, writes_, READS("@%p griddepcontrol.wait;\nbar.sync 0;\n"), &first, &second);
    /* Behind the access it is too late. */
    look(true, writes_, READS("ld.global.u32 %r2, [%rd2];\ngriddepcontrol.wait;\n"), &first,
         &second);
    /* What is before the first has ended. */
    const struct sg_race_operation third = {
        .stream = 1, .number = 3, .name = "third", .early = true};
    look(false, writes_, READS(""), &first, &third);
}

TEST(an_early_kernel_does_not_race_with_a_copy_before_it) {
    struct findings findings;
    struct sg_race *race = race_of(&findings);
    const struct sg_race_operation copy = {.stream = 1, .number = 1, .name = "copy"},
                                   kernel = {
                                       .stream = 1, .number = 2, .name = "kernel", .early = true};
    sg_race_copy(race, &copy, (uint64_t)(uintptr_t)memory, 256, true);
    run(race, READS(""), &kernel, memory);
    assert_int_equal(between(&findings), 0);
    sg_race_free(race);
}

TEST(unordered_copies_race_with_kernels) {
    for (int ordered = 0; ordered < 2; ordered++) {
        struct findings findings;
        struct sg_race *race = race_of(&findings);
        const struct sg_race_operation kernel = {.stream = 1, .number = 1, .name = "kernel"},
                                       copy = {
                                           .stream = ordered ? 1 : 2, .number = 2, .name = "copy"};
        run(race, READS(""), &kernel, memory);
        /* It reads what the kernel reads, and then writes it. */
        sg_race_copy(race, &copy, (uint64_t)(uintptr_t)memory, 256, false);
        assert_int_equal(between(&findings), 0);
        sg_race_copy(race, &copy, (uint64_t)(uintptr_t)memory + 6, 1, true);
        assert_int_equal(between(&findings), ordered ? 0 : 1);
        if (!ordered) {
            assert_int_equal(findings.found[findings.count - 1].size, 1);
            assert_true(findings.found[findings.count - 1].now.copy);
        }
        sg_race_free(race);
    }
}

TEST(freed_memory_forgets_earlier_accesses) {
    struct findings findings;
    struct sg_race *race = race_of(&findings);
    const struct sg_race_operation first = {.stream = 1, .number = 1, .name = "first"},
                                   second = {.stream = 2, .number = 1, .name = "second"};
    run(race, writes_, &first, memory);
    sg_race_forget(race, (uint64_t)(uintptr_t)memory, sizeof memory);
    run(race, READS(""), &second, memory);
    assert_int_equal(between(&findings), 0);
    sg_race_free(race);
}

/* ---- several threads ------------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 11 };

struct worker {
    struct sg_race *race;
    pthread_t thread;
    unsigned index;
    uint32_t *memory;
};

static const char apart[] = KERNEL_HEAD
    ".visible .entry k(.param .u64 to) {\n"
    ".reg .pred %p; .reg .b32 %r<8>; .reg .b64 %rd<4>; .shared .b32 s[64];\n"
    "ld.param.u64 %rd1, [to]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, s;\n"
    "mad.lo.u32 %r4, %r2, 64, %r1; mad.wide.u32 %rd2, %r4, 4, %rd1; shl.b32 %r5, %r1, 2;\n"
    "add.u32 %r5, %r5, %r3; st.shared.u32 [%r5], %r1; bar.sync 0; xor.b32 %r5, %r5, 128;\n"
    "ld.shared.u32 %r6, [%r5]; st.global.u32 [%rd2], %r6; membar.gl;\n"
    "atom.global.add.u32 %r7, [%rd1+1024], 1; st.release.gpu.global.u32 [%rd1+1028], 1;\n"
    "ld.acquire.gpu.global.u32 %r7, [%rd1+1028];\nret;\n}\n";

static void *work(void *user) {
    const struct worker *worker = user;
    for (unsigned i = 0; i < ROUNDS; i++) {
        const struct sg_race_operation kernel = {
            .stream = worker->index + 1, .number = 2 * i + 1, .name = "kernel"};
        const struct sg_race_operation copy = {
            .stream = worker->index + 1, .number = 2 * i + 2, .name = "copy"};
        run(worker->race, apart, &kernel, worker->memory);
        sg_race_copy(worker->race, &copy, (uint64_t)(uintptr_t)worker->memory, 512, true);
        if (i % 4 == 3)
            sg_race_forget(worker->race, (uint64_t)(uintptr_t)worker->memory, 4096);
    }
    return NULL;
}

TEST(kernels_run_by_several_threads_are_checked) {
    struct findings findings;
    struct worker workers[THREADS];
    struct sg_race *race = race_of(&findings);
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.race = race, .index = i, .memory = memory + 1024 * (size_t)i};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    assert_int_equal(findings.count, 0);
    /* What they did last is still known: a stream that waits for nobody races with each of them. */
    const struct sg_race_operation copy = {.stream = 99, .number = 1, .name = "copy"};
    sg_race_copy(race, &copy, (uint64_t)(uintptr_t)memory, sizeof memory, false);
    assert_true(findings.count >= THREADS);
    sg_race_free(race);
}
