/*
 * Litmus tests of memory order: kernels on threads of their own against each other and against
 * threads of the host, at system scope. Each test goes through arrays without any other order
 * between its threads, and no outcome may be one that PTX forbids. They do not lean on what x86
 * keeps in order anyway: a build with ThreadSanitizer finds a release or acquire that the engine
 * does not hand on, whatever the machine does.
 */
#include "kernel.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/wait.h>

#define ROUNDS 2000

struct memory {
    _Atomic uint32_t go, ready;
    _Atomic uint32_t
        pace[4]; /* the rounds that kernels have come to: relaxed, so it orders nothing */
    unsigned kernels;
    _Atomic uint32_t x[ROUNDS], y[ROUNDS];
    uint32_t data[ROUNDS];      /* weak */
    uint32_t seen[4][ROUNDS];   /* by each thread: its first value */
    uint32_t second[4][ROUNDS]; /* its second */
};

/* %x, %y: the round's words; %d: its data; results into %r1 and %r2. */
#define HEAD                                                                                       \
    ".version 8.0\n.target sm_90\n.address_size 64\n"                                              \
    ".visible .entry k(.param .u64 go, .param .u64 x, .param .u64 y, .param .u64 d,\n"             \
    ".param .u64 s, .param .u64 t, .param .u64 pace, .param .u32 n) {\n"                           \
    ".reg .pred %p; .reg .b32 %r<6>; .reg .b64 %go, %x, %y, %d, %s, %t, %pace; .reg .b32 %i, "     \
    "%n;\n"                                                                                        \
    "ld.param.u64 %go, [go]; ld.param.u64 %x, [x]; ld.param.u64 %y, [y]; ld.param.u64 %d, [d];\n"  \
    "ld.param.u64 %s, [s]; ld.param.u64 %t, [t]; ld.param.u32 %n, [n]; ld.param.u64 %pace, "       \
    "[pace]; mov.u32 %i, 0;\n"                                                                     \
    "wait: ld.acquire.sys.u32 %r1, [%go]; setp.eq.u32 %p, %r1, 0; @%p bra wait;\n"                 \
    "round: st.relaxed.sys.u32 [%pace], %i; mov.u32 %r1, 0; mov.u32 %r2, 0;\n"
#define TAIL                                                                                       \
    "\nst.u32 [%s], %r1; st.u32 [%t], %r2; add.u64 %x, %x, 4; add.u64 %y, %y, 4;\n"                \
    "add.u64 %d, %d, 4; add.u64 %s, %s, 4; add.u64 %t, %t, 4; add.u32 %i, %i, 1;\n"                \
    "setp.lt.u32 %p, %i, %n; @%p bra round; ret; }\n"

/* A thread of a test: a kernel, or the same by a thread of the host. */
typedef void by_host(struct memory *memory, unsigned round, unsigned who);
struct part {
    const char *text; /* between head and tail */
    by_host *host;
};

struct running {
    struct memory *memory;
    const struct part *part;
    unsigned who;
    bool kernel;
};

static void run_kernel(const struct running *running) {
    struct memory *memory = running->memory;
    char text[4096];
    snprintf(text, sizeof text, "%s", HEAD);
    size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, "%s%s", running->part->text, TAIL);
    struct kernel kernel;
    kernel_make(&kernel, text, sg_level_best());
    kernel_pointer(&kernel, &memory->go);
    kernel_pointer(&kernel, memory->x);
    kernel_pointer(&kernel, memory->y);
    kernel_pointer(&kernel, memory->data);
    kernel_pointer(&kernel, memory->seen[running->who]);
    kernel_pointer(&kernel, memory->second[running->who]);
    kernel_pointer(&kernel, &memory->pace[running->who]);
    kernel_number(&kernel, ROUNDS);
    kernel_shape(&kernel, 1, 1);
    atomic_fetch_add(&memory->ready, 1);
    struct sg_grid_fault fault = kernel_run(&kernel, 500);
    kernel_free(&kernel);
    assert_int_equal(fault.kind, SG_FAULT_COUNT);
}

static void *begin(void *argument) {
    const struct running *running = argument;
    if (running->kernel) {
        run_kernel(running);
        return NULL;
    }
    struct memory *memory = running->memory;
    atomic_fetch_add(&memory->ready, 1);
    while (!atomic_load_explicit(&memory->go, memory_order_acquire))
        sched_yield();
    for (unsigned i = 0; i < ROUNDS; i++) {
        for (unsigned k = 0; k < 4; k++)
            while (memory->kernels >> k & 1 &&
                   atomic_load_explicit(&memory->pace[k], memory_order_relaxed) < i)
                ;
        running->part->host(memory, i, running->who);
    }
    return NULL;
}

/* Which of the parts are kernels: the bits of `kernels`. */
static struct memory *play(const struct part *parts, unsigned count, unsigned kernels) {
    struct memory *memory = calloc(1, sizeof *memory);
    pthread_t threads[4];
    struct running running[4];
    assert_non_null(memory);
    memory->kernels = kernels;
    for (unsigned i = 0; i < count; i++) {
        running[i] = (struct running){memory, &parts[i], i, kernels >> i & 1};
        assert_int_equal(pthread_create(&threads[i], NULL, begin, &running[i]), 0);
    }
    while (atomic_load(&memory->ready) < count)
        sched_yield();
    atomic_store_explicit(&memory->go, 1, memory_order_release);
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    return memory;
}

/* ---- message passing ----------------------------------------------------------------------- */

static void send(struct memory *memory, unsigned i, unsigned who) {
    memory->data[i] = i + 1;
    atomic_store_explicit(&memory->x[i], 1, memory_order_release);
}

static void receive(struct memory *memory, unsigned i, unsigned who) {
    memory->seen[who][i] = atomic_load_explicit(&memory->x[i], memory_order_acquire);
    if (memory->seen[who][i])
        memory->second[who][i] = memory->data[i];
}

#define RECEIVED "setp.ne.u32 %p, %r1, 0; @%p ld.weak.u32 %r2, [%d];"

TEST(an_acquired_message_carries_its_data) {
    static const struct part ways[][2] = {
        {{"add.u32 %r3, %i, 1; st.weak.u32 [%d], %r3; st.release.sys.u32 [%x], 1;", send},
         {"ld.acquire.sys.u32 %r1, [%x];" RECEIVED, receive}},
        {{"add.u32 %r3, %i, 1; st.weak.u32 [%d], %r3; red.release.sys.or.b32 [%x], 1;", send},
         {"atom.acquire.sys.or.b32 %r1, [%x], 0;" RECEIVED, receive}},
        {{"add.u32 %r3, %i, 1; st.weak.u32 [%d], %r3; atom.release.gpu.exch.b32 %r4, [%x], 1;",
          send},
         {"ld.acquire.gpu.u32 %r1, [%x];" RECEIVED, receive}},
    };
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
        for (unsigned kernels = 1; kernels < 4; kernels++) {
            struct memory *memory = play(ways[w], 2, kernels);
            for (unsigned i = 0; i < ROUNDS; i++)
                assert_int_equal(memory->second[1][i], memory->seen[1][i] ? i + 1 : 0);
            free(memory);
        }
}

/* With fences: the message is relaxed too, since ThreadSanitizer knows no fences. */
static void send_fenced(struct memory *memory, unsigned i, unsigned who) {
    atomic_store_explicit(&memory->y[i], i + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&memory->x[i], 1, memory_order_relaxed);
}

static void receive_fenced(struct memory *memory, unsigned i, unsigned who) {
    memory->seen[who][i] = atomic_load_explicit(&memory->x[i], memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    memory->second[who][i] = atomic_load_explicit(&memory->y[i], memory_order_relaxed);
}

TEST(fences_order_relaxed_messages) {
    static const struct part parts[2] = {
        {"add.u32 %r3, %i, 1; st.relaxed.sys.u32 [%y], %r3; fence.acq_rel.sys;\n"
         "st.relaxed.sys.u32 [%x], 1;",
         send_fenced},
        {"ld.relaxed.sys.u32 %r1, [%x]; fence.acq_rel.sys; ld.relaxed.sys.u32 %r2, [%y];",
         receive_fenced}};
    for (unsigned kernels = 1; kernels < 4; kernels++) {
        struct memory *memory = play(parts, 2, kernels);
        for (unsigned i = 0; i < ROUNDS; i++)
            assert_true(!memory->seen[1][i] || memory->second[1][i] == i + 1);
        free(memory);
    }
}

/* ---- store buffering ----------------------------------------------------------------------- */

static void store_x(struct memory *memory, unsigned i, unsigned who) {
    atomic_store_explicit(&memory->x[i], 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    memory->seen[who][i] = atomic_load_explicit(&memory->y[i], memory_order_relaxed);
}

static void store_y(struct memory *memory, unsigned i, unsigned who) {
    atomic_store_explicit(&memory->y[i], 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    memory->seen[who][i] = atomic_load_explicit(&memory->x[i], memory_order_relaxed);
}

/* One of two that store and then look sees the other's store. */
TEST(sequentially_consistent_fences_forbid_store_buffering) {
    static const struct part parts[2] = {
        {"st.relaxed.sys.u32 [%x], 1; fence.sc.sys; ld.relaxed.sys.u32 %r1, [%y];", store_x},
        {"st.relaxed.sys.u32 [%y], 1; fence.sc.sys; ld.relaxed.sys.u32 %r1, [%x];", store_y}};
    for (unsigned kernels = 1; kernels < 4; kernels++) {
        struct memory *memory = play(parts, 2, kernels);
        for (unsigned i = 0; i < ROUNDS; i++)
            assert_true(memory->seen[0][i] || memory->seen[1][i]);
        free(memory);
    }
}

static void exchange_x(struct memory *memory, unsigned i, unsigned who) {
    atomic_exchange_explicit(&memory->x[i], 1, memory_order_seq_cst);
    memory->seen[who][i] = atomic_load_explicit(&memory->y[i], memory_order_relaxed);
}

/* The same by the older words for fences and by atomic operations, at each scope. */
TEST(fences_and_atomics_of_each_scope_forbid_store_buffering) {
    static const struct part ways[][2] = {
        {{"st.relaxed.gpu.u32 [%x], 1; fence.sc.gpu; ld.relaxed.gpu.u32 %r1, [%y];", NULL},
         {"st.relaxed.gpu.u32 [%y], 1; fence.sc.gpu; ld.relaxed.gpu.u32 %r1, [%x];", NULL}},
        {{"st.volatile.u32 [%x], 1; membar.sys; ld.volatile.u32 %r1, [%y];", store_x},
         {"st.volatile.u32 [%y], 1; membar.sys; ld.volatile.u32 %r1, [%x];", store_y}},
        {{"atom.relaxed.sys.exch.b32 %r3, [%x], 1; fence.sc.sys; ld.relaxed.sys.u32 %r1, [%y];",
          exchange_x},
         {"red.relaxed.sys.or.b32 [%y], 1; fence.sc.sys; atom.relaxed.sys.or.b32 %r1, [%x], 0;",
          store_y}}};
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
        for (unsigned kernels = ways[w][0].host ? 1 : 3; kernels < 4; kernels++) {
            struct memory *memory = play(ways[w], 2, kernels);
            for (unsigned i = 0; i < ROUNDS; i++)
                assert_true(memory->seen[0][i] || memory->seen[1][i]);
            free(memory);
        }
}

/* ---- load buffering ------------------------------------------------------------------------ */

static void load_x_store_y(struct memory *memory, unsigned i, unsigned who) {
    memory->seen[who][i] = atomic_load_explicit(&memory->x[i], memory_order_acquire);
    atomic_store_explicit(&memory->y[i], 1, memory_order_release);
}

static void load_y_store_x(struct memory *memory, unsigned i, unsigned who) {
    memory->seen[who][i] = atomic_load_explicit(&memory->y[i], memory_order_acquire);
    atomic_store_explicit(&memory->x[i], 1, memory_order_release);
}

/* Of two that look and then store not both see the other's store. */
TEST(load_buffering_is_forbidden) {
    static const struct part ways[][2] = {
        {{"ld.acquire.sys.u32 %r1, [%x]; st.release.sys.u32 [%y], 1;", load_x_store_y},
         {"ld.acquire.sys.u32 %r1, [%y]; st.release.sys.u32 [%x], 1;", load_y_store_x}},
        {{"ld.relaxed.sys.u32 %r1, [%x]; fence.acq_rel.sys; st.relaxed.sys.u32 [%y], 1;",
          load_x_store_y},
         {"ld.relaxed.sys.u32 %r1, [%y]; fence.acq_rel.sys; st.relaxed.sys.u32 [%x], 1;",
          load_y_store_x}},
        {{"ld.relaxed.gpu.u32 %r1, [%x]; fence.acq_rel.gpu; st.relaxed.gpu.u32 [%y], 1;", NULL},
         {"atom.acquire.gpu.or.b32 %r1, [%y], 0; st.release.gpu.u32 [%x], 1;", NULL}}};
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
        for (unsigned kernels = ways[w][0].host ? 1 : 3; kernels < 4; kernels++) {
            struct memory *memory = play(ways[w], 2, kernels);
            for (unsigned i = 0; i < ROUNDS; i++)
                assert_false(memory->seen[0][i] && memory->seen[1][i]);
            free(memory);
        }
}

/* ---- independent reads of independent writes ----------------------------------------------- */

static void write_x(struct memory *memory, unsigned i, unsigned who) {
    atomic_store_explicit(&memory->x[i], 1, memory_order_relaxed);
}

static void write_y(struct memory *memory, unsigned i, unsigned who) {
    atomic_store_explicit(&memory->y[i], 1, memory_order_relaxed);
}

static void read_xy(struct memory *memory, unsigned i, unsigned who) {
    memory->seen[who][i] = atomic_load_explicit(&memory->x[i], memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    memory->second[who][i] = atomic_load_explicit(&memory->y[i], memory_order_relaxed);
}

static void read_yx(struct memory *memory, unsigned i, unsigned who) {
    memory->seen[who][i] = atomic_load_explicit(&memory->y[i], memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    memory->second[who][i] = atomic_load_explicit(&memory->x[i], memory_order_relaxed);
}

/* Two readers agree on which of two writes came first. */
TEST(two_readers_agree_on_the_order_of_two_writes) {
    static const unsigned mixes[] = {12, 3, 10, 15};
    static const struct part parts[4] = {
        {"st.relaxed.sys.u32 [%x], 1;", write_x},
        {"st.relaxed.sys.u32 [%y], 1;", write_y},
        {"ld.relaxed.sys.u32 %r1, [%x]; fence.sc.sys; ld.relaxed.sys.u32 %r2, [%y];", read_xy},
        {"ld.relaxed.sys.u32 %r1, [%y]; fence.sc.sys; ld.relaxed.sys.u32 %r2, [%x];", read_yx}};
    for (size_t m = 0; m < sizeof mixes / sizeof *mixes; m++) {
        struct memory *memory = play(parts, 4, mixes[m]);
        for (unsigned i = 0; i < ROUNDS; i++)
            assert_false(memory->seen[2][i] == 1 && memory->second[2][i] == 0 &&
                         memory->seen[3][i] == 1 && memory->second[3][i] == 0);
        free(memory);
    }
}

/* ---- one location -------------------------------------------------------------------------- */

static void count(struct memory *memory, unsigned i, unsigned who) {
    memory->seen[who][i] = atomic_fetch_add_explicit(&memory->x[0], 1, memory_order_relaxed);
}

static void watch(struct memory *memory, unsigned i, unsigned who) {
    memory->seen[who][i] = atomic_load_explicit(&memory->x[0], memory_order_relaxed);
    memory->second[who][i] = atomic_load_explicit(&memory->x[0], memory_order_relaxed);
}

/* Nothing that is added gets lost, and what is read does not go back. */
TEST(each_location_has_a_coherent_order) {
    static const struct part parts[3] = {
        {"mul.wide.u32 %t, %i, 4; sub.u64 %x, %x, %t; atom.relaxed.sys.add.u32 %r1, [%x], 1;\n"
         "add.u64 %x, %x, %t; ld.param.u64 %t, [t];",
         count},
        {"mul.wide.u32 %t, %i, 4; sub.u64 %x, %x, %t; atom.relaxed.sys.add.u32 %r1, [%x], 1;\n"
         "add.u64 %x, %x, %t; ld.param.u64 %t, [t];",
         count},
        {"mul.wide.u32 %go, %i, 4; sub.u64 %go, %x, %go; ld.relaxed.sys.u32 %r1, [%go];\n"
         "ld.relaxed.sys.u32 %r2, [%go];",
         watch}};
    for (unsigned kernels = 1; kernels < 8; kernels++) {
        struct memory *memory = play(parts, 3, kernels);
        assert_int_equal(memory->x[0], 2 * ROUNDS);
        for (unsigned i = 1; i < ROUNDS; i++) {
            assert_true(memory->seen[0][i] > memory->seen[0][i - 1]);
            assert_true(memory->seen[2][i] >= memory->second[2][i - 1]);
            assert_true(memory->second[2][i] >= memory->seen[2][i]);
        }
        free(memory);
    }
}

/* ---- within a block ------------------------------------------------------------------------- */

/* The second warp takes what the first one sends, round after round, at the scope of the block; in
 * any order of the warps' turns. */
TEST(warps_of_a_block_pass_messages) {
    static const char text[] =
        ".version 8.0\n.target sm_90\n.address_size 64\n"
        ".visible .entry k(.param .u64 at) {\n"
        ".reg .pred %p; .reg .b32 %r<6>; .reg .b64 %flag, %data, %sum;\n"
        "ld.param.u64 %flag, [at]; add.u64 %data, %flag, 4; add.u64 %sum, %flag, 8;\n"
        "mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 31; setp.ne.u32 %p, %r2, 0; @%p exit;\n"
        "mov.u32 %r3, 0; mov.u32 %r5, 0; setp.eq.u32 %p, %r1, 0; @!%p bra TAKE;\n"
        "SEND: add.u32 %r3, %r3, 1; st.weak.u32 [%data], %r3; st.release.cta.u32 [%flag], %r3;\n"
        "EMPTY: ld.acquire.cta.u32 %r4, [%flag]; setp.ne.u32 %p, %r4, 0; @%p bra EMPTY;\n"
        "setp.lt.u32 %p, %r3, 100; @%p bra SEND; exit;\n"
        "TAKE: add.u32 %r3, %r3, 1;\n"
        "FULL: ld.acquire.cta.u32 %r4, [%flag]; setp.ne.u32 %p, %r4, %r3; @%p bra FULL;\n"
        "ld.weak.u32 %r4, [%data]; add.u32 %r5, %r5, %r4; st.release.cta.u32 [%flag], 0;\n"
        "setp.lt.u32 %p, %r3, 100; @%p bra TAKE; st.u32 [%sum], %r5; ret; }\n";
    for (uint64_t seed = 0; seed < 20; seed++) {
        uint32_t words[3] = {0};
        struct kernel kernel = KERNEL_WITH(text, sg_level_best(), 1, 64, words);
        kernel.launch.schedule = seed ? SG_GRID_RANDOM : SG_GRID_EAGER;
        kernel.launch.seed = seed;
        kernel_succeeds(&kernel);
        assert_int_equal(words[2], 5050);
        kernel_free(&kernel);
    }
}

/* ---- that a mistake would be noticed --------------------------------------------------------- */

/* A message by weak words, told of by relaxed ones: a race, which the sanitizer must see here as
 * well as it must see none above. */
static void race(void) {
    static const struct part parts[2] = {
        {"add.u32 %r3, %i, 1; st.weak.u32 [%d], %r3; st.relaxed.sys.u32 [%x], 1;", send},
        {"ld.relaxed.sys.u32 %r1, [%x];" RECEIVED, receive}};
    free(play(parts, 2, 1));
}

TEST(thread_sanitizer_reports_an_unordered_message) {
#ifdef __SANITIZE_THREAD__
    int status = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int nowhere = open("/dev/null", O_WRONLY);
        dup2(nowhere, STDERR_FILENO);
        execl("/proc/self/exe", "run", test_file(), "--child", "other", (char *)NULL);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 0);
#else
    print_message("skip: only a build with ThreadSanitizer sees races\n");
    skip();
#endif
}

CHILD_THAT_ENDS(other) {
    race();
}
