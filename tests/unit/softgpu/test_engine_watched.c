/* What code that is watched tells: accesses of all spaces, barriers, meetings, fences, exits. */
#include "kernel.h"

#include "softgpu/engine/watch.h"

#include <inttypes.h>

struct told {
    char text[8192];
    size_t used;
    uint32_t refuse; /* lanes of every write */
    const struct sg_program *program;
};

static void add(struct told *told, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct told *told, const char *format, ...) {
    va_list list;
    va_start(list, format);
    int length = vsnprintf(told->text + told->used, sizeof told->text - told->used, format, list);
    va_end(list);
    told->used += (size_t)length;
    assert_true(told->used < sizeof told->text);
}

static const char *name_of(const struct told *told, uint32_t instruction) {
    return sg_op_name(told->program->instructions[instruction].op);
}

static void access_(void *user, const struct sg_watched_access *access) {
    static const char *const kinds[] = {"read", "write", "atomic"};
    struct told *told = user;
    unsigned last = 31u - (unsigned)__builtin_clz(access->lanes);
    add(told, "%s %s %x: %u in %s at", name_of(told, access->instruction), kinds[access->kind],
        access->lanes, access->size,
        access->space == SG_IN_GLOBAL   ? "global"
        : access->space == SG_IN_SHARED ? "shared"
        : access->space == SG_IN_LOCAL  ? "local"
                                        : "other");
    if (access->space != SG_IN_GLOBAL)
        add(told, " %" PRIu64, access->address[last]);
    else
        add(told, " +%" PRIu64,
            access->address[last] - access->address[__builtin_ctz(access->lanes)]);
    if (access->order)
        add(told, ", order %u, scope %u", access->order, access->scope);
    if (access->warp->frame && access->warp->frame->caller)
        add(told, ", in the frame at %" PRIu64 " of function %u", access->warp->frame->start,
            access->warp->frame->function);
    if (access->warp->first || access->warp->block)
        add(told, ", block %" PRIu64 " from %u", access->warp->block, access->warp->first);
    add(told, "\n");
}

static uint32_t refuses(void *user, const struct sg_watched_access *access) {
    const struct told *told = user;
    return access->kind == SG_WATCHED_WRITE ? told->refuse : 0;
}

static void arrives(void *user, const struct sg_watched_warp *warp, uint32_t instruction,
                    uint32_t lanes, unsigned number, bool waits) {
    add(user, "%s of %u arrives %x at %u%s\n", name_of(user, instruction), warp->first, lanes,
        number, waits ? " and waits" : "");
}

static void completes(void *user, uint64_t block, unsigned number) {
    add(user, "barrier %u of %" PRIu64 " completes\n", number, block);
}

static void meet(void *user, const struct sg_watched_warp *warp, uint32_t instruction,
                 uint32_t lanes) {
    add(user, "%s meet %x\n", name_of(user, instruction), lanes);
}

static void issues_bulk(void *user, const struct sg_watched_copy *copy) {
    struct told *told = user;
    add(told, "%s issues %u from %s to %s", name_of(told, copy->instruction), copy->size,
        copy->from_value    ? "registers"
        : copy->from_global ? "global"
                            : "shared",
        copy->to_global ? "global" : "shared");
    if (copy->tells)
        add(told, ", mbarrier at %" PRIu64 ", parity %u", copy->mbarrier, copy->parity);
    add(told, "\n");
}

static void delivers(void *user, const struct sg_watched_access *mbarrier) {
    add(user, "delivers to %" PRIu64 "\n", mbarrier->address[__builtin_ctz(mbarrier->lanes)]);
}

static void phase_of(struct told *told, const struct sg_watched_phase *phase, const char *what) {
    unsigned lane = (unsigned)__builtin_ctz(phase->lanes);
    add(told, "%s at %" PRIu64 ", parity %u", what, phase->address[lane],
        phase->parity >> lane & 1);
}

static void hands_over(void *user, const struct sg_watched_phase *phase) {
    phase_of(user, phase, "copies are counted");
    add(user, ": %x\n", phase->lanes);
}

static void looks(void *user, const struct sg_watched_phase *phase) {
    phase_of(user, phase, "mbarrier");
    add(user, "%s: %x of %x over, order %u, scope %u\n", phase->by_state ? ", state" : "",
        phase->over, phase->lanes, phase->order, phase->scope);
}

static void turns(void *user, uint64_t block, uint64_t address) {
    add(user, "mbarrier at %" PRIu64 " turns\n", address);
}

static void fence(void *user, const struct sg_watched_warp *warp, uint32_t instruction,
                  uint32_t lanes, unsigned char order, unsigned char scope) {
    add(user, "%s %x, order %u, scope %u\n", name_of(user, instruction), lanes, order, scope);
}

static void enters(void *user, const struct sg_watched_warp *warp, uint32_t lanes) {
    const struct sg_watched_frame *frame = warp->frame;
    add(user, "%x enter function %u, called by %u, at %" PRIu64 "\n", lanes, frame->function,
        frame->caller->function, frame->start);
}

static void exits(void *user, const struct sg_watched_warp *warp, uint32_t lanes) {
    add(user, "%u exits %x\n", warp->first, lanes);
}

static void begins(void *user, uint64_t block, uint64_t shared) {
    add(user, "block %" PRIu64 " begins, %" PRIu64 " shared\n", block, shared);
}

static void ends(void *user, uint64_t block) {
    add(user, "block %" PRIu64 " ends\n", block);
}

static const struct sg_watch watch = {.access = access_,
                                      .refuses = refuses,
                                      .arrives = arrives,
                                      .completes = completes,
                                      .meet = meet,
                                      .issues_bulk = issues_bulk,
                                      .delivers = delivers,
                                      .hands_over = hands_over,
                                      .looks = looks,
                                      .turns = turns,
                                      .fence = fence,
                                      .exits = exits,
                                      .enters = enters,
                                      .block_begins = begins,
                                      .block_ends = ends};

/* Registers and a pointer in %rd1, the thread in %r1, and its place of 16 bytes in %rd2. */
#define TEXT(more, body)                                                                           \
    KERNEL_HEAD ".visible .entry k(.param .u64 to) {\n"                                            \
                ".reg .pred %p, %q; .reg .b32 %r<12>; .reg .b64 %rd<8>; \n" more                   \
                "ld.param.u64 %rd1, [to]; mov.u32 %r1, %tid.x; mov.u64 %rd6, 0;\n"                 \
                "mad.wide.u32 %rd2, %r1, 16, %rd1;\n" body "ret; }\n"

static void says(const char *text, unsigned blocks, unsigned threads, uint32_t refuse, void *to,
                 const char *expected) {
    FOR_EACH_LEVEL(level) {
        struct kernel kernel;
        struct told told = {.refuse = refuse};
        kernel_make(&kernel, text, (enum sg_level)level);
        kernel_watched(&kernel, (enum sg_level)level, &watch, &told);
        told.program = kernel.program;
        kernel_pointer(&kernel, to);
        kernel_shape(&kernel, blocks, threads);
        kernel.launch.workers = 4;
        kernel_succeeds(&kernel);
        assert_string_equal(told.text, expected);
        kernel_free(&kernel);
    }
}

TEST(the_watch_reports_loads_stores_and_atomics) {
    uint32_t to[128] __attribute__((aligned(16))) = {0};
    says(TEXT(".shared .b32 s[4]; .local .b64 l[4];\n",
              "setp.lt.u32 %p, %r1, 3;\n"
              "ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd2];\n"
              "@%p st.global.u8 [%rd2+4], 1;\n"
              "st.shared.u32 [s+4], %r1; ld.volatile.global.u16 %r2, [%rd2];\n"
              "ld.local.u64 %rd3, [l+8];\n"
              "atom.global.add.u32 %r3, [%rd1], 1; red.release.sys.global.or.b64 [%rd1], 1;\n"
              "ld.acquire.cta.global.u32 %r3, [%rd1]; st.relaxed.gpu.global.u32 [%rd1], 1;\n"
              "atom.shared.cta.acq_rel.exch.b32 %r3, [s], 1;\n"),
         1, 4, 0, to,
         "block 0 begins, 16 shared\n"
         "ld read f: 16 in global at +48\n"
         "st write 7: 1 in global at +32\n"
         "st write f: 4 in shared at 4\n"
         "ld read f: 2 in global at +48, order 1, scope 3\n"
         "ld read f: 8 in local at 8\n"
         "atom atomic f: 4 in global at +0, order 1, scope 2\n"
         "red atomic f: 8 in global at +0, order 5, scope 3\n"
         "ld read f: 4 in global at +0, order 3, scope 0\n"
         "st write f: 4 in global at +0, order 1, scope 2\n"
         "atom atomic f: 4 in shared at 0, order 7, scope 0\n"
         "0 exits f\n"
         "block 0 ends\n");
}

/* Lanes of one access in two spaces. */
TEST(the_watch_resolves_generic_addresses) {
    uint32_t to[128] __attribute__((aligned(16))) = {0};
    says(TEXT(".shared .b32 s[4];\n",
              "mov.u64 %rd3, s; cvta.shared.u64 %rd3, %rd3; setp.gt.u32 %p, %r1, 1;\n"
              "selp.b64 %rd4, %rd3, %rd2, %p; st.u32 [%rd4+4], %r1;\n"),
         1, 4, 0, to,
         "block 0 begins, 16 shared\n"
         "st write 3: 4 in global at +16\n"
         "st write c: 4 in shared at 4\n"
         "0 exits f\n"
         "block 0 ends\n");
    assert_int_equal(to[5], 1);
    assert_int_equal(to[9], 0);
}

TEST(the_watch_reports_barriers_and_fences) {
    uint32_t to[4 * 64] = {0};
    says(TEXT("", "setp.ge.u32 %p, %r1, 32; @%p bra other;\n"
                  "bar.arrive 3, 64; fence.acq_rel.gpu; bra on;\n"
                  "other: bar.sync 3, 64; membar.gl;\n"
                  "on: bar.warp.sync 0xffffffff; fence.sc.sys; bar.sync 0;\n"),
         1, 64, 0, to,
         "block 0 begins, 0 shared\n"
         "bar of 0 arrives ffffffff at 3\n"
         "fence ffffffff, order 6, scope 2\n"
         "bar meet ffffffff\n"
         "fence ffffffff, order 7, scope 3\n"
         "bar of 0 arrives ffffffff at 0 and waits\n"
         "bar of 32 arrives ffffffff at 3 and waits\n"
         "barrier 3 of 0 completes\n"
         "membar ffffffff, order 7, scope 2\n"
         "bar meet ffffffff\n"
         "fence ffffffff, order 7, scope 3\n"
         "bar of 32 arrives ffffffff at 0 and waits\n"
         "barrier 0 of 0 completes\n"
         "32 exits ffffffff\n"
         "0 exits ffffffff\n"
         "block 0 ends\n");
}

TEST(the_watch_reports_blocks_in_order) {
    uint32_t to[128] = {0};
    says(TEXT("", "st.global.u32 [%rd2], 7;\n"), 3, 2, 0, to,
         "block 0 begins, 0 shared\n"
         "st write 3: 4 in global at +16\n"
         "0 exits 3\n"
         "block 0 ends\n"
         "block 1 begins, 0 shared\n"
         "st write 3: 4 in global at +16, block 1 from 0\n"
         "0 exits 3\n"
         "block 1 ends\n"
         "block 2 begins, 0 shared\n"
         "st write 3: 4 in global at +16, block 2 from 0\n"
         "0 exits 3\n"
         "block 2 ends\n");
}

TEST(the_watch_reports_copies_counted_by_mbarriers) {
    uint32_t to[128] __attribute__((aligned(16))) = {0};
    says(
        TEXT(
            ".shared .align 16 .b8 s[64]; .shared .b64 m;\n",
            "mbarrier.init.shared.b64 [m], 2;\n"
            "cp.async.ca.shared.global [s], [%rd1], 4;\n"
            "cp.async.mbarrier.arrive.noinc.shared.b64 [m];\n"
            "mbarrier.arrive.expect_tx.shared.b64 %rd3, [m], 16;\n"
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s+16], [%rd1], 16, "
            "[m];\n"
            "mbarrier.test_wait.parity.relaxed.cta.shared.b64 %p, [m], 0;\n"
            "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [s], 32;\n"),
        1, 1, 0, to,
        "block 0 begins, 72 shared\n"
        "mbarrier write 1: 8 in shared at 64\n"
        "cp read 1: 4 in global at +0, order 8, scope 2\n"
        "cp write 1: 4 in shared at 0, order 8, scope 2\n"
        "copies are counted at 64, parity 0: 1\n"
        "cp atomic 1: 8 in shared at 64, order 13, scope 0\n"
        "mbarrier atomic 1: 8 in shared at 64, order 5, scope 1\n"
        "cp issues 16 from global to shared, mbarrier at 64, parity 0\n"
        "cp read 1: 16 in global at +0, order 8, scope 2\n"
        "cp write 1: 16 in shared at 16, order 8, scope 2\n"
        "delivers to 64\n"
        "mbarrier at 64 turns\n"
        "mbarrier read 1: 8 in shared at 64, order 1, scope 0\n"
        "mbarrier at 64, parity 0: 1 of 1 over, order 1, scope 0\n"
        "cp issues 32 from shared to global\n"
        "cp read 1: 32 in shared at 0, order 8, scope 2\n"
        "cp write 1: 32 in global at +0, order 8, scope 2\n"
        "0 exits 1\n"
        "block 0 ends\n");
}

/* The first step writes the source of the copy: what is refused lane by lane is not made. */
TEST(the_watch_reports_copies_when_they_are_issued) {
    uint32_t to[128] __attribute__((aligned(16))) = {0};
    says(TEXT(".shared .align 16 .b8 s[64]; .shared .b64 m;\n",
              "cp.async.ca.shared.global [s], [%rd1], 16, 8; cp.async.commit_group;\n"
              "cp.async.wait_group 0;\n"
              "mbarrier.init.shared.b64 [m], 1; mbarrier.arrive.shared.b64 %rd3, [m];\n"
              "mbarrier.test_wait.shared.b64 %p, [m], %rd3;\n"),
         1, 1, 0, to,
         "block 0 begins, 72 shared\n"
         "cp read 1: 8 in global at +0, order 8, scope 2\n"
         "cp write 1: 16 in shared at 0, order 8, scope 2\n"
         "cp 1, order 8, scope 0\n"
         "cp 1, order 8, scope 0\n"
         "mbarrier write 1: 8 in shared at 64\n"
         "mbarrier atomic 1: 8 in shared at 64, order 5, scope 1\n"
         "mbarrier at 64 turns\n"
         "mbarrier read 1: 8 in shared at 64, order 1, scope 1\n"
         "mbarrier at 64, parity 0, state: 1 of 1 over, order 3, scope 1\n"
         "0 exits 1\n"
         "block 0 ends\n");
}

/* Where local memory is whose: the entry's 16 bytes, then f's, which some lanes call. */
TEST(the_watch_reports_local_memory_of_function_frames) {
    uint32_t to[4] = {0};
    says(KERNEL_HEAD
         ".func f() {\n"
         ".local .b32 l[4]; .reg .b32 %r; st.local.u32 [l+4], 1; ld.local.u32 %r, [l+4]; ret; }\n"
         ".visible .entry k(.param .u64 to) { .local .b32 mine[4]; .reg .pred %p; .reg .b32 %r1;\n"
         "mov.u32 %r1, %tid.x; setp.lt.u32 %p, %r1, 2; st.local.u32 [mine], 1;\n"
         "@%p call f; st.local.u32 [mine+12], 1; ret; }\n",
         1, 3, 0, to,
         "block 0 begins, 0 shared\n"
         "st write 7: 4 in local at 0\n"
         "3 enter function 1, called by 0, at 16\n"
         "st write 3: 4 in local at 20, in the frame at 16 of function 1\n"
         "ld read 3: 4 in local at 20, in the frame at 16 of function 1\n"
         "st write 7: 4 in local at 12\n"
         "0 exits 7\n"
         "block 0 ends\n");
}

TEST(the_watch_reports_matrix_loads_row_by_row) {
    uint32_t to[128] __attribute__((aligned(16))) = {0};
    says(TEXT(".shared .align 16 .b8 s[128];\n",
              "shl.b32 %r3, %r1, 4; and.b32 %r3, %r3, 127; mov.u32 %r2, s; add.u32 %r2, %r2, %r3;\n"
              "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r2];\n"),
         1, 32, 0, to,
         "block 0 begins, 128 shared\n"
         "ldmatrix read 1: 16 in shared at 0\n"
         "ldmatrix read 2: 16 in shared at 16\n"
         "ldmatrix read 4: 16 in shared at 32\n"
         "ldmatrix read 8: 16 in shared at 48\n"
         "ldmatrix read 10: 16 in shared at 64\n"
         "ldmatrix read 20: 16 in shared at 80\n"
         "ldmatrix read 40: 16 in shared at 96\n"
         "ldmatrix read 80: 16 in shared at 112\n"
         "0 exits ffffffff\n"
         "block 0 ends\n");
}

/* Under a guard too, and no lane at all. */
TEST(an_access_refused_by_the_watch_is_not_executed) {
    for (uint32_t refuse = 5; refuse == 5 || refuse == 15; refuse += 10) {
        uint32_t to[128] __attribute__((aligned(16))) = {0};
        says(TEXT("", "setp.ne.u32 %p, %r1, 3;\n@%p st.global.u32 [%rd2], 9;\n"
                      "ld.global.u32 %r3, [%rd2];\n"),
             1, 4, refuse, to,
             "block 0 begins, 0 shared\n"
             "st write 7: 4 in global at +32\n"
             "ld read f: 4 in global at +48\n"
             "0 exits f\n"
             "block 0 ends\n");
        for (uint32_t i = 0; i < 4; i++)
            assert_int_equal(to[4 * i], i < 3 && !(refuse >> i & 1) ? 9 : 0);
    }
}
