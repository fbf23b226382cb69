/*
 * printf of kernels: what is printed, when, what is lost, and what a call returns. Each test is a
 * process of its own, whose standard output is a file.
 */
#include "kernel_module.h"

/* say(out): each thread prints its numbers, a string of its own and a double, and stores the
 * results. count(n): one line for each number. */
static const char *const strings[] = {
    "block %d thread %d: %s %6.2f %lld|\n", "%d\n", "device", "plain\n", "%v4hlf %v2d\n", NULL};
static const char text[] =
    ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n"
    ".visible .entry say(.param .u64 out) {\n"
    ".local .align 8 .b8 list[40]; .reg .b64 %d<10>; .reg .b32 %r<8>;\n"
    "mov.u64 %d1, list; cvta.local.u64 %d2, %d1; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x;\n"
    "st.local.u32 [%d1], %r1; st.local.u32 [%d1+4], %r2; mov.u64 %d3, s2;\n"
    "cvta.global.u64 %d3, %d3; st.local.u64 [%d1+8], %d3; mov.f64 %d4, 0d4005BF0A8B145769;\n"
    "st.local.b64 [%d1+16], %d4; mov.u64 %d5, -5000000000; st.local.u64 [%d1+24], %d5;\n"
    "mov.u64 %d6, s0; cvta.global.u64 %d6, %d6;\n"
    "{ .param .b64 p0; .param .b64 p1; .param .b32 p2; st.param.b64 [p0], %d6;\n"
    "st.param.b64 [p1], %d2; call.uni (p2), vprintf, (p0, p1); ld.param.b32 %r3, [p2]; }\n"
    "ld.param.u64 %d7, [out]; mul.wide.u32 %d8, %r2, 4; add.u64 %d7, %d7, %d8;\n"
    "st.global.u32 [%d7], %r3; ret; }\n"
    ".visible .entry count(.param .u32 n) {\n"
    ".local .align 8 .b8 list[8]; .reg .b64 %d<4>; .reg .b32 %r<4>; .reg .pred %p;\n"
    "mov.u64 %d1, list; cvta.local.u64 %d2, %d1; mov.u64 %d3, s1; cvta.global.u64 %d3, %d3;\n"
    "mov.u32 %r1, 0; ld.param.u32 %r2, [n];\n"
    "again: setp.ge.u32 %p, %r1, %r2; @%p ret; st.local.u32 [%d1], %r1;\n"
    "{ .param .b64 p0; .param .b64 p1; .param .b32 p2; st.param.b64 [p0], %d3;\n"
    "st.param.b64 [p1], %d2; call.uni (p2), vprintf, (p0, p1); }\n"
    "add.u32 %r1, %r1, 1; bra again; }\n"
    /* plain(out): a text without arguments, and no text */
    ".visible .entry plain(.param .u64 out) {\n"
    ".reg .b64 %d<4>; .reg .b32 %r<4>; mov.u64 %d1, s3; cvta.global.u64 %d1, %d1;\n"
    "mov.u64 %d2, 0; ld.param.u64 %d3, [out];\n"
    "{ .param .b64 p0; .param .b64 p1; .param .b32 p2; st.param.b64 [p0], %d1;\n"
    "st.param.b64 [p1], %d2; call.uni (p2), vprintf, (p0, p1); ld.param.b32 %r1, [p2];\n"
    "st.param.b64 [p0], %d2; call.uni (p2), vprintf, (p0, p1); ld.param.b32 %r2, [p2]; }\n"
    "st.global.u32 [%d3], %r1; st.global.u32 [%d3+4], %r2; ret; }\n"
    ".visible .entry nothing() { ret; }\n"
    /* vectors(): of four floats and of two integers, as OpenCL lays them out; nothing hands them
     * over to the host, which reads the format in their place */
    ".visible .entry vectors() {\n"
    ".local .align 16 .b8 list[32]; .reg .b64 %d<4>; .reg .f32 %f<4>; .reg .b32 %r<4>;\n"
    "mov.u64 %d1, list; cvta.local.u64 %d2, %d1; mov.u64 %d3, s4; cvta.global.u64 %d3, %d3;\n"
    "mov.f32 %f0, 0f3F800000; mov.f32 %f1, 0fC0200000; mov.f32 %f2, 0f00000000;\n"
    "mov.f32 %f3, 0f40400000; st.local.v4.f32 [%d1], {%f0, %f1, %f2, %f3};\n"
    "mov.u32 %r1, 5; mov.u32 %r2, -6; st.local.v2.u32 [%d1+16], {%r1, %r2};\n"
    "{ .param .b64 p0; .param .b64 p1; .param .b32 p2; st.param.b64 [p0], %d3;\n"
    "st.param.b64 [p1], %d2; call.uni (p2), vprintf, (p0, p1); } ret; }\n";

static int file;

static void expect(const char *wanted) {
    char *got = output_so_far(file);
    if (strcmp(got, wanted) != 0)
        fail_msg("printed is \"%s\", not \"%s\"", got, wanted);
    free(got);
}

static CUmodule begin(void) {
    init_driver();
    CUmodule module = kernel_module(strings, text);
    file = output_begin(STDOUT_FILENO);
    return module;
}

CHILD_THAT_ENDS(values) {
    CUmodule module = begin();
    int results[3];
    CUdeviceptr out = MADE_CU(CUdeviceptr, cuMemAlloc_v2, sizeof results);
    void *params[] = {&out};
    OK_CU(kernel_launch(function_of(module, "say"), 1, 3, params));
    OK_CU(cu.cuCtxSynchronize());
    expect("block 0 thread 0: device   2.72 -5000000000|\n"
           "block 0 thread 1: device   2.72 -5000000000|\n"
           "block 0 thread 2: device   2.72 -5000000000|\n");
    OK_CU(cu.cuMemcpyDtoH_v2(results, out, sizeof results));
    for (int i = 0; i < 3; i++)
        assert_int_equal(results[i], 5);
    OK_CU(kernel_launch(function_of(module, "plain"), 1, 1, params));
    OK_CU(cu.cuMemcpyDtoH_v2(results, out, sizeof results));
    assert_int_equal(results[0], 0);
    assert_int_equal(results[1], -1);
}

CHILD_THAT_ENDS(vectors) {
    CUmodule module = begin();
    OK_CU(kernel_launch(function_of(module, "vectors"), 1, 1, NULL));
    OK_CU(cu.cuCtxSynchronize());
    expect("3408821395392853075558400.000000,0.000000,0.000000,0.0000000,0\n");
}

/* Prints one line more, and waits for it without a call that prints. */
static void print_one(CUmodule module) {
    unsigned one = 1;
    void *params[] = {&one};
    OK_CU(kernel_launch(function_of(module, "count"), 1, 1, params));
    while (cu.cuStreamQuery(NULL) == CUDA_ERROR_NOT_READY)
        ;
}

static void CUDAAPI callback(CUstream stream, CUresult status, void *user) {
    char *got = output_so_far(file);
    *(size_t *)user = strlen(got);
    free(got);
}

static void CUDAAPI function(void *user) {
    callback(NULL, CUDA_SUCCESS, user);
}

CHILD_THAT_ENDS(moments) {
    CUmodule module = begin(), other = kernel_module(NULL, ".visible .entry nothing() { ret; }\n");
    size_t seen = 99;
    char byte;
    CUevent event = MADE_CU(CUevent, cuEventCreate, 0);
    CUdeviceptr memory = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 16);
    print_one(module);
    expect(""); /* a query prints nothing */
    OK_CU(cu.cuStreamSynchronize(NULL));
    expect("0\n");
    print_one(module);
    OK_CU(cu.cuMemcpyDtoH_v2(&byte, memory, 1));
    expect("0\n0\n");
    print_one(module);
    OK_CU(cu.cuEventRecord(event, NULL));
    OK_CU(cu.cuEventSynchronize(event));
    expect("0\n0\n0\n");
    print_one(module);
    OK_CU(kernel_launch(function_of(module, "nothing"), 1, 1, NULL));
    expect("0\n0\n0\n"); /* nor does a launch */
    print_one(module);
    OK_CU(cu.cuModuleUnload(other));
    expect("0\n0\n0\n0\n0\n");
    print_one(module);
    OK_CU(cu.cuStreamAddCallback(NULL, callback, &seen, 0));
    OK_CU(cu.cuStreamSynchronize(NULL));
    if (soft) /* hardware may write it later */
        assert_int_equal(seen, 12);
    print_one(module);
    OK_CU(cu.cuLaunchHostFunc(NULL, function, &seen));
    OK_CU(cu.cuStreamSynchronize(NULL));
    expect("0\n0\n0\n0\n0\n0\n0\n");
}

/* CUDA_LAUNCH_BLOCKING is set. */
CHILD_THAT_ENDS(blocking) {
    CUmodule module = begin();
    unsigned two = 2;
    void *params[] = {&two};
    OK_CU(kernel_launch(function_of(module, "count"), 1, 1, params));
    expect("0\n1\n");
}

DRIVER_CHILD(context_end) {
    CUcontext context = MADE_CU(CUcontext, cuCtxCreate_v2, 0, dev);
    CUmodule module = kernel_module(strings, text);
    file = output_begin(STDOUT_FILENO);
    print_one(module);
    expect("");
    OK_CU(cu.cuCtxDestroy_v2(context));
    expect("0\n");
}

/* Of LINES lines that were printed: numbers in succession, each on a line of its own. */
enum { LINES = 100000 };
static unsigned read_lines(unsigned *first, unsigned *count) {
    char *got = output_so_far(file);
    unsigned breaks = 0, next = 0;
    *count = 0;
    for (char *at = got, *end; *at; at = end + 1) {
        unsigned long number = strtoul(at, &end, 10);
        assert_true(*end == '\n' && number < LINES);
        if (at == got)
            *first = (unsigned)number;
        breaks += at != got && number != next;
        next = (unsigned)number + 1;
        ++*count;
    }
    free(got);
    fprintf(stderr, "# of %d lines %u are printed, from %u to %u, not in succession %u times\n",
            LINES, *count, *first, next - 1, breaks);
    return breaks;
}

/* softgpu keeps the newest; how many a GPU keeps is its own: it divides the fifo among its
 * multiprocessors. */
DRIVER_CHILD(overflow) {
    unsigned n = LINES, first = 0, count = 0;
    void *params[] = {&n};
    OK_CU(cu.cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, (size_t)512 << 10));
    CUmodule module = kernel_module(strings, text);
    file = output_begin(STDOUT_FILENO);
    OK_CU(kernel_launch(function_of(module, "count"), 1, 1, params));
    OK_CU(cu.cuCtxSynchronize());
    unsigned breaks = read_lines(&first, &count);
    assert_true(count > 0 && count < LINES);
    if (soft) {
        assert_int_equal(breaks, 0);
        assert_int_equal(first + count, LINES);
        assert_true(first < LINES - 1000);
    }
    size_t limit = MADE_CU(size_t, cuCtxGetLimit, CU_LIMIT_PRINTF_FIFO_SIZE);
    if (soft)
        assert_int_equal(limit, (size_t)512 << 10);
    fprintf(stderr, "# the limit is %zu\n", limit);
    FAILS_CU(INVALID_VALUE, cu.cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, (size_t)1 << 20));
}

#define IN_CHILD(name, child)                                                                      \
    TEST(name) {                                                                                   \
        NEEDS_KERNELS();                                                                           \
        assert_int_equal(run_child(child, NULL), 0);                                               \
    }
IN_CHILD(values_are_printed_as_on_the_host, "values")
IN_CHILD(vector_conversions_print_the_bytes_after_the_arguments, "vectors")
IN_CHILD(text_is_printed_when_the_host_synchronizes, "moments")
TEST_WHERE(text_is_printed_at_the_end_of_a_blocking_launch, NEEDS_KERNELS()) {
    assert_int_equal(setenv("CUDA_LAUNCH_BLOCKING", "1", 1), 0);
    int status = run_child("blocking", NULL);
    unsetenv("CUDA_LAUNCH_BLOCKING");
    assert_int_equal(status, 0);
}
IN_CHILD(text_is_printed_when_the_context_is_destroyed, "context_end")
IN_CHILD(text_beyond_the_printf_buffer_is_lost, "overflow")
