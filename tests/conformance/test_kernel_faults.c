/*
 * Faults of kernels: each ends its context, which answers with the same error from then on; and
 * what is said of them. A process for each: the fault stays with the device.
 */
#include "kernel_module.h"

static const char *const strings[] = {"x < 4", "some/file.cu", "void check(int)", "before %d\n",
                                      NULL};
static const char text[] =
    ".extern .func __assertfail (.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n,\n"
    ".param .b64 c);\n"
    ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n"
    ".visible .entry address(.param .u64 p) { .reg .b64 %d; ld.param.u64 %d, [p];\n"
    "st.global.u32 [%d], 1; ret; }\n"
    ".visible .entry misaligned(.param .u64 p) { .reg .b64 %d; .reg .b32 %r;\n"
    "ld.param.u64 %d, [p]; ld.global.u32 %r, [%d+2]; st.global.u32 [%d], %r; ret; }\n"
    ".visible .entry trap(.param .u64 p) { trap; ret; }\n"
    ".visible .entry shared(.param .u64 p) { .reg .b64 %d; .reg .b32 %r; .shared .b32 s[4];\n"
    "ld.param.u64 %d, [p]; cvt.u32.u64 %r, %d; st.shared.u32 [%r], %r; ret; }\n"
    ".visible .entry asserts(.param .u64 p) { .reg .b64 %d<4>; .reg .pred %q; .reg .b32 %r;\n"
    "mov.u32 %r, %tid.x; setp.lt.u32 %q, %r, 4; @%q ret;\n"
    "mov.u64 %d0, s0; cvta.global.u64 %d0, %d0; mov.u64 %d1, s1; cvta.global.u64 %d1, %d1;\n"
    "mov.u64 %d2, s2; cvta.global.u64 %d2, %d2;\n"
    "{ .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;\n"
    "st.param.b64 [a], %d0; st.param.b64 [b], %d1; st.param.b32 [c], 17;\n"
    "st.param.b64 [d], %d2; st.param.b64 [e], 1; call.uni __assertfail, (a, b, c, d, e); }\n"
    "ret; }\n"
    ".visible .entry waits(.param .u64 p) { .reg .b64 %d; .reg .b32 %r; .reg .pred %q;\n"
    "ld.param.u64 %d, [p];\n"
    "again: ld.volatile.global.u32 %r, [%d]; setp.eq.u32 %q, %r, 0; @%q bra again; ret; }\n"
    ".visible .entry apart(.param .u64 p) { .reg .b32 %r; .reg .pred %q;\n"
    "mov.u32 %r, %tid.x; setp.lt.u32 %q, %r, 32; @%q bra one;\n"
    "bar.sync 2; ret;\none: bar.sync 1; ret; }\n";

static CUresult launch(const char *name, uint64_t value, unsigned threads) {
    CUmodule module = kernel_module(strings, text);
    void *params[] = {&value};
    return kernel_launch(function_of(module, name), 1, threads, params);
}

/* argv: the kernel, the error wanted, what it gets: nothing, memory of 100 bytes and an offset */
CHILD_THAT_ENDS(faults) {
    assert_int_equal(argc, 4);
    init_driver();
    size_t free_bytes, total;
    CUresult wanted = (CUresult)atoi(argv[2]);
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 100);
    CUstream stream = MADE_CU(CUstream, cuStreamCreate, 0);
    CUevent event = MADE_CU(CUevent, cuEventCreate, 0);
    uint64_t value = (uint64_t)atoi(argv[3]);
    value += argv[3][0] == '+' ? (uint64_t)p : 0;
    OK_CU(launch(argv[1], value, 8));
    CUresult result = cu.cuCtxSynchronize();
    if (wanted != CUDA_SUCCESS)
        ANSWERS_CU(wanted, result);
    assert_int_not_equal(result, CUDA_SUCCESS);
    ANSWERS_CU(result, cu.cuCtxSynchronize());
    ANSWERS_CU(result, cu.cuMemAlloc_v2(&p, 100));
    ANSWERS_CU(result, cu.cuMemGetInfo_v2(&free_bytes, &total));
    ANSWERS_CU(result, cu.cuStreamSynchronize(stream));
    ANSWERS_CU(result, cu.cuStreamQuery(NULL));
    ANSWERS_CU(result, cu.cuEventRecord(event, stream));
    ANSWERS_CU(result, cu.cuMemsetD8_v2(p, 0, 1));
}

static void fault(const char *kernel, CUresult wanted, const char *value) {
    char number[16];
    snprintf(number, sizeof number, "%d", (int)wanted);
    assert_int_equal(run_child("faults", kernel, number, value, NULL), 0);
}

TEST_WHERE(an_access_to_unmapped_memory_is_an_illegal_address, NEEDS_KERNELS()) {
    fault("address", CUDA_ERROR_ILLEGAL_ADDRESS, "16");
}

TEST_WHERE(a_misaligned_access_is_a_fault, NEEDS_KERNELS()) {
    fault("misaligned", CUDA_ERROR_MISALIGNED_ADDRESS, "+0");
}

/* Which errors these are, tests/parity records. */
TEST_WHERE(traps_and_out_of_range_shared_accesses_are_faults, NEEDS_KERNELS()) {
    fault("trap", CUDA_SUCCESS, "0");
    fault("shared", CUDA_SUCCESS, "1048576");
}

DRIVER_CHILD(asserts) {
    int saved = dup(STDERR_FILENO), file = output_begin(STDERR_FILENO);
    OK_CU(launch("asserts", 0, 6));
    FAILS_CU(ASSERT, cu.cuCtxSynchronize());
    FAILS_CU(ASSERT, cu.cuCtxSynchronize());
    dup2(saved, STDERR_FILENO);
    close(saved);
    char *got = output_so_far(file);
    const char *wanted[] = {"some/file.cu:17: void check(int): block: [0,0,0], thread: [4,0,0] "
                            "Assertion `x < 4` failed.\n",
                            "some/file.cu:17: void check(int): block: [0,0,0], thread: [5,0,0] "
                            "Assertion `x < 4` failed.\n"};
    for (int i = 0; i < 2; i++)
        if (!strstr(got, wanted[i]))
            fail_msg("standard error has \"%s\", without \"%s\"", got, wanted[i]);
    assert_null(strstr(got, "thread: [3,0,0]"));
    free(got);
}

TEST_WHERE(a_failed_assertion_prints_its_text, NEEDS_KERNELS()) {
    assert_int_equal(run_child("asserts", NULL), 0);
}

/* Whichever call finds the fault, also one that is refused for it at once. */
DRIVER_CHILD(found_by_query) {
    int saved = dup(STDERR_FILENO), file = output_begin(STDERR_FILENO);
    OK_CU(launch("asserts", 0, 6));
    CUresult result;
    do {
        result = cu.cuStreamQuery(NULL);
    } while (result == CUDA_ERROR_NOT_READY);
    dup2(saved, STDERR_FILENO);
    close(saved);
    assert_int_equal(result, CUDA_ERROR_ASSERT);
    char *got = output_so_far(file);
    assert_non_null(strstr(got, "thread: [5,0,0] Assertion `x < 4` failed.\n"));
    free(got);
}

TEST(the_call_that_finds_a_failed_assertion_has_its_text_printed) {
    NEEDS_SOFTGPU("when hardware writes it is not known");
    NEEDS_KERNELS();
    for (int i = 0; i < 10; i++)
        assert_int_equal(run_child("found_by_query", NULL), 0);
}

/* ---- softgpu's own reports ------------------------------------------------------------------- */

/* argv: the kernel, the offset, "freed" or "", then what the report must contain. */
DRIVER_CHILD(reports) {
    char name[TEMPORARY_ROOM], report[8192] = "";
    unsigned char on = 1;
    size_t one = 1, length;
    int descriptor = temporary_file(name, "report");
    assert_true(descriptor >= 0);
    close(descriptor);
    length = strlen(name) + 1;
    OK_CU(cu.cuCoredumpSetAttribute(CU_COREDUMP_FILE, name, &length));
    OK_CU(cu.cuCoredumpSetAttribute(CU_COREDUMP_ENABLE_ON_EXCEPTION, &on, &one));
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 100);
    uint64_t value = (uint64_t)p + (uint64_t)(int64_t)atoi(argv[2]);
    if (strcmp(argv[3], "freed") == 0)
        OK_CU(cu.cuMemFree_v2(p));
    if (strcmp(argv[1], "waits") == 0)
        OK_CU(cu.cuMemsetD32_v2(p, 0, 1));
    int saved = dup(STDERR_FILENO), file = output_begin(STDERR_FILENO);
    OK_CU(launch(argv[1], value, strcmp(argv[1], "apart") == 0 ? 64 : 4));
    CUresult result = cu.cuCtxSynchronize();
    dup2(saved, STDERR_FILENO);
    close(saved);
    assert_int_not_equal(result, CUDA_SUCCESS);
    FILE *in = fopen(name, "r");
    assert_non_null(in);
    report[fread(report, 1, sizeof report - 1, in)] = '\0';
    fclose(in);
    assert_int_equal(unlink(name), 0);
    char *log = output_so_far(file);
    for (int i = 4; i < argc; i++) {
        if (!strstr(report, argv[i]))
            fail_msg("the report of the core dump is without \"%s\":\n%s", argv[i], report);
        if (!strstr(log, argv[i]))
            fail_msg("the log is without \"%s\":\n%s", argv[i], log);
    }
    free(log);
}

/* The thread that is told the error may end the process: the log is complete by then. */
DRIVER_CHILD(reported_in_time) {
    int saved = dup(STDERR_FILENO), file = output_begin(STDERR_FILENO);
    OK_CU(launch("address", 16, 8));
    CUresult result;
    do {
        result = cu.cuStreamQuery(NULL);
    } while (result == CUDA_ERROR_NOT_READY);
    char *log = output_so_far(file);
    dup2(saved, STDERR_FILENO);
    close(saved);
    assert_int_equal(result, CUDA_ERROR_ILLEGAL_ADDRESS);
    if (!strstr(log, "kernel address: illegal address") || !strstr(log, "thread 0,0,0"))
        fail_msg("the log is \"%s\"", log);
    free(log);
}

TEST(the_fault_report_is_written_before_the_error_is_returned) {
    NEEDS_SOFTGPU("the reports are its own");
    NEEDS_KERNELS();
    for (int i = 0; i < 20; i++)
        assert_int_equal(run_child("reported_in_time", NULL), 0);
}

TEST_WHERE(fault_reports_locate_the_address, NEEDS_SOFTGPU("the reports are its own")) {
    NEEDS_KERNELS();
    assert_int_equal(run_child("reports", "address", "512", "",
                               "412 bytes behind the end of an allocation of 100 bytes", NULL),
                     0);
    assert_int_equal(setenv("SOFTGPU_BOUNDS", "exact", 1), 0);
    const int status[] = {
        run_child("reports", "address", "100", "",
                  "kernel address: illegal address: write of 4 bytes at 0x",
                  "PTX line 12: st.global.u32 [%d], 1;", "block 0,0,0 thread 0,0,0",
                  "0 bytes behind the end of an allocation of 100 bytes", NULL),
        run_child("reports", "address", "98", "",
                  "2 bytes before the end of an allocation of 100 bytes", NULL),
        run_child("reports", "address", "-4", "", "4 bytes in front of an allocation of 100 bytes",
                  NULL),
        run_child("reports", "address", "40", "freed",
                  "40 bytes inside of an allocation of 100 bytes", "that has been freed", NULL),
    };
    unsetenv("SOFTGPU_BOUNDS");
    for (size_t i = 0; i < COUNT(status); i++)
        assert_int_equal(status[i], 0);
}

TEST_WHERE(deadlock_reports_name_who_waits_where, NEEDS_SOFTGPU("the reports are its own")) {
    NEEDS_KERNELS();
    assert_int_equal(run_child("reports", "apart", "0", "", "kernel apart: deadlock",
                               "warp 0 lanes ffffffff line 32: waits for barrier 1",
                               "warp 1 lanes ffffffff line 31: waits for barrier 2", NULL),
                     0);
}

TEST_WHERE(an_endless_kernel_is_ended_at_the_time_limit, NEEDS_SOFTGPU("SOFTGPU_KERNEL_LIMIT")) {
    NEEDS_KERNELS();
    assert_int_equal(setenv("SOFTGPU_KERNEL_LIMIT", "1", 1), 0);
    int status = run_child("reports", "waits", "0", "", "kernel waits: out of time",
                           "warp 0 lanes 0000000f line 28: runs", NULL);
    unsetenv("SOFTGPU_KERNEL_LIMIT");
    assert_int_equal(status, 0);
}
