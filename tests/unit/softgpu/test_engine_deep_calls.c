/*
 * Calls tens of thousands deep, on a thread whose own stack is small: what the engine keeps of them
 * is walked and given back without recursion.
 */
#include "kernel.h"

#include <pthread.h>

#define SMALL_STACK ((size_t)256 << 10)
#define STACK_LIMIT (512u << 10) /* of a thread of the kernel: 16 bytes each call at least */

static void *advance(void *grid) {
    while (!sg_grid_advance(grid, UINT64_MAX))
        ;
    sg_grid_end(grid);
    return NULL;
}

/* Runs and ends it on that thread. */
static void run_on_small_stack(struct kernel *kernel) {
    pthread_attr_t attributes;
    pthread_t thread;
    struct sg_grid *grid;
    kernel->launch.parameters = kernel->parameters;
    kernel->launch.stack_limit = STACK_LIMIT;
    assert_int_equal(sg_grid_begin(&kernel->launch, &grid), CUDA_SUCCESS);
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, SMALL_STACK), 0);
    assert_int_equal(pthread_create(&thread, &attributes, advance, grid), 0);
    pthread_attr_destroy(&attributes);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* All its calls are still under way when the grid ends. */
TEST(endless_recursion_is_freed_on_a_small_stack) {
    struct kernel kernel;
    kernel_make(&kernel,
                KERNEL_HEAD ".func f() { call.uni f, (); ret; }\n"
                            ".visible .entry k() { call.uni f, (); ret; }\n",
                SG_LEVEL_GENERIC);
    struct sg_grid_fault fault = kernel_run(&kernel, 0);
    assert_int_equal(fault.kind, SG_FAULT_STACK);
    run_on_small_stack(&kernel);
    kernel_free(&kernel);
}

/* Lanes at the end of deep calls wait for others, which call another function meanwhile: its frame
 * is to lie behind all of theirs. */
TEST(a_call_beside_deep_calls_gets_its_own_frame) {
    static const char text[] = KERNEL_HEAD
        ".func deep(.param .b32 n) { .reg .b32 %n; .reg .pred %p; ld.param.b32 %n, [n];\n"
        "setp.eq.u32 %p, %n, 0; @%p bra LAST; sub.u32 %n, %n, 1;\n"
        "{ .param .b32 a; st.param.b32 [a], %n; call deep, (a); } ret;\n"
        "LAST: bar.warp.sync -1; ret; }\n"
        ".func (.param .b32 r) beside() { bar.warp.sync -1; st.param.b32 [r], 5; ret; }\n"
        ".visible .entry k(.param .u64 out) {\n"
        ".reg .b32 %t, %v; .reg .b64 %d, %at; .reg .pred %p;\n"
        "ld.param.u64 %at, [out]; mov.u32 %t, %tid.x; mul.wide.u32 %d, %t, 4;\n"
        "add.u64 %at, %at, %d; and.b32 %v, %t, 1; setp.eq.u32 %p, %v, 0; @%p bra EVEN;\n"
        "{ .param .b32 a; st.param.b32 [a], 20000; call deep, (a); } bra.uni DONE;\n"
        "EVEN: { .param .b32 b; call (b), beside, (); ld.param.b32 %v, [b]; }\n"
        "DONE: st.global.u32 [%at], %v; ret; }\n";
    uint32_t out[32] = {0};
    struct kernel kernel;
    kernel_make(&kernel, text, SG_LEVEL_GENERIC);
    kernel_pointer(&kernel, out);
    run_on_small_stack(&kernel);
    for (uint32_t i = 0; i < 32; i++)
        assert_int_equal(out[i], i % 2 ? 1 : 5);
    kernel_free(&kernel);
}

/* However many calls there are, and however large their frames: their depth is known. */
TEST(calls_without_recursion_do_not_count_against_the_stack_limit) {
    char source[16384] =
        KERNEL_HEAD ".func f0(.param .u64 p) { .local .align 64 .b8 l[5000];\n"
                    ".reg .b64 %p; ld.param.u64 %p, [p]; st.local.u32 [l+4996], 7;\n"
                    ".reg .b32 %v; ld.local.u32 %v, [l+4996]; st.u32 [%p], %v; ret; }\n";
    for (int i = 1; i <= 65; i++)
        snprintf(source + strlen(source), sizeof source - strlen(source),
                 ".func f%d(.param .u64 p) { .reg .b64 %%p; ld.param.u64 %%p, [p];\n"
                 "{ .param .u64 a; st.param.u64 [a], %%p; call f%d, (a); } ret; }\n",
                 i, i - 1);
    /* Directly, and through a register. */
    snprintf(source + strlen(source), sizeof source - strlen(source),
             ".visible .entry k(.param .u64 p, .param .u64 q) { .reg .b64 %%p, %%f;\n"
             "ld.param.u64 %%p, [p]; { .param .u64 a; st.param.u64 [a], %%p; call f65, (a); }\n"
             "T: .callprototype _ (.param .u64 _);\n"
             "ld.param.u64 %%p, [q]; mov.u64 %%f, f0;\n"
             "{ .param .u64 a; st.param.u64 [a], %%p; call %%f, (a), T; } ret; }\n");
    uint32_t out[2] = {0};
    KERNEL_SUCCEEDS(source, SG_LEVEL_GENERIC, 1, 1, &out[0], &out[1]);
    assert_int_equal(out[0] + out[1], 14);
}
